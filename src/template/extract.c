/* SPDX-License-Identifier: Apache-2.0 */
#include "template/extract.h"

#include <archive_entry.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "template/extract-internal.h"
#include "template/inodes.h"
#include "template/tree.h"

/* What the headers of a refused archive may add to its files: a bomb made of
 * nothing but headers or of data that belongs to dropped members ends here. */
#define OVERHEAD_BYTES          (1ull << 30)
#define OVERHEAD_PER_ENTRY      4096ull

struct archive *extract_reader_new(void)
{
	struct archive *a = archive_read_new();

	if (!a)
		abort();
	archive_read_support_format_tar(a);
	archive_read_support_filter_gzip(a);
	archive_read_support_filter_xz(a);
	archive_read_support_filter_zstd(a);
	/* Names are bytes to us; without this a UTF-8 name in a pax header goes through
	 * the locale and may come back as none. */
	archive_read_set_options(a, "tar:hdrcharset=BINARY");
	return a;
}

int extract_clean_name(const char *name, char ret[PATH_MAX], struct err *err)
{
	char shown[96], out[PATH_MAX];
	size_t at = 0, depth = 0;

	while (*name) {
		size_t len = strcspn(name, "/");

		if (len == 2 && memcmp(name, "..", 2) == 0)
			return err_set(err, ERR_INVALID, "the name has a '..' part");
		if (len > NAME_MAX)
			return err_set(err, ERR_INVALID, "the name has a part of %zu bytes (at most %d)", len, NAME_MAX);
		if (len && !(len == 1 && name[0] == '.')) {
			if (at + len + 2 > sizeof out)
				return err_set(err, ERR_INVALID, "the name is longer than %d bytes", PATH_MAX - 1);
			if (++depth > EXTRACT_MAX_DEPTH)
				return err_set(err, ERR_INVALID, "the name %s has more than %d parts",
				               tree_printable(name, shown), EXTRACT_MAX_DEPTH);
			if (at)
				out[at++] = '/';
			memcpy(out + at, name, len);
			at += len;
		}
		name += len + (name[len] == '/');
	}
	out[at] = '\0';
	memcpy(ret, out, at + 1);
	return 0;
}

/* Splits "a/b/c" at its last slash; `base` points into `path`. */
const char *extract_split(char *path, const char **ret_dir)
{
	char *slash = strrchr(path, '/');

	if (!slash) {
		*ret_dir = "";
		return path;
	}
	*slash = '\0';
	*ret_dir = path;
	return slash + 1;
}

/*
 * How deep a directory really is: a link in the name can lead below another deep
 * directory, so that counting the parts of names would not bound the tree.
 */
static int check_depth(int dir_fd, struct err *err)
{
	char link[40], path[PATH_MAX];
	size_t depth = 0;
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", dir_fd);
	n = readlink(link, path, sizeof path);
	if (n < 0)
		return err_sys(err, errno, "readlink %s", link);
	for (ssize_t i = 0; i < n; i++)
		depth += path[i] == '/';
	if (n == (ssize_t) sizeof path || depth > EXTRACT_MAX_DEPTH + 32)
		return err_set(err, ERR_INVALID, "directories are nested more than %d deep", EXTRACT_MAX_DEPTH);
	return 0;
}

/* The name belongs to this layer from now on.  Names, not inodes: a hard link to a
 * file of a lower layer must not save that file's old name from a whiteout. */
static int remember(struct extract *x, int parent_fd, const char *name, struct err *err)
{
	struct stat st;

	if (!x->layer)
		return 0;
	if (fstat(parent_fd, &st) < 0)
		return err_sys(err, errno, "stat its directory");
	inode_set_add(x->layer, st.st_ino, extract_name_hash(name), NULL);
	return 0;
}

static int make_dir(struct extract *x, int parent_fd, const char *name, struct err *err)
{
	if (check_depth(parent_fd, err) < 0)
		return -1;
	if (mkdirat(parent_fd, name, 0755) < 0)
		return err_sys(err, errno, "mkdir");
	if (fchmodat(parent_fd, name, 0755, 0) < 0)
		return err_sys(err, errno, "mkdir");
	return remember(x, parent_fd, name, err);
}

/* Opens the directory `dir` of the tree, making what is missing. */
static int open_parent(struct extract *x, const char *dir, struct err *err)
{
	int fd = tree_open(x->root_fd, dir, O_PATH | O_DIRECTORY, 0);
	char above[PATH_MAX];
	const char *name, *rest;

	if (fd >= 0)
		return fd;
	if (errno == ENOTDIR || errno == ELOOP)
		return err_set(err, ERR_INVALID, "a part of its name is not a directory");
	if (errno != ENOENT)
		return err_sys(err, errno, "open its directory");

	snprintf(above, sizeof above, "%s", dir);
	name = extract_split(above, &rest);
	_cleanup_close_ int parent = open_parent(x, rest, err);
	if (parent < 0)
		return -1;
	/* A link that leads nowhere exists already, and is not a place to put things. */
	if (make_dir(x, parent, name, err) < 0)
		return err && err->sys == EEXIST ?
		       err_set(err, ERR_INVALID, "a part of its name is a link that leads nowhere") : -1;
	fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(err, errno, "open its directory") : fd;
}

