/* SPDX-License-Identifier: Apache-2.0 */
/* bench-host: times programs from fork to reaped, from a process as small as one can be. */
#include <string.h>
#include <sys/wait.h>
#include "base/clock.h"
#include "worker.h"

static int run_below(const char *root, char **argv, uint64_t *ret, struct err *err)
{
	uint64_t began = now_ns();
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return err_sys(err, errno, "fork");
	if (pid == 0) {
		if (!root || (chroot(root) == 0 && chdir("/") == 0))
			execve(argv[0], argv, environ);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	*ret = now_ns() - began;
	return status ? err_set(err, ERR_INTERNAL, "%s ended with status %#x", argv[0], (unsigned) status) : 0;
}

/* run PROGRAM ARG... */
static int run(int argc, char **argv, uint64_t *ret, struct err *err)
{
	if (argc < 2)
		return err_set(err, ERR_INVALID, "run needs a program");
	return run_below(NULL, argv + 1, ret, err);
}

/* chroot ROOT PROGRAM ARG... */
static int run_in_root(int argc, char **argv, uint64_t *ret, struct err *err)
{
	if (argc < 3)
		return err_set(err, ERR_INVALID, "chroot needs a directory and a program");
	return run_below(argv[1], argv + 2, ret, err);
}

static const struct worker_command table[] = {
	{ "chroot", run_in_root },
	{ "run", run },
	{ NULL, NULL },
};

int main(void)
{
	struct err err = { 0 };

	if (worker_start(&err) < 0)
		return err_exit(&err);
	worker_ready(0, 0, &err);
	worker_serve(table);
	return 0;
}
