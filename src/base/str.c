/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Reads digits at *at into *ret; false on none or overflow. */
static bool read_digits(const char **at, uint64_t *ret)
{
	const char *p = *at;
	uint64_t v = 0;

	if (*p < '0' || *p > '9')
		return false;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(v, (uint64_t) 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t) (*p - '0'), &v))
			return false;
	}
	*at = p;
	*ret = v;
	return true;
}

/* Reads "12" or "12.5" as a number of thousandths; false on anything else. */
static bool read_milli(const char **at, uint64_t *ret)
{
	uint64_t whole, frac = 0, unit = 100;
	const char *p = *at;

	if (!read_digits(&p, &whole) || __builtin_mul_overflow(whole, (uint64_t) 1000, &whole))
		return false;
	if (*p == '.') {
		p++;
		if (*p < '0' || *p > '9')
			return false;
		for (; *p >= '0' && *p <= '9'; p++, unit /= 10) {
			if (!unit)
				return false;
			frac += (uint64_t) (*p - '0') * unit;
		}
	}
	*at = p;
	return !__builtin_add_overflow(whole, frac, ret);
}

static int check_range(uint64_t v, uint64_t min, uint64_t max, const char *text, struct err *err)
{
	if (v < min || v > max)
		return err_set(err, ERR_INVALID, "'%.40s' is out of range (%" PRIu64 " to %" PRIu64 ")", text, min, max);
	return 0;
}

int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err)
{
	const char *p = text;
	uint64_t v;

	if (!read_digits(&p, &v) || *p)
		return err_set(err, ERR_INVALID, "'%.40s' is not a whole number", text);
	if (check_range(v, min, max, text, err) < 0)
		return -1;
	*ret = v;
	return 0;
}

int parse_size(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err)
{
	static const char units[] = "KMGTkmgt";
	const char *p = text, *unit;
	uint64_t milli, v;

	if (!read_milli(&p, &milli))
		return err_set(err, ERR_INVALID, "'%.40s' is not a size such as 512M or 1G", text);
	v = milli / 1000;
	if (*p && (unit = strchr(units, *p))) {
		unsigned shift = 10 * (unsigned) ((unit - units) % 4 + 1);

		/* Scale the thousandths, so that 1.5G is exact. */
		if (milli > UINT64_MAX >> shift)
			return err_set(err, ERR_INVALID, "'%.40s' is too large", text);
		v = (milli << shift) / 1000;
		p++;
		if (*p == 'i')
			p++;
	} else if (milli % 1000) {
		return err_set(err, ERR_INVALID, "'%.40s' is not a whole number of bytes", text);
	}
	if (*p == 'B' || *p == 'b')
		p++;
	if (*p)
		return err_set(err, ERR_INVALID, "'%.40s' is not a size such as 512M or 1G", text);
	if (check_range(v, min, max, text, err) < 0)
		return -1;
	*ret = v;
	return 0;
}

int parse_duration_ms(const char *text, uint64_t min_ms, uint64_t max_ms, uint64_t *ret, struct err *err)
{
	static const struct { const char *unit; uint64_t ms; } units[] = {
		{ "", 1000 }, { "s", 1000 }, { "ms", 1 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 },
	};
	const char *p = text;
	uint64_t milli, v;

	if (!read_milli(&p, &milli))
		return err_set(err, ERR_INVALID, "'%.40s' is not a duration such as 60s, 1.5s or 500ms", text);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(p, units[i].unit))
			continue;
		if (__builtin_mul_overflow(milli, units[i].ms, &v))
			return err_set(err, ERR_INVALID, "'%.40s' is too long", text);
		v /= 1000;
		if (v < min_ms || v > max_ms)
			return err_set(err, ERR_INVALID, "'%.40s' is out of range (%" PRIu64 " to %" PRIu64 " ms)",
			               text, min_ms, max_ms);
		*ret = v;
		return 0;
	}
	return err_set(err, ERR_INVALID, "'%.40s' is not a duration such as 60s, 1.5s or 500ms", text);
}