static int add_bytes(struct extract *x, uint64_t size, struct err *err)
{
	uint64_t sum;
	char text[16];

	if (__builtin_add_overflow(x->report.bytes, size, &sum) || sum > x->max_bytes)
		return err_set(err, ERR_EXHAUSTED, "the files are larger than %s together (--max-size)",
		               size_text(x->max_bytes, text));
	x->report.bytes = sum;
	return 0;
}

static int copy_data(struct extract *x, struct archive *a, int fd, uint64_t size, struct err *err)
{
	const void *block;
	size_t len;
	la_int64_t offset;
	int r;

	while ((r = archive_read_data_block(a, &block, &len, &offset)) == ARCHIVE_OK || r == ARCHIVE_WARN) {
		uint64_t end;

		if (offset < 0 || __builtin_add_overflow((uint64_t) offset, len, &end) || end > size)
			return err_set(err, ERR_INVALID, "it holds more data than its header says");
		for (size_t done = 0; done < len; ) {
			ssize_t n = pwrite(fd, (const char *) block + done, len - done, offset + (off_t) done);

			if (n < 0 && errno != EINTR)
				return err_sys(err, errno, "write");
			done += n > 0 ? (size_t) n : 0;
		}
		if (progress_add(x->progress, len, 0, err) < 0)
			return -1;
	}
	if (r != ARCHIVE_EOF)
		return extract_archive_error(a, err);
	return 0;
}

