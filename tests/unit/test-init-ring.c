/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"

#include "init/ring.h"
#include "wire/init.h"

static void put(struct ring *r, uint8_t stream, const char *text)
{
	CHECK(ring_append(r, stream, text, strlen(text)));
}

static void take(struct ring *r, uint8_t stream, const char *text, size_t max)
{
	char data[256] = "";
	uint8_t got = 0;
	size_t n = ring_peek(r, &got, data, max);

	data[n] = '\0';
	CHECK_INT(got, stream);
	CHECK_STR(data, text);
	ring_pop(r, n);
}

TEST(runs_come_back_in_order_with_their_stream)
{
	struct ring r = { 0 };

	put(&r, 1, "out");
	put(&r, 2, "err");
	put(&r, 1, "more");
	take(&r, 1, "out", 100);
	take(&r, 2, "err", 100);
	take(&r, 1, "more", 100);
	CHECK(ring_is_empty(&r) && !r.data);
	CHECK_INT(ring_total(), 0);
}

TEST(neighbours_of_one_stream_become_one_run)
{
	struct ring r = { 0 };

	put(&r, 1, "a");
	put(&r, 1, "b");
	CHECK_INT(r.used, 6);
	take(&r, 1, "ab", 100);
}

TEST(a_run_can_be_taken_in_pieces)
{
	struct ring r = { 0 };

	put(&r, 1, "abcdef");
	take(&r, 1, "ab", 2);
	put(&r, 1, "gh");
	take(&r, 1, "cde", 3);
	take(&r, 1, "fgh", 100);
	CHECK(ring_is_empty(&r));
}

TEST(an_append_that_does_not_fit_changes_nothing)
{
	struct ring r = { .limit = 8192 };
	static char big[8192];

	put(&r, 1, "abc");
	CHECK(!ring_append(&r, 2, big, sizeof big));
	CHECK(!ring_append(&r, 1, big, sizeof big));
	take(&r, 1, "abc", 100);
	CHECK(ring_append(&r, 2, big, sizeof big - 4));
	CHECK(!ring_append(&r, 2, "x", 1));
	ring_done(&r);
	CHECK_INT(ring_total(), 0);
}

TEST(a_push_keeps_the_newest)
{
	struct ring r = { .limit = 4096 };
	static char got[4096], big[10000];
	char text[16];
	uint8_t stream;
	size_t n, total = 0;

	for (int i = 0; i < 100000; i++) {
		snprintf(text, sizeof text, "%06d\n", i);
		ring_push(&r, (uint8_t) (1 + i % 2), text, 7);
	}
	while ((n = ring_peek(&r, &stream, got + total, sizeof got - total))) {
		ring_pop(&r, n);
		total += n;
	}
	CHECK(total > 2000 && !memcmp(got + total - 7, "099999\n", 7));
	for (size_t at = total % 7; at + 14 <= total; at += 7)
		CHECK_INT(strtol(got + at + 7, NULL, 10), strtol(got + at, NULL, 10) + 1);

	memset(big, 'x', sizeof big);
	big[sizeof big - 1] = 'y';
	ring_push(&r, 1, big, sizeof big);
	n = ring_peek(&r, &stream, got, sizeof got);
	CHECK_INT(n, 4092);
	CHECK_INT(got[n - 1], 'y');
	ring_done(&r);
}

TEST(many_full_rings_together_stay_bounded)
{
	static struct ring rings[200];
	static char data[65536];

	for (int round = 0; round < 8; round++)
		for (size_t i = 0; i < ARRAY_SIZE(rings); i++)
			ring_push(&rings[i], 1, data, sizeof data);
	CHECK(ring_total() < (10 << 20));
	for (size_t i = 0; i < ARRAY_SIZE(rings); i++) {
		CHECK(!ring_is_empty(&rings[i]));
		ring_done(&rings[i]);
	}
	CHECK_INT(ring_total(), 0);
}

/* A plain model: whatever is appended and popped, the bytes agree. */
TEST(random_use_agrees_with_a_list_of_bytes)
{
	static uint8_t model[1 << 20], streams[1 << 20], data[5000];
	struct ring r = { .limit = 16384 };
	size_t head = 0, tail = 0;
	unsigned seed = 1;

	for (int step = 0; step < 20000 && tail < sizeof model - 5000; step++) {
		seed = seed * 1103515245 + 12345;
		if (seed >> 16 & 1) {
			size_t len = 1 + (seed >> 17) % 900;
			uint8_t stream = (uint8_t) (1 + (seed >> 28) % 2);

			for (size_t i = 0; i < len; i++)
				data[i] = (uint8_t) (tail + i);
			if (ring_append(&r, stream, data, len)) {
				memcpy(model + tail, data, len);
				memset(streams + tail, stream, len);
				tail += len;
			}
		} else if (!ring_is_empty(&r)) {
			uint8_t stream;
			size_t n = ring_peek(&r, &stream, data, 1 + (seed >> 17) % 1200);

			CHECK(n > 0 && head + n <= tail);
			CHECK(!memcmp(data, model + head, n));
			for (size_t i = 0; i < n; i++)
				CHECK_INT(streams[head + i], stream);
			ring_pop(&r, n);
			head += n;
		}
		CHECK(ring_is_empty(&r) == (head == tail));
	}
	ring_done(&r);
}
