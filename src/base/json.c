/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"

void json_done(struct json *j)
{
	buf_done(&j->out);
}

/* The ceiling is never met: memory ends first, and then the allocator aborts. */
static void put(struct json *j, const char *data, size_t len)
{
	if (buf_append(&j->out, data, len, NULL) < 0)
		abort();
}

static void put_quoted(struct json *j, const char *data, size_t len)
{
	size_t run = 0;

	put(j, "\"", 1);
	for (size_t i = 0; i < len; i++) {
		static const char digits[] = "0123456789abcdef";
		uint8_t c = (uint8_t) data[i];
		char escaped[6] = { '\\', 'u', '0', '0', digits[c >> 4], digits[c & 15] };
		static const char short_for[] = "\"\\\b\f\n\r\t", short_as[] = "\"\\bfnrt";
		const char *at = c ? strchr(short_for, c) : NULL;

		if (c >= 0x20 && c != 0x7f && !at)
			continue;
		put(j, data + run, i - run);
		run = i + 1;
		if (at) {
			escaped[1] = short_as[at - short_for];
			put(j, escaped, 2);
		} else {
			put(j, escaped, 6);
		}
	}
	put(j, data + run, len - run);
	put(j, "\"", 1);
}

static void begin(struct json *j, const char *key)
{
	if (j->more)
		put(j, ",", 1);
	j->more = true;
	if (key) {
		put_quoted(j, key, strlen(key));
		put(j, ":", 1);
	}
}

static void put_literal(struct json *j, const char *key, const char *text)
{
	begin(j, key);
	put(j, text, strlen(text));
}

void json_open(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	put(j, &bracket, 1);
	j->more = false;
}

void json_close(struct json *j, char bracket)
{
	put(j, &bracket, 1);
	j->more = true;
}

void json_put_null(struct json *j, const char *key)
{
	put_literal(j, key, "null");
}

void json_put_bool(struct json *j, const char *key, bool v)
{
	put_literal(j, key, v ? "true" : "false");
}

void json_put_u64(struct json *j, const char *key, uint64_t v)
{
	begin(j, key);
	(void) !buf_printf(&j->out, NULL, "%" PRIu64, MIN(v, (uint64_t) INT64_MAX));
}

void json_put_milli(struct json *j, const char *key, uint64_t thousandths)
{
	begin(j, key);
	(void) !buf_printf(&j->out, NULL, "%" PRIu64 ".%03u", thousandths / 1000, (unsigned) (thousandths % 1000));
}

void json_put_str(struct json *j, const char *key, const char *s)
{
	if (s)
		json_put_text(j, key, s, strlen(s));
	else
		json_put_null(j, key);
}

void json_put_text(struct json *j, const char *key, const char *data, size_t len)
{
	_cleanup_buf_ struct buf repaired = BUF_INIT(SIZE_MAX / 4);

	begin(j, key);
	if (utf8_is_valid(data, len)) {
		put_quoted(j, data, len);
		return;
	}
	if (utf8_append_lossy(&repaired, data, len, NULL, NULL) < 0)
		abort();
	put_quoted(j, repaired.data, repaired.len);
}
