/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * base: attributes, ownership macros and allocators that abort.
 *
 * Everything else may include this; it includes nothing of ours.  Works the
 * same with glibc (daemon, command line, tests) and musl (spawner, init).
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn)   __attribute__((cleanup(fn)))
#define _must_check_    __attribute__((warn_unused_result))
#define _noreturn_      __attribute__((noreturn))
#define _unused_        __attribute__((unused))
#define _printf_(a, b)  __attribute__((format(printf, a, b)))

#define ARRAY_SIZE(a)   (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)       ({ typeof(a) _a = (a); typeof(b) _b = (b); _a < _b ? _a : _b; })
#define MAX(a, b)       ({ typeof(a) _a = (a); typeof(b) _b = (b); _a > _b ? _a : _b; })

/* Moves a pointer or descriptor out of a cleanup variable. */
#define TAKE_PTR(p)     ({ typeof(p) _p = (p); (p) = NULL; _p; })
#define TAKE_FD(fd)     ({ int _fd = (fd); (fd) = -1; _fd; })

/* DEFINE_CLEANUP(struct x *, x_free) makes x_freep() for _cleanup_(x_freep). */
#define DEFINE_CLEANUP(type, fn)                                        \
	static inline _unused_ void fn##p(type *p)                      \
	{                                                               \
		if (*p)                                                 \
			fn(*p);                                         \
	}

static inline void base_freep(void *p)
{
	int saved = errno;

	free(*(void **) p);
	errno = saved;
}
#define _cleanup_free_  _cleanup_(base_freep)

/* Closes fd and returns -1, preserving errno.  A negative fd is fine. */
static inline int close_fd(int fd)
{
	if (fd >= 0) {
		int saved = errno;

		close(fd);
		errno = saved;
	}
	return -1;
}

static inline void base_closep(int *fd)
{
	*fd = close_fd(*fd);
}
#define _cleanup_close_ _cleanup_(base_closep)

/* Allocators that abort with one line on stderr: see style, "Out of memory". */
void *xcalloc(size_t n, size_t size) __attribute__((malloc, alloc_size(1, 2), returns_nonnull));
void *xrealloc(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) _printf_(1, 2) __attribute__((malloc, returns_nonnull));