static int make_file(struct extract *x, struct member *m, struct err *err)
{
	la_int64_t size = archive_entry_size(m->entry);

	if (size < 0)
		return err_set(err, ERR_INVALID, "its size is negative");
	if (add_bytes(x, (uint64_t) size, err) < 0)
		return -1;
	m->fd = openat(m->parent, m->base, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (m->fd < 0)
		return err_sys(err, errno, "create");
	/* The length first: what no data block covers stays a hole. */
	if (ftruncate(m->fd, size) < 0)
		return err_sys(err, errno, "set its size");
	return copy_data(x, m->archive, m->fd, (uint64_t) size, err);
}

static int make_hardlink(struct extract *x, struct member *m, struct err *err)
{
	char path[PATH_MAX];
	const char *dir, *base;
	struct stat st;

	if (extract_clean_name(archive_entry_hardlink(m->entry), path, err) < 0)
		return err_wrap(err, "the target of the hard link");
	base = extract_split(path, &dir);
	_cleanup_close_ int parent = tree_open(x->root_fd, dir, O_PATH | O_DIRECTORY, 0);
	if (parent < 0 || fstatat(parent, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(err, ERR_INVALID, "the target of the hard link is not in the tree");
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_INVALID, "the target of the hard link is a directory");
	if (st.st_ino == m->old_ino)
		return 0;
	if (extract_clear_way(x, m, err) < 0)
		return -1;
	if (linkat(parent, base, m->parent, m->base, 0) < 0)
		return err_sys(err, errno, "link");
	return remember(x, m->parent, m->base, err);
}

static int make_symlink(struct member *m, struct err *err)
{
	const char *target = archive_entry_symlink(m->entry);

	if (!target || !*target)
		return err_set(err, ERR_INVALID, "it is a link without a target");
	if (symlinkat(target, m->parent, m->base) < 0)
		return err_sys(err, errno, "symlink");
	return 0;
}

/* Removes what is in the way of a new member. */
int extract_clear_way(struct extract *x, struct member *m, struct err *err)
{
	(void) x;
	if (m->old_ino && tree_remove(m->parent, m->base, NULL) < 0)
		return err_sys(err, errno, "replace");
	return 0;
}

static int make_member(struct extract *x, struct member *m, struct err *err)
{
	switch (m->type) {
	case AE_IFDIR:
		if (m->old_ino && S_ISDIR(m->old_mode))
			return 0;
		if (extract_clear_way(x, m, err) < 0)
			return -1;
		return make_dir(x, m->parent, m->base, err);
	case AE_IFREG:
		return extract_clear_way(x, m, err) < 0 ? -1 : make_file(x, m, err);
	case AE_IFLNK:
		return extract_clear_way(x, m, err) < 0 ? -1 : make_symlink(m, err);
	case AE_IFIFO:
		if (extract_clear_way(x, m, err) < 0)
			return -1;
		return mkfifoat(m->parent, m->base, 0600) < 0 ? err_sys(err, errno, "mkfifo") : 0;
	default:
		return err_set(err, ERR_INVALID, "it is of a kind that a template cannot hold");
	}
}

static int finish_member(struct extract *x, struct member *m, struct err *err)
{
	if (x->mode != EXTRACT_FILES && extract_metadata(x, m, err) < 0)
		return -1;
	return remember(x, m->parent, m->base, err);
}

/* The root directory itself: only its attributes. */
static int take_root(struct extract *x, struct member *m, struct err *err)
{
	if (m->type != AE_IFDIR)
		return err_set(err, ERR_INVALID, "the root of the tree is not a directory");
	m->parent = fcntl(x->root_fd, F_DUPFD_CLOEXEC, 0);
	m->base = ".";
	return x->mode == EXTRACT_FILES ? 0 : extract_metadata(x, m, err);
}

static int take_placed(struct extract *x, struct member *m, const char *path, struct err *err)
{
	char copy[PATH_MAX];
	const char *dir;
	struct stat st;

	snprintf(copy, sizeof copy, "%s", path);
	m->base = extract_split(copy, &dir);
	m->parent = open_parent(x, dir, err);
	if (m->parent < 0)
		return -1;
	if (strncmp(m->base, ".wh.", 4) == 0 && x->mode != EXTRACT_FILES)
		return extract_whiteout(x, m, err);
	if (fstatat(m->parent, m->base, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		m->old_ino = st.st_ino;
		m->old_mode = st.st_mode;
	}
	if (archive_entry_hardlink(m->entry))
		return make_hardlink(x, m, err);
	if (make_member(x, m, err) < 0)
		return -1;
	return finish_member(x, m, err);
}

static int take_member(struct extract *x, struct archive *a, struct archive_entry *entry, struct err *err)
{
	_cleanup_(member_done) struct member m = {
		.archive = a, .entry = entry, .type = archive_entry_filetype(entry), .parent = -1, .fd = -1,
	};
	const char *name = archive_entry_pathname(entry);
	char path[PATH_MAX];

	if (!name || !*name)
		return err_set(err, ERR_INVALID, "a member has no name");
	if (extract_clean_name(name, path, err) < 0)
		return -1;
	if (extract_check_xattrs(x, entry, err) < 0)
		return -1;
	if (!*path)
		return take_root(x, &m, err);
	if (m.type == AE_IFCHR || m.type == AE_IFBLK || m.type == AE_IFSOCK) {
		/* Nobody opens a device through a template: the mount is nodev, and /dev
		 * is not the template's.  A 0:0 character device would be a whiteout of overlayfs. */
		x->report.devices_dropped++;
		return 0;
	}
	return take_placed(x, &m, path, err);
}

static int check_bounds(struct extract *x, struct archive *a, struct err *err)
{
	uint64_t read = (uint64_t) archive_filter_bytes(a, 0), limit;

	if (++x->report.entries > EXTRACT_MAX_ENTRIES)
		return err_set(err, ERR_EXHAUSTED, "the archive has more than %d members", EXTRACT_MAX_ENTRIES);
	if (!__builtin_add_overflow(x->max_bytes, OVERHEAD_BYTES + x->report.entries * OVERHEAD_PER_ENTRY, &limit) &&
	    read > limit)
		return err_set(err, ERR_EXHAUSTED, "the archive unpacks to more than --max-size allows");
	return progress_add(x->progress, 0, 1, err);
}

static int take_all(struct extract *x, struct archive *a, struct err *err)
{
	struct archive_entry *entry;
	int r;

	while ((r = archive_read_next_header(a, &entry)) == ARCHIVE_OK || r == ARCHIVE_WARN) {
		char shown[96];

		if (check_bounds(x, a, err) < 0)
			return -1;
		if (take_member(x, a, entry, err) < 0) {
			const char *name = archive_entry_pathname(entry);

			return err && err->code == ERR_CANCELED ? -1 :
			       err_wrap(err, "member %s", tree_printable(name ? name : "", shown));
		}
	}
	return r == ARCHIVE_EOF ? 0 : extract_archive_error(a, err);
}

int extract_archive(struct extract *x, struct archive *a, enum extract_mode mode, struct err *err)
{
	_cleanup_(inode_set_freep) struct inode_set *layer = mode == EXTRACT_LAYER ? inode_set_new() : NULL;
	_cleanup_(dir_times_freep) struct dir_times *dirs = xcalloc(1, sizeof *dirs);
	int result;

	x->mode = mode;
	x->layer = layer;
	x->dirs = dirs;
	result = take_all(x, a, err);
	if (result == 0)
		extract_set_dir_times(x);
	x->layer = NULL;
	x->dirs = NULL;
	return result;
}
