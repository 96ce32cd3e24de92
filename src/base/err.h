/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * err: the one error object.
 *
 * It lives on the stack of whoever starts the work and never allocates, so it
 * also works in a fresh child and when memory is short.  Functions that can
 * fail return 0 or -1 and take `struct err *err` last; the setters return -1,
 * so a failure is one line.  A NULL err is allowed and discards the text.
 */
#include "base/base.h"

/* code, name in the Connect protocol, HTTP status, exit status */
#define ERR_CODES(X)                                            \
	X(OK,              "ok",                  200, 0)       \
	X(INVALID,         "invalid_argument",    400, 2)       \
	X(UNAUTHENTICATED, "unauthenticated",     401, 77)      \
	X(PERMISSION,      "permission_denied",   403, 77)      \
	X(NOT_FOUND,       "not_found",           404, 1)       \
	X(EXISTS,          "already_exists",      409, 1)       \
	X(PRECONDITION,    "failed_precondition", 400, 1)       \
	X(EXHAUSTED,       "resource_exhausted",  429, 75)      \
	X(DEADLINE,        "deadline_exceeded",   504, 124)     \
	X(CANCELED,        "canceled",            499, 130)     \
	X(UNIMPLEMENTED,   "unimplemented",       501, 69)      \
	X(UNAVAILABLE,     "unavailable",         503, 75)      \
	X(INTERNAL,        "internal",            500, 70)

enum err_code {
#define X(code, name, http, exit) ERR_##code,
	ERR_CODES(X)
#undef X
	ERR_CODE_COUNT,
};

struct err {
	enum err_code code;
	int sys;                /* errno behind it, or 0 */
	char msg[240];
};

/* Set the error and return -1.  err_sys() derives the code from the errno and
 * appends its text; a `sys` of 0 is treated as EIO. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...) _printf_(3, 4);
int err_sys(struct err *err, int sys, const char *fmt, ...) _printf_(3, 4);

/* Puts "what this layer was doing: " in front of the message; returns -1. */
int err_wrap(struct err *err, const char *fmt, ...) _printf_(2, 3);

/* The code that an errno means to a caller. */
enum err_code err_code_of(int sys);

const char *err_name(const struct err *err);    /* "not_found" */
int err_http(const struct err *err);            /* 404 */
int err_exit(const struct err *err);            /* 1 */
