/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuvette-init: PID 1 of a sandbox.
 *
 * Runs commands, serves files and reaps, on behalf of the host and of nobody
 * else.  One thread, one loop.  It must live for as long as the sandbox, on as
 * few pages as it can, among processes that would rather it did not.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include "base/fd.h"
#include "init/command.h"
#include "init/conn.h"
#include "init/helper.h"
#include "init/scratch.h"
#include "init/setup.h"

enum {
	IDLE_MS = 500,          /* without work for that long, memory goes back to the kernel */
	REAP_PORTION = 64,
};

static struct source sigchld;

/* The name of a process that is dead and not reaped yet, fit to be shown. */
static void read_name(pid_t pid, char *ret, size_t size)
{
	char path[32];
	struct err text;

	/* err_set() is at hand as a formatter that allocates nothing. */
	err_set(&text, ERR_OK, "/proc/%d/comm", (int) pid);
	memcpy(path, text.msg, sizeof path);
	if (read_file_at(AT_FDCWD, path, ret, size, NULL) < 0)
		ret[0] = '\0';
	for (char *c = ret; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

/*
 * Looks before it reaps: afterwards nobody could say who it was that died by
 * SIGKILL, and that is the question after an out-of-memory kill.
 */
static bool reap_one(void)
{
	char name[32];
	struct rusage usage;
	siginfo_t info = { 0 };
	int status;
	pid_t pid;

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
		return false;
	pid = info.si_pid;
	if (info.si_code != CLD_EXITED && info.si_status == SIGKILL) {
		read_name(pid, name, sizeof name);
		command_note_killed(pid, name);
	}
	if (wait4(pid, &status, WNOHANG, &usage) != pid)
		return false;
	if (!helper_reaped(pid))
		command_reaped(pid, status, &usage);
	return true;
}

static void on_sigchld(struct source *src, _unused_ uint32_t events)
{
	struct signalfd_siginfo info;

	/* One signal may stand for many deaths.  A storm of them must not starve the rest of
	 * the loop: after a portion, init reminds itself. */
	(void) !read(src->fd, &info, sizeof info);
	for (int i = 0; i < REAP_PORTION; i++)
		if (!reap_one())
			return;
	kill(getpid(), SIGCHLD);
}

static int watch_children(struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigchld = (struct source) { .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .ready = on_sigchld };
	if (sigchld.fd < 0 || loop_watch(&sigchld, EPOLLIN) < 0)
		return err_sys(err, errno, "watch child processes");
	return 0;
}

static int serve(const char *digits, const char *nofile, struct err *err)
{
	if (setup_process(digits, nofile, err) < 0)
		return -1;
	if (loop_init() < 0)
		return err_sys(err, errno, "make an epoll instance");
	if (watch_children(err) < 0 || conn_listen(INIT_FD_LISTEN, err) < 0)
		return -1;
	/* So far our caller's own stderr.  A sandbox may outlive the caller, and whoever reads that
	 * to its end must not wait for us. */
	dup2(STDIN_FILENO, STDOUT_FILENO);
	dup2(STDIN_FILENO, STDERR_FILENO);
	loop_run(IDLE_MS, scratch_release);
	return err_sys(err, errno, "wait for events");
}

int main(int argc, char **argv)
{
	struct err err;

	serve(argc >= 2 && argc <= 3 ? argv[1] : NULL, argc == 3 ? argv[2] : NULL, &err);
	(void) !write(STDERR_FILENO, "cuvette-init: ", 14);
	(void) !write(STDERR_FILENO, err.msg, strlen(err.msg));
	(void) !write(STDERR_FILENO, "\n", 1);
	return err_exit(&err);
}
