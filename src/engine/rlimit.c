/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/rlimit.h"

#include <sys/resource.h>

int rlimit_apply(void)
{
	static const struct { int what; rlim_t value; } table[] = {
		/* No file can be that small, and a host's core handler is skipped for just this value. */
		{ RLIMIT_CORE, 1 },
		{ RLIMIT_MEMLOCK, 8 << 20 },
		{ RLIMIT_MSGQUEUE, 800 << 10 },
		/* Without it one process made 96,364 timers. */
		{ RLIMIT_SIGPENDING, 4096 },
		{ RLIMIT_NICE, 0 },
		{ RLIMIT_RTPRIO, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct rlimit now, want = { table[i].value, table[i].value };

		/* Where the host is stricter its own limit stays: raising needs SYS_RESOURCE. */
		if (getrlimit(table[i].what, &now) < 0)
			return -1;
		if (now.rlim_max < want.rlim_max)
			want.rlim_cur = want.rlim_max = now.rlim_max;
		if (setrlimit(table[i].what, &want) < 0)
			return -1;
	}
	return 0;
}
