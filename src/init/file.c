/* SPDX-License-Identifier: Apache-2.0 */
#include "init/file.h"

#include <fcntl.h>
#include <string.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>
#include "base/fd.h"
#include "init/conn.h"
#include "init/cred.h"
#include "init/helper.h"
#include "init/path.h"
#include "init/scratch.h"

enum { MODE_BITS = 0777 };      /* setuid, setgid and sticky are never given (C24) */

/* What an operation left for the reply. */
struct outcome {
	bool has_stat;          /* in scratch.stat */
	bool needs_helper;      /* nothing is done yet: a helper has to do it */
	int fd;                 /* to pass, or -1 */
};

struct operation {
	int (*run)(int conn_fd, const struct init_file *f, struct outcome *out, struct err *err);
	bool always_helped;
};

static bool in_helper;

void file_set_stat(struct init_stat *ret, const struct stat *st)
{
	ret->mode = st->st_mode;
	ret->uid = st->st_uid;
	ret->gid = st->st_gid;
	ret->size = (uint64_t) st->st_size;
	ret->blocks = (uint64_t) st->st_blocks;
	ret->inode = st->st_ino;
	ret->mtime_s = st->st_mtim.tv_sec;
	ret->mtime_ns = (uint32_t) st->st_mtim.tv_nsec;
	ret->links = (uint32_t) st->st_nlink;
	ret->target[0] = '\0';
	ret->sys = 0;
}

const char *file_kind(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG: return "a regular file";
	case S_IFDIR: return "a directory";
	case S_IFLNK: return "a symbolic link";
	case S_IFIFO: return "a FIFO";
	case S_IFSOCK: return "a socket";
	case S_IFCHR: return "a character device";
	case S_IFBLK: return "a block device";
	default: return "of an unknown type";
	}
}

/* ---- paths ---- */

/* Relative paths start at the user's home. */
static int make_absolute(char path[INIT_PATH_MAX], const struct user *user, struct err *err)
{
	size_t home_len = strlen(user->home), len = strlen(path);

	if (path[0] == '/')
		return 0;
	if (home_len + 1 + len >= INIT_PATH_MAX)
		return err_sys(err, ENAMETOOLONG, "%.160s", path);
	memmove(path + home_len + 1, path, len + 1);
	memcpy(path, user->home, home_len);
	path[home_len] = '/';
	return 0;
}

static int open_parent(char *path, uint32_t flags, const char **ret_name, struct err *err)
{
	int fd = path_open_parent(path, flags & INIT_FILE_PARENTS, ret_name);

	return fd < 0 ? err_sys(err, errno, "%.160s", path) : fd;
}

/* ---- OPEN ---- */

static int open_flags(const struct init_file *f)
{
	int flags = O_NONBLOCK | O_NOCTTY;

	flags |= !(f->flags & INIT_FILE_WRITE) ? O_RDONLY : f->flags & INIT_FILE_READ ? O_RDWR : O_WRONLY;
	if (!(f->flags & INIT_FILE_FOLLOW))
		flags |= O_NOFOLLOW;
	if (f->flags & INIT_FILE_TRUNCATE)
		flags |= O_TRUNC;
	if (f->flags & INIT_FILE_DIRECTORY)
		flags |= O_DIRECTORY;
	return flags;
}

static int check_open(const struct init_file *f, struct err *err)
{
	if (!(f->flags & (INIT_FILE_READ | INIT_FILE_WRITE)))
		return err_set(err, ERR_INVALID, "open for reading, writing or both");
	if (f->flags & INIT_FILE_DIRECTORY && f->flags & (INIT_FILE_WRITE | INIT_FILE_CREATE | INIT_FILE_TRUNCATE))
		return err_set(err, ERR_INVALID, "a directory can only be read");
	if (f->flags & (INIT_FILE_TRUNCATE | INIT_FILE_CREATE) && !(f->flags & INIT_FILE_WRITE))
		return err_set(err, ERR_INVALID, "to create or truncate is to write");
	return 0;
}

/* Anything but files and directories could block for ever or act when it is opened. */
static int check_kind(const struct stat *st, const char *path, struct err *err)
{
	if (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode))
		return 0;
	err_set(err, ERR_PRECONDITION, "%.160s is %s, not a regular file", path, file_kind(st->st_mode));
	if (err)
		err->sys = S_ISLNK(st->st_mode) ? ELOOP : EINVAL;
	return -1;
}

static int create(struct init_file *f, struct err *err)
{
	int flags = open_flags(f) | O_CREAT | (f->flags & INIT_FILE_EXCLUSIVE ? O_EXCL : 0);
	int fd = path_open(f->path, flags, f->mode & MODE_BITS);
	const char *name;

	if (fd < 0 && errno == ENOENT && f->flags & INIT_FILE_PARENTS) {
		_cleanup_close_ int parent = open_parent(f->path, f->flags, &name, err);

		if (parent < 0)
			return -1;
		fd = path_open(f->path, flags, f->mode & MODE_BITS);
	}
	return fd < 0 ? err_sys(err, errno, "create %.160s", f->path) : fd;
}

