/* SPDX-License-Identifier: Apache-2.0 */
/* Names, digests, the finishing of trees, and the store: F07, F13, B31. */
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/fd.h"
#include "tap.h"
#include "template/digest.h"
#include "template/finalize.h"
#include "template/store.h"
#include "template/tree.h"

struct place {
	char path[64];
	int fd;
};

static struct place place_new(void)
{
	struct place p = { .path = "/tmp/cuvette-store-XXXXXX" };

	if (geteuid() != 0)
		SKIP("owners can be set only as root");
	umask(022);
	CHECK(mkdtemp(p.path));
	p.fd = open(p.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(p.fd >= 0);
	return p;
}

static void place_done(struct place *p)
{
	CHECK(tree_empty(p->fd, NULL) == 0);
	close(p->fd);
	CHECK(rmdir(p->path) == 0);
}
#define _place_ _cleanup_(place_done)

static void put(int fd, const char *path, const char *text)
{
	_cleanup_close_ int file = openat(fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	CHECK(file >= 0 && write_all(file, text, strlen(text)) == 0);
}

static const char *get(int fd, const char *path)
{
	static char text[1024];

	if (read_file_at(fd, path, text, sizeof text, NULL) < 0)
		return "(none)";
	return text;
}

static int sub(int fd, const char *path)
{
	int dir;

	CHECK(mkdirat(fd, path, 0755) == 0);
	dir = openat(fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(dir >= 0);
	return dir;
}

static const char *digest_of(int fd)
{
	static struct digest_result d;
	struct err err = { 0 };

	CHECK_OK(digest_tree(fd, NULL, &d, &err));
	return d.hex;
}

TEST(template_names_are_plain)
{
	static const char *const good[] = { "default", "a", "0", "py3.11", "a-b_c.d" };
	static const char *const bad[] = {
		"", ".", "..", ".tmp", "-x", "_x", "A", "a/b", "../a", "a b", "a\n", "\xc3\xa9",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		CHECK(template_name_is_valid(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK(!template_name_is_valid(bad[i]));
	CHECK(template_name_is_valid("zaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
	CHECK(!template_name_is_valid("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

/* ---- looking up ---- */

#define HEX_A "aaaaaa00000000000000000000000000000000000000000000000000000000aa"
#define HEX_B "aaaaaa11000000000000000000000000000000000000000000000000000000bb"

static void fake_store(struct place *p)
{
	CHECK(mkdirat(p->fd, "templates", 0700) == 0 && mkdirat(p->fd, "templates/names", 0700) == 0);
	CHECK(mkdirat(p->fd, "templates/" HEX_A, 0700) == 0 && mkdirat(p->fd, "templates/" HEX_A "/rootfs", 0755) == 0);
	CHECK(mkdirat(p->fd, "templates/" HEX_B, 0700) == 0 && mkdirat(p->fd, "templates/" HEX_B "/rootfs", 0755) == 0);
	CHECK(symlinkat("../" HEX_A, p->fd, "templates/names/default") == 0);
	CHECK(symlinkat("../" HEX_B, p->fd, "templates/names/aaaaaa0") == 0);
	CHECK(symlinkat("../../../etc", p->fd, "templates/names/evil") == 0);
	CHECK(symlinkat("../cccccc0000000000000000000000000000000000000000000000000000000000", p->fd,
	                "templates/names/dangling") == 0);
}

TEST(a_template_is_found_by_name_digest_and_prefix)
{
	_place_ struct place p = place_new();
	char digest[TEMPLATE_DIGEST_SIZE];
	struct err err = { 0 };

	fake_store(&p);
	CHECK_OK(template_find(p.path, "default", digest, &err));
	CHECK_STR(digest, HEX_A);
	CHECK_OK(template_find(p.path, HEX_B, digest, &err));
	CHECK_STR(digest, HEX_B);
	CHECK_OK(template_find(p.path, "aaaaaa1", digest, &err));
	CHECK_STR(digest, HEX_B);
	/* a name wins over the prefix of another */
	CHECK_OK(template_find(p.path, "aaaaaa0", digest, &err));
	CHECK_STR(digest, HEX_B);
	CHECK_ERR(template_find(p.path, "aaaaaa", digest, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "2 templates");
}

TEST(a_template_that_is_missing_is_not_found_with_the_way_out)
{
	_place_ struct place p = place_new();
	char digest[TEMPLATE_DIGEST_SIZE] = "untouched";
	struct err err = { 0 };

	CHECK_ERR(template_find(p.path, "default", digest, &err), ERR_NOT_FOUND);
	CHECK_CONTAINS(err.msg, "cuvette template build");
	fake_store(&p);
	CHECK_ERR(template_find(p.path, "nope", digest, &err), ERR_NOT_FOUND);
	CHECK_CONTAINS(err.msg, "nope");
	CHECK_ERR(template_find(p.path, "evil", digest, &err), ERR_NOT_FOUND);
	CHECK_ERR(template_find(p.path, "dangling", digest, &err), ERR_NOT_FOUND);
	CHECK_ERR(template_find(p.path, "aaaaa", digest, &err), ERR_NOT_FOUND);
	CHECK_ERR(template_find(p.path, "../x", digest, &err), ERR_INVALID);
	CHECK_STR(digest, "untouched");
}

/* ---- the digest ---- */

static void plant(int fd, bool reversed)
{
	static const char *const names[] = { "a", "a-b", "a.c", "z" };

	CHECK(mkdirat(fd, "dir", 0755) == 0);
	for (size_t i = 0; i < 4; i++)
		put(fd, names[reversed ? 3 - i : i], names[reversed ? 3 - i : i]);
	put(fd, "dir/inner", "x");
	CHECK(symlinkat("a", fd, "link") == 0);
	CHECK(fchmod(fd, 0755) == 0);
}

TEST(the_same_tree_has_the_same_digest_whatever_its_history)
{
	_place_ struct place p = place_new();
	_cleanup_close_ int one = sub(p.fd, "one"), two = sub(p.fd, "two");
	const struct timespec old[2] = { { 1, 0 }, { 1, 0 } };
	char first[TEMPLATE_DIGEST_SIZE];

	plant(one, false);
	plant(two, true);
	CHECK(utimensat(two, "a", old, 0) == 0);
	snprintf(first, sizeof first, "%s", digest_of(one));
	CHECK_STR(digest_of(two), first);
	/* The name of all templates depends on this listing: docs/protocol/template.md. */
	CHECK_STR(first, "b952a7df3954c90f70254bc0fb3f5f3bcfe1227fa048a7d382f7b1a2e810eb77");
}

TEST(every_property_of_a_tree_changes_its_digest)
{
	_place_ struct place p = place_new();
	_cleanup_close_ int fd = sub(p.fd, "root");
	const struct vfs_cap_data caps = { .magic_etc = VFS_CAP_REVISION_2, .data[0].permitted = 1 };
	char seen[8][TEMPLATE_DIGEST_SIZE];
	int n = 0;

	plant(fd, false);
	strcpy(seen[n++], digest_of(fd));
	put(fd, "a", "b");
	strcpy(seen[n++], digest_of(fd));
	CHECK(fchmodat(fd, "a", 0600, 0) == 0);
	strcpy(seen[n++], digest_of(fd));
	CHECK(fchownat(fd, "dir", 5, 0, 0) == 0);
	strcpy(seen[n++], digest_of(fd));
	CHECK(unlinkat(fd, "link", 0) == 0 && symlinkat("b", fd, "link") == 0);
	strcpy(seen[n++], digest_of(fd));
	CHECK(renameat(fd, "z", fd, "y") == 0);
	strcpy(seen[n++], digest_of(fd));
	_cleanup_close_ int file = openat(fd, "y", O_RDONLY);
	CHECK(fsetxattr(file, "security.capability", &caps, sizeof caps, 0) == 0);
	strcpy(seen[n++], digest_of(fd));
	CHECK(fchmod(fd, 0750) == 0);
	strcpy(seen[n++], digest_of(fd));
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
			CHECK(strcmp(seen[i], seen[j]) != 0);
}

TEST(a_hard_link_digests_like_a_copy_and_is_sized_once)
{
	_place_ struct place p = place_new();
	_cleanup_close_ int one = sub(p.fd, "one"), two = sub(p.fd, "two");
	struct digest_result linked, copied;
	struct err err = { 0 };

	put(one, "a", "text");
	CHECK(linkat(one, "a", one, "b", 0) == 0);
	put(two, "a", "text");
	put(two, "b", "text");
	CHECK_OK(digest_tree(one, NULL, &linked, &err));
	CHECK_OK(digest_tree(two, NULL, &copied, &err));
	CHECK_STR(linked.hex, copied.hex);
	CHECK_INT(linked.size_bytes, 4);
	CHECK_INT(copied.size_bytes, 8);
	CHECK_INT(linked.files, 2);
}

/* ---- finishing ---- */

TEST(an_empty_tree_is_made_fit_and_finishing_twice_changes_nothing)     /* B31 */
{
	_place_ struct place p = place_new();
	_cleanup_close_ int fd = sub(p.fd, "root");
	struct err err = { 0 };
	char first[TEMPLATE_DIGEST_SIZE];
	struct stat st;
	json_t *programs;

	CHECK(fchmod(fd, 0700) == 0 && fchown(fd, 1234, 1234) == 0);
	CHECK_OK(finalize_tree(fd, &err));
	CHECK(fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0755 && st.st_uid == 0);
	CHECK_STR(get(fd, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh");
	CHECK_STR(get(fd, "etc/group"), "root:x:0:\nuser:x:1000:");
	CHECK_STR(get(fd, "etc/machine-id"), "");
	CHECK_STR(get(fd, "etc/resolv.conf"), "");
	CHECK_CONTAINS(get(fd, "etc/hosts"), "localhost");
	CHECK(fstatat(fd, "home/user", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == 1000 && S_ISDIR(st.st_mode));
	CHECK(fstatat(fd, "tmp", &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & 07777) == 01777);
	CHECK(fstatat(fd, "run/shm", &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & 07777) == 01777);
	CHECK(fstatat(fd, "root", &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & 07777) == 0700);
	snprintf(first, sizeof first, "%s", digest_of(fd));
	CHECK_OK(finalize_tree(fd, &err));
	CHECK_STR(digest_of(fd), first);

	programs = finalize_programs(fd);
	CHECK(json_is_null(json_object_get(programs, "sh")) && json_is_null(json_object_get(programs, "python")));
	json_decref(programs);
}

TEST(a_mount_point_that_is_a_link_or_a_file_is_refused_by_name) /* F07, F13 */
{
	static const char *const paths[] = { "proc", "dev", "sys", "tmp", "etc", "home", "run", "var" };

	for (size_t i = 0; i < 2 * ARRAY_SIZE(paths); i++) {
		_place_ struct place p = place_new();
		_cleanup_close_ int fd = sub(p.fd, "root");
		struct err err = { 0 };
		char named[16];

		CHECK(mkdirat(fd, "elsewhere", 0755) == 0);
		if (i % 2)
			CHECK(symlinkat("elsewhere", fd, paths[i / 2]) == 0);
		else
			put(fd, paths[i / 2], "x");
		CHECK_ERR(finalize_tree(fd, &err), ERR_INVALID);
		snprintf(named, sizeof named, "/%s ", paths[i / 2]);
		CHECK_CONTAINS(err.msg, named);
	}
}

TEST(files_of_etc_that_are_links_are_replaced_or_refused_never_followed)        /* F07 */
{
	_place_ struct place p = place_new();
	_cleanup_close_ int fd = sub(p.fd, "root");
	struct err err = { 0 };
	char target[128];

	put(p.fd, "outside", "untouched");
	snprintf(target, sizeof target, "%s/outside", p.path);
	CHECK(mkdirat(fd, "etc", 0755) == 0);
	CHECK(symlinkat(target, fd, "etc/resolv.conf") == 0 && symlinkat(target, fd, "etc/machine-id") == 0);
	CHECK_OK(finalize_tree(fd, &err));
	CHECK_STR(get(p.fd, "outside"), "untouched");
	CHECK_STR(get(fd, "etc/resolv.conf"), "");
	CHECK(unlinkat(fd, "etc/passwd", 0) == 0 && symlinkat(target, fd, "etc/passwd") == 0);
	CHECK_ERR(finalize_tree(fd, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "/etc/passwd");
	CHECK_STR(get(p.fd, "outside"), "untouched");
}

TEST(an_image_with_its_own_user_keeps_it)
{
	_place_ struct place p = place_new();
	_cleanup_close_ int fd = sub(p.fd, "root");
	struct err err = { 0 };

	CHECK(mkdirat(fd, "etc", 0755) == 0);
	put(fd, "etc/passwd", "root:x:0:0::/root:/bin/ash\nnode:x:1000:1000::/home/node:/bin/sh");
	put(fd, "etc/group", "root:x:0:\nuser:x:500:\n");
	CHECK_OK(finalize_tree(fd, &err));
	CHECK_STR(get(fd, "etc/passwd"), "root:x:0:0::/root:/bin/ash\nnode:x:1000:1000::/home/node:/bin/sh");
	CHECK_STR(get(fd, "etc/group"), "root:x:0:\nuser:x:500:\nuser1000:x:1000:");
}

TEST(programs_are_found_through_links_inside_the_tree)  /* B31 */
{
	_place_ struct place p = place_new();
	_cleanup_close_ int fd = sub(p.fd, "root");
	json_t *programs;

	CHECK(mkdirat(fd, "bin", 0755) == 0);
	put(fd, "bin/busybox", "x");
	CHECK(fchmodat(fd, "bin/busybox", 0755, 0) == 0 && symlinkat("/bin/busybox", fd, "bin/sh") == 0);
	/* One that only the host has is not there. */
	CHECK(symlinkat("/usr/bin/env", fd, "bin/bash") == 0);
	programs = finalize_programs(fd);
	CHECK_STR(json_string_value(json_object_get(programs, "sh")), "/bin/sh");
	CHECK(json_is_null(json_object_get(programs, "bash")));
	json_decref(programs);
}

/* ---- the store ---- */

static void add_template(struct store *s, const char *digest, bool *ret_existed)
{
	char tmp[STORE_TMP_SIZE];
	_cleanup_close_ int root = -1;
	struct err err = { 0 };
	json_t *meta = json_pack("{s:s, s:s}", "digest", digest, "created_at", "2026-01-01T00:00:00Z");

	CHECK_OK(store_begin(s, tmp, &root, &err));
	CHECK_OK(store_commit(s, tmp, digest, meta, ret_existed, &err));
	if (*ret_existed)
		store_discard(s, tmp);
	json_decref(meta);
}

TEST(the_store_names_lists_and_removes)
{
	_place_ struct place p = place_new();
	_cleanup_store_ struct store s = { 0 };
	char digest[TEMPLATE_DIGEST_SIZE];
	struct err err = { 0 };
	json_t *list, *removed;
	struct stat st;
	bool existed;

	CHECK_OK(store_open(p.path, true, &s, &err));
	CHECK_OK(store_lock(&s, &err));
	CHECK(fstat(s.fd, &st) == 0 && (st.st_mode & 0777) == 0700);
	add_template(&s, HEX_A, &existed);
	CHECK(!existed);
	add_template(&s, HEX_A, &existed);
	CHECK(existed);
	CHECK_OK(store_set_name(&s, "one", HEX_A, &err));
	CHECK_OK(store_set_name(&s, "two", HEX_A, &err));
	CHECK_OK(store_set_name(&s, "one", HEX_A, &err));

	CHECK_OK(store_list(&s, &list, &err));
	CHECK_INT(json_array_size(list), 1);
	CHECK_INT(json_array_size(json_object_get(json_array_get(list, 0), "names")), 2);
	json_decref(list);

	CHECK_OK(store_remove(&s, p.path, "one", &removed, &err));
	CHECK(json_is_false(json_object_get(removed, "tree_removed")));
	json_decref(removed);
	CHECK_OK(template_find(p.path, "two", digest, &err));
	CHECK_ERR(template_find(p.path, "one", digest, &err), ERR_NOT_FOUND);
	CHECK_OK(store_remove(&s, p.path, "aaaaaa0000", &removed, &err));
	CHECK(json_is_true(json_object_get(removed, "tree_removed")));
	json_decref(removed);
	CHECK_ERR(template_find(p.path, "two", digest, &err), ERR_NOT_FOUND);
	CHECK(faccessat(s.fd, HEX_A, F_OK, 0) < 0);
	CHECK_ERR(store_remove(&s, p.path, "two", &removed, &err), ERR_NOT_FOUND);
}

TEST(a_template_in_use_is_not_removed)
{
	_place_ struct place p = place_new();
	_cleanup_store_ struct store s = { 0 };
	struct err err = { 0 };
	json_t *removed;
	bool existed;

	CHECK_OK(store_open(p.path, true, &s, &err));
	add_template(&s, HEX_A, &existed);
	CHECK_OK(store_set_name(&s, "one", HEX_A, &err));
	_cleanup_close_ int user = openat(s.fd, HEX_A, O_RDONLY | O_DIRECTORY);
	CHECK(flock(user, LOCK_SH) == 0);
	CHECK_ERR(store_remove(&s, p.path, "one", &removed, &err), ERR_PRECONDITION);
	CHECK_CONTAINS(err.msg, "in use");
	CHECK(faccessat(s.fd, "names/one", F_OK, 0) == 0);
	user = close_fd(user);
	CHECK_OK(store_remove(&s, p.path, "one", &removed, &err));
	json_decref(removed);
}

TEST(whoever_takes_the_lock_removes_what_was_interrupted)
{
	_place_ struct place p = place_new();
	_cleanup_store_ struct store s = { 0 };
	char tmp[STORE_TMP_SIZE];
	_cleanup_close_ int root = -1;
	struct err err = { 0 };
	bool existed;

	CHECK_OK(store_open(p.path, true, &s, &err));
	add_template(&s, HEX_A, &existed);
	CHECK_OK(store_begin(&s, tmp, &root, &err));
	put(root, "half", "x");
	CHECK(symlinkat("/etc", root, "link") == 0);
	CHECK_OK(store_lock(&s, &err));
	CHECK(faccessat(s.fd, tmp, F_OK, 0) < 0);
	CHECK(faccessat(s.fd, HEX_A, F_OK, 0) == 0);
	CHECK(access("/etc/passwd", F_OK) == 0);
}
