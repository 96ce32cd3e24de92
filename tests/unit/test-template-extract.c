/* SPDX-License-Identifier: Apache-2.0 */
/* Archives of every kind of malice and of honest oddity: F04, F08, F09, C19, C21, C29. */
#include <archive.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/fd.h"
#include "tap.h"
#include "template-tar.h"
#include "template/extract-internal.h"
#include "template/tree.h"

/* A scratch directory: "root" is the tree, "outside" must stay as it is. */
struct place {
	char path[64];
	int fd, root;
};

static struct place place_new(void)
{
	struct place p = { .path = "/tmp/cuvette-extract-XXXXXX" };

	if (geteuid() != 0)
		SKIP("owners can be set only as root");
	CHECK(mkdtemp(p.path));
	p.fd = open(p.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(mkdirat(p.fd, "root", 0755) == 0 && mkdirat(p.fd, "outside", 0755) == 0);
	p.root = openat(p.fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(p.root >= 0);
	return p;
}

static void place_done(struct place *p)
{
	_cleanup_close_ int outside = openat(p->fd, "outside", O_RDONLY | O_DIRECTORY);
	struct stat st;

	/* Whatever the test was about: nothing got out. */
	CHECK(fstat(outside, &st) == 0);
	CHECK_INT(st.st_nlink, 2);
	CHECK(unlinkat(p->fd, "outside", AT_REMOVEDIR) == 0);
	CHECK(tree_remove(p->fd, "root", NULL) == 0);
	close(p->root);
	close(p->fd);
	CHECK(rmdir(p->path) == 0);
}
#define _place_ _cleanup_(place_done)

static int unpack(struct extract *x, struct tar *t, enum extract_mode mode, struct err *err)
{
	_cleanup_(archive_freep) struct archive *a = extract_reader_new();
	int result;

	tar_end(t);
	CHECK_INT(archive_read_open_memory(a, t->data, t->len), ARCHIVE_OK);
	result = extract_archive(x, a, mode, err);
	free(TAKE_PTR(t->data));
	*t = (struct tar) TAR_INIT;
	return result;
}

static struct extract extract_at(struct place *p)
{
	return (struct extract) { .root_fd = p->root, .max_bytes = 1 << 20 };
}

static const char *text_of(struct place *p, const char *path)
{
	static char text[256];
	_cleanup_close_ int fd = tree_open(p->root, path, O_RDONLY, 0);
	ssize_t n = fd < 0 ? -1 : read_full(fd, text, sizeof text - 1);

	if (n < 0)
		return "(none)";
	text[n] = '\0';
	return text;
}

static bool exists(struct place *p, const char *path)
{
	return faccessat(p->root, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

TEST(a_plain_tree_keeps_contents_modes_owners_and_times)
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };
	struct stat st;

	tar_dir(&t, "./");
	tar_dir(&t, "./etc/");
	t.uid = 12;
	t.gid = 34;
	t.mode = 01640;
	tar_file(&t, "./etc/motd", "hello");
	tar_link(&t, "etc/link", "/no/where");
	CHECK_OK(unpack(&x, &t, EXTRACT_TREE, &err));
	CHECK_STR(text_of(&p, "etc/motd"), "hello");
	CHECK(fstatat(p.root, "etc/motd", &st, 0) == 0);
	CHECK_INT(st.st_mode & 07777, 01640);
	CHECK_INT(st.st_uid, 12);
	CHECK_INT(st.st_gid, 34);
	CHECK_INT(st.st_mtime, 1000000000);
	CHECK(fstatat(p.root, "etc", &st, 0) == 0);
	CHECK_INT(st.st_mtime, 1000000000);
	CHECK(fstatat(p.root, "etc/link", &st, AT_SYMLINK_NOFOLLOW) == 0);
	CHECK(S_ISLNK(st.st_mode));
	CHECK_INT(st.st_uid, 12);
}

TEST(names_that_climb_are_refused_and_named)    /* F04, C21 */
{
	static const char *const names[] = {
		"../outside/x", "a/../../outside/x", "..", "/../outside/x", "a/..", "./..//x",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_place_ struct place p = place_new();
		struct extract x = extract_at(&p);
		struct tar t = TAR_INIT;
		struct err err = { 0 };

		tar_file(&t, names[i], "x");
		CHECK_ERR(unpack(&x, &t, EXTRACT_TREE, &err), ERR_INVALID);
		CHECK_CONTAINS(err.msg, names[i]);
		CHECK_CONTAINS(err.msg, "'..'");
	}
}

TEST(absolute_names_land_inside)        /* F04 */
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };

