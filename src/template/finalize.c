/* SPDX-License-Identifier: Apache-2.0 */
#include "template/finalize.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "template/tree.h"

#define USER_ID         1000
#define ACCOUNTS_MAX    1048576

/* A link here could send a mount or the masks of /proc elsewhere (F07, F13): refused,
 * by name, before any sandbox starts from it.  Parents come before children. */
static const struct {
	const char *path;
	mode_t mode;
	unsigned owner;
} dirs[] = {
	/* The root itself: made by mktemp(1) it often is 0700, and nobody could enter. */
	{ "", 0755, 0 },
	{ "etc", 0755, 0 },     { "proc", 0555, 0 },     { "sys", 0555, 0 },      { "dev", 0755, 0 },
	{ "tmp", 01777, 0 },    { "run", 0755, 0 },      { "run/shm", 01777, 0 }, { "var", 0755, 0 },
	{ "var/tmp", 01777, 0 }, { "root", 0700, 0 },    { "home", 0755, 0 },     { "home/user", 0755, USER_ID },
};

static int make_dirs(int root_fd, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		_cleanup_close_ int fd = -1;

		if (tree_real_dir(root_fd, dirs[i].path, dirs[i].mode, &fd, err) < 0)
			return -1;
		if (fchown(fd, dirs[i].owner, dirs[i].owner) < 0 || fchmod(fd, dirs[i].mode) < 0)
			return err_sys(err, errno, "owner and mode of /%s", dirs[i].path);
	}
	return 0;
}

/* Opens /etc/NAME for reading as a plain file; -1 with errno ENOENT when there is none. */
static int open_plain(int etc_fd, const char *name, struct err *err)
{
	int fd = openat(etc_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return -1;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close_fd(fd);
		err_set(err, ERR_INVALID, "/etc/%s of the tree is not a plain file", name);
		errno = EINVAL;
		return -1;
	}
	return fd;
}

/* Replaces /etc/NAME, whatever it was, by a plain file. */
static int write_plain(int etc_fd, const char *name, mode_t mode, const char *text, size_t len, struct err *err)
{
	_cleanup_close_ int fd = -1;

	if (tree_remove(etc_fd, name, NULL) < 0)
		return err_sys(err, errno, "replace /etc/%s", name);
	fd = openat(etc_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || write_all(fd, text, len) < 0 || fchmod(fd, mode) < 0)
		return err_sys(err, errno, "write /etc/%s", name);
	return 0;
}

/* Field number `n` (from 0) of "a:b:c"; false when there are fewer. */
static bool account_field(const char *line, size_t len, int n, const char **ret, size_t *ret_len)
{
	const char *end = line + len, *colon;

	for (; n > 0; n--) {
		colon = memchr(line, ':', (size_t) (end - line));
		if (!colon)
			return false;
		line = colon + 1;
	}
	colon = memchr(line, ':', (size_t) (end - line));
	*ret = line;
	*ret_len = (size_t) ((colon ? colon : end) - line);
	return true;
}

/* Whether some line of a passwd or group file has that text in that field. */
static bool accounts_have(const struct buf *file, int field, const char *text)
{
	const char *at = file->data, *end = file->data + file->len;

	while (at && at < end) {
		const char *nl = memchr(at, '\n', (size_t) (end - at)), *value;
		size_t len = (size_t) ((nl ? nl : end) - at), value_len;

		if (account_field(at, len, field, &value, &value_len) && value_len == strlen(text) &&
		    memcmp(value, text, value_len) == 0)
			return true;
		at = nl ? nl + 1 : end;
	}
	return false;
}

/* *ret_mode keeps its value when there is no such file. */
static int read_accounts(int etc_fd, const char *name, struct buf *ret, mode_t *ret_mode, struct err *err)
{
	_cleanup_close_ int fd = open_plain(etc_fd, name, err);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (fstat(fd, &st) == 0)
		*ret_mode = st.st_mode & 0777;
	if (read_to_buf(fd, ret, err) < 0)
		return err_wrap(err, "/etc/%s of the tree", name);
	if (ret->len && ret->data[ret->len - 1] != '\n')
		return buf_puts(ret, "\n", err);
	return 0;
}

/* Adds `root_line` if the file has no id 0 and `user_line` if it has no id 1000. */
static int add_account(int etc_fd, const char *name, int id_field, const char *root_line, const char *user_line,
                       struct err *err)
{
	_cleanup_buf_ struct buf file = BUF_INIT(ACCOUNTS_MAX);
	mode_t mode = 0644;
	size_t before;
	char user[160];

