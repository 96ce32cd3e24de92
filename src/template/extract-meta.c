/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second half of extract: owners, modes, times, attributes and whiteouts.
 */
#include "template/extract-internal.h"

#include <endian.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/xattr.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "template/inodes.h"
#include "template/tree.h"

#define ID_MAX          65535   /* sandboxes map 65,536 ids */
#define ID_NOBODY       65534

int extract_archive_error(struct archive *a, struct err *err)
{
	const char *text = archive_error_string(a);
	char shown[96];

	if (progress_interrupted())
		return err_set(err, ERR_CANCELED, "interrupted");
	if (!text)
		text = "unreadable";
	/* libarchive's words may quote the archive. */
	tree_printable(text, shown);
	for (char *p = shown; *p; p++)
		if (*p == '?' && text[p - shown] == ' ')
			*p = ' ';
	return err_set(err, ERR_INVALID, "not a whole tar archive: %s", shown);
}

/*
 * overlayfs of the spawner reads trusted.overlay.*: in a lower layer they could hide
 * files or redirect a directory (F08).  No honest root filesystem carries them.
 * security.capability is kept; what else there is (ACLs, SELinux labels, user.*)
 * means nothing inside a sandbox and is dropped.
 */
int extract_check_xattrs(struct extract *x, struct archive_entry *entry, struct err *err)
{
	const char *name;
	const void *value;
	size_t size;

	archive_entry_xattr_reset(entry);
	while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
		if (name && strncmp(name, "trusted.overlay.", 16) == 0)
			return err_set(err, ERR_INVALID,
			               "it carries a mark of overlayfs (trusted.overlay); this is an upper directory, "
			               "not a root filesystem");
		if (!name || strcmp(name, XATTR_NAME_CAPS) != 0)
			x->report.xattrs_dropped++;
	}
	return 0;
}

/* Only the form without a namespace owner is taken: the other names a host id. */
static bool is_plain_capability(const void *value, size_t size)
{
	uint32_t magic;

	if (size != XATTR_CAPS_SZ_2)
		return false;
	memcpy(&magic, value, sizeof magic);
	return (le32toh(magic) & VFS_CAP_REVISION_MASK) == VFS_CAP_REVISION_2;
}

static int set_capability(struct extract *x, struct member *m, struct err *err)
{
	const char *name;
	const void *value;
	size_t size;

	archive_entry_xattr_reset(m->entry);
	while (archive_entry_xattr_next(m->entry, &name, &value, &size) == ARCHIVE_OK) {
		if (!name || strcmp(name, XATTR_NAME_CAPS) != 0)
			continue;
		if (!is_plain_capability(value, size)) {
			x->report.xattrs_dropped++;
			continue;
		}
		if (fsetxattr(m->fd, name, value, size, 0) < 0)
			return err_sys(err, errno, "set its capabilities");
	}
	return 0;
}

static unsigned map_id(int64_t id, bool *mapped)
{
	if (id >= 0 && id <= ID_MAX)
		return (unsigned) id;
	*mapped = true;
	return ID_NOBODY;
}