	tar_file(&t, "//etc//passwd", "inside");
	CHECK_OK(unpack(&x, &t, EXTRACT_TREE, &err));
	CHECK_STR(text_of(&p, "etc/passwd"), "inside");
}

TEST(a_planted_link_leads_nowhere_but_inside)   /* F04, C19 */
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };
	char outside[128];

	snprintf(outside, sizeof outside, "%s/outside", p.path);
	tar_link(&t, "up", "../outside");
	tar_link(&t, "abs", outside);
	tar_dir(&t, "outside");
	tar_file(&t, "up/a", "clamped");
	CHECK_OK(unpack(&x, &t, EXTRACT_TREE, &err));
	CHECK_STR(text_of(&p, "outside/a"), "clamped");

	/* The absolute one names a place that the tree does not have. */
	tar_file(&t, "abs/b", "b");
	CHECK_ERR(unpack(&x, &t, EXTRACT_TREE, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "member abs/b");
}

TEST(a_file_replaces_a_link_instead_of_writing_through_it)      /* C19 */
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };
	char target[128];

	snprintf(target, sizeof target, "%s/outside/file", p.path);
	tar_link(&t, "f", target);
	tar_file(&t, "f", "new");
	tar_link(&t, "g", "f");
	tar_file(&t, "g", "other");
	CHECK_OK(unpack(&x, &t, EXTRACT_TREE, &err));
	CHECK_STR(text_of(&p, "f"), "new");
	CHECK_STR(text_of(&p, "g"), "other");
}

TEST(a_directory_replaces_a_link_and_its_mode_is_not_the_targets)
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };
	char outside[128];
	struct stat st;

	snprintf(outside, sizeof outside, "%s/outside", p.path);
	tar_link(&t, "d", outside);
	t.mode = 0700;
	tar_member(&t, '5', "d", NULL, NULL, 0);
	CHECK_OK(unpack(&x, &t, EXTRACT_TREE, &err));
	CHECK(fstatat(p.root, "d", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode));
	CHECK(fstatat(p.fd, "outside", &st, 0) == 0);
	CHECK_INT(st.st_mode & 0777, 0755);
}

TEST(hard_links_reach_only_members_of_the_tree) /* F04 */
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };
	struct stat st;

	tar_file(&t, "a", "one");
	tar_hardlink(&t, "b", "./a");
	tar_hardlink(&t, "a", "a");
	CHECK_OK(unpack(&x, &t, EXTRACT_TREE, &err));
	CHECK(fstatat(p.root, "b", &st, 0) == 0);
	CHECK_INT(st.st_nlink, 2);
	CHECK_STR(text_of(&p, "a"), "one");

	tar_hardlink(&t, "c", "../outside");
	CHECK_ERR(unpack(&x, &t, EXTRACT_TREE, &err), ERR_INVALID);
	tar_hardlink(&t, "c", "/etc/passwd");
	CHECK_ERR(unpack(&x, &t, EXTRACT_TREE, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "member c");
	tar_link(&t, "l", "/etc");
	tar_hardlink(&t, "c", "l/passwd");
	CHECK_ERR(unpack(&x, &t, EXTRACT_TREE, &err), ERR_INVALID);
	tar_dir(&t, "dir");
	tar_hardlink(&t, "c", "dir");
	CHECK_ERR(unpack(&x, &t, EXTRACT_TREE, &err), ERR_INVALID);
}

