/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay: runs a fuzz target over a corpus folder without a fuzzer.
 *
 * Each file is tried as it is, cut at every length, and with single bytes
 * changed: a search of one step around inputs that reach deep into the parser,
 * the same on every run.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "base/fd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILE_MAX = 1 << 20, STEPS_MAX = 2000 };

/* A fresh allocation of the exact size each time, so that ASan sees one byte too many. */
static void try(const uint8_t *data, size_t size, size_t at, uint8_t flip)
{
	_cleanup_free_ uint8_t *copy = xcalloc(size ? size : 1, 1);

	if (size)
		memcpy(copy, data, size);
	if (at < size)
		copy[at] ^= flip;
	LLVMFuzzerTestOneInput(copy, size);
}

static void try_around(const uint8_t *data, size_t size)
{
	static const uint8_t flips[] = { 0x01, 0x80, 0xff, 0x20 };
	size_t step = size / STEPS_MAX + 1;

	try(data, size, size, 0);
	for (size_t i = 0; i < size; i += step) {
		try(data, i, size, 0);
		for (size_t k = 0; k < ARRAY_SIZE(flips); k++)
			try(data, size, i, flips[k]);
	}
}

static int replay_file(int dir_fd, const char *name, struct err *err)
{
	_cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	_cleanup_buf_ struct buf b = BUF_INIT(FILE_MAX);

	if (fd < 0)
		return err_sys(err, errno, "open %s", name);
	if (read_to_buf(fd, &b, err) < 0)
		return err_wrap(err, "%s", name);
	try_around((const uint8_t *) b.data, b.len);
	return 0;
}

int main(int argc, char **argv)
{
	DIR *dir = opendir(argc > 1 ? argv[1] : ".");
	struct err err = { 0 };
	const struct dirent *entry;
	int files = 0;

	if (!dir) {
		perror(argc > 1 ? argv[1] : ".");
		return 1;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		printf("%s\n", entry->d_name);
		fflush(stdout);         /* a crash is of the last name */
		if (replay_file(dirfd(dir), entry->d_name, &err) < 0) {
			fprintf(stderr, "%s\n", err.msg);
			return 1;
		}
		files++;
	}
	closedir(dir);
	return files ? 0 : 1;           /* an empty corpus tests nothing */
}
