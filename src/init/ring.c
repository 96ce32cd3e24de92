/* SPDX-License-Identifier: Apache-2.0 */
#include "init/ring.h"

#include <string.h>
#include "wire/init.h"

/*
 * A run is a 32-bit header, stream in the top byte and length below, then its
 * bytes.  Both wrap around the end of the memory like any other byte.
 */
enum { RUN_HEADER = 4, RUN_MAX = (1 << 24) - 1, SMALLEST = 4096 };

/*
 * Init's memory is outside of the sandbox's limit, so what a sandbox can make
 * it hold is bounded here: past this much, rings stay at their smallest size.
 */
enum { ALL_RINGS = 8 << 20 };

static size_t total;

static void copy_in(struct ring *r, uint32_t at, const void *data, uint32_t len)
{
	uint32_t first = MIN(len, r->size - at);

	memcpy(r->data + at, data, first);
	memcpy(r->data, (const uint8_t *) data + first, len - first);
}

static void copy_out(const struct ring *r, uint32_t at, void *ret, uint32_t len)
{
	uint32_t first = MIN(len, r->size - at);

	memcpy(ret, r->data + at, first);
	memcpy((uint8_t *) ret + first, r->data, len - first);
}

static uint32_t wrap(const struct ring *r, uint32_t at)
{
	return at & (r->size - 1);
}

static uint32_t run_at(const struct ring *r, uint32_t at)
{
	uint32_t header;

	copy_out(r, at, &header, sizeof header);
	return header;
}

static void put_run(struct ring *r, uint32_t at, uint8_t stream, uint32_t len)
{
	uint32_t header = (uint32_t) stream << 24 | len;

	copy_in(r, at, &header, sizeof header);
}

static uint32_t run_len(uint32_t header)
{
	return header & RUN_MAX;
}

static uint32_t limit_of(const struct ring *r)
{
	uint32_t limit = r->limit ? r->limit : INIT_RING_SIZE;

	return total > ALL_RINGS ? MAX(r->size, (uint32_t) SMALLEST) : limit;
}

/* Makes room for `need` more bytes, as far as the limit and the system allow. */
static bool grow(struct ring *r, size_t need)
{
	uint32_t size = r->size ? r->size : SMALLEST;
	uint8_t *data;

	if (need > INIT_RING_SIZE || r->used + need > limit_of(r))
		return false;
	while (size < r->used + need)
		size *= 2;
	if (size == r->size)
		return true;
	data = malloc(size);
	if (!data)
		return false;
	if (r->used) {
		copy_out(r, r->head, data, r->used);
		r->last = wrap(r, r->last - r->head);
	}
	free(r->data);
	total += size - r->size;
	r->data = data;
	r->size = size;
	r->head = 0;
	return true;
}

/* Can the newest run take these bytes too? */
static bool can_extend(const struct ring *r, uint8_t stream, size_t len)
{
	uint32_t header;

	if (!r->used)
		return false;
	header = run_at(r, r->last);
	return header >> 24 == stream && run_len(header) + len <= RUN_MAX;
}

bool ring_append(struct ring *r, uint8_t stream, const void *data, size_t len)
{
	bool extend = can_extend(r, stream, len);
	uint32_t end;

	if (!len)
		return true;
	if (!grow(r, len + (extend ? 0 : RUN_HEADER)))
		return false;
	end = wrap(r, r->head + r->used);
	if (extend) {
		put_run(r, r->last, stream, run_len(run_at(r, r->last)) + (uint32_t) len);
	} else {
		put_run(r, end, stream, (uint32_t) len);
		r->last = end;
		end = wrap(r, end + RUN_HEADER);
		r->used += RUN_HEADER;
	}
	copy_in(r, end, data, (uint32_t) len);
	r->used += (uint32_t) len;
	return true;
}

void ring_push(struct ring *r, uint8_t stream, const void *data, size_t len)
{
	size_t most = limit_of(r) - RUN_HEADER;

	if (len > most) {
		data = (const uint8_t *) data + (len - most);
		len = most;
	}
	while (!ring_append(r, stream, data, len)) {
		if (ring_is_empty(r))
			return;         /* no memory at all: this output is lost */
		ring_pop(r, MIN((size_t) run_len(run_at(r, r->head)), len + RUN_HEADER));
	}
}

size_t ring_peek(const struct ring *r, uint8_t *ret_stream, void *ret, size_t max)
{
	uint32_t header;
	size_t len;

	if (ring_is_empty(r))
		return 0;
	header = run_at(r, r->head);
	len = MIN((size_t) run_len(header), max);
	*ret_stream = (uint8_t) (header >> 24);
	copy_out(r, wrap(r, r->head + RUN_HEADER), ret, (uint32_t) len);
	return len;
}

void ring_pop(struct ring *r, size_t len)
{
	uint32_t header = run_at(r, r->head), left = run_len(header) - (uint32_t) len;

	if (left) {
		/* What remains gets a header of its own, over the bytes that are gone. */
		bool newest = r->last == r->head;

		r->head = wrap(r, r->head + (uint32_t) len);
		r->used -= (uint32_t) len;
		put_run(r, r->head, (uint8_t) (header >> 24), left);
		if (newest)
			r->last = r->head;
		return;
	}
	r->head = wrap(r, r->head + RUN_HEADER + run_len(header));
	r->used -= RUN_HEADER + run_len(header);
	if (!r->used)
		ring_done(r);
}

void ring_done(struct ring *r)
{
	total -= r->size;
	free(r->data);
	*r = (struct ring) { .limit = r->limit };
}

size_t ring_total(void)
{
	return total;
}