	if (read_accounts(etc_fd, name, &file, &mode, err) < 0)
		return -1;
	before = file.len;
	if (!accounts_have(&file, id_field, "0") && buf_puts(&file, root_line, err) < 0)
		return -1;
	/* Another image's "user" keeps its name and id; ours then is "user1000". */
	snprintf(user, sizeof user, "%s%s", accounts_have(&file, 0, "user") ? "user1000" : "user", user_line);
	if (!accounts_have(&file, id_field, "1000") && buf_puts(&file, user, err) < 0)
		return -1;
	return file.len == before ? 0 : write_plain(etc_fd, name, mode, file.data, file.len, err);
}

/* A line for the user in /etc/shadow, where there is such a file; no password. */
static int add_shadow(int etc_fd, struct err *err)
{
	_cleanup_buf_ struct buf file = BUF_INIT(ACCOUNTS_MAX);
	mode_t mode = 0640;

	if (read_accounts(etc_fd, "shadow", &file, &mode, err) < 0)
		return -1;
	if (!file.len || accounts_have(&file, 0, "user"))
		return 0;
	if (buf_puts(&file, "user:!:19000:0:99999:7:::\n", err) < 0)
		return -1;
	return write_plain(etc_fd, "shadow", mode, file.data, file.len, err);
}

static const char *shell_of(int root_fd)
{
	_cleanup_close_ int fd = tree_open(root_fd, "bin/bash", O_PATH, 0);

	return fd >= 0 ? "/bin/bash" : "/bin/sh";
}

static int add_accounts(int root_fd, int etc_fd, struct err *err)
{
	char root_line[96], user_line[96];

	snprintf(root_line, sizeof root_line, "root:x:0:0:root:/root:%s\n", shell_of(root_fd));
	snprintf(user_line, sizeof user_line, ":x:1000:1000::/home/user:%s\n", shell_of(root_fd));
	if (add_account(etc_fd, "passwd", 2, root_line, user_line, err) < 0 ||
	    add_account(etc_fd, "group", 2, "root:x:0:\n", ":x:1000:\n", err) < 0)
		return -1;
	return add_shadow(etc_fd, err);
}

/* What a tree must not carry from the machine that made it, and what a sandbox expects to find. */
static int write_identity(int etc_fd, struct err *err)
{
	static const char hosts[] = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";
	static const char hostname[] = "sandbox\n";

	if (write_plain(etc_fd, "machine-id", 0444, "", 0, err) < 0 ||
	    write_plain(etc_fd, "resolv.conf", 0644, "", 0, err) < 0 ||
	    write_plain(etc_fd, "hosts", 0644, hosts, strlen(hosts), err) < 0)
		return -1;
	return write_plain(etc_fd, "hostname", 0644, hostname, strlen(hostname), err);
}

int finalize_tree(int root_fd, struct err *err)
{
	_cleanup_close_ int etc_fd = -1;

	if (make_dirs(root_fd, err) < 0)
		return -1;
	if (tree_real_dir(root_fd, "etc", 0755, &etc_fd, err) < 0)
		return -1;
	if (add_accounts(root_fd, etc_fd, err) < 0)
		return -1;
	return write_identity(etc_fd, err);
}

static json_t *find_program(int root_fd, const char *const *candidates)
{
	for (; *candidates; candidates++) {
		_cleanup_close_ int fd = tree_open(root_fd, *candidates, O_PATH, 0);
		struct stat st;

		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & 0111)
			return json_sprintf("/%s", *candidates);
	}
	return json_null();
}

json_t *finalize_programs(int root_fd)
{
	static const struct {
		const char *key;
		const char *candidates[6];
	} programs[] = {
		{ "sh", { "bin/sh", "usr/bin/sh" } },
		{ "bash", { "bin/bash", "usr/bin/bash", "usr/local/bin/bash" } },
		{ "python", { "usr/local/bin/python3", "usr/bin/python3", "bin/python3" } },
		{ "node", { "usr/local/bin/node", "usr/bin/node", "bin/node" } },
		{ "git", { "usr/bin/git", "usr/local/bin/git", "bin/git" } },
	};
	json_t *found = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		json_object_set_new(found, programs[i].key, find_program(root_fd, programs[i].candidates));
	return found;
}