int parse_milli(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err)
{
	const char *p = text;
	uint64_t v;

	if (!read_milli(&p, &v) || *p)
		return err_set(err, ERR_INVALID, "'%.40s' is not a number such as 1 or 0.5", text);
	if (v < min || v > max)
		return err_set(err, ERR_INVALID, "'%.40s' is out of range (%g to %g)", text,
		               (double) min / 1000, (double) max / 1000);
	*ret = v;
	return 0;
}

/*
 * Length of the character at `s`, 0 when it is not valid UTF-8, -1 when the
 * bytes end inside a character that could still become valid.
 */
static int utf8_step(const uint8_t *s, size_t len)
{
	unsigned need, low = 0x80, high = 0xbf;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		need = 1;
	else if ((s[0] & 0xf0) == 0xe0)
		need = 2;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		need = 3;
	else
		return 0;
	/* The second byte rules out overlong forms, surrogates and what is past U+10FFFF. */
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	for (unsigned i = 1; i <= need; i++) {
		if (i >= len)
			return -1;
		if (s[i] < low || s[i] > high)
			return 0;
		low = 0x80;
		high = 0xbf;
	}
	return (int) need + 1;
}

bool utf8_is_valid(const char *data, size_t len)
{
	for (size_t i = 0; i < len;) {
		int n = utf8_step((const uint8_t *) data + i, len - i);

		if (n <= 0)
			return false;
		i += (size_t) n;
	}
	return true;
}

size_t utf8_complete_prefix(const char *data, size_t len)
{
	/* A character has at most four bytes, so only the last three can begin a cut one. */
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		const uint8_t *at = (const uint8_t *) data + len - back;

		if ((*at & 0xc0) == 0x80)
			continue;
		return utf8_step(at, back) < 0 ? len - back : len;
	}
	return len;
}

int utf8_append_lossy(struct buf *out, const char *data, size_t len, bool *ret_lossy, struct err *err)
{
	bool lossy = false;
	size_t run = 0, i = 0;

	while (i < len) {
		int n = utf8_step((const uint8_t *) data + i, len - i);

		if (n > 0) {
			i += (size_t) n;
			continue;
		}
		/* One U+FFFD for each maximal part, as web decoders do. */
		if (buf_append(out, data + run, i - run, err) < 0 || buf_puts(out, "\xef\xbf\xbd", err) < 0)
			return -1;
		lossy = true;
		if (n < 0) {
			run = i = len;
			break;
		}
		for (size_t k = 1; ; k++) {
			if (i + k >= len || utf8_step((const uint8_t *) data + i, k + 1) != -1) {
				/* bytes [i, i+k) are the longest prefix of something valid */
				i += k;
				break;
			}
		}
		run = i;
	}
	if (buf_append(out, data + run, i - run, err) < 0)
		return -1;
	if (ret_lossy)
		*ret_lossy = lossy;
	return 0;
}

void hex_encode(const uint8_t *data, size_t len, char *ret)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		*ret++ = digits[data[i] >> 4];
		*ret++ = digits[data[i] & 15];
	}
	*ret = '\0';
}

bool is_hex(const char *s, size_t len)
{
	return strlen(s) == len && strspn(s, "0123456789abcdef") == len;
}

const char *size_text(uint64_t bytes, char ret[16])
{
	static const char units[] = "BKMGTPE";
	double v = (double) bytes;
	int u = 0;

	while (v >= 1024 && units[u + 1]) {
		v /= 1024;
		u++;
	}
	if (u == 0)
		snprintf(ret, 16, "%" PRIu64 "B", bytes);
	else if (v == (double) (uint64_t) v)
		snprintf(ret, 16, "%.0f%c", v, units[u]);
	else
		snprintf(ret, 16, "%.1f%c", v, units[u]);
	return ret;
}
