/* SPDX-License-Identifier: Apache-2.0 */
#include "init/cred.h"

#include <sys/fsuid.h>
#include <sys/syscall.h>

/* The calls report no error; asking again tells what is in force. */
static bool set_ids(uid_t uid, gid_t gid)
{
	setfsgid(gid);
	setfsuid(uid);
	return (gid_t) setfsgid((gid_t) -1) == gid && (uid_t) setfsuid((uid_t) -1) == uid;
}

int cred_enter(const struct user *user, struct err *err)
{
	if (user->uid == 0 && user->gid == 0)
		return 0;
	if (syscall(SYS_setgroups, user->ngroups, user->groups) < 0)
		return err_sys(err, errno, "groups of user %s", user->name);
	if (!set_ids(user->uid, user->gid)) {
		cred_leave(user);
		return err_set(err, ERR_PERMISSION, "cannot act as user %s (uid %u, gid %u)", user->name,
		               user->uid, user->gid);
	}
	return 0;
}

void cred_leave(const struct user *user)
{
	if (user->uid == 0 && user->gid == 0)
		return;
	if (!set_ids(0, 0) || syscall(SYS_setgroups, 0, NULL) < 0)
		abort();
}
