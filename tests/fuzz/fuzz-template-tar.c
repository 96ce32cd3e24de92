/* SPDX-License-Identifier: Apache-2.0 */
/* Whole archives, into a tree of their own: whatever they hold, its surroundings stay as they were. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "template/extract.h"
#include "template/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void unpack(int root_fd, const uint8_t *data, size_t size, enum extract_mode mode)
{
	_cleanup_(archive_freep) struct archive *a = extract_reader_new();
	struct extract x = { .root_fd = root_fd, .max_bytes = 1 << 20 };
	struct err err = { 0 };

	if (archive_read_open_memory(a, data, size) != ARCHIVE_OK)
		return;
	if (extract_archive(&x, a, mode, &err) < 0)
		must(err.code != ERR_OK && err.msg[0]);
	must(x.report.bytes <= x.max_bytes);
}

/* The directory around the tree has one entry, and the tree is still a directory of ours. */
static void check_surroundings(int fd)
{
	struct stat st;

	must(fstat(fd, &st) == 0 && st.st_nlink == 3 && (st.st_mode & 07777) == 0700);
	must(fstatat(fd, "root", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode));
	must(unlinkat(fd, "root", AT_REMOVEDIR) == 0 && unlinkat(fd, "canary", 0) == 0);
}

/* Every input one way of reading, or a search would take three times as long. */
static enum extract_mode mode_of(const uint8_t *data, size_t size)
{
	unsigned sum = 0;

	for (size_t i = 0; i < size; i++)
		sum += data[i];
	return (enum extract_mode) (sum % 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* In memory where that is possible: an input makes and removes a dozen files. */
	char memory[] = "/dev/shm/cuvette-fuzz-XXXXXX", disk[] = "/tmp/cuvette-fuzz-XXXXXX";
	const char *path = mkdtemp(memory) ? memory : mkdtemp(disk);
	_cleanup_close_ int fd = -1, root_fd = -1;

	must(path != NULL);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(mkdirat(fd, "root", 0755) == 0 && mknodat(fd, "canary", S_IFREG | 0600, 0) == 0);
	root_fd = openat(fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unpack(root_fd, data, size, mode_of(data, size));
	must(tree_empty(root_fd, NULL) == 0);
	check_surroundings(fd);
	must(rmdir(path) == 0);
	return 0;
}
