/* SPDX-License-Identifier: Apache-2.0 */
/* C01-C12: init, other processes, descriptors, priorities. */
#include "probe.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { NR_process_mrelease = 448 };

/* ---- init's memory and files ---- */

static long try_ptrace_init(const struct probe *p)
{
	return ptrace((int) p->args[0], 1, 0, 0);
}

static long try_vm_of_init(const struct probe *p)
{
	char here[8] = "";
	struct iovec local = { here, sizeof here }, remote = { (void *) 0x400000, sizeof here };

	return syscall(p->nr, 1, &local, 1, &remote, 1, 0);
}

static long try_pidfd_call(const struct probe *p)
{
	struct iovec remote = { (void *) 0x400000, 4096 };
	long pidfd = syscall(SYS_pidfd_open, 1, 0);

	if (pidfd < 0)
		return -1;
	if (p->nr == SYS_process_madvise)
		return syscall(p->nr, pidfd, &remote, 1, 20 /* MADV_COLD */, 0);
	return syscall(p->nr, pidfd, p->args[0], 0);
}

static long try_open(const struct probe *p)
{
	return open_close(p->path, (int) p->args[0]);
}

static long try_readlink(const struct probe *p)
{
	char target[512];

	return readlink(p->path, target, sizeof target);
}

static bool init_is_alive(void)
{
	char text[512], *state;

	if (read_text("/proc/1/stat", text, sizeof text) < 0)
		return false;
	state = strrchr(text, ')');
	return state && state[1] && strchr("RSDI", state[2]);
}

static void wait_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static long try_signal_init(const struct probe *p)
{
	for (int signo = (int) p->args[0]; signo <= p->args[1]; signo++)
		kill(1, signo);
	wait_ms(100);
	return observe(init_is_alive() ? "alive" : "dead or stopped");
}

/* A write of -1000 to a file that is closed to us would have failed at open already. */
static long try_oom_score(const struct probe *p)
{
	return write_once(p->path, "-1000");
}

/* ---- other processes ---- */

/* Every process that /proc shows descends from init, and there are only init and ours. */
static long see_pids(const struct probe *p)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	unsigned others = 0;

	(void) p;
	if (!dir)
		return -1;
	while ((entry = readdir(dir))) {
		pid_t pid = isdigit((unsigned char) entry->d_name[0]) ? (pid_t) strtol(entry->d_name, NULL, 10) : 0;

		if (pid > 1 && pid != getpid() && pid != getppid())
			others++;
	}
	closedir(dir);
	return others ? observe("%u processes beside init, this and its parent", others) : observe("only-ours");
}

/* In a pid namespace of its own each process has one number here. */
static long see_pid_depth(const struct probe *p)
{
	char text[8192], *line;
	int numbers = 0;

	(void) p;
	if (read_text("/proc/1/status", text, sizeof text) < 0)
		return -1;
	line = strstr(text, "\nNSpid:");
	if (!line)
		return observe("no NSpid");
	for (char *at = strpbrk(line + 7, "0123456789\n"); at && *at != '\n'; at = strpbrk(at, "0123456789\n")) {
		numbers++;
		at += strspn(at, "0123456789");
	}
	return observe("%d", numbers);
}

/* The host's processes have large numbers; small ones may be taken inside as well. */
static long try_host_pids(const struct probe *p)
{
	char path[64];
	struct stat st;

	(void) p;
	if (!around.host_pid_count)
		return observe("no host pid was given");
	for (size_t i = 0; i < around.host_pid_count; i++) {
		pid_t pid = around.host_pids[i];

		snprintf(path, sizeof path, "/proc/%d", pid);
		if (stat(path, &st) == 0)
			return observe("%s is here", path);
		if (kill(pid, 0) == 0 || errno != ESRCH)
			return observe("kill %d: %s", pid, errno_word(errno));
		if (syscall(SYS_pidfd_open, pid, 0) >= 0 || errno != ESRCH)
			return observe("pidfd_open %d: %s", pid, errno_word(errno));
	}
	return fail(ESRCH);
}

