/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static enum log_level max_level = LOG_LEVEL_WARN;
static const char *name = "cuvette";

void log_set_level(enum log_level level)
{
	max_level = level;
}

void log_set_name(const char *program)
{
	name = program;
}

static size_t put(char *line, size_t at, size_t size, const char *text, bool quote)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:+,@%";

	quote = quote && (!*text || text[strspn(text, plain)]);
	if (quote && at < size)
		line[at++] = '"';
	for (; *text && at + 4 < size; text++) {
		unsigned char c = (unsigned char) *text;

		if (c < 0x20 || c >= 0x7f) {
			static const char digits[] = "0123456789abcdef";

			line[at++] = '\\';
			line[at++] = 'x';
			line[at++] = digits[c >> 4];
			line[at++] = digits[c & 15];
		} else {
			if (quote && (c == '"' || c == '\\'))
				line[at++] = '\\';
			line[at++] = (char) c;
		}
	}
	if (quote && at < size)
		line[at++] = '"';
	return at;
}

void log_line(enum log_level level, const char *msg, ...)
{
	static const char *const words[] = {
		[LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARN] = "warning",
		[LOG_LEVEL_INFO] = "info", [LOG_LEVEL_DEBUG] = "debug",
	};
	int saved = errno;
	char line[1024];
	const char *key;
	size_t n;
	va_list ap;

	if (level > max_level)
		return;
	n = (size_t) snprintf(line, sizeof line, "%s: %s: ", name, words[level]);
	n = put(line, n, sizeof line - 2, msg, false);
	va_start(ap, msg);
	while ((key = va_arg(ap, const char *))) {
		const char *value = va_arg(ap, const char *);

		if (n + 1 < sizeof line - 2)
			line[n++] = ' ';
		n = put(line, n, sizeof line - 2, key, false);
		if (n + 1 < sizeof line - 2)
			line[n++] = '=';
		n = put(line, n, sizeof line - 2, value ? value : "", true);
	}
	va_end(ap);
	line[n++] = '\n';
	(void) !write(STDERR_FILENO, line, n);
	errno = saved;
}
