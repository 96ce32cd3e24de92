/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/caps.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define BIT(cap) (1ull << (cap))

/*
 * Enough for a package manager and a web server on port 80.  Not here: SYS_ADMIN (the sandbox's
 * own mounts and hostname), SYS_CHROOT (the spawner's empty root lies under the sandbox's),
 * SYS_PTRACE (init), NET_ADMIN, NET_RAW, MKNOD, SETPCAP, SYS_RESOURCE (the namespace limits).
 */
const uint64_t caps_kept = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) |
	BIT(CAP_KILL) | BIT(CAP_SETGID) | BIT(CAP_SETUID) | BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_SETFCAP);

int caps_bound(void)
{
	/* EINVAL marks the first number that this kernel does not know. */
	for (unsigned cap = 0; cap < 64; cap++)
		if (!(caps_kept & BIT(cap)) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return errno == EINVAL && cap > CAP_AUDIT_READ ? 0 : -1;
	return 0;
}

int caps_apply(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ .effective = (uint32_t) caps_kept, .permitted = (uint32_t) caps_kept },
		{ .effective = (uint32_t) (caps_kept >> 32), .permitted = (uint32_t) (caps_kept >> 32) },
	};

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -1;
	return (int) syscall(SYS_capset, &header, data);
}