TEST(a_hard_link_to_a_link_links_the_link)
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };
	struct stat st;

	tar_link(&t, "l", "/etc/passwd");
	tar_hardlink(&t, "m", "l");
	CHECK_OK(unpack(&x, &t, EXTRACT_TREE, &err));
	CHECK(fstatat(p.root, "m", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode));
}

TEST(odd_names_are_kept_as_they_are)    /* F04, C29 */
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };

	tar_file(&t, ".env", "dot");
	tar_file(&t, "new\nline", "nl");
	tar_file(&t, "bad\xff\xfeutf8", "bytes");
	tar_pax(&t, "path", "gr\xc3\xbc\xc3\x9f", 6);
	tar_file(&t, "x", "utf8");
	tar_file(&t, "...", "three");
	CHECK_OK(unpack(&x, &t, EXTRACT_TREE, &err));
	CHECK_STR(text_of(&p, ".env"), "dot");
	CHECK_STR(text_of(&p, "new\nline"), "nl");
	CHECK_STR(text_of(&p, "bad\xff\xfeutf8"), "bytes");
	CHECK_STR(text_of(&p, "gr\xc3\xbc\xc3\x9f"), "utf8");
	CHECK_STR(text_of(&p, "..."), "three");
}

TEST(names_beyond_the_limits_are_refused)       /* F04 */
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };
	char name[5000], clean[PATH_MAX];

	memset(name, 'a', sizeof name);
	name[256] = '\0';
	tar_pax(&t, "path", name, 256);
	tar_file(&t, "x", "x");
	CHECK_ERR(unpack(&x, &t, EXTRACT_TREE, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "256 bytes");

	for (size_t i = 0; i < 4097; i++)
		name[i] = i % 100 == 99 ? '/' : 'a';
	name[4097] = '\0';
	CHECK_ERR(extract_clean_name(name, clean, &err), ERR_INVALID);
	for (size_t i = 0; i < 2 * (EXTRACT_MAX_DEPTH + 1); i++)
		name[i] = i % 2 ? '/' : 'a';
	name[2 * (EXTRACT_MAX_DEPTH + 1)] = '\0';
	CHECK_ERR(extract_clean_name(name, clean, &err), ERR_INVALID);
	CHECK_OK(extract_clean_name("/.//a/./b/", clean, &err));
	CHECK_STR(clean, "a/b");
	CHECK_OK(extract_clean_name("./", clean, &err));
	CHECK_STR(clean, "");
}

TEST(a_directory_that_comes_again_and_again_takes_bounded_memory)
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };
	char name[4001];
	struct stat st;

	for (size_t i = 0; i < 4000; i++)
		name[i] = i % 250 == 249 ? '/' : 'a';
	name[4000] = '\0';
	for (size_t i = 0; i < DIR_TIMES_MAX / 4000 + 1; i++) {
		tar_pax(&t, "path", name, 4000);
		tar_dir(&t, "x");
	}
	tar_pax(&t, "path", name + 3100, 900);
	tar_dir(&t, "late");
	CHECK_OK(unpack(&x, &t, EXTRACT_TREE, &err));
	CHECK(fstatat(p.root, name + 3100, &st, 0) == 0);
	CHECK(st.st_mtim.tv_sec > 1000000000);
}

TEST(a_name_with_a_zero_byte_stays_inside)      /* F04 */
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };

	tar_pax(&t, "path", "ok\0/../../outside/x", 19);
	tar_file(&t, "fallback", "x");
	/* Taken up to the zero byte or refused: place_done() looks outside. */
	if (unpack(&x, &t, EXTRACT_TREE, &err) == 0)
		CHECK(exists(&p, "ok") || exists(&p, "fallback"));
}

