/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host to sandbox.
 *
 * The walk holds one path and the root's descriptor, never one descriptor per level, so a
 * tree of any depth that a path can name is fine.  Every open on the host is beneath the
 * root with no link followed: a tree that changes under the walk (a link put in the place
 * of a directory) leads nowhere else.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "sandbox/copy.h"

struct walk {
	struct sandbox *sb;
	struct init_file *file;         /* reused for every request; user is filled in */
	struct copy_stats stats;
	int root;                       /* of the host's tree */
	char host[PATH_MAX], box[PATH_MAX];     /* host is relative to root */
	size_t host_len, box_len;
	struct err *err;
};

static int request(struct walk *w, uint8_t op, uint32_t flags, uint32_t mode, int *ret_fd)
{
	w->file->op = op;
	w->file->flags = flags;
	w->file->mode = mode & 0777;
	memcpy(w->file->path, w->box, w->box_len + 1);
	return sandbox_file(w->sb, w->file, NULL, ret_fd, w->err);
}

static void keep_time(int fd, const struct stat *st)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, st->st_mtim };

	(void) !futimens(fd, times);
}

/* `from` is open and regular. */
static int put_file(struct walk *w, int from, const struct stat *st, uint32_t follow)
{
	uint64_t left = UINT64_MAX;     /* the sandbox's own disk is the limit */
	_cleanup_close_ int to = -1;

	if (request(w, INIT_FILE_OPEN, INIT_FILE_WRITE | INIT_FILE_CREATE | INIT_FILE_TRUNCATE | INIT_FILE_PARENTS | follow,
	            st->st_mode, &to) < 0 ||
	    copy_sparse(from, to, (uint64_t) st->st_size, &w->stats.bytes, &left, w->err) < 0)
		return err_wrap(w->err, "write %s in the sandbox", w->box);
	keep_time(to, st);
	w->stats.files++;
	return 0;
}

static int put_link(struct walk *w, int dir, const char *name)
{
	ssize_t n = readlinkat(dir, name, w->file->target, sizeof w->file->target - 1);
	struct err first = { 0 };
	int r;

	if (n < 0)
		return err_sys(w->err, errno, "read link %s", w->host);
	w->file->target[n] = '\0';
	r = request(w, INIT_FILE_SYMLINK, 0, 0, NULL);
	if (r < 0 && w->err->code == ERR_EXISTS) {
		first = *w->err;
		r = request(w, INIT_FILE_REMOVE, 0, 0, NULL) < 0 ? -1 : request(w, INIT_FILE_SYMLINK, 0, 0, NULL);
		if (r < 0)
			*w->err = first;
	}
	w->file->target[0] = '\0';
	if (r < 0)
		return err_wrap(w->err, "make link %s in the sandbox", w->box);
	w->stats.links++;
	return 0;
}

static int put_tree(struct walk *w);

static int put_entry(struct walk *w, int dir, const char *name, struct buf *subdirs)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(w->err, errno, "look at %s", w->host);
	if (S_ISLNK(st.st_mode))
		return put_link(w, dir, name);
	if (S_ISDIR(st.st_mode))
		return buf_append(subdirs, name, strlen(name) + 1, w->err);
	if (S_ISREG(st.st_mode)) {
		/* O_NONBLOCK: what is a file now may be a FIFO by the time it is opened. */
		fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) < 0)
			return err_sys(w->err, errno, "open %s", w->host);
		if (S_ISREG(st.st_mode))
			return put_file(w, fd, &st, 0);
	}
	copy_skip(&w->stats, w->host);
	return 0;
}

static int put_named(struct walk *w, int dir, const char *name, struct buf *subdirs)
{
	size_t host = w->host_len, box = w->box_len;
	int r;

	if (path_push(w->host, &w->host_len, name, w->err) < 0)
		return -1;
	r = path_push(w->box, &w->box_len, name, w->err);
	if (r == 0)
		r = put_entry(w, dir, name, subdirs);
	path_pop(w->host, &w->host_len, host);
	path_pop(w->box, &w->box_len, box);
	return r;
}

/* Everything in the open directory but what is below its subdirectories. */
static int put_entries(struct walk *w, int dir, struct buf *subdirs)
{
	int copy = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;
	int r = 0;

	if (!d) {
		close_fd(copy);
		return err_sys(w->err, errno, "read directory %s", w->host);
	}
	while (r == 0 && (errno = 0, e = readdir(d))) {
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			r = put_named(w, dir, e->d_name, subdirs);
	}
	if (r == 0 && errno)
		r = err_sys(w->err, errno, "read directory %s", w->host);
	closedir(d);
	return r;
}

