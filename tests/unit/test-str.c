/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"

#include "base/str.h"

typedef int parser(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err);

static void accepts(parser *parse, const char *text, uint64_t expected)
{
	struct err err = { 0 };
	uint64_t v = 12345;

	if (parse(text, 0, UINT64_MAX, &v, &err) < 0)
		FAIL("'%s' was refused: %s", text, err.msg);
	if (v != expected)
		FAIL("'%s' is %llu, expected %llu", text, (unsigned long long) v, (unsigned long long) expected);
}

/* Refused with an error that quotes the text, and the result is left alone. */
static void refuses(parser *parse, const char *text)
{
	_cleanup_free_ char *quoted = xasprintf("'%.40s'", text);
	struct err err = { 0 };
	uint64_t v = 12345;

	if (parse(text, 0, UINT64_MAX, &v, &err) == 0)
		FAIL("'%s' was accepted as %llu", text, (unsigned long long) v);
	CHECK_INT(v, 12345);
	CHECK_INT(err.code, ERR_INVALID);
	CHECK_CONTAINS(err.msg, quoted);
}

TEST(whole_numbers)
{
	accepts(parse_u64, "0", 0);
	accepts(parse_u64, "007", 7);
	accepts(parse_u64, "18446744073709551615", UINT64_MAX);
	refuses(parse_u64, "18446744073709551616");
	refuses(parse_u64, "99999999999999999999999999");
	refuses(parse_u64, "");
	refuses(parse_u64, " 1");
	refuses(parse_u64, "1 ");
	refuses(parse_u64, "1\n");
	refuses(parse_u64, "+1");
	refuses(parse_u64, "-1");
	refuses(parse_u64, "0x10");
	refuses(parse_u64, "12x");
	refuses(parse_u64, "1.0");
	refuses(parse_u64, "1e3");
	refuses(parse_u64, "\xd9\xa3");         /* a digit, but not of ours */
}

TEST(whole_numbers_out_of_range_say_the_range)
{
	struct err err = { 0 };
	uint64_t v;

	CHECK_ERR(parse_u64("3", 4, 9, &v, &err), ERR_INVALID);
	CHECK_STR(err.msg, "'3' is out of range (4 to 9)");
	CHECK_ERR(parse_u64("10", 4, 9, &v, &err), ERR_INVALID);
	CHECK_OK(parse_u64("4", 4, 9, &v, &err));
	CHECK_OK(parse_u64("9", 4, 9, &v, &err));
}

TEST(sizes)
{
	accepts(parse_size, "0", 0);
	accepts(parse_size, "4096", 4096);
	accepts(parse_size, "4096B", 4096);
	accepts(parse_size, "1K", 1024);
	accepts(parse_size, "1k", 1024);
	accepts(parse_size, "64KiB", 65536);
	accepts(parse_size, "64kb", 65536);
	accepts(parse_size, "512M", 512ull << 20);
	accepts(parse_size, "1.5G", 3ull << 29);
	accepts(parse_size, "0.5T", 1ull << 39);
	accepts(parse_size, "1.0", 1);
	accepts(parse_size, "16383T", 16383ull << 40);
}

TEST(what_is_not_a_size)
{
	static const char *const texts[] = {
		"", "M", "G1", "1.5", "1.", ".5G", "1..5G", "1.5.5G", "1.0001G", "1GG", "1GiBx", "1 G", " 1G",
		"1G ", "1 ", "1  B", "1\n", "-1G", "+1", "1i", "1iB", "1E", "1P", "0x1G", "1,5G", "12x", "\xff",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		refuses(parse_size, texts[i]);
}

TEST(sizes_that_overflow)
{
	refuses(parse_size, "16777216T");
	refuses(parse_size, "18446744073709551615K");
	refuses(parse_size, "18446744073709551616");
	refuses(parse_size, "99999999999999999999G");
}

TEST(durations)
{
	accepts(parse_duration_ms, "3", 3000);
	accepts(parse_duration_ms, "60s", 60000);
	accepts(parse_duration_ms, "1.5s", 1500);
	accepts(parse_duration_ms, "0.001s", 1);
	accepts(parse_duration_ms, "500ms", 500);
	accepts(parse_duration_ms, "2m", 120000);
	accepts(parse_duration_ms, "0.5h", 1800000);
	accepts(parse_duration_ms, "1d", 86400000);
	refuses(parse_duration_ms, "");
	refuses(parse_duration_ms, "s");
	refuses(parse_duration_ms, "1 s");
	refuses(parse_duration_ms, "1sec");
	refuses(parse_duration_ms, "1S");
	refuses(parse_duration_ms, "-1s");
	refuses(parse_duration_ms, "1.s");
	refuses(parse_duration_ms, "1m30s");
	refuses(parse_duration_ms, "1us");
	refuses(parse_duration_ms, "inf");
	refuses(parse_duration_ms, "18446744073709551s");
	refuses(parse_duration_ms, "18446744073709551615d");
}

TEST(thousandths)
{
	accepts(parse_milli, "1", 1000);
	accepts(parse_milli, "0.5", 500);
	accepts(parse_milli, "1.25", 1250);
	accepts(parse_milli, "0.001", 1);
	accepts(parse_milli, "18446744073709551.615", UINT64_MAX);
	refuses(parse_milli, "18446744073709551.616");
	refuses(parse_milli, "1.2345");
	refuses(parse_milli, "");
	refuses(parse_milli, ".");
	refuses(parse_milli, ".5");
	refuses(parse_milli, "1.");
	refuses(parse_milli, "-1");
	refuses(parse_milli, "1e3");
	refuses(parse_milli, "nan");
	refuses(parse_milli, "12x");
}

TEST(a_long_text_is_quoted_in_part)
{
	char text[500];
	struct err err = { 0 };
	uint64_t v;

	memset(text, '9', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	CHECK_ERR(parse_u64(text, 0, 9, &v, &err), ERR_INVALID);
	CHECK(strlen(err.msg) < 100);
}

TEST(hex)
{
	char text[7];

	hex_encode((const uint8_t *) "\x00\xff\x1a", 3, text);
	CHECK_STR(text, "00ff1a");
	CHECK(is_hex("00ff1a", 6));
	CHECK(!is_hex("00ff1a", 5));
	CHECK(!is_hex("00FF1A", 6));
	CHECK(!is_hex("00ff1g", 6));
	CHECK(is_hex("", 0));
}

TEST(sizes_for_people)
{
	char text[16];

	CHECK_STR(size_text(0, text), "0B");
	CHECK_STR(size_text(1023, text), "1023B");
	CHECK_STR(size_text(1024, text), "1K");
	CHECK_STR(size_text(512ull << 20, text), "512M");
	CHECK_STR(size_text(3ull << 29, text), "1.5G");
	CHECK_STR(size_text(UINT64_MAX, text), "16E");
}
