/* SPDX-License-Identifier: Apache-2.0 */
/* Repair of text that a sandbox printed: the result is always valid, whatever came (case A01). */
#include "tap.h"

#include "base/str.h"

#define R "\xef\xbf\xbd"        /* U+FFFD */

static void repairs(const char *data, size_t len, const char *expected)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1000);
	struct err err = { 0 };
	bool lossy;

	CHECK_OK(utf8_append_lossy(&b, data, len, &lossy, &err));
	CHECK_STR(b.data, expected);
	CHECK_INT(lossy, len != b.len || memcmp(data, expected, len) != 0);
	CHECK_INT(lossy, !utf8_is_valid(data, len));
}
#define REPAIRS(data, expected) repairs(data, sizeof(data) - 1, expected)

TEST(valid_text_stays_as_it_is)
{
	REPAIRS("", "");
	REPAIRS("plain", "plain");
	REPAIRS("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	REPAIRS("\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
	        "\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
	REPAIRS("\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80");
}

TEST(a_stray_byte_is_one_replacement)
{
	REPAIRS("a\x80z", "a" R "z");
	REPAIRS("\xff\xfe", R R);
	REPAIRS("\xf5\x80\x80\x80", R R R R);
	REPAIRS("\xfc\x80\x80\x80\x80\x80", R R R R R R);
}

TEST(overlong_forms_are_not_characters)
{
	REPAIRS("\xc0\x80", R R);
	REPAIRS("\xc1\xbf", R R);
	REPAIRS("\xe0\x80\x80", R R R);
	REPAIRS("\xe0\x9f\xbf", R R R);
	REPAIRS("\xf0\x80\x80\x80", R R R R);
	REPAIRS("\xf0\x8f\xbf\xbf", R R R R);
}

TEST(surrogates_and_what_is_past_the_end_are_not_characters)
{
	REPAIRS("\xed\xa0\x80", R R R);
	REPAIRS("\xed\xbf\xbf", R R R);
	REPAIRS("\xed\xa0\xbd\xed\xb8\x80", R R R R R R);
	REPAIRS("\xf4\x90\x80\x80", R R R R);
}

TEST(a_cut_character_is_one_replacement)
{
	REPAIRS("a\xf0\x9f\x98", "a" R);
	REPAIRS("\xf0\x9f\x98z", R "z");
	REPAIRS("\xe2\x82\xe2\x82\xac", R "\xe2\x82\xac");
	REPAIRS("\xc3", R);
	REPAIRS("\xc3\xc3\xa9", R "\xc3\xa9");
	REPAIRS("\xf0\x9f(\x98\x80", R "(" R R);
}

TEST(zero_bytes_pass_through)
{
	_cleanup_buf_ struct buf b = BUF_INIT(100);
	struct err err = { 0 };

	CHECK_OK(utf8_append_lossy(&b, "a\0\xff", 3, NULL, &err));
	CHECK_INT(b.len, 5);
	CHECK(memcmp(b.data, "a\0" R, 5) == 0);
}

TEST(repair_respects_the_ceiling)
{
	_cleanup_buf_ struct buf b = BUF_INIT(5);
	struct err err = { 0 };

	CHECK_ERR(utf8_append_lossy(&b, "\xff\xff", 2, NULL, &err), ERR_EXHAUSTED);
	CHECK(b.len <= 5);
}

/* What a stream does: emit the complete part, keep the rest for the next chunk. */
static void feed(struct buf *pending, struct buf *out, const char *data, size_t len)
{
	struct err err = { 0 };
	size_t ready;

	CHECK_OK(buf_append(pending, data, len, &err));
	ready = utf8_complete_prefix(pending->data, pending->len);
	CHECK(pending->len - ready <= 3);
	CHECK_OK(utf8_append_lossy(out, pending->data, ready, NULL, &err));
	buf_consume(pending, ready);
}

static void check_split(const char *text, size_t len, size_t first, size_t second)
{
	_cleanup_buf_ struct buf pending = BUF_INIT(100), out = BUF_INIT(100), whole = BUF_INIT(100);
	struct err err = { 0 };

	feed(&pending, &out, text, first);
	feed(&pending, &out, text + first, second - first);
	feed(&pending, &out, text + second, len - second);
	CHECK_OK(utf8_append_lossy(&out, pending.data, pending.len, NULL, &err));
	CHECK_OK(utf8_append_lossy(&whole, text, len, NULL, &err));
	CHECK_STR(out.data, whole.data);
}

TEST(A01_text_split_anywhere_reads_the_same)
{
	static const char *const texts[] = {
		"\xf0\x9f\x98\x80", "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z", "\xf0\x9f\x98" "a\xf0\x9f",
		"\xed\xa0\x80\xc0\x80\xff\xf4\x90\x80\x80", "\xe2\x82\xe2\x82\xac\xf0\x9f\xf0\x9f\x98\x80",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		size_t len = strlen(texts[i]);

		for (size_t a = 0; a <= len; a++)
			for (size_t b = a; b <= len; b++)
				check_split(texts[i], len, a, b);
	}
}
