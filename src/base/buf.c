/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void buf_done(struct buf *b)
{
	free(b->data);
	b->data = NULL;
	b->len = b->cap = 0;
}

char *buf_reserve(struct buf *b, size_t len, struct err *err)
{
	size_t need;

	if (__builtin_add_overflow(b->len, len, &need) || need > b->max) {
		err_set(err, ERR_EXHAUSTED, "more than %zu bytes", b->max);
		return NULL;
	}
	if (need + 1 > b->cap) {
		size_t cap = b->cap ? b->cap : 64;

		while (cap < need + 1)
			cap += cap / 2 + 1;
		b->data = xrealloc(b->data, cap, 1);
		b->cap = cap;
	}
	b->data[b->len] = '\0';
	return b->data + b->len;
}

void buf_commit(struct buf *b, size_t len)
{
	b->len += len;
	b->data[b->len] = '\0';
}

int buf_append(struct buf *b, const void *data, size_t len, struct err *err)
{
	char *at = buf_reserve(b, len, err);

	if (!at)
		return -1;
	if (len)
		memcpy(at, data, len);
	buf_commit(b, len);
	return 0;
}

int buf_puts(struct buf *b, const char *s, struct err *err)
{
	return buf_append(b, s, strlen(s), err);
}

int buf_printf(struct buf *b, struct err *err, const char *fmt, ...)
{
	va_list ap;
	char *at;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return err_set(err, ERR_INTERNAL, "cannot format text");
	at = buf_reserve(b, (size_t) n, err);
	if (!at)
		return -1;
	va_start(ap, fmt);
	vsnprintf(at, (size_t) n + 1, fmt, ap);
	va_end(ap);
	buf_commit(b, (size_t) n);
	return 0;
}

void buf_consume(struct buf *b, size_t len)
{
	if (!len)
		return;
	memmove(b->data, b->data + len, b->len - len);
	b->len -= len;
	b->data[b->len] = '\0';
}