/* ---- descriptors ---- */

static long see_leaked_fd(const struct probe *p)
{
	char path[64], target[256];
	ssize_t n;

	(void) p;
	if (around.first_leaked_fd < 0)
		return observe("none");
	snprintf(path, sizeof path, "/proc/self/fd/%d", around.first_leaked_fd);
	n = readlink(path, target, sizeof target - 1);
	return observe("%d -> %.*s", around.first_leaked_fd, n > 0 ? (int) n : 1, n > 0 ? target : "?");
}

static long see_directory_fd(const struct probe *p)
{
	(void) p;
	return around.directory_fd < 0 ? observe("none") : observe("%d", around.directory_fd);
}

/* Standard streams are pipes, a terminal or the null device made inside: never a file or socket of the caller. */
static long see_stdio(const struct probe *p)
{
	char path[64], target[256];

	(void) p;
	for (int fd = 0; fd < 3; fd++) {
		ssize_t n;

		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof target - 1);
		if (n < 0)
			return -1;
		target[n] = '\0';
		if (strncmp(target, "pipe:", 5) && strncmp(target, "/dev/pts/", 9) && strcmp(target, "/dev/null"))
			return observe("%d -> %s", fd, target);
	}
	return observe("inside");
}

/* The working directory belongs to the tree below /. */
static long see_cwd(const struct probe *p)
{
	char cwd[1024];

	(void) p;
	if (!getcwd(cwd, sizeof cwd))
		return -1;
	return observe(cwd[0] == '/' ? "inside" : "%s", cwd);
}

/* ---- priorities and limits ---- */

static long try_nice(const struct probe *p)
{
	return setpriority(PRIO_PROCESS, 0, (int) p->args[0]);
}

static long try_scheduler(const struct probe *p)
{
	struct sched_param param = { .sched_priority = 1 };

	return syscall(SYS_sched_setscheduler, 0, p->args[0], &param);
}

static long try_deadline(const struct probe *p)
{
	struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t runtime, deadline, period; } attr = {
		.size = 48, .policy = 6, .runtime = 10000000, .deadline = 30000000, .period = 30000000,
	};

	(void) p;
	return syscall(SYS_sched_setattr, 0, &attr, 0);
}

static long try_raise_limit(const struct probe *p)
{
	struct rlimit limit;

	if (getrlimit((int) p->args[0], &limit) < 0)
		return -1;
	limit.rlim_max++;
	return setrlimit((int) p->args[0], &limit);
}

static long try_mlock(const struct probe *p)
{
	void *memory = mmap(NULL, (size_t) p->args[0], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? -1 : mlock(memory, (size_t) p->args[0]);
}

/* ---- init's socket ---- */

static int connect_init(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0cuvette" };
	struct timeval patience = { .tv_sec = 5 };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	if (connect(sock, (void *) &name, offsetof(struct sockaddr_un, sun_path) + 8) < 0)
		return -1;
	return sock;
}

/* C11: a well-formed PING (args[0] 0), or that many bytes of garbage.  Any answer is wrong. */
static long try_talk_to_init(const struct probe *p)
{
	static const char ping[8] = { 1, 1, 0, 0, 0, 0, 0, 0 };
	static char garbage[65536];
	int sock = connect_init();
	ssize_t n;

	if (sock < 0)
		return -1;
	memset(garbage, 0xee, sizeof garbage);
	send(sock, p->args[0] ? garbage : ping, p->args[0] ? (size_t) p->args[0] : sizeof ping, MSG_NOSIGNAL);
	n = recv(sock, garbage, sizeof garbage, 0);
	if (n > 0)
		return observe("answered %zd bytes, type %u", n, (unsigned char) garbage[1]);
	if (n < 0 && errno != ECONNRESET)
		return -1;
	return observe(init_is_alive() ? "closed" : "init is gone");
}

/* Many connections that say nothing: init must neither die nor keep them. */
static long try_flood_init(const struct probe *p)
{
	static int socks[200];
	char byte;

	(void) p;
	for (size_t i = 0; i < sizeof socks / sizeof socks[0]; i++) {
		socks[i] = connect_init();
		if (socks[i] < 0 && i == 0)
			return -1;
		if (socks[i] < 0)
			return observe("connection %zu: %s", i, errno_word(errno));
	}
	for (size_t i = 0; i < sizeof socks / sizeof socks[0]; i++)
		if (recv(socks[i], &byte, 1, 0) > 0 || errno == EAGAIN)
			return observe("connection %zu stays", i);
	return observe(init_is_alive() ? "closed" : "init is gone");
}

static long try_squat(const struct probe *p)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0cuvette" };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void) p;
	return bind(sock, (void *) &name, offsetof(struct sockaddr_un, sun_path) + 8);
}