/*
 * A file of procfs shows what its reader may see, and init may see itself.  A
 * helper is another process without that privilege.
 */
static bool is_on_procfs(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC;
}

/*
 * Looks with O_PATH first, which touches nothing: merely opening a FIFO would
 * wake its writer.  By the time of the real open it may be something else, so
 * that is non-blocking and looked at again.
 */
static int open_existing(struct init_file *f, int probe, struct outcome *out, struct err *err)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (f->flags & INIT_FILE_EXCLUSIVE)
		return err_sys(err, EEXIST, "create %.160s", f->path);
	if (fstat(probe, &st) < 0)
		return err_sys(err, errno, "stat %.160s", f->path);
	if (check_kind(&st, f->path, err) < 0)
		return -1;
	if (is_on_procfs(probe) && !in_helper) {
		out->needs_helper = true;
		return 0;
	}
	fd = path_open(f->path, open_flags(f), 0);
	if (fd < 0)
		return err_sys(err, errno, "open %.160s", f->path);
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "stat %.160s", f->path);
	if (check_kind(&st, f->path, err) < 0)
		return -1;
	out->fd = TAKE_FD(fd);
	return 0;
}

static int open_file(_unused_ int conn_fd, const struct init_file *request, struct outcome *out, struct err *err)
{
	struct init_file *f = &scratch.file;
	int follow = request->flags & INIT_FILE_FOLLOW ? 0 : O_NOFOLLOW;
	_cleanup_close_ int probe = -1;
	struct stat st;

	if (check_open(f, err) < 0)
		return -1;
	probe = path_open(f->path, O_PATH | follow, 0);
	if (probe < 0 && (errno != ENOENT || !(f->flags & INIT_FILE_CREATE)))
		return err_sys(err, errno, "open %.160s", f->path);
	if (probe >= 0) {
		if (open_existing(f, probe, out, err) < 0)
			return -1;
	} else {
		out->fd = create(f, err);
		if (out->fd < 0)
			return -1;
	}
	if (out->needs_helper)
		return 0;
	if (fstat(out->fd, &st) < 0 || check_kind(&st, f->path, err) < 0)
		return err_wrap(err, "open %.160s", f->path);
	file_set_stat(&scratch.stat, &st);
	out->has_stat = true;
	return 0;
}

/* ---- the others ---- */

static int stat_file(_unused_ int conn_fd, const struct init_file *f, struct outcome *out, struct err *err)
{
	int follow = f->flags & INIT_FILE_FOLLOW ? 0 : O_NOFOLLOW;
	_cleanup_close_ int fd = path_open(f->path, O_PATH | follow, 0);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "stat %.160s", f->path);
	file_set_stat(&scratch.stat, &st);
	if (S_ISLNK(st.st_mode)) {
		n = readlinkat(fd, "", scratch.stat.target, sizeof scratch.stat.target - 1);
		scratch.stat.target[n > 0 ? n : 0] = '\0';
	}
	out->has_stat = true;
	return 0;
}

static bool is_directory(const char *path)
{
	_cleanup_close_ int fd = path_open(path, O_PATH | O_DIRECTORY, 0);

	return fd >= 0;
}

static int make_directory(_unused_ int conn_fd, const struct init_file *f, _unused_ struct outcome *out,
                          struct err *err)
{
	bool parents = f->flags & INIT_FILE_PARENTS;
	_cleanup_close_ int parent = -1;
	const char *name;
	int sys;

	/* Also for a path without a last component, "/" or "a/..".  An existing one is left as it is (C04). */
	if (parents && is_directory(f->path))
		return 0;
	parent = open_parent(scratch.file.path, f->flags, &name, err);
	if (parent < 0)
		return -1;
	if (mkdirat(parent, name, f->mode & MODE_BITS) == 0)
		return 0;
	sys = errno;
	/* Somebody else may just have made it (C01). */
	if (sys == EEXIST && parents && is_directory(f->path))
		return 0;
	return err_sys(err, sys, "make directory %.160s", f->path);
}

static int remove_file(int conn_fd, const struct init_file *f, struct outcome *out, struct err *err)
{
	const char *name;
	_cleanup_close_ int parent = open_parent(scratch.file.path, 0, &name, err);

	if (parent < 0)
		return -1;
	if (unlinkat(parent, name, 0) == 0)
		return 0;
	if (errno == EISDIR && unlinkat(parent, name, AT_REMOVEDIR) == 0)
		return 0;
	if (!(f->flags & INIT_FILE_RECURSIVE) || (errno != ENOTEMPTY && errno != EEXIST))
		return err_sys(err, errno, "remove %.160s", f->path);
	out->needs_helper = !in_helper;
	if (!in_helper)
		return 0;
	if (file_remove_tree(conn_fd, parent, name, err) < 0)
		return err_wrap(err, "remove %.120s", f->path);
	return 0;
}

