/* SPDX-License-Identifier: Apache-2.0 */
#include "init/path.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int open_with(int dir_fd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t) (flags | O_CLOEXEC),
		.mode = mode,
		.resolve = resolve,
	};
	long fd = -1;

	/* EAGAIN: a rename somewhere made the walk uncertain and the kernel asks to try again.
	 * Not for ever: a program inside can rename in a loop. */
	for (int tries = 0; tries < 64; tries++) {
		fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return (int) fd;
}

int path_open(const char *path, int flags, mode_t mode)
{
	return open_with(AT_FDCWD, path, flags, mode, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

int path_open_beneath(int dir_fd, const char *name, int flags)
{
	return open_with(dir_fd, name, flags, 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

/* Makes the directory that `path` names, whose parent is there, unless somebody else just did. */
static int make_directory(char *path)
{
	const char *name;
	_cleanup_close_ int parent = path_open_parent(path, false, &name);

	if (parent < 0)
		return -1;
	return mkdirat(parent, name, 0755) < 0 && errno != EEXIST ? -1 : 0;
}

static int open_directory(const char *path)
{
	return path_open(path[0] ? path : "/", O_PATH | O_DIRECTORY, 0);
}

/*
 * Makes every missing directory of `path`, from the top down.  Several of these
 * may run at once (C01): each step accepts what another one has made.
 */
static int make_directories(char *path)
{
	char *at = path;

	do {
		int fd;

		at = strchr(at + 1, '/');
		if (at)
			*at = '\0';
		fd = open_directory(path);
		if (fd < 0 && errno == ENOENT)
			fd = make_directory(path) < 0 ? -1 : open_directory(path);
		if (at)
			*at = '/';
		if (fd < 0)
			return -1;
		close(fd);
	} while (at);
	return 0;
}

int path_open_parent(char *path, bool make, const char **ret_name)
{
	size_t len = strlen(path);
	char *slash;
	int fd;

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	slash = strrchr(path, '/');
	if (!slash || !slash[1] || !strcmp(slash, "/.") || !strcmp(slash, "/..")) {
		errno = EINVAL;
		return -1;
	}
	*slash = '\0';
	fd = open_directory(path);
	if (fd < 0 && errno == ENOENT && make)
		fd = make_directories(path) < 0 ? -1 : open_directory(path);
	*slash = '/';
	*ret_name = slash + 1;
	return fd;
}
