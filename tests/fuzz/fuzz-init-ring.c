/* SPDX-License-Identifier: Apache-2.0 */
/* The output ring under any sequence of appends, pushes and partial reads: it never loses count. */
#include <stdlib.h>
#include <string.h>
#include "init/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void step(struct ring *r, uint8_t op, size_t len)
{
	static uint8_t chunk[70000];
	uint8_t stream;

	switch (op % 4) {
	case 0:
		(void) !ring_append(r, (uint8_t) (op >> 7), chunk, len);
		break;
	case 1:
		ring_push(r, (uint8_t) (op >> 7), chunk, len);
		break;
	default:
		len = ring_peek(r, &stream, chunk, len);
		if (len)
			ring_pop(r, len);
	}
	must(r->used <= r->size && (r->used == 0) == ring_is_empty(r));
	must(!r->used || (r->head < r->size && r->last < r->size));
	must(ring_total() == r->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ring r = { .limit = 16384 };
	uint8_t stream, byte[64];
	size_t n;

	for (size_t i = 0; i + 3 <= size; i += 3)
		step(&r, data[i], (size_t) data[i + 1] << 8 | data[i + 2]);
	while ((n = ring_peek(&r, &stream, byte, sizeof byte)))
		ring_pop(&r, n);
	must(ring_total() == 0);
	return 0;
}
