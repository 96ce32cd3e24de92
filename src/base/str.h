/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * str: numbers, sizes and durations from text; UTF-8 repair; hex.
 *
 * Parsers accept the whole string or fail with invalid_argument; they never
 * read "12x" as 12.  Error texts say what was expected; callers put the name of
 * the field in front with err_wrap().
 */
#include "base/buf.h"

/* Decimal digits only, between min and max. */
int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err) _must_check_;

/* "512M", "1G", "4096", "64KiB": powers of 1024, in bytes. */
int parse_size(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err) _must_check_;

/* "60s", "1.5s", "500ms", "2m", "1h", "3" (seconds), in milliseconds. */
int parse_duration_ms(const char *text, uint64_t min_ms, uint64_t max_ms, uint64_t *ret, struct err *err) _must_check_;

/* "1", "0.5", "1.25" with at most three decimals, in thousandths. */
int parse_milli(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err) _must_check_;

/* Appends `len` bytes as valid UTF-8: what is not becomes U+FFFD.  *ret_lossy
 * (may be NULL) says whether anything was replaced. */
int utf8_append_lossy(struct buf *out, const char *data, size_t len, bool *ret_lossy, struct err *err) _must_check_;
bool utf8_is_valid(const char *data, size_t len);

/* Length of the longest prefix that does not end inside a character: what an
 * incremental decoder may emit now. */
size_t utf8_complete_prefix(const char *data, size_t len);

void hex_encode(const uint8_t *data, size_t len, char *ret);    /* 2 * len + 1 bytes */
bool is_hex(const char *s, size_t len);                         /* lower-case hex of that length */

/* Human form of a byte count, "512M" or "1.5G", for messages. */
const char *size_text(uint64_t bytes, char ret[16]);
