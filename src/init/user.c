/* SPDX-License-Identifier: Apache-2.0 */
/* The file half of passwd.h: reads /etc/passwd and /etc/group of the sandbox. */
#include "init/passwd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "base/str.h"
#include "init/path.h"
#include "init/scratch.h"

enum { FILE_MAX_BYTES = 4 << 20 };      /* what comes after is not looked at */

/* What a lookup came from; the same files still give the same answer. */
struct origin {
	struct timespec passwd_changed, group_changed;
	ino_t passwd_inode, group_inode;
};

/*
 * The last user that was found.  Nearly every command of a sandbox runs as the
 * same one, and two stat() calls cost a fifth of reading both files.
 */
static struct user cached;
static char cached_for[INIT_NAME_MAX];
static struct origin cached_origin;
static bool cache_valid;

/* Calls line() for each line until it returns true; a line that fills the buffer is skipped. */
static bool each_line(int fd, bool (*line)(void *ctx, const char *text, size_t len), void *ctx)
{
	char *chunk = scratch.lines;
	size_t have = 0, total = 0;
	bool skipping = false;

	for (;;) {
		ssize_t n = read(fd, chunk + have, sizeof scratch.lines - have);
		char *start = chunk, *end;

		if (n <= 0 || (total += (size_t) n) > FILE_MAX_BYTES)
			return have && !skipping && line(ctx, chunk, have);
		have += (size_t) n;
		while ((end = memchr(start, '\n', have)) != NULL) {
			size_t len = (size_t) (end - start);

			if (!skipping && line(ctx, start, len))
				return true;
			skipping = false;
			start = end + 1;
			have -= len + 1;
		}
		if (have == sizeof scratch.lines) {
			have = 0;
			skipping = true;
		}
		memmove(chunk, start, have);
	}
}

/* Only a regular file is read: a FIFO there would hang init. */
static int open_account_file(const char *path)
{
	struct stat st;
	int fd = path_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
		return close_fd(fd);
	return fd;
}

struct search {
	struct user_key key;
	struct user *user;
};

static bool try_passwd_line(void *ctx, const char *text, size_t len)
{
	struct search *search = ctx;

	return passwd_line(text, len, &search->key, search->user);
}

static bool try_group_line(void *ctx, const char *text, size_t len)
{
	group_line(text, len, ctx);
	return false;
}

static bool read_passwd(const struct user_key *key, struct user *ret)
{
	struct search search = { *key, ret };
	_cleanup_close_ int fd = open_account_file("/etc/passwd");

	return fd >= 0 && each_line(fd, try_passwd_line, &search);
}

static void read_groups(struct user *user)
{
	_cleanup_close_ int fd = open_account_file("/etc/group");

	if (fd >= 0)
		each_line(fd, try_group_line, user);
}

static void stat_file(const char *path, struct timespec *ret_changed, ino_t *ret_inode)
{
	struct stat st;

	memset(ret_changed, 0, sizeof *ret_changed);
	*ret_inode = 0;
	if (stat(path, &st) < 0)
		return;
	*ret_changed = st.st_ctim;
	*ret_inode = st.st_ino;
}

static void get_origin(struct origin *ret)
{
	memset(ret, 0, sizeof *ret);
	stat_file("/etc/passwd", &ret->passwd_changed, &ret->passwd_inode);
	stat_file("/etc/group", &ret->group_changed, &ret->group_inode);
}

/*
 * A file that changed just now may change again without its time stamp moving
 * (stamps advance with the clock tick), so only what is older is remembered.
 */
static bool is_settled(const struct origin *origin)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return origin->passwd_changed.tv_sec + 1 < now.tv_sec && origin->group_changed.tv_sec + 1 < now.tv_sec;
}

static int check_ids(const struct user *user, struct err *err)
{
	if (user->uid >= USER_ID_LIMIT || user->gid >= USER_ID_LIMIT)
		return err_set(err, ERR_INVALID, "user %s has an id of %u or more (uid %u, gid %u)",
		               user->name, USER_ID_LIMIT, user->uid, user->gid);
	return 0;
}

static int look_up(const char *who, struct user *ret, struct err *err)
{
	struct user_key key = { .uid = USER_DEFAULT };
	bool by_number = !who[0] || strspn(who, "0123456789") == strlen(who);
	uint64_t number;

	if (!by_number)
		key.name = who;
	else if (who[0]) {
		if (parse_u64(who, 0, USER_ID_LIMIT - 1, &number, err) < 0)
			return err_wrap(err, "user");
		key.uid = (uid_t) number;
	}
	ret->ngroups = 0;
	if (!read_passwd(&key, ret)) {
		struct err none;

		if (!by_number)
			return err_set(err, ERR_NOT_FOUND, "no user '%.80s' in the sandbox's /etc/passwd", who);
		ret->uid = ret->gid = key.uid;
		/* err_set() is at hand as a formatter that allocates nothing. */
		err_set(&none, ERR_OK, "%u", key.uid);
		memcpy(ret->name, none.msg, sizeof none.msg);
		strcpy(ret->home, "/");
		strcpy(ret->shell, "/bin/sh");
		return 0;
	}
	read_groups(ret);
	return check_ids(ret, err);
}

int user_find(const char *who, const struct user **ret, struct err *err)
{
	struct origin origin;

	get_origin(&origin);
	if (!cache_valid || strcmp(who, cached_for) || memcmp(&origin, &cached_origin, sizeof origin)) {
		cache_valid = false;
		if (look_up(who, &cached, err) < 0)
			return -1;
		strcpy(cached_for, who);
		cached_origin = origin;
		cache_valid = is_settled(&origin);
	}
	*ret = &cached;
	return 0;
}