static int put_subdir(struct walk *w, const char *name)
{
	size_t host = w->host_len, box = w->box_len;
	int r;

	if (path_push(w->host, &w->host_len, name, w->err) < 0)
		return -1;
	r = path_push(w->box, &w->box_len, name, w->err);
	if (r == 0)
		r = put_tree(w);
	path_pop(w->host, &w->host_len, host);
	path_pop(w->box, &w->box_len, box);
	return r;
}

/* The mode of a new directory comes last: a read-only one could not be filled. */
static int finish_dir(struct walk *w, const struct stat *st)
{
	_cleanup_close_ int fd = -1;

	if ((st->st_mode & 0700) == 0700)
		return 0;
	if (request(w, INIT_FILE_OPEN, INIT_FILE_READ | INIT_FILE_DIRECTORY, 0, &fd) < 0)
		return err_wrap(w->err, "open %s in the sandbox", w->box);
	if (fchmod(fd, st->st_mode & 0777) < 0)
		return err_sys(w->err, errno, "set the mode of %s in the sandbox", w->box);
	return 0;
}

static int make_dir(struct walk *w, const struct stat *st, bool *ret_is_new)
{
	*ret_is_new = request(w, INIT_FILE_MKDIR, 0, st->st_mode | 0700, NULL) == 0;
	if (!*ret_is_new && w->err->code != ERR_EXISTS)
		return err_wrap(w->err, "make %s in the sandbox", w->box);
	w->stats.dirs++;
	return 0;
}

/* The directory at w->host and all below; it is closed again before its subdirectories are opened. */
static int put_tree(struct walk *w)
{
	_cleanup_buf_ struct buf subdirs = BUF_INIT(32 << 20);
	int dir = open_beneath(w->root, w->host_len ? w->host : ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
	bool is_new = false;
	struct stat st;
	int r;

	if (dir < 0 || fstat(dir, &st) < 0)
		r = err_sys(w->err, errno, "open %s", w->host);
	else
		r = make_dir(w, &st, &is_new) < 0 ? -1 : put_entries(w, dir, &subdirs);
	close_fd(dir);
	for (size_t at = 0; r == 0 && at < subdirs.len; at += strlen(subdirs.data + at) + 1)
		r = put_subdir(w, subdirs.data + at);
	return r == 0 && is_new ? finish_dir(w, &st) : r;
}

/* Missing parents of the box path, so that the first MKDIR of the tree says what exists. */
static int make_parents(struct walk *w)
{
	char *slash = strrchr(w->box, '/');
	size_t len = w->box_len;
	int r = 0;

	if (!slash || slash == w->box)
		return 0;
	w->box_len = (size_t) (slash - w->box);
	*slash = '\0';
	r = request(w, INIT_FILE_MKDIR, INIT_FILE_PARENTS, 0755, NULL);
	if (r < 0 && w->err->code == ERR_EXISTS)
		r = 0;
	if (r < 0)
		err_wrap(w->err, "make %s in the sandbox", w->box);
	*slash = '/';
	w->box_len = len;
	return r;
}

/* The name that the caller wrote may be a link: it is theirs, and the last one followed. */
static int put_root(struct walk *w, const char *host_path)
{
	_cleanup_close_ int fd = open(host_path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(w->err, errno, "open %s", host_path);
	if (S_ISREG(st.st_mode))
		return put_file(w, fd, &st, INIT_FILE_FOLLOW);
	if (!S_ISDIR(st.st_mode))
		return err_set(w->err, ERR_INVALID, "%s is neither a file nor a directory", host_path);
	w->root = fd;
	if (make_parents(w) < 0)
		return -1;
	return put_tree(w);
}

int sandbox_put(struct sandbox *sb, const char *user, const char *host_path, const char *box_path,
                struct copy_stats *ret, struct err *err)
{
	_cleanup_free_ struct walk *w = xcalloc(1, sizeof *w);
	_cleanup_free_ struct init_file *file = xcalloc(1, sizeof *file);
	struct err local = { 0 };
	int r;

	w->sb = sb;
	w->file = file;
	w->root = -1;
	w->err = err ? err : &local;
	snprintf(file->user, sizeof file->user, "%s", user);
	if (path_push(w->box, &w->box_len, box_path, w->err) < 0)
		return -1;
	r = put_root(w, host_path);
	if (ret)
		*ret = w->stats;
	return r;
}