TEST(links_cannot_nest_directories_without_bound)
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct err err = { 0 };
	char parts[128] = "";
	int result = 0, round;

	for (int i = 0; i < 60; i++)
		strcat(parts, "/d");
	/* Each round goes on where the link of the round before ends. */
	for (round = 0; round < 20 && result == 0; round++) {
		struct tar t = TAR_INIT;
		char path[160], link[16];

		snprintf(path, sizeof path, "deep%d%s", round, parts);
		snprintf(link, sizeof link, "deep%d", round + 1);
		tar_pax(&t, "path", path, strlen(path));
		tar_dir(&t, "x");
		tar_pax(&t, "linkpath", path, strlen(path));
		tar_link(&t, link, "x");
		result = unpack(&x, &t, EXTRACT_TREE, &err);
	}
	CHECK(result < 0);
	CHECK_INT(round, 4);
	CHECK_CONTAINS(err.msg, "deep");
}

TEST(devices_are_dropped_and_counted)   /* F08 */
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };

	tar_member(&t, '3', "dev/null", NULL, NULL, 0);
	tar_member(&t, '4', "dev/sda", NULL, NULL, 0);
	tar_member(&t, '3', "whiteout", NULL, NULL, 0);         /* 0:0, overlayfs's own */
	tar_member(&t, '6', "fifo", NULL, NULL, 0);
	CHECK_OK(unpack(&x, &t, EXTRACT_TREE, &err));
	CHECK_INT(x.report.devices_dropped, 3);
	CHECK(!exists(&p, "dev/null") && !exists(&p, "whiteout") && exists(&p, "fifo"));
}

TEST(setuid_bits_are_cleared_and_counted)       /* F08, B19, B20 */
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };
	struct stat st;

	t.mode = 06755;
	tar_file(&t, "su", "x");
	t.mode = 02775;
	tar_member(&t, '5', "mail", NULL, NULL, 0);
	CHECK_OK(unpack(&x, &t, EXTRACT_TREE, &err));
	CHECK(fstatat(p.root, "su", &st, 0) == 0);
	CHECK_INT(st.st_mode & 07777, 0755);
	CHECK(fstatat(p.root, "mail", &st, 0) == 0);
	CHECK_INT(st.st_mode & 07777, 02775);
	CHECK_INT(x.report.setuid_cleared, 1);
}

TEST(owners_beyond_the_map_become_nobody)       /* F09 */
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };
	struct stat st;

	tar_pax(&t, "uid", "4294967295", 10);
	tar_file(&t, "a", "a");
	t.gid = 65536;
	t.uid = 65535;
	tar_file(&t, "b", "b");
	CHECK_OK(unpack(&x, &t, EXTRACT_TREE, &err));
	CHECK(fstatat(p.root, "a", &st, 0) == 0);
	CHECK_INT(st.st_uid, 65534);
	CHECK(fstatat(p.root, "b", &st, 0) == 0);
	CHECK_INT(st.st_uid, 65535);
	CHECK_INT(st.st_gid, 65534);
	CHECK_INT(x.report.owners_mapped, 2);
}

TEST(marks_of_overlayfs_are_refused)    /* F08 */
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };

	tar_pax(&t, "SCHILY.xattr.trusted.overlay.redirect", "/etc", 4);
	tar_dir(&t, "d");
	CHECK_ERR(unpack(&x, &t, EXTRACT_TREE, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "trusted.overlay");
	CHECK_CONTAINS(err.msg, "member d");
}

