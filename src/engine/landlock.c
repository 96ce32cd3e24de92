/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/landlock.h"

#include <linux/landlock.h>
#include <sys/syscall.h>

/* The third field of landlock_ruleset_attr, newer than the installed headers. */
struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

enum { SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0, SCOPE_SIGNAL = 1 << 1, ABI_WITH_SCOPES = 6 };

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (int) abi;
}

int landlock_scope_open(int *ret_fd, struct err *err)
{
	/* No file access is handled: a rule set that handles any would also refuse renames across
	 * directories unless each root gets its own rule. */
	struct ruleset_attr attr = { .scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL };
	long fd;

	if (landlock_abi() < ABI_WITH_SCOPES) {
		*ret_fd = -1;
		return 0;
	}
	fd = syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
	if (fd < 0)
		return err_sys(err, errno, "create the Landlock rule set");
	*ret_fd = (int) fd;
	return 0;
}

int landlock_restrict(int ruleset_fd)
{
	if (ruleset_fd < 0)
		return 0;
	return (int) syscall(SYS_landlock_restrict_self, ruleset_fd, 0);
}
