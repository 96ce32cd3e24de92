/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int http;
	int exit;
} codes[] = {
#define X(code, name, http, exit) [ERR_##code] = { name, http, exit },
	ERR_CODES(X)
#undef X
};

enum err_code err_code_of(int sys)
{
	switch (sys) {
	case ENOENT: case ESRCH: case ENXIO: case ENODEV:
		return ERR_NOT_FOUND;
	case EEXIST: case ENOTEMPTY:
		return ERR_EXISTS;
	case EACCES: case EPERM: case EROFS:
		return ERR_PERMISSION;
	case EINVAL: case ENAMETOOLONG: case ENOTDIR: case EISDIR: case ELOOP: case E2BIG: case EXDEV:
		return ERR_INVALID;
	case ENOSPC: case EDQUOT: case ENOMEM: case EMFILE: case ENFILE: case EAGAIN: case EFBIG: case EUSERS:
		return ERR_EXHAUSTED;
	case EBUSY: case ETXTBSY:
		return ERR_PRECONDITION;
	case ETIMEDOUT:
		return ERR_DEADLINE;
	case ECANCELED: case EINTR:
		return ERR_CANCELED;
	case ENOSYS: case EOPNOTSUPP: case EAFNOSUPPORT:
		return ERR_UNIMPLEMENTED;
	case ECONNREFUSED: case ECONNRESET: case EPIPE: case ENOTCONN:
		return ERR_UNAVAILABLE;
	default:
		return ERR_INTERNAL;
	}
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -1;
	err->code = code;
	err->sys = 0;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof err->msg, fmt, ap);
	va_end(ap);
	return -1;
}

int err_sys(struct err *err, int sys, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	if (!err)
		return -1;
	err->sys = sys ? sys : EIO;
	err->code = err_code_of(err->sys);
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof err->msg, fmt, ap);
	va_end(ap);
	n = strlen(err->msg);
	snprintf(err->msg + n, sizeof err->msg - n, ": %s", strerror(err->sys));
	return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	char inner[sizeof err->msg];
	va_list ap;
	size_t n;

	if (!err)
		return -1;
	memcpy(inner, err->msg, sizeof inner);
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof err->msg, fmt, ap);
	va_end(ap);
	n = strlen(err->msg);
	snprintf(err->msg + n, sizeof err->msg - n, ": %s", inner);
	return -1;
}

const char *err_name(const struct err *err)
{
	return codes[err->code].name;
}

int err_http(const struct err *err)
{
	return codes[err->code].http;
}

int err_exit(const struct err *err)
{
	return codes[err->code].exit;
}