static int rename_file(_unused_ int conn_fd, const struct init_file *f, _unused_ struct outcome *out, struct err *err)
{
	_cleanup_close_ int from = -1, to = -1;
	const char *from_name, *to_name;

	if (!f->target[0])
		return err_set(err, ERR_INVALID, "rename needs a target");
	from = open_parent(scratch.file.path, 0, &from_name, err);
	if (from < 0)
		return -1;
	to = open_parent(scratch.file.target, f->flags, &to_name, err);
	if (to < 0)
		return -1;
	if (renameat(from, from_name, to, to_name) < 0)
		return err_sys(err, errno, "rename %.80s to %.80s", f->path, f->target);
	return 0;
}

static int make_link(_unused_ int conn_fd, const struct init_file *f, _unused_ struct outcome *out, struct err *err)
{
	_cleanup_close_ int parent = -1;
	const char *name;

	if (!f->target[0])
		return err_set(err, ERR_INVALID, "a link needs a target");
	parent = open_parent(scratch.file.path, f->flags, &name, err);
	if (parent < 0)
		return -1;
	if (symlinkat(f->target, parent, name) < 0)
		return err_sys(err, errno, "make link %.160s", f->path);
	return 0;
}

static const struct operation operations[] = {
	[INIT_FILE_OPEN] = { open_file },
	[INIT_FILE_STAT] = { stat_file },
	[INIT_FILE_LIST] = { NULL, .always_helped = true },
	[INIT_FILE_MKDIR] = { make_directory },
	[INIT_FILE_REMOVE] = { remove_file },
	[INIT_FILE_RENAME] = { rename_file },
	[INIT_FILE_SYMLINK] = { make_link },
};

/* ---- serving ---- */

static void send_stat(int fd, const struct outcome *out)
{
	struct wire_writer w = { .data = scratch.packet + INIT_HEADER, .cap = INIT_PAYLOAD_MAX };

	init_encode_stat(&w, &scratch.stat);
	init_put_header(scratch.packet, INIT_FILE_REPLY, 0, (uint32_t) w.len);
	if (send_msg(fd, scratch.packet, INIT_HEADER + w.len, &out->fd, out->fd >= 0) < 0 && errno != EPIPE) {
		struct err err;

		/* Descriptors in flight are counted per user, so the sandbox can use them up. */
		err_sys(&err, errno, "pass the file");
		conn_send_error(fd, &err, INIT_STEP_FILE);
	}
}

static void answer(int fd, int result, const struct outcome *out, const struct err *err)
{
	if (result < 0)
		conn_send_error(fd, err, INIT_STEP_FILE);
	else if (out->has_stat)
		send_stat(fd, out);
	else
		conn_send(fd, INIT_OK, 0, NULL, 0, -1);
	close_fd(out->fd);
}

/* The same request again, in a process that may take its time. */
static void serve_in_helper(int fd)
{
	const struct init_file *f = &scratch.file;
	struct outcome out = { .fd = -1 };
	const struct user *user;
	struct err err = { .code = ERR_INTERNAL };
	int result;

	in_helper = true;
	if (user_find(f->user, &user, &err) < 0 || cred_enter(user, &err) < 0) {
		conn_send_error(fd, &err, INIT_STEP_USER);
		return;
	}
	if (f->op == INIT_FILE_LIST) {
		file_list(fd, f->path);
		return;
	}
	result = operations[f->op].run(fd, f, &out, &err);
	answer(fd, result, &out, &err);
}

static int run_at_once(int fd, const struct user *user, struct outcome *out, struct err *err)
{
	const struct init_file *f = &scratch.file;
	int result;

	if (operations[f->op].always_helped) {
		out->needs_helper = true;
		return 0;
	}
	if (cred_enter(user, err) < 0)
		return -1;
	result = operations[f->op].run(fd, f, out, err);
	cred_leave(user);
	return result;
}

void file_serve(int fd)
{
	struct init_file *f = &scratch.file;
	struct outcome out = { .fd = -1 };
	const struct user *user;
	struct err err = { .code = ERR_INTERNAL };
	int result;

	if (user_find(f->user, &user, &err) < 0) {
		conn_send_error(fd, &err, INIT_STEP_USER);
		return;
	}
	result = make_absolute(f->path, user, &err);
	if (result == 0 && f->op == INIT_FILE_RENAME && f->target[0])
		result = make_absolute(f->target, user, &err);
	if (result == 0)
		result = run_at_once(fd, user, &out, &err);
	if (result == 0 && out.needs_helper) {
		if (helper_run(fd, serve_in_helper, &err) == 0)
			return;
		result = -1;
	}
	answer(fd, result, &out, &err);
}
