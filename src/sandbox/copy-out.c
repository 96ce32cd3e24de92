/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox to host.  Everything that comes out is hostile: names, types, sizes, links.
 *
 * Names are single components (files.c has refused anything else) and the host's paths are
 * opened beneath the destination with no link followed, so a link that an earlier copy made
 * is never walked through.  Files and links are made under a temporary name and renamed: a
 * reader never sees half a file, and what was there before is replaced, not written into.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "sandbox/copy.h"

/*
 * More than the disk of the sandbox and a template of the usual bound together.  Hard links make
 * terabytes of one file, as here they become files of their own, and a hostile init need not even
 * have one.
 */
#define TEMPLATE_BYTES (20ull << 30)

struct walk {
	struct sandbox *sb;
	struct init_file *file;
	struct copy_stats stats;
	int root;                       /* directory on the host that everything is made beneath */
	char host[PATH_MAX], box[PATH_MAX];     /* host is relative to root */
	size_t host_len, box_len;
	uint64_t left;                  /* bytes that may still be written on the host */
	size_t held;                    /* bytes of the listings from the top down to here */
	struct err *err;
};

static int request(struct walk *w, uint8_t op, uint32_t flags, struct init_stat *ret, int *ret_fd)
{
	w->file->op = op;
	w->file->flags = flags;
	w->file->mode = 0;
	memcpy(w->file->path, w->box, w->box_len + 1);
	return sandbox_file(w->sb, w->file, ret, ret_fd, w->err);
}

/* A name that no copy has used before; O_EXCL and its like decide if that was wrong. */
static void temporary_name(char ret[64])
{
	static unsigned counter;

	snprintf(ret, 64, ".cuvette-%d-%u-%llx", (int) getpid(), __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED),
	         (unsigned long long) now_ns());
}

/* ---- one entry, into the open directory `dir` under `name` ---- */

static int fill_file(struct walk *w, int from, int to, const struct stat *st)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, st->st_mtim };

	if (copy_sparse(from, to, (uint64_t) st->st_size, &w->stats.bytes, &w->left, w->err) < 0)
		return -1;
	if (fchmod(to, st->st_mode & 0777) < 0)
		return err_sys(w->err, errno, "set the mode");
	(void) !futimens(to, times);
	return 0;
}

/* `listed`: as one of many, which is left out when it is not what it was listed as. */
static int get_file(struct walk *w, int dir, const char *name, bool listed)
{
	_cleanup_close_ int from = -1, to = -1;
	char temporary[64];
	struct stat st;

	if (request(w, INIT_FILE_OPEN, INIT_FILE_READ, NULL, &from) < 0) {
		if (listed && w->err->code == ERR_PRECONDITION) {
			copy_skip(&w->stats, w->box);
			return 0;
		}
		return err_wrap(w->err, "read %s in the sandbox", w->box);
	}
	if (fstat(from, &st) < 0)
		return err_sys(w->err, errno, "read %s in the sandbox", w->box);
	if (!S_ISREG(st.st_mode)) {
		/* It was a file when it was listed: somebody inside plays games. */
		copy_skip(&w->stats, w->box);
		return 0;
	}
	temporary_name(temporary);
	to = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return err_sys(w->err, errno, "create %s", w->host);
	if (fill_file(w, from, to, &st) < 0) {
		unlinkat(dir, temporary, 0);
		return err_wrap(w->err, "copy to %s", w->host);
	}
	if (renameat(dir, temporary, dir, name) < 0) {
		err_sys(w->err, errno, "create %s", w->host);
		unlinkat(dir, temporary, 0);
		return -1;
	}
	w->stats.files++;
	return 0;
}

static int get_link(struct walk *w, int dir, const char *name, const char *target)
{
	char temporary[64];

	temporary_name(temporary);
	if (symlinkat(target, dir, temporary) < 0)
		return err_sys(w->err, errno, "make link %s", w->host);
	if (renameat(dir, temporary, dir, name) < 0) {
		err_sys(w->err, errno, "make link %s", w->host);
		unlinkat(dir, temporary, 0);
		return -1;
	}
	w->stats.links++;
	return 0;
}

/* ---- a tree ---- */

static int get_tree(struct walk *w, uint32_t mode);

static int get_entry(struct walk *w, int dir, const struct listing_entry *e)
{
	/* What a link leads to, and whether to anything, is no matter: it is copied as a link. */
	if (S_ISLNK(e->mode) && *e->target)
		return get_link(w, dir, e->name, e->target);
	if (e->sys) {
		copy_skip(&w->stats, w->box);
		return 0;
	}
	switch (e->mode & S_IFMT) {
	case S_IFREG:
		return get_file(w, dir, e->name, true);
	case S_IFDIR:
		return 0;       /* later, when this directory is closed */
	default:
		copy_skip(&w->stats, w->box);
		return 0;
	}
}

static int get_named(struct walk *w, int dir, const struct listing_entry *e)
{
	size_t host = w->host_len, box = w->box_len;
	int r;

	if (path_push(w->host, &w->host_len, e->name, w->err) < 0)
		return -1;
	r = path_push(w->box, &w->box_len, e->name, w->err);
	if (r == 0)
		r = dir >= 0 ? get_entry(w, dir, e) : get_tree(w, e->mode);
	path_pop(w->host, &w->host_len, host);
	path_pop(w->box, &w->box_len, box);
	return r;
}

