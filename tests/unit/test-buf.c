/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"

#include "base/buf.h"

TEST(a_buffer_grows_to_its_ceiling_and_no_further)
{
	_cleanup_buf_ struct buf b = BUF_INIT(10);
	struct err err = { 0 };

	CHECK_OK(buf_puts(&b, "12345", &err));
	CHECK_OK(buf_puts(&b, "67890", &err));
	CHECK_INT(b.len, 10);
	CHECK_ERR(buf_puts(&b, "x", &err), ERR_EXHAUSTED);
	CHECK_STR(err.msg, "more than 10 bytes");
	CHECK_STR(b.data, "1234567890");
}

TEST(a_refused_append_changes_nothing)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4);
	struct err err = { 0 };

	CHECK_OK(buf_puts(&b, "abc", &err));
	CHECK_ERR(buf_append(&b, "defg", 4, &err), ERR_EXHAUSTED);
	CHECK_ERR(buf_printf(&b, &err, "%d", 1234), ERR_EXHAUSTED);
	CHECK(!buf_reserve(&b, 2, &err));
	CHECK_STR(b.data, "abc");
	CHECK_INT(b.len, 3);
}

TEST(a_length_that_overflows_is_refused)
{
	_cleanup_buf_ struct buf b = BUF_INIT(100);
	struct err err = { 0 };

	CHECK_OK(buf_puts(&b, "a", &err));
	CHECK(!buf_reserve(&b, SIZE_MAX, &err));
	CHECK_INT(err.code, ERR_EXHAUSTED);
}

TEST(data_is_followed_by_a_nul_that_does_not_count)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct err err = { 0 };

	for (int i = 0; i < 1000; i++) {
		CHECK_OK(buf_append(&b, "ab", 2, &err));
		CHECK_INT(b.data[b.len], 0);
	}
	CHECK_INT(b.len, 2000);
}

TEST(nothing_can_be_appended_to_an_empty_buffer)
{
	_cleanup_buf_ struct buf b = BUF_INIT(0);
	struct err err = { 0 };

	CHECK_OK(buf_append(&b, NULL, 0, &err));
	CHECK_INT(b.len, 0);
	CHECK_STR(b.data, "");
	CHECK_ERR(buf_puts(&b, "x", &err), ERR_EXHAUSTED);
}

TEST(binary_data_keeps_its_nul_bytes)
{
	_cleanup_buf_ struct buf b = BUF_INIT(100);
	struct err err = { 0 };

	CHECK_OK(buf_append(&b, "a\0b", 3, &err));
	CHECK_OK(buf_printf(&b, &err, "%s-%03d", "c", 7));
	CHECK_INT(b.len, 8);
	CHECK(memcmp(b.data, "a\0bc-007", 9) == 0);
}

TEST(reserve_and_commit_write_in_place)
{
	_cleanup_buf_ struct buf b = BUF_INIT(100);
	struct err err = { 0 };
	char *at = buf_reserve(&b, 50, &err);

	CHECK(at);
	memcpy(at, "hello", 5);
	buf_commit(&b, 5);
	CHECK_STR(b.data, "hello");
	buf_commit(&b, 0);
	CHECK_INT(b.len, 5);
}

TEST(consume_drops_from_the_front)
{
	_cleanup_buf_ struct buf b = BUF_INIT(10);
	struct err err = { 0 };

	buf_consume(&b, 0);
	CHECK_OK(buf_puts(&b, "0123456789", &err));
	buf_consume(&b, 4);
	CHECK_STR(b.data, "456789");
	CHECK_OK(buf_puts(&b, "abcd", &err));
	buf_consume(&b, 10);
	CHECK_INT(b.len, 0);
	CHECK_STR(b.data, "");
}

TEST(done_leaves_a_buffer_that_can_be_used_again)
{
	struct buf b = BUF_INIT(10);
	struct err err = { 0 };

	CHECK_OK(buf_puts(&b, "abc", &err));
	buf_done(&b);
	buf_done(&b);
	CHECK_OK(buf_puts(&b, "def", &err));
	CHECK_STR(b.data, "def");
	buf_done(&b);
}
