/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"

/* No request takes this long on a working machine; a hung spawner must not hang its callers. */
enum { REPLY_TIMEOUT_MS = 60000 };

struct spawner {
	pthread_mutex_t lock;
	int sock;
	pid_t pid;              /* 0 when another process started it */
};

const char *sandbox_data_dir(void)
{
	const char *dir = getenv("CUVETTE_DATA");

	return dir && *dir ? dir : "/var/lib/cuvette";
}

/* ---- starting ---- */

static bool try_program(char *ret, size_t size, const char *dir, size_t dir_len, const char *name)
{
	int n = snprintf(ret, size, "%.*s/%s", (int) dir_len, dir, name);

	return n > 0 && (size_t) n < size && access(ret, X_OK) == 0;
}

/*
 * Beside our own binary, or where `make install` puts it below any prefix.  The kernel resolves links in /proc/self/exe, so a link in
 * /usr/local/bin to a build directory finds the programs of that build.
 */
static bool beside_ourselves(char *ret, size_t size, const char *name)
{
	static const char installed[] = "/../libexec/cuvette";
	char self[PATH_MAX + sizeof installed];
	ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);
	char *slash;

	if (n <= 0)
		return false;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return false;
	if (try_program(ret, size, self, (size_t) (slash - self), name))
		return true;
	memcpy(slash, installed, sizeof installed);
	return try_program(ret, size, self, strlen(self), name);
}

int sandbox_find_program(const char *name, char *ret, size_t size, struct err *err)
{
	static const char *const fixed[] = { "/usr/local/libexec/cuvette", "/usr/libexec/cuvette" };
	const char *dir = getenv("CUVETTE_LIBEXEC");

	if (dir && *dir) {
		if (try_program(ret, size, dir, strlen(dir), name))
			return 0;
		return err_set(err, ERR_NOT_FOUND, "CUVETTE_LIBEXEC is %.100s, but no %s is there", dir, name);
	}
	if (beside_ourselves(ret, size, name))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		if (try_program(ret, size, fixed[i], strlen(fixed[i]), name))
			return 0;
	return err_set(err, ERR_NOT_FOUND, "%s is neither beside this program nor in /usr/local/libexec/cuvette: "
	               "run 'make build', or set CUVETTE_LIBEXEC to its directory", name);
}

/* PATH and our own settings are all that a privileged program gets from the caller. */
static char **clean_environment(void)
{
	size_t n = 0, kept = 0;
	char **env;

	while (environ[n])
		n++;
	env = xcalloc(n + 1, sizeof *env);
	for (size_t i = 0; i < n; i++)
		if (!strncmp(environ[i], "PATH=", 5) || !strncmp(environ[i], "CUVETTE_", 8))
			env[kept++] = environ[i];
	return env;
}

/* In a vfork child: shares our memory, so system calls only. */
static _noreturn_ void become(const char *program, char *const argv[], char *const env[], int sock, volatile int *error)
{
	/* What callers and their callers are known to ignore. */
	static const int ignored[] = { SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM };
	sigset_t none;
	int null_fd;

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	null_fd = open("/dev/null", O_RDWR);
	dup2(null_fd, 0);
	dup2(null_fd, 1);
	dup2(sock, 3);
	syscall(SYS_close_range, 4, ~0u, 0);
	execve(program, argv, env);
	*error = errno;
	_exit(127);
}

/* Returns the child, or -1 with errno, also when the program could not be executed. */
static __attribute__((noinline)) pid_t start_child(const char *program, char *const argv[], char *const env[], int sock)
{
	volatile int error = 0;
	pid_t pid = vfork();

	if (pid == 0)
		become(program, argv, env, sock, &error);
	if (pid < 0 || !error)
		return pid;
	waitpid(pid, NULL, 0);
	errno = error;
	return -1;
}

/*
 * A vfork: its cost does not grow with the caller.  The spawner gets a session of its own, so
 * that a Ctrl-C meant for the command does not end it first.
 */
static int spawn_program(const char *program, const struct spawner_options *options, int sock, pid_t *ret,
                         struct err *err)
{
	const char *data = options->data_dir ? options->data_dir : sandbox_data_dir();
	char *argv[] = { "cuvette-spawner", "--data", (char *) (uintptr_t) data,
	                 options->ephemeral ? "--ephemeral" : NULL, NULL };
	_cleanup_free_ char **env = clean_environment();

