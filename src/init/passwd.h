/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * passwd: who a user name is, by the sandbox's own account files.
 *
 * The files belong to whoever owns the sandbox, so they are hostile input: any
 * length, any bytes.  Lines that do not parse are skipped, as getpwnam() does.
 * The parsers take lines and know no files; user_find() does the reading.
 */
#include "base/err.h"

#include <sys/types.h>
#include "wire/init.h"

enum {
	USER_ID_LIMIT = 65536,          /* a sandbox has that many ids */
	USER_DEFAULT = 1000,
	USER_GROUPS_MAX = 64,           /* supplementary groups; more are left out */
};

struct user {
	uid_t uid;
	gid_t gid;
	char name[INIT_NAME_MAX];       /* the number in digits when nothing has a name for it */
	char home[1024];
	char shell[256];
	size_t ngroups;
	gid_t groups[USER_GROUPS_MAX];
};

/* What is looked for: a name, or a number. */
struct user_key {
	const char *name;               /* NULL: by number */
	uid_t uid;
};

/*
 * Reads one line of /etc/passwd (without its newline; need not be terminated).
 * True when it is well formed and is the one looked for: then everything of
 * *ret but the groups is set, whatever the numbers are.
 */
bool passwd_line(const char *line, size_t len, const struct user_key *key, struct user *ret);

/* Reads one line of /etc/group and adds its number to `user` when it lists him. */
void group_line(const char *line, size_t len, struct user *user);

/*
 * Finds a user by name or decimal number; "" means number 1000.  A number that
 * nobody has is a user all the same, with the same group, home "/" and no more
 * groups.  The result stays valid until the next call.
 */
int user_find(const char *who, const struct user **ret, struct err *err) _must_check_;
