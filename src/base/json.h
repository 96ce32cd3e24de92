/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * json: writes one JSON value, field after field.
 *
 * For the programs that are built against musl, where no JSON library is packaged;
 * what reads JSON uses jansson.  Text that is not UTF-8 is repaired.  A key of NULL is
 * for the root and for elements of an array.  The text is in `out` at the end.
 */
#include "base/buf.h"

struct json {
	struct buf out;
	bool more;              /* a value stands before: a comma is due */
};

#define JSON_INIT ((struct json) { .out = BUF_INIT(SIZE_MAX / 4) })

void json_done(struct json *j);
#define _cleanup_json_ _cleanup_(json_done)

void json_open(struct json *j, const char *key, char bracket);  /* '{' or '[' */
void json_close(struct json *j, char bracket);                  /* '}' or ']' */
void json_put_null(struct json *j, const char *key);
void json_put_bool(struct json *j, const char *key, bool v);
void json_put_u64(struct json *j, const char *key, uint64_t v);        /* at most 2^63 - 1 is written */
void json_put_milli(struct json *j, const char *key, uint64_t thousandths); /* 1500 as 1.5 */
void json_put_str(struct json *j, const char *key, const char *s);  /* NULL is null */
void json_put_text(struct json *j, const char *key, const char *data, size_t len);
