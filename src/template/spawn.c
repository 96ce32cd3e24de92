/* SPDX-License-Identifier: Apache-2.0 */
#include "template/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fd.h"

#define DEFAULT_PATH    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define CHILD_FAILED    125
#define NOFILE_SOFT     1024    /* what a login shell has */

/* Everything else stays behind: BASH_ENV and ENV would run code (B34), APT_CONFIG
 * and PERL5OPT would change what is built. */
static const char *const kept[] = {
	"PATH", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SOURCE_DATE_EPOCH",
};

static char **clean_environment(void)
{
	char **env = xcalloc(ARRAY_SIZE(kept) + 8, sizeof *env);
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (getenv(kept[i]))
			env[n++] = xasprintf("%s=%s", kept[i], getenv(kept[i]));
	if (!getenv("PATH"))
		env[n++] = xstrdup("PATH=" DEFAULT_PATH);
	env[n++] = xstrdup("HOME=/root");
	env[n++] = xstrdup("LC_ALL=C.UTF-8");
	env[n++] = xstrdup("TMPDIR=/tmp");
	env[n++] = xstrdup("DEBIAN_FRONTEND=noninteractive");
	return env;
}

static void free_environment(char ***env)
{
	for (char **e = *env; e && *e; e++)
		free(*e);
	free(*env);
}

char *spawn_find(const char *program)
{
	const char *path = getenv("PATH");

	for (path = path ? path : DEFAULT_PATH; *path; path += strcspn(path, ":"), path += *path == ':') {
		_cleanup_free_ char *at = xasprintf("%.*s/%s", (int) strcspn(path, ":"), path, program);

		if (at[0] == '/' && access(at, X_OK) == 0)
			return TAKE_PTR(at);
	}
	return NULL;
}

/* In the child: the three standard descriptors, nothing else, default signals, and
 * not our high limit of descriptors, up to which some programs close all there may be. */
static void take_stdio(int out, int error)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct rlimit files;
	sigset_t none;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = MIN(files.rlim_cur, (rlim_t) NOFILE_SOFT);
		setrlimit(RLIMIT_NOFILE, &files);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out < 0 ? null : out, STDOUT_FILENO) < 0 ||
	    dup2(error < 0 ? null : error, STDERR_FILENO) < 0)
		_exit(CHILD_FAILED);
	close_range(3, ~0u, 0);
}

int spawn_read(const char *const *argv, struct buf *ret, struct err *err)
{
	_cleanup_free_ char *program = spawn_find(argv[0]);
	_cleanup_(free_environment) char **env = clean_environment();
	_cleanup_close_ int ours = -1, theirs = -1;
	int ends[2], status, result;
	pid_t pid;

	if (!program)
		return err_set(err, ERR_PRECONDITION, "%s is not installed", argv[0]);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	ours = ends[0];
	theirs = ends[1];
	pid = fork();
	if (pid < 0)
		return err_sys(err, errno, "fork");
	if (pid == 0) {
		take_stdio(theirs, -1);
		execve(program, (char *const *) argv, env);
		_exit(CHILD_FAILED);
	}
	theirs = close_fd(theirs);
	result = read_to_buf(ours, ret, err);
	ours = close_fd(ours);          /* after a failure the child must not wait for us */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (result < 0)
		return err_wrap(err, "output of %s", argv[0]);
	if (status != 0)
		return err_set(err, ERR_UNAVAILABLE, "%s failed (status %d)", argv[0],
		               WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return 0;
}

static _noreturn_ void box_fail(const char *what)
{
	dprintf(STDERR_FILENO, "E: %s: %s\n", what, strerror(errno));
	_exit(CHILD_FAILED);
}

/* PID 1 of the box: mounts, starts the program, reaps what is orphaned, ends with it. */
static _noreturn_ void box_main(const struct spawn_box *box, char *const *env, int go)
{
	pid_t main_pid, pid;
	char byte;
	int status;

	/* Asked for before the parent's word: a parent killed in between never gives it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || read(go, &byte, 1) != 1)
		_exit(CHILD_FAILED);
	take_stdio(box->stdout_fd, box->stderr_fd);
	setsid();
	umask(022);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		box_fail("make mounts private");
	if (mount(box->tmp_dir, "/tmp", NULL, MS_BIND, NULL) < 0)
		box_fail("mount /tmp");
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		box_fail("mount /proc");
	if (chdir("/") < 0)
		box_fail("chdir");

	main_pid = fork();
	if (main_pid < 0)
		box_fail("fork");
	if (main_pid == 0) {
		execve(box->argv[0], (char *const *) box->argv, env);
		box_fail(box->argv[0]);
	}
	/* A reader that left must be noticed by the writer. */
	close(STDOUT_FILENO);
	while ((pid = wait(&status)) != main_pid)
		if (pid < 0 && errno != EINTR)
			_exit(CHILD_FAILED);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int spawn_box(const struct spawn_box *box, pid_t *ret_pid, struct err *err)
{
	_cleanup_(free_environment) char **env = clean_environment();
	_cleanup_close_ int go_read = -1, go_write = -1;
	int ends[2];
	long pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	go_read = ends[0];
	go_write = ends[1];
	/* No thread has been started, so the child of a raw clone may do what it likes. */
	pid = syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0);
	if (pid < 0)
		return err_sys(err, errno, "make namespaces for the build");
	if (pid == 0) {
		close(go_write);
		box_main(box, env, go_read);
	}
	if (write_all(go_write, "", 1) < 0) {
		int saved = errno;

		kill((pid_t) pid, SIGKILL);
		waitpid((pid_t) pid, NULL, 0);
		return err_sys(err, saved, "start the build");
	}
	*ret_pid = (pid_t) pid;
	return 0;
}
