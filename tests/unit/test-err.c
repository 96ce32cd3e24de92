/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"

static void check_code(enum err_code code, const char *name, int http, int exit_status)
{
	struct err err = { .code = code };

	CHECK_STR(err_name(&err), name);
	CHECK_INT(err_http(&err), http);
	CHECK_INT(err_exit(&err), exit_status);
}

TEST(every_code_has_its_name_http_status_and_exit_status)
{
	check_code(ERR_OK, "ok", 200, 0);
	check_code(ERR_INVALID, "invalid_argument", 400, 2);
	check_code(ERR_UNAUTHENTICATED, "unauthenticated", 401, 77);
	check_code(ERR_PERMISSION, "permission_denied", 403, 77);
	check_code(ERR_NOT_FOUND, "not_found", 404, 1);
	check_code(ERR_EXISTS, "already_exists", 409, 1);
	check_code(ERR_PRECONDITION, "failed_precondition", 400, 1);
	check_code(ERR_EXHAUSTED, "resource_exhausted", 429, 75);
	check_code(ERR_DEADLINE, "deadline_exceeded", 504, 124);
	check_code(ERR_CANCELED, "canceled", 499, 130);
	check_code(ERR_UNIMPLEMENTED, "unimplemented", 501, 69);
	check_code(ERR_UNAVAILABLE, "unavailable", 503, 75);
	check_code(ERR_INTERNAL, "internal", 500, 70);
	CHECK_INT(ERR_CODE_COUNT, 13);
}

TEST(an_errno_means_a_code)
{
	CHECK_INT(err_code_of(ENOENT), ERR_NOT_FOUND);
	CHECK_INT(err_code_of(EEXIST), ERR_EXISTS);
	CHECK_INT(err_code_of(EACCES), ERR_PERMISSION);
	CHECK_INT(err_code_of(ELOOP), ERR_INVALID);
	CHECK_INT(err_code_of(ENOSPC), ERR_EXHAUSTED);
	CHECK_INT(err_code_of(EBUSY), ERR_PRECONDITION);
	CHECK_INT(err_code_of(ETIMEDOUT), ERR_DEADLINE);
	CHECK_INT(err_code_of(ENOSYS), ERR_UNIMPLEMENTED);
	CHECK_INT(err_code_of(ECONNREFUSED), ERR_UNAVAILABLE);
	CHECK_INT(err_code_of(EIO), ERR_INTERNAL);
	CHECK_INT(err_code_of(0), ERR_INTERNAL);
}

TEST(setters_return_minus_one_and_keep_the_errno)
{
	struct err err = { 0 };

	CHECK_INT(err_sys(&err, ENOENT, "open %s", "/nope"), -1);
	CHECK_STR(err.msg, "open /nope: No such file or directory");
	CHECK_INT(err.sys, ENOENT);
	CHECK_INT(err_set(&err, ERR_INVALID, "count: %d", 3), -1);
	CHECK_STR(err.msg, "count: 3");
	CHECK_INT(err.sys, 0);
}

TEST(a_forgotten_errno_is_an_io_error)
{
	struct err err = { 0 };

	err_sys(&err, 0, "read");
	CHECK_INT(err.sys, EIO);
	CHECK_INT(err.code, ERR_INTERNAL);
}

TEST(wrapping_puts_the_context_in_front_and_keeps_the_code)
{
	struct err err = { 0 };

	err_sys(&err, ENOENT, "open x");
	CHECK_INT(err_wrap(&err, "sandbox %s", "sb1"), -1);
	CHECK_STR(err.msg, "sandbox sb1: open x: No such file or directory");
	CHECK_INT(err.code, ERR_NOT_FOUND);
	CHECK_INT(err.sys, ENOENT);
}

TEST(long_messages_are_cut_and_terminated)
{
	char text[1000];
	struct err err = { 0 };

	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	err_set(&err, ERR_INVALID, "%s", text);
	CHECK_INT(strlen(err.msg), sizeof err.msg - 1);
	err_wrap(&err, "outer");
	CHECK_INT(strlen(err.msg), sizeof err.msg - 1);
	CHECK(strncmp(err.msg, "outer: aaaa", 11) == 0);
	err_wrap(&err, "%s", text);
	CHECK_INT(strlen(err.msg), sizeof err.msg - 1);
	err_sys(&err, ENOENT, "%s", text);
	CHECK_INT(strlen(err.msg), sizeof err.msg - 1);
}

TEST(no_error_object_is_fine)
{
	CHECK_INT(err_set(NULL, ERR_INVALID, "x"), -1);
	CHECK_INT(err_sys(NULL, ENOENT, "x"), -1);
	CHECK_INT(err_wrap(NULL, "x"), -1);
}
