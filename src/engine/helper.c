/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/helper.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include "base/clock.h"

int helper_start(struct helper *h, uint64_t flags, int cgroup_fd, int (*fn)(void *), void *arg, struct err *err)
{
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_FILES | flags,
		.cgroup = cgroup_fd >= 0 ? (uint64_t) cgroup_fd : 0,
		/* No SIGCHLD: waited for by pid. */
	};

	h->pid = sys_clone_call(&args, h->stack, sizeof h->stack, fn, arg);
	if (h->pid < 0) {
		h->pid = 0;
		return err_sys(err, errno, "start a helper");
	}
	return 0;
}

int helper_join(struct helper *h, int *ret_status)
{
	int status = -1;

	if (h->pid) {
		while (waitpid(h->pid, &status, __WALL) < 0 && errno == EINTR)
			;
		h->pid = 0;
	}
	if (ret_status)
		*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 255;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

void helper_done(struct helper *h)
{
	if (!h->pid)
		return;
	kill(h->pid, SIGKILL);
	helper_join(h, NULL);
}

void helper_post(int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	SYS_RAW(SYS_futex, word, FUTEX_WAKE, 1);
}

int helper_wait(int *word, int old, int timeout_ms)
{
	uint64_t deadline = now_ns() + (uint64_t) timeout_ms * 1000000;
	int value;

	while ((value = __atomic_load_n(word, __ATOMIC_ACQUIRE)) == old) {
		int left = ms_until(deadline);
		struct timespec t = { left / 1000, left % 1000 * 1000000L };

		if (!left)
			break;
		SYS_RAW(SYS_futex, word, FUTEX_WAIT, old, &t);
	}
	return value;
}
