/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"

#include "wire/codec.h"

TEST(what_is_written_reads_back)
{
	uint8_t data[64], *p = data;
	struct wire_writer w = { .data = data, .cap = sizeof data };
	struct wire_reader r = { .data = data };
	const uint8_t *run;
	char text[10];

	wire_put_u8(&w, 0xab);
	wire_put_u16(&w, 0xabcd);
	wire_put_u32(&w, 0xabcdef01);
	wire_put_u64(&w, 0xabcdef0123456789);
	wire_put_str(&w, "text");
	wire_put_bytes(&w, "a\0b", 3);
	CHECK(!w.failed);
	CHECK_INT(p[1], 0xcd);          /* little-endian */
	r.len = w.len;
	CHECK_INT(wire_get_u8(&r), 0xab);
	CHECK_INT(wire_get_u16(&r), 0xabcd);
	CHECK_INT(wire_get_u32(&r), 0xabcdef01);
	CHECK(wire_get_u64(&r) == 0xabcdef0123456789);
	wire_get_str(&r, text, sizeof text);
	CHECK_STR(text, "text");
	CHECK(!wire_done(&r));
	CHECK_INT(wire_get_bytes(&r, &run), 3);
	CHECK(memcmp(run, "a\0b", 3) == 0);
	CHECK(wire_done(&r));
}

TEST(a_writer_that_is_full_stays_failed)
{
	uint8_t data[8];
	struct wire_writer w = { .data = data, .cap = sizeof data };

	wire_put_u32(&w, 1);
	wire_put_u64(&w, 2);
	CHECK(w.failed);
	CHECK_INT(w.len, 4);
	wire_put_u8(&w, 3);             /* would fit, but the message is already broken */
	CHECK_INT(w.len, 4);
}

TEST(a_reader_that_ended_gives_zeros)
{
	struct wire_reader r = { .data = (const uint8_t *) "\x01\x02\x03", .len = 3 };
	const uint8_t *run = (const uint8_t *) "";
	char text[4] = "abc";

	CHECK_INT(wire_get_u32(&r), 0);
	CHECK(r.failed);
	CHECK_INT(wire_get_u8(&r), 0);
	CHECK_INT(wire_get_bytes(&r, &run), 0);
	CHECK(!run);
	wire_get_str(&r, text, sizeof text);
	CHECK_STR(text, "");
	CHECK(!wire_done(&r));
}

TEST(a_length_past_the_packet_is_refused)
{
	struct wire_reader r = { .data = (const uint8_t *) "\xff\xff\xff\xffgarbage", .len = 11 };
	const uint8_t *run;

	CHECK_INT(wire_get_bytes(&r, &run), 0);
	CHECK(!run && r.failed);
}

static bool reads_as_string(const char *packet, size_t len, size_t size)
{
	struct wire_reader r = { .data = (const uint8_t *) packet, .len = len };
	char text[16];

	wire_get_str(&r, text, size);
	return wire_done(&r);
}

TEST(strings_fit_and_hold_no_nul)
{
	CHECK(reads_as_string("\3\0\0\0abc", 7, 4));
	CHECK(!reads_as_string("\3\0\0\0abc", 7, 3));
	CHECK(!reads_as_string("\3\0\0\0a\0c", 7, 16));
	CHECK(!reads_as_string("\3\0\0\0ab", 6, 16));
	CHECK(!reads_as_string("\3\0\0\0abcd", 8, 16));
	CHECK(reads_as_string("\0\0\0\0", 4, 1));
	CHECK(!reads_as_string("\0\0\0", 3, 1));
	CHECK(!reads_as_string("", 0, 1));
}