TEST(file_capabilities_are_kept_and_other_attributes_dropped)   /* B18 */
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };
	struct vfs_cap_data caps = { .magic_etc = VFS_CAP_REVISION_2, .data[0].permitted = 1 << CAP_NET_RAW };
	struct vfs_ns_cap_data ns_caps = { .magic_etc = VFS_CAP_REVISION_3, .rootid = 1 };
	char back[64];

	tar_pax(&t, "SCHILY.xattr.security.capability", &caps, sizeof caps);
	tar_file(&t, "ping", "x");
	tar_pax(&t, "SCHILY.xattr.security.capability", &ns_caps, sizeof ns_caps);
	tar_file(&t, "ns", "x");
	tar_pax(&t, "SCHILY.xattr.user.comment", "hi", 2);
	tar_file(&t, "commented", "x");
	CHECK_OK(unpack(&x, &t, EXTRACT_TREE, &err));
	_cleanup_close_ int ping = openat(p.root, "ping", O_RDONLY);
	_cleanup_close_ int ns = openat(p.root, "ns", O_RDONLY);
	_cleanup_close_ int commented = openat(p.root, "commented", O_RDONLY);
	CHECK_INT(fgetxattr(ping, "security.capability", back, sizeof back), sizeof caps);
	CHECK(fgetxattr(ns, "security.capability", back, sizeof back) < 0);
	CHECK(fgetxattr(commented, "user.comment", back, sizeof back) < 0);
	CHECK_INT(x.report.xattrs_dropped, 2);
}

TEST(an_archive_larger_than_allowed_is_refused)
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };
	char *data = xcalloc(1, 700000);

	tar_member(&t, '0', "a", NULL, data, 700000);
	tar_member(&t, '0', "b", NULL, data, 700000);
	free(data);
	CHECK_ERR(unpack(&x, &t, EXTRACT_TREE, &err), ERR_EXHAUSTED);
	CHECK_CONTAINS(err.msg, "--max-size");
	CHECK_CONTAINS(err.msg, "member b");
}

TEST(a_sparse_file_stays_sparse_and_counts_with_its_length)
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };
	struct stat st;
	/* GNU sparse 0.1: 800,000 bytes with data only at 500,000. */
	static const char *const lines[] = {
		"GNU.sparse.major=0", "GNU.sparse.minor=1", "GNU.sparse.name=sparse", "GNU.sparse.size=800000",
		"GNU.sparse.numblocks=1", "GNU.sparse.map=500000,5",
	};
	char records[256] = "";

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		char line[64];

		snprintf(line, sizeof line, "%zu %s\n", strlen(lines[i]) + 4, lines[i]);
		strcat(records, line);
	}
	tar_member(&t, 'x', "pax", NULL, records, strlen(records));
	tar_file(&t, "x", "12345");
	CHECK_OK(unpack(&x, &t, EXTRACT_TREE, &err));
	CHECK(fstatat(p.root, "sparse", &st, 0) == 0);
	CHECK_INT(st.st_size, 800000);
	CHECK(st.st_blocks * 512 < 100000);
	CHECK_INT(x.report.bytes, 800000);
}

TEST(a_cut_archive_is_refused)
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };
	_cleanup_(archive_freep) struct archive *a = extract_reader_new();
	char data[2000] = { 1 };

	tar_member(&t, '0', "a", NULL, data, sizeof data);
	CHECK_INT(archive_read_open_memory(a, t.data, t.len - 1000), ARCHIVE_OK);
	CHECK_ERR(extract_archive(&x, a, EXTRACT_TREE, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "not a whole tar archive");
	free(t.data);
}

TEST(a_member_below_a_file_is_refused)
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };

	tar_file(&t, "f", "x");
	tar_file(&t, "f/g", "y");
	CHECK_ERR(unpack(&x, &t, EXTRACT_TREE, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "member f/g");
}

TEST(the_last_of_two_members_wins)
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };

	tar_file(&t, "a", "first");
	tar_file(&t, "a", "second");
	tar_dir(&t, "d");
	tar_file(&t, "d/e", "x");
	tar_file(&t, "d", "now a file");
	CHECK_OK(unpack(&x, &t, EXTRACT_TREE, &err));
	CHECK_STR(text_of(&p, "a"), "second");
	CHECK_STR(text_of(&p, "d"), "now a file");
}