static int set_owner(struct extract *x, struct member *m, struct err *err)
{
	bool mapped = false;
	unsigned uid = map_id(archive_entry_uid(m->entry), &mapped);
	unsigned gid = map_id(archive_entry_gid(m->entry), &mapped);

	x->report.owners_mapped += mapped;
	if (fchownat(m->parent, m->base, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, errno, "chown to %u:%u", uid, gid);
	return 0;
}

/*
 * Setuid and setgid go from everything but directories.  Inside they would be inert
 * (nosuid, no_new_privs: F08, B19); outside, the template's ids are the host's own,
 * and a setuid-root file that a sandbox's author chose must not lie on the host's disk.
 */
static int set_mode(struct extract *x, struct member *m, struct err *err)
{
	mode_t mode = archive_entry_perm(m->entry) & 07777;

	if (m->type == AE_IFLNK)
		return 0;
	if (m->type != AE_IFDIR && mode & (S_ISUID | S_ISGID)) {
		mode &= (mode_t) ~(S_ISUID | S_ISGID);
		x->report.setuid_cleared++;
	}
	/* Nothing but this process writes here, and base was just seen to be no link. */
	if (fchmodat(m->parent, m->base, mode, 0) < 0)
		return err_sys(err, errno, "chmod to %o", mode);
	return 0;
}

static void remember_dir_time(struct extract *x, const char *path, struct timespec mtime)
{
	struct dir_times *d = x->dirs;
	size_t size = strlen(path) + 1;

	/* One directory may be a member two million times, under a name of four thousand bytes. */
	if (d->bytes + size > DIR_TIMES_MAX)
		return;
	d->bytes += size;
	if (d->count == d->cap) {
		d->cap = d->cap ? d->cap * 2 : 256;
		d->list = xrealloc(d->list, d->cap, sizeof *d->list);
	}
	d->list[d->count++] = (struct dir_time) { xstrdup(path), mtime };
}

static void set_time(struct extract *x, struct member *m)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	char path[PATH_MAX];

	times[1].tv_sec = archive_entry_mtime(m->entry);
	times[1].tv_nsec = archive_entry_mtime_nsec(m->entry);
	if (times[1].tv_nsec < 0 || times[1].tv_nsec > 999999999)
		times[1].tv_nsec = 0;
	/* A time is a convenience: one that the filesystem cannot hold is no reason to refuse. */
	if (m->type != AE_IFDIR)
		utimensat(m->parent, m->base, times, AT_SYMLINK_NOFOLLOW);
	else if (extract_clean_name(archive_entry_pathname(m->entry), path, NULL) == 0)
		remember_dir_time(x, path, times[1]);
}

/* The owner before the mode and the capabilities: chown takes both away. */
int extract_metadata(struct extract *x, struct member *m, struct err *err)
{
	if (set_owner(x, m, err) < 0 || set_mode(x, m, err) < 0)
		return -1;
	if (m->fd >= 0 && set_capability(x, m, err) < 0)
		return -1;
	set_time(x, m);
	return 0;
}

void extract_set_dir_times(struct extract *x)
{
	for (size_t i = x->dirs->count; i-- > 0; ) {
		const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, x->dirs->list[i].mtime };
		_cleanup_close_ int fd = tree_open(x->root_fd, x->dirs->list[i].path,
		                                   O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

		if (fd >= 0)
			futimens(fd, times);
	}
}

void dir_times_free(struct dir_times *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->count; i++)
		free(d->list[i].path);
	free(d->list);
	free(d);
}

static bool is_of_this_layer(void *arg, ino_t dir, const char *name)
{
	return inode_set_has(arg, dir, extract_name_hash(name));
}

/*
 * ".wh.NAME" removes NAME, ".wh..wh..opq" everything in its directory: but only what
 * lower layers brought, wherever in the archive the mark stands (OCI image spec, "Whiteouts").
 */
int extract_whiteout(struct extract *x, struct member *m, struct err *err)
{
	const struct tree_keep keep = { is_of_this_layer, x->layer };
	const char *name = m->base + 4;
	int fd, result;

	if (x->mode != EXTRACT_LAYER)
		return err_set(err, ERR_INVALID,
		               "it is a whiteout: this is a layer of an image, not a whole root filesystem");
	if (strcmp(name, ".wh..opq") == 0) {
		fd = openat(m->parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		result = fd < 0 ? -1 : tree_empty(fd, &keep);
		close_fd(fd);
		return result < 0 ? err_sys(err, errno, "remove what it hides") : 0;
	}
	if (strncmp(name, ".wh.", 4) == 0)
		return 0;       /* bookkeeping of aufs */
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_set(err, ERR_INVALID, "it is a whiteout of no name");
	if (tree_remove(m->parent, name, &keep) < 0)
		return err_sys(err, errno, "remove what it hides");
	return 0;
}
