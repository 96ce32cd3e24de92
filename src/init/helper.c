/* SPDX-License-Identifier: Apache-2.0 */
#include "init/helper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include "base/fd.h"
#include "init/loop.h"

enum { HELPERS_MAX = 64 };

static pid_t helpers[HELPERS_MAX];
static size_t running;

static pid_t *free_slot(void)
{
	for (size_t i = 0; i < HELPERS_MAX; i++)
		if (!helpers[i])
			return &helpers[i];
	return NULL;
}

/*
 * Everything but the connection goes: while the copies live, hosts would not
 * see the end of their connections, nor writers the end of their pipes.
 */
static _noreturn_ void run_child(int fd, void (*work)(int fd))
{
	if (fd > 3)
		syscall(SYS_close_range, 3, fd - 1, 0);
	syscall(SYS_close_range, fd + 1, ~0U, 0);
	work(fd);
	_exit(0);
}

int helper_run(int fd, void (*work)(int fd), struct err *err)
{
	pid_t *slot = free_slot(), pid;

	if (!slot)
		return err_set(err, ERR_EXHAUSTED, "more than %d listings and removals at once", HELPERS_MAX);
	pid = fork();
	if (pid < 0)
		return err_sys(err, errno, "fork");
	if (pid == 0)
		run_child(fd, work);
	*slot = pid;
	running++;
	return 0;
}

bool helper_send(int fd, const void *packet, size_t len)
{
	for (;;) {
		struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };

		if (send_msg(fd, packet, len, NULL, 0) == 0)
			return true;
		if (errno != EAGAIN && errno != ENOBUFS)
			return false;
		poll(&poll_fd, 1, 1000);
	}
}

bool helper_reaped(pid_t pid)
{
	for (size_t i = 0; running && i < HELPERS_MAX; i++) {
		if (helpers[i] == pid) {
			helpers[i] = 0;
			running--;
			return true;
		}
	}
	return false;
}
