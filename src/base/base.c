/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _noreturn_ void out_of_memory(void)
{
	static const char text[] = "out of memory\n";

	(void) !write(STDERR_FILENO, text, sizeof text - 1);
	abort();
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		out_of_memory();
	return p;
}

void *xrealloc(void *p, size_t n, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(n, size, &total))
		out_of_memory();
	p = realloc(p, total ? total : 1);
	if (!p)
		out_of_memory();
	return p;
}

char *xstrndup(const char *s, size_t n)
{
	char *p = strndup(s, n);

	if (!p)
		out_of_memory();
	return p;
}

char *xstrdup(const char *s)
{
	return xstrndup(s, strlen(s));
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&p, fmt, ap);
	va_end(ap);
	if (n < 0)
		out_of_memory();
	return p;
}
