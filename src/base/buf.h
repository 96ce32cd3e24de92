/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * buf: a growing byte buffer that is born with a ceiling.
 *
 * Anything whose size a client, a model or a sandbox chooses goes through it:
 * past the ceiling an append answers resource_exhausted and changes nothing.
 * The data is always followed by one NUL byte that does not count.
 */
#include "base/err.h"

struct buf {
	char *data;             /* NULL while empty */
	size_t len;
	size_t cap;
	size_t max;             /* ceiling of len, in bytes */
};

#define BUF_INIT(ceiling) ((struct buf) { .max = (ceiling) })

void buf_done(struct buf *b);
int buf_append(struct buf *b, const void *data, size_t len, struct err *err) _must_check_;
int buf_puts(struct buf *b, const char *s, struct err *err) _must_check_;
int buf_printf(struct buf *b, struct err *err, const char *fmt, ...) _printf_(3, 4) _must_check_;

/* Makes room for `len` more bytes and returns where to write them, or NULL past
 * the ceiling.  The caller adds what it wrote with buf_commit(). */
char *buf_reserve(struct buf *b, size_t len, struct err *err) _must_check_;
void buf_commit(struct buf *b, size_t len);

/* Drops the first `len` bytes. */
void buf_consume(struct buf *b, size_t len);

#define _cleanup_buf_ _cleanup_(buf_done)
