/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/cli.h"

/* ---- nearest ---- */

enum { WORD_MAX = 32 };

/* Edits (insert, delete, replace, swap of neighbours) between two short words. */
static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned row[3][WORD_MAX + 1];
	unsigned *before = row[0], *last = row[1], *now = row[2];

	for (size_t j = 0; j <= b_len; j++)
		last[j] = (unsigned) j;
	for (size_t i = 1; i <= a_len; i++) {
		unsigned *spare = before;

		now[0] = (unsigned) i;
		for (size_t j = 1; j <= b_len; j++) {
			unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);

			best = MIN(best, last[j] + 1);
			best = MIN(best, now[j - 1] + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = MIN(best, before[j - 2] + 1);
			now[j] = best;
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[b_len];
}

const char *nearest(const char *word, const char *const *names, size_t count)
{
	size_t len = strlen(word);
	unsigned best = len < 4 ? 2 : 3;
	const char *found = NULL;

	if (!len || len > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t name_len = strlen(names[i]);
		unsigned d;

		if (name_len > WORD_MAX)
			continue;
		d = distance(word, len, names[i], name_len);
		/* "temp" means "template" more than it means "help". */
		if (len >= 3 && !strncmp(names[i], word, len))
			d = 0;
		if (d < best) {
			best = d;
			found = names[i];
		}
	}
	return found;
}

/* ---- complaints ---- */

/* Bytes of the character at `s` that may be shown as they are, 0 when it must be escaped. */
static size_t shown(const char *s, size_t len)
{
	unsigned char c = (unsigned char) *s;

	if (c < 0x80)
		return c >= 0x20 && c != 0x7f;
	for (size_t n = 2; n <= 4 && n <= len; n++) {
		/* U+0080 to U+009F drive terminals as well. */
		if (utf8_is_valid(s, n))
			return c == 0xc2 && (unsigned char) s[1] < 0xa0 ? 0 : n;
	}
	return 0;
}

static size_t escape(char *out, size_t size, const char *s)
{
	size_t n = 0, left = strlen(s);

	while (left && n + 5 < size) {
		size_t take = shown(s, left);

		if (take) {
			memcpy(out + n, s, take);
			n += take;
		} else {
			n += (size_t) snprintf(out + n, size - n, "\\x%02x", (unsigned char) *s);
			take = 1;
		}
		s += take;
		left -= take;
	}
	return n;
}

void complain(const char *fmt, ...)
{
	char text[600], line[1024] = "cuvette: ";
	size_t n = strlen(line);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	n += escape(line + n, sizeof line - n - 1, text);
	line[n++] = '\n';
	(void) !write_all(STDERR_FILENO, line, n);
}

int fail(const struct command *cmd, const struct err *err, int status)
{
	complain("%s", err->msg);
	if (cmd && err->code == ERR_INVALID)
		dprintf(STDERR_FILENO, "Try 'cuvette help %s'.\n", cmd->name);
	return status >= 0 ? status : err_exit(err);
}
