/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuvette-spawner: the privileged part, small and single-threaded.
 *
 * Descriptor 3 is a SEQPACKET connection to whoever asks: it serves the requests
 * of a table, one at a time, and refills the pools when none is waiting.  When
 * the connection closes, every sandbox ends and so does the program.  A spawner
 * that is killed leaves its sandboxes running; the next one reaps them by the
 * cgroup they are in.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "spawner/requests.h"

enum { CONTROL_FD = 3, OWN_FDS_FROM = 32 };

static volatile sig_atomic_t stopping;

static void on_stop(int sig)
{
	(void) sig;
	stopping = 1;
}

/* The terminal's signals are for the program that the person runs; only SIGTERM stops us, and only
 * while we wait. */
static void set_up_signals(void)
{
	struct sigaction stop = { .sa_handler = on_stop };
	sigset_t term;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	sigaction(SIGTERM, &stop, NULL);
	signal(SIGCHLD, SIG_DFL);
}

/* Sandboxes inherit priority and policy, and a caller's are no business of theirs; a real-time task
 * may not even enter a cpu cgroup. */
static void forget_priority(void)
{
	struct sched_param param = { 0 };

	setpriority(PRIO_PROCESS, 0, 0);
	/* By system call: musl leaves the function out. */
	syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &param);
}

/* Nor do a caller's limits, which would end us or a sandbox without a word (SIGXCPU, SIGXFSZ).  Our
 * descriptors are many: some for each sandbox.  Where even the hard limits are low and can't be
 * raised, they stay. */
static void forget_limits(void)
{
	static const struct { int what; struct rlimit want; } table[] = {
		{ RLIMIT_CPU, { RLIM_INFINITY, RLIM_INFINITY } }, { RLIMIT_FSIZE, { RLIM_INFINITY, RLIM_INFINITY } },
		{ RLIMIT_DATA, { RLIM_INFINITY, RLIM_INFINITY } }, { RLIMIT_AS, { RLIM_INFINITY, RLIM_INFINITY } },
		{ RLIMIT_NPROC, { RLIM_INFINITY, RLIM_INFINITY } }, { RLIMIT_STACK, { 8 << 20, RLIM_INFINITY } },
		{ RLIMIT_NOFILE, { 1 << 20, 1 << 20 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct rlimit now;

		if (getrlimit(table[i].what, &now) < 0 || setrlimit(table[i].what, &table[i].want) == 0)
			continue;
		now.rlim_cur = MIN(table[i].want.rlim_cur, now.rlim_max);
		(void) !setrlimit(table[i].what, &now);
	}
}

/* Moves a descriptor out of the numbers that the engine arranges for a sandbox's init. */
static int move_up(int fd)
{
	int up = fcntl(fd, F_DUPFD_CLOEXEC, OWN_FDS_FROM);

	if (up >= 0)
		close_fd(fd);
	return up;
}

/* The limit may lie below those numbers: EINVAL then. */
static int err_few_descriptors(struct err *err)
{
	return err_set(err, ERR_EXHAUSTED, "too few descriptors for the spawner: raise the limit of open files (ulimit -n)");
}

/* The program that every sandbox starts with: beside our own binary, and root's alone. */
static int open_init(int *ret, struct err *err)
{
	char path[512];
	struct stat st;
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);
	char *slash;
	int fd;

	if (n < 0)
		return err_sys(err, errno, "find our own program");
	path[n] = '\0';
	slash = strrchr(path, '/');
	snprintf(slash + 1, 32, "cuvette-init");
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		err_sys(err, errno, "open %s", path);
		close_fd(fd);
		return -1;
	}
	/* Unreadable, so that the kernel counts a process of it as the host's: root inside a sandbox
	 * then owns nothing of /proc/1, descriptors and oom score included. */
	if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & (S_IWOTH | S_IROTH | S_IWGRP | S_IRGRP))) {
		close_fd(fd);
		return err_set(err, ERR_PERMISSION, "%s must belong to root and be neither readable nor writable "
		               "by others (chown root, chmod 711)", path);
	}
	*ret = move_up(fd);
	if (*ret >= 0)
		return 0;
	close_fd(fd);
	return err_few_descriptors(err);
}

/* The data directory, or NULL when the arguments make no sense. */
static const char *parse_options(int argc, char **argv)
{
	const char *data_dir = NULL;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--data") && i + 1 < argc)
			data_dir = argv[++i];
		else if (strcmp(argv[i], "--ephemeral"))
			return NULL;
	}
	return data_dir;
}