/* Makes the directory w->host or uses the one that is there; a link in its place is refused. */
static int open_dir(struct walk *w, bool *ret_is_new)
{
	char *slash = strrchr(w->host, '/');
	_cleanup_close_ int parent = -1;
	int dir;

	if (slash) {
		*slash = '\0';
		parent = open_beneath(w->root, w->host, O_PATH | O_DIRECTORY, 0);
		*slash = '/';
	} else {
		parent = fcntl(w->root, F_DUPFD_CLOEXEC, 3);
	}
	if (parent < 0)
		return err_sys(w->err, errno, "open the parent of %s", w->host);
	*ret_is_new = mkdirat(parent, slash ? slash + 1 : w->host, 0700) == 0;
	if (!*ret_is_new && errno != EEXIST)
		return err_sys(w->err, errno, "make directory %s", w->host);
	dir = open_beneath(parent, slash ? slash + 1 : w->host, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0 && errno == ELOOP)
		return err_set(w->err, ERR_INVALID, "%s is a symbolic link here, and links are not followed", w->host);
	if (dir < 0)
		return err_sys(w->err, errno, "open directory %s", w->host);
	return dir;
}

static int get_files(struct walk *w, int dir, struct listing *l)
{
	struct listing_entry e;

	while (listing_next(l, &e))
		if (get_named(w, dir, &e) < 0)
			return -1;
	return 0;
}

static int get_subdirs(struct walk *w, struct listing *l)
{
	struct listing_entry e;

	l->at = 0;
	while (listing_next(l, &e))
		if (!e.sys && S_ISDIR(e.mode) && get_named(w, -1, &e) < 0)
			return -1;
	return 0;
}

/* The directory w->box, into w->host. */
static int get_tree(struct walk *w, uint32_t mode)
{
	struct listing l;
	bool is_new = false;
	int dir, r;

	if (listing_read(w->sb, w->file->user, w->box, w->held, &l, w->err) < 0) {
		err_wrap(w->err, "list %s in the sandbox", w->box);
		listing_done(&l);
		return -1;
	}
	w->held += l.data.len;
	dir = open_dir(w, &is_new);
	r = dir < 0 ? -1 : get_files(w, dir, &l);
	if (r == 0) {
		w->stats.dirs++;
		close_fd(dir);
		dir = -1;
		r = get_subdirs(w, &l);
	}
	w->held -= l.data.len;
	listing_done(&l);
	/* The mode comes last: a read-only directory could not be filled. */
	if (r == 0 && is_new) {
		dir = open_beneath(w->root, w->host, O_RDONLY | O_DIRECTORY, 0);
		if (dir < 0 || fchmod(dir, mode & 0777) < 0)
			r = err_sys(w->err, errno, "set the mode of %s", w->host);
	}
	close_fd(dir);
	return r;
}

/* ---- the start ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * Opens the directory that the copy is made in and leaves its name there in w->host.  The
 * directory part of `host_path` is the caller's own and may hold links; the last component
 * is not followed.
 */
static int open_destination(struct walk *w, const char *host_path, char parent[PATH_MAX])
{
	const char *name = base_name(host_path);
	size_t len = (size_t) (name - host_path);

	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return err_set(w->err, ERR_INVALID, "%s does not name a file or directory to create", host_path);
	if (len >= PATH_MAX)
		return err_sys(w->err, ENAMETOOLONG, "%.60s...", host_path);
	if (len) {
		memcpy(parent, host_path, len);
		parent[len] = '\0';
	} else {
		strcpy(parent, ".");
	}
	w->root = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->root < 0)
		return err_sys(w->err, errno, "open directory %s", parent);
	return path_push(w->host, &w->host_len, name, w->err);
}

int sandbox_get(struct sandbox *sb, const char *user, const char *box_path, const char *host_path,
                struct copy_stats *ret, struct err *err)
{
	_cleanup_free_ struct init_stat *st = xcalloc(1, sizeof *st);
	_cleanup_free_ struct init_file *file = xcalloc(1, sizeof *file);
	_cleanup_free_ struct walk *w = xcalloc(1, sizeof *w);
	_cleanup_free_ char *parent = xcalloc(1, PATH_MAX);
	struct err local = { 0 };
	int r;

	w->sb = sb;
	w->file = file;
	w->root = -1;
	w->left = sb->out_bytes ? sb->out_bytes : sb->limits.disk_bytes + TEMPLATE_BYTES;
	w->err = err ? err : &local;
	snprintf(file->user, sizeof file->user, "%s", user);
	if (path_push(w->box, &w->box_len, box_path, w->err) < 0)
		return -1;
	if (request(w, INIT_FILE_STAT, 0, st, NULL) < 0)
		return err_wrap(w->err, "look at %s in the sandbox", box_path);
	if (open_destination(w, host_path, parent) < 0) {
		r = -1;
	} else if (S_ISDIR(st->mode)) {
		r = get_tree(w, st->mode);
	} else if (S_ISLNK(st->mode)) {
		r = get_link(w, w->root, w->host, st->target);
	} else if (S_ISREG(st->mode)) {
		r = get_file(w, w->root, w->host, false);
	} else {
		r = err_set(w->err, ERR_INVALID, "%s in the sandbox is neither a file, a directory nor a link", box_path);
	}
	if (ret)
		*ret = w->stats;
	close_fd(w->root);
	return r;
}