	*ret = start_child(program, argv, env, sock);
	return *ret < 0 ? err_sys(err, errno, "start %s", program) : 0;
}

/* A descriptor of 0 to 2 would be overwritten by the child's own before it is moved to 3. */
static int above_stdio(int fd)
{
	int moved;

	if (fd > 2)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	close(fd);
	return moved;
}

int spawner_start(const struct spawner_options *options, struct spawner **ret, struct err *err)
{
	_cleanup_close_ int ours = -1, theirs = -1;
	char found[PATH_MAX];
	const char *program = options->program;
	struct spawner *s;
	int pair[2];
	pid_t pid;

	if (!program) {
		if (sandbox_find_program("cuvette-spawner", found, sizeof found, err) < 0)
			return -1;
		program = found;
	}
	if (geteuid() != 0)
		return err_set(err, ERR_PERMISSION, "making a sandbox needs root: run it with sudo");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "make a socket for the spawner");
	ours = above_stdio(pair[0]);
	theirs = above_stdio(pair[1]);
	if (ours < 0 || theirs < 0)
		return err_sys(err, errno, "make a socket for the spawner");
	if (spawn_program(program, options, theirs, &pid, err) < 0)
		return -1;

	s = xcalloc(1, sizeof *s);
	pthread_mutex_init(&s->lock, NULL);
	s->sock = TAKE_FD(ours);
	s->pid = pid;
	*ret = s;
	return 0;
}

/* ---- asking ---- */

static int wait_readable(int fd, int timeout_ms)
{
	uint64_t deadline = now_ns() + (uint64_t) timeout_ms * 1000000;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int n;

	do
		n = poll(&p, 1, ms_until(deadline));
	while (n < 0 && errno == EINTR);
	if (n == 0) {
		errno = ETIMEDOUT;
		return -1;
	}
	return n < 0 ? -1 : 0;
}

static int exchange(struct spawner *s, const struct spawn_request *req, struct spawn_reply *ret,
                    int fds[FD_PASS_MAX], size_t *ret_nfds, struct err *err)
{
	uint8_t out[SPAWN_REQUEST_SIZE], in[SPAWN_REPLY_SIZE + 1];
	ssize_t n;

	spawn_encode_request(req, out);
	if (send_msg(s->sock, out, sizeof out, NULL, 0) < 0)
		return err_sys(err, errno, "the spawner has ended");
	if (wait_readable(s->sock, REPLY_TIMEOUT_MS) < 0)
		return err_sys(err, errno, "wait for the spawner");
	n = recv_msg(s->sock, in, sizeof in, fds, ret_nfds);
	/* A reset is an end before the request was read. */
	if (n < 0 && errno != ECONNRESET)
		return err_sys(err, errno, "read the spawner's reply");
	if (n <= 0)
		return err_set(err, ERR_UNAVAILABLE, "the spawner ended before it answered: "
		               "'cuvette doctor' shows what this machine lacks");
	if (spawn_decode_reply(in, (size_t) n, ret, err) < 0)
		return -1;
	/* First of all: a spawner that could not start says why, whatever it was asked. */
	if (ret->err.code) {
		if (err)
			*err = ret->err;
		return -1;
	}
	if (ret->type != req->type)
		return err_set(err, ERR_INTERNAL, "the spawner answered request %u with %u", req->type, ret->type);
	return 0;
}

int spawner_call(struct spawner *s, const struct spawn_request *req, struct spawn_reply *ret,
                 int *ret_fds, size_t *ret_nfds, struct err *err)
{
	int fds[FD_PASS_MAX];
	size_t nfds = 0;
	int r;

	pthread_mutex_lock(&s->lock);
	r = exchange(s, req, ret, fds, &nfds, err);
	pthread_mutex_unlock(&s->lock);

	if (r < 0 || !ret_fds) {
		while (nfds)
			close(fds[--nfds]);
	} else {
		memcpy(ret_fds, fds, nfds * sizeof *fds);
	}
	if (r == 0 && ret_nfds)
		*ret_nfds = nfds;
	return r;
}

void spawner_close(struct spawner *s)
{
	if (!s)
		return;
	close(s->sock);
	if (s->pid) {
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	pthread_mutex_destroy(&s->lock);
	free(s);
}