/* ---- serving ---- */

static void send_answer(int sock, struct answer *a)
{
	uint8_t packet[SPAWN_REPLY_SIZE];

	spawn_encode_reply(&a->reply, packet);
	if (send_msg(sock, packet, sizeof packet, a->fds, a->nfds) < 0) {
		log_debug("an answer was not delivered", "why", strerror(errno));
		/* The peer would wait for it: the connection has failed, and that ends us. */
		shutdown(sock, SHUT_RDWR);
	}
	while (a->nfds)
		close_fd(a->fds[--a->nfds]);
}

static void answer_error(int sock, uint16_t type, const struct err *err)
{
	struct answer a;

	memset(&a, 0, sizeof a);
	a.reply.type = type;
	a.reply.err = *err;
	send_answer(sock, &a);
}

/* One request; false when the peer is gone. */
static bool serve_one(struct registry *r, int sock)
{
	uint8_t packet[SPAWN_REQUEST_SIZE + 1];
	struct spawn_request req = { 0 };
	struct answer answer;
	struct err err = { 0 };
	ssize_t n = recv_msg(sock, packet, sizeof packet, NULL, NULL);

	if (n == 0 || (n < 0 && errno != EMSGSIZE))
		return false;
	if (n < 0) {
		err_set(&err, ERR_INVALID, "request longer than %d bytes", SPAWN_REQUEST_SIZE);
		answer_error(sock, 0, &err);
		return true;
	}
	if (spawn_decode_request(packet, (size_t) n, &req, &err) < 0) {
		answer_error(sock, req.type, &err);
		return true;
	}
	request_serve(r, &req, &answer);
	send_answer(sock, &answer);
	return true;
}

/* Requests come first; pools are refilled one sandbox at a time in between. */
static void serve(struct registry *r, int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	sigset_t open_mask;
	int wait_ms = -1;

	sigemptyset(&open_mask);
	while (!stopping) {
		struct timespec t = { wait_ms / 1000, wait_ms % 1000 * 1000000L };
		int n = ppoll(&p, 1, wait_ms < 0 ? NULL : &t, &open_mask);

		if (n < 0 && errno != EINTR)
			break;
		if (n > 0 && !serve_one(r, sock))
			break;
		if (n > 0) {
			/* Another request may be waiting: look before refilling. */
			wait_ms = 0;
			continue;
		}
		registry_refill(r, &wait_ms);
	}
}

static int fail_start(int sock, struct err *err)
{
	uint8_t packet[SPAWN_REQUEST_SIZE];

	/* Whoever asks first hears why. */
	log_debug("can't start", "why", err->msg);
	(void) !recv_msg(sock, packet, sizeof packet, NULL, NULL);
	answer_error(sock, 0, err);
	return err_exit(err);
}

/* One that resists is no reason to refuse new sandboxes: its slot is passed over. */
static void reap_leftovers(struct engine *e)
{
	unsigned reaped = 0;
	struct err err = { 0 };
	char count[12];

	if (engine_reap_leftovers(e, &reaped, &err) < 0)
		log_warn("a sandbox of a spawner that was killed is still there", "why", err.msg);
	snprintf(count, sizeof count, "%u", reaped);
	if (reaped)
		log_warn("removed sandboxes of a spawner that was killed", "count", count);
}

static struct registry registry;

int main(int argc, char **argv)
{
	const char *data_dir = parse_options(argc, argv);
	struct err err = { 0 };
	int sock;

	log_set_name("cuvette-spawner");
	if (!data_dir || fcntl(CONTROL_FD, F_GETFD) < 0) {
		log_error("usage: cuvette-spawner --data DIR [--ephemeral], with a socket as descriptor 3");
		return 2;
	}
	forget_limits();
	sock = move_up(CONTROL_FD);
	setsid();
	forget_priority();
	set_up_signals();
	umask(022);
	if (sock < 0) {
		err_few_descriptors(&err);
		return fail_start(CONTROL_FD, &err);
	}
	if (geteuid() != 0) {
		err_set(&err, ERR_PERMISSION, "sandboxes need root: run as root or with sudo");
		return fail_start(sock, &err);
	}
	if (open_init(&registry.init_fd, &err) < 0 || engine_open(&registry.engine, data_dir, &err) < 0)
		return fail_start(sock, &err);
	reap_leftovers(&registry.engine);
	serve(&registry, sock);
	registry_done(&registry);
	return 0;
}
