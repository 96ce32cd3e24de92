/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cgroup-internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static void knob_path(char ret[CG_PATH_MAX], const char *name, const char *sub, const char *file)
{
	snprintf(ret, CG_PATH_MAX, "%s%s%s%s%s", name, *name ? "/" : "", sub, *sub ? "/" : "", file);
}

int knob_open(int dir_fd, const char *name, const char *sub, const char *file, int flags)
{
	char path[CG_PATH_MAX];

	knob_path(path, name, sub, file);
	return openat(dir_fd, path, flags | O_CLOEXEC);
}

int knob_write(int dir_fd, const char *name, const char *sub, const char *file, const char *value,
               struct err *err)
{
	_cleanup_close_ int fd = knob_open(dir_fd, name, sub, file, O_WRONLY);

	if (fd < 0)
		return err_sys(err, errno, "open %s", file);
	/* One write: the kernel takes each as a complete value. */
	if (write(fd, value, strlen(value)) < 0)
		return err_sys(err, errno, "write \"%s\" to %s", value, file);
	return 0;
}

int knob_write_u64(int dir_fd, const char *name, const char *sub, const char *file, uint64_t value,
                   struct err *err)
{
	char text[24];

	snprintf(text, sizeof text, "%llu", (unsigned long long) value);
	return knob_write(dir_fd, name, sub, file, text, err);
}

int knob_read(int dir_fd, const char *name, const char *sub, const char *file, char *ret, size_t size,
              struct err *err)
{
	_cleanup_close_ int fd = knob_open(dir_fd, name, sub, file, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return err_sys(err, errno, "open %s", file);
	n = read_full(fd, ret, size - 1);
	if (n < 0)
		return err_sys(err, errno, "read %s", file);
	if (n > 0 && ret[n - 1] == '\n')
		n--;
	ret[n] = '\0';
	return 0;
}

/* Digits at *p, at most UINT64_MAX; moves *p behind them.  The kernel writes these, but a
 * counter that wrapped must not wrap again here. */
static uint64_t digits(const char **p)
{
	uint64_t n = 0;

	for (; **p >= '0' && **p <= '9'; (*p)++)
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t) (**p - '0'), &n))
			n = UINT64_MAX / 16;
	return n;
}

int knob_read_u64(int dir_fd, const char *name, const char *sub, const char *file, uint64_t *ret,
                  struct err *err)
{
	char text[64];
	const char *p = text;

	if (knob_read(dir_fd, name, sub, file, text, sizeof text, err) < 0)
		return -1;
	*ret = digits(&p);
	return 0;
}

uint64_t knob_key(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, len) && line[len] == ' ') {
			line += len + 1;
			return digits(&line);
		}
	}
	return 0;
}

/* Adds up what follows every MARK. */
static uint64_t sum_after(const char *text, const char *mark)
{
	uint64_t sum = 0;

	while ((text = strstr(text, mark))) {
		text += strlen(mark);
		if (__builtin_add_overflow(sum, digits(&text), &sum))
			return UINT64_MAX;
	}
	return sum;
}

void knob_io_v1(const char *text, uint64_t *ret_read, uint64_t *ret_write)
{
	*ret_read = sum_after(text, " Read ");
	*ret_write = sum_after(text, " Write ");
}

void knob_io_v2(const char *text, uint64_t *ret_read, uint64_t *ret_write)
{
	*ret_read = sum_after(text, " rbytes=");
	*ret_write = sum_after(text, " wbytes=");
}