/* ---- the table ---- */

#define OPEN(probe_name, file, flags, want) { probe_name, try_open, .path = file, .args = { flags }, ALWAYS(want) }
#define LINK(probe_name, file)              { probe_name, try_readlink, .path = file, ALWAYS("EACCES") }
#define PTRACE(probe_name, request)         { probe_name, try_ptrace_init, .args = { request }, ALWAYS("EPERM") }
#define LIMIT(probe_name, resource)         { probe_name, try_raise_limit, .args = { resource }, ALWAYS("EPERM") }

static const struct probe probes[] = {
	PTRACE("C01-ptrace-seize-init", PTRACE_SEIZE),
	PTRACE("C01-ptrace-attach-init", PTRACE_ATTACH),
	{ "C01-vm-readv-init", try_vm_of_init, .nr = SYS_process_vm_readv, ALWAYS("EPERM") },
	{ "C01-vm-writev-init", try_vm_of_init, .nr = SYS_process_vm_writev, ALWAYS("EPERM") },
	OPEN("C01-mem-of-init", "/proc/1/mem", O_RDWR, "EACCES"),
	OPEN("C01-mem-of-init-read", "/proc/1/mem", O_RDONLY, "EACCES"),
	{ "C01-pidfd-getfd-init", try_pidfd_call, .nr = SYS_pidfd_getfd, .args = { 3 }, ALWAYS("EPERM") },
	{ "C01-process-madvise-init", try_pidfd_call, .nr = SYS_process_madvise, ALWAYS("EPERM EACCES") },
	/* Only a dying process can be reaped by it; init is none (EINVAL). */
	{ "C01-process-mrelease-init", try_pidfd_call, .nr = NR_process_mrelease, .args = { 0 }, ALWAYS("EPERM EACCES EINVAL") },
	OPEN("C02-fds-of-init", "/proc/1/fd", O_RDONLY | O_DIRECTORY, "EACCES"),
	OPEN("C02-fdinfo-of-init", "/proc/1/fdinfo", O_RDONLY | O_DIRECTORY, "EACCES"),
	OPEN("C02-fd3-of-init", "/proc/1/fd/3", O_RDONLY, "EACCES"),
	OPEN("C02-root-of-init", "/proc/1/root/etc/passwd", O_RDONLY, "EACCES"),
	LINK("C02-root-link-of-init", "/proc/1/root"),
	LINK("C02-cwd-link-of-init", "/proc/1/cwd"),
	OPEN("C02-cwd-of-init", "/proc/1/cwd", O_RDONLY, "EACCES"),
	OPEN("C02-environ-of-init", "/proc/1/environ", O_RDONLY, "EACCES"),
	OPEN("C02-maps-of-init", "/proc/1/maps", O_RDONLY, "EACCES"),
	OPEN("C02-auxv-of-init", "/proc/1/auxv", O_RDONLY, "EACCES"),
	OPEN("C02-map-files-of-init", "/proc/1/map_files", O_RDONLY | O_DIRECTORY, "EACCES"),
	OPEN("C03-exe-of-init-write", "/proc/1/exe", O_WRONLY, "EACCES ETXTBSY"),
	OPEN("C03-exe-of-init-read", "/proc/1/exe", O_RDONLY, "EACCES"),
	LINK("C03-exe-link-of-init", "/proc/1/exe"),
	{ "C05-kill-init", try_signal_init, .args = { SIGKILL, SIGKILL }, ALWAYS("alive") },
	{ "C05-stop-init", try_signal_init, .args = { SIGSTOP, SIGTSTP }, ALWAYS("alive") },
	{ "C05-every-signal-init", try_signal_init, .args = { 1, 64 }, ALWAYS("alive") },
	OPEN("C06-oom-score-of-init", "/proc/1/oom_score_adj", O_WRONLY, "EACCES"),
	OPEN("C06-oom-adj-of-init", "/proc/1/oom_adj", O_WRONLY, "EACCES"),
	{ "C06-own-oom-score", try_oom_score, .path = "/proc/self/oom_score_adj", ALWAYS("EACCES") },
	{ "C07-pids", see_pids, ALWAYS("only-ours") },
	{ "C07-pid-depth", see_pid_depth, ALWAYS("1") },
	{ "C07-host-pids", try_host_pids, ALWAYS("ESRCH") },
	{ "C08-leaked-fd", see_leaked_fd, ALWAYS("none") },
	{ "C08-directory-fd", see_directory_fd, ALWAYS("none") },
	{ "C08-stdio", see_stdio, ALWAYS("inside") },
	/* getcwd() says "(unreachable)..." for a directory outside of the root. */
	{ "C09-cwd", see_cwd, ALWAYS("inside") },
	{ "C10-nice-minus-20", try_nice, .args = { -20 }, ALWAYS("EACCES EPERM") },
	{ "C10-nice-minus-1", try_nice, .args = { -1 }, ALWAYS("EACCES EPERM") },
	{ "C10-sched-fifo", try_scheduler, .args = { SCHED_FIFO }, ALWAYS("EPERM") },
	{ "C10-sched-rr", try_scheduler, .args = { SCHED_RR }, ALWAYS("EPERM") },
	{ "C10-sched-deadline", try_deadline, ALWAYS("EPERM") },
	{ "C10-ioprio-realtime", .nr = SYS_ioprio_set, .args = { 1, 0, 1 << 13 | 4 }, ALWAYS("EPERM") },
	LIMIT("C10-raise-nofile", RLIMIT_NOFILE),
	LIMIT("C10-raise-memlock", RLIMIT_MEMLOCK),
	LIMIT("C10-raise-sigpending", RLIMIT_SIGPENDING),
	LIMIT("C10-raise-msgqueue", RLIMIT_MSGQUEUE),
	{ "C10-raise-core", try_raise_limit, .args = { RLIMIT_CORE }, FILTERED("EINVAL"), BARE("EPERM") },
	LIMIT("C10-raise-rtprio", RLIMIT_RTPRIO),
	LIMIT("C10-raise-nice", RLIMIT_NICE),
	/* Beyond a limit that is not 0, mlock() answers ENOMEM. */
	{ "C10-mlock-64m", try_mlock, .args = { 64 << 20 }, ALWAYS("ENOMEM EPERM") },
	/*
	 * Where Landlock scopes abstract names (ABI 6) the connection is refused earlier: init's socket was made
	 * outside of the sandbox's domain (security/landlock/task.c, hook_unix_stream_connect: EPERM).
	 */
	{ "C11-ping-init", try_talk_to_init, ALWAYS("closed EPERM") },
	{ "C11-garbage-to-init", try_talk_to_init, .args = { 40 }, ALWAYS("closed EPERM") },
	{ "C11-huge-packet-to-init", try_talk_to_init, .args = { 65536 }, ALWAYS("closed EPERM") },
	{ "C11-flood-init", try_flood_init, ALWAYS("closed EPERM") },
	{ "C12-squat-init-name", try_squat, ALWAYS("EADDRINUSE") },
};

const struct probe_group probes_processes = { probes, sizeof probes / sizeof probes[0] };
