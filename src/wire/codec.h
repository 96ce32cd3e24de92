/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * codec: little-endian fields in and out of one packet.
 *
 * A reader and a writer remember the first failure, so callers encode or decode
 * a whole message and look once.  Strings and byte runs carry a u32 length;
 * strings may not contain NUL.  Nothing here allocates: decoded runs point into
 * the packet.
 */
#include <string.h>
#include "base/err.h"

struct wire_writer {
	uint8_t *data;
	size_t len, cap;
	bool failed;            /* did not fit */
};

struct wire_reader {
	const uint8_t *data;
	size_t len, at;
	bool failed;            /* ended early, or held something malformed */
};

void wire_put_u8(struct wire_writer *w, uint8_t v);
void wire_put_u16(struct wire_writer *w, uint16_t v);
void wire_put_u32(struct wire_writer *w, uint32_t v);
void wire_put_u64(struct wire_writer *w, uint64_t v);
void wire_put_bytes(struct wire_writer *w, const void *data, size_t len);
void wire_put_str(struct wire_writer *w, const char *s);

uint8_t wire_get_u8(struct wire_reader *r);
uint16_t wire_get_u16(struct wire_reader *r);
uint32_t wire_get_u32(struct wire_reader *r);
uint64_t wire_get_u64(struct wire_reader *r);

/* Points *ret into the packet; the length is the result.  0 and NULL after a failure. */
size_t wire_get_bytes(struct wire_reader *r, const uint8_t **ret);

/* Copies into ret, always terminated.  Too long, or a NUL inside, fails the reader. */
void wire_get_str(struct wire_reader *r, char *ret, size_t size);

/* True when everything was read, nothing failed and nothing is left over. */
static inline bool wire_done(const struct wire_reader *r)
{
	return !r->failed && r->at == r->len;
}