TEST(a_whiteout_in_a_plain_tree_is_refused)     /* F08 */
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };

	tar_file(&t, "etc/.wh.passwd", "");
	CHECK_ERR(unpack(&x, &t, EXTRACT_TREE, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "layer");
}

/* ---- layers ---- */

static void lower_layer(struct place *p, struct extract *x)
{
	struct tar t = TAR_INIT;
	struct err err = { 0 };

	tar_dir(&t, "usr");
	tar_dir(&t, "usr/bin");
	tar_link(&t, "bin", "usr/bin");
	tar_file(&t, "usr/bin/old", "lower");
	tar_file(&t, "usr/bin/stays", "lower");
	tar_dir(&t, "opt");
	tar_dir(&t, "opt/sub");
	tar_file(&t, "opt/sub/deep", "lower");
	tar_file(&t, "opt/file", "lower");
	CHECK_OK(unpack(x, &t, EXTRACT_LAYER, &err));
	CHECK_STR(text_of(p, "bin/old"), "lower");
}

TEST(whiteouts_remove_what_lower_layers_brought)
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };

	lower_layer(&p, &x);
	tar_file(&t, "bin/.wh.old", "");        /* through the link of a merged /usr */
	tar_file(&t, ".wh.opt", "");
	tar_file(&t, ".wh.never-was", "");
	CHECK_OK(unpack(&x, &t, EXTRACT_LAYER, &err));
	CHECK(!exists(&p, "usr/bin/old") && exists(&p, "usr/bin/stays") && !exists(&p, "opt"));
	CHECK(!exists(&p, "usr/bin/.wh.old"));
}

TEST(a_whiteout_spares_what_its_own_layer_brought)
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };

	lower_layer(&p, &x);
	tar_file(&t, "opt/new", "upper");
	tar_file(&t, "opt/sub/new", "upper");
	tar_file(&t, "opt/.wh..wh..opq", "");
	tar_file(&t, "opt/later", "upper");
	CHECK_OK(unpack(&x, &t, EXTRACT_LAYER, &err));
	CHECK_STR(text_of(&p, "opt/new"), "upper");
	CHECK_STR(text_of(&p, "opt/sub/new"), "upper");
	CHECK_STR(text_of(&p, "opt/later"), "upper");
	CHECK(!exists(&p, "opt/file") && !exists(&p, "opt/sub/deep"));
}

TEST(a_hard_link_does_not_save_the_old_name_from_its_whiteout)
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };

	lower_layer(&p, &x);
	tar_hardlink(&t, "usr/bin/new", "usr/bin/old");
	tar_file(&t, "usr/bin/.wh.old", "");
	CHECK_OK(unpack(&x, &t, EXTRACT_LAYER, &err));
	CHECK_STR(text_of(&p, "usr/bin/new"), "lower");
	CHECK(!exists(&p, "usr/bin/old"));
}

TEST(whiteouts_cannot_climb)    /* F04 */
{
	static const char *const names[] = { ".wh..", ".wh...", ".wh.", "opt/.wh..." };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_place_ struct place p = place_new();
		struct extract x = extract_at(&p);
		struct tar t = TAR_INIT;
		struct err err = { 0 };

		lower_layer(&p, &x);
		tar_file(&t, names[i], "");
		CHECK_ERR(unpack(&x, &t, EXTRACT_LAYER, &err), ERR_INVALID);
		CHECK_CONTAINS(err.msg, names[i]);
	}
}

TEST(bookkeeping_of_aufs_is_skipped)
{
	_place_ struct place p = place_new();
	struct extract x = extract_at(&p);
	struct tar t = TAR_INIT;
	struct err err = { 0 };

	tar_file(&t, ".wh..wh.aufs", "");
	tar_dir(&t, ".wh..wh.plnk");
	CHECK_OK(unpack(&x, &t, EXTRACT_LAYER, &err));
	CHECK(!exists(&p, ".wh..wh.aufs") && !exists(&p, ".wh..wh.plnk"));
}
