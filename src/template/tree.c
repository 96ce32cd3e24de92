/* SPDX-License-Identifier: Apache-2.0 */
#include "template/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int tree_open(int root_fd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (unsigned) (flags | O_CLOEXEC),
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	};
	long fd;

	/* IN_ROOT answers EAGAIN when a rename elsewhere on the machine raced with "..". */
	do
		fd = syscall(SYS_openat2, root_fd, *path ? path : ".", &how, sizeof how);
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return (int) fd;
}

/* One step of tree_real_dir(). */
static int step_dir(int dir_fd, const char *name, mode_t mode, const char *path, struct err *err)
{
	int fd;

	if (mkdirat(dir_fd, name, mode) == 0) {
		if (fchmodat(dir_fd, name, mode, 0) < 0)
			return err_sys(err, errno, "chmod /%s", path);
	} else if (errno != EEXIST) {
		return err_sys(err, errno, "create /%s", path);
	}
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return err_set(err, ERR_INVALID, "/%s of the tree is a link or a file; it must be a directory", path);
	if (fd < 0)
		return err_sys(err, errno, "open /%s", path);
	return fd;
}

int tree_real_dir(int root_fd, const char *path, mode_t mode, int *ret_fd, struct err *err)
{
	_cleanup_close_ int fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
	char so_far[PATH_MAX];
	size_t at = 0;

	if (fd < 0)
		return err_sys(err, errno, "dup");
	while (path[at]) {
		size_t len = strcspn(path + at, "/");
		char name[NAME_MAX + 1];
		bool last = !path[at + len];
		int next;

		snprintf(name, sizeof name, "%.*s", (int) len, path + at);
		snprintf(so_far, sizeof so_far, "%.*s", (int) (at + len), path);
		next = step_dir(fd, name, last ? mode : 0755, so_far, err);
		if (next < 0)
			return -1;
		close_fd(fd);
		fd = next;
		at += len + !last;
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static bool kept(const struct tree_keep *keep, const struct stat *parent, const char *name)
{
	return keep && keep->keep(keep->arg, parent->st_ino, name);
}

/*
 * The walk holds one directory stream per level.  A tree deeper than the
 * descriptor limit fails with EMFILE rather than being half forgotten; extraction
 * refuses such depths (a path is at most PATH_MAX bytes long).
 */
int tree_remove(int dir_fd, const char *name, const struct tree_keep *keep)
{
	_cleanup_close_ int fd = -1;
	struct stat st, parent;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -1;
	if (fstat(dir_fd, &parent) < 0)
		return -1;
	if (!S_ISDIR(st.st_mode))
		return kept(keep, &parent, name) ? 0 : unlinkat(dir_fd, name, 0);

	if (parent.st_dev != st.st_dev) {
		errno = EBUSY;
		return -1;
	}
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || tree_empty(fd, keep) < 0)
		return -1;
	if (kept(keep, &parent, name))
		return 0;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && !(keep && errno == ENOTEMPTY))
		return -1;
	return 0;
}

int tree_empty(int dir_fd, const struct tree_keep *keep)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int result = 0;

	if (!dir) {
		close_fd(fd);
		return -1;
	}
	while (result == 0 && (errno = 0, e = readdir(dir))) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			result = tree_remove(dir_fd, e->d_name, keep);
	}
	if (errno)
		result = -1;
	fd = errno;
	closedir(dir);
	errno = fd;
	return result;
}

const char *tree_printable(const char *name, char ret[96])
{
	size_t n = strlen(name), out = 0;

	for (size_t i = 0; i < n && out < 92; i++) {
		if (n > 90 && i == 45) {
			memcpy(ret + out, "...", 3);
			out += 3;
			i = n - 43;
		}
		ret[out++] = name[i] > ' ' && name[i] < 127 ? name[i] : '?';
	}
	ret[out] = '\0';
	return ret;
}
