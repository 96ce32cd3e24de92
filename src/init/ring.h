/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * ring: output of a command that could not be delivered yet.
 *
 * A byte ring of tagged runs ("these 40 bytes are stdout") that starts without
 * memory, grows by doubling up to its limit and frees everything when it is
 * emptied.  Two policies for a full ring: ring_append() refuses, ring_push()
 * forgets the oldest output.  No I/O, and no failure but being full: memory
 * that the system refuses counts as that.
 */
#include "base/base.h"

struct ring {
	uint8_t *data;          /* NULL while empty */
	uint32_t size;          /* power of two */
	uint32_t head;          /* of the oldest run */
	uint32_t used;          /* with the headers of the runs */
	uint32_t last;          /* position of the newest run's header, when used */
	uint32_t limit;         /* most bytes; 0 means INIT_RING_SIZE */
};

static inline bool ring_is_empty(const struct ring *r)
{
	return r->used == 0;
}

/* Adds everything, or nothing and returns false. */
bool ring_append(struct ring *r, uint8_t stream, const void *data, size_t len);

/* Adds the newest `limit` bytes and forgets as much of the oldest as that takes. */
void ring_push(struct ring *r, uint8_t stream, const void *data, size_t len);

/* Copies up to `max` bytes of the oldest run, without removing them; 0 when empty. */
size_t ring_peek(const struct ring *r, uint8_t *ret_stream, void *ret, size_t max);

/* Removes `len` bytes of the oldest run (no more than it has). */
void ring_pop(struct ring *r, size_t len);

void ring_done(struct ring *r);

/* Bytes held by all rings together, to bound what one sandbox may cost. */
size_t ring_total(void);
