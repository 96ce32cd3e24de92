/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes as much of one resource as it gets, for test_bombs.py.
 *
 *	bomb KIND [ARGUMENT]
 *
 * Prints "KIND COUNT ERROR" and exits with 1 once the kernel refuses more.  Some kinds are
 * meant never to get there: they end by a limit on memory or time.
 */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static const char *kind;
static char block[MIB];

static int refused(unsigned long long count)
{
	printf("%s %llu %s\n", kind, count, strerror(errno));
	return 1;
}

/* ---- memory ---- */

static int heap(const char *arg)
{
	unsigned long long n = 0;

	(void) arg;
	for (char *p; (p = malloc(MIB)); n++)
		memset(p, 1, MIB);
	return refused(n);
}

static int fill(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	unsigned long long n = 0;

	while (fd >= 0 && write(fd, block, sizeof block) > 0)
		n++;
	return refused(n);
}

static int memfd(const char *arg)
{
	int fd = (int) syscall(SYS_memfd_create, "bomb", 0);
	unsigned long long n = 0;

	(void) arg;
	while (fd >= 0 && write(fd, block, sizeof block) > 0)
		n++;
	return refused(n);
}

static int pipes(const char *arg)
{
	unsigned long long n = 0;
	int p[2];

	(void) arg;
	for (; pipe(p) == 0; n++) {
		fcntl(p[1], F_SETPIPE_SZ, MIB);
		fcntl(p[1], F_SETFL, O_NONBLOCK);
		while (write(p[1], block, 65536) > 0)
			;
	}
	return refused(n);
}

static int sockets(const char *arg)
{
	unsigned long long n = 0;
	int p[2], size = 64 * MIB;

	(void) arg;
	for (; socketpair(AF_UNIX, SOCK_STREAM, 0, p) == 0; n++) {
		setsockopt(p[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
		fcntl(p[0], F_SETFL, O_NONBLOCK);
		while (write(p[0], block, 65536) > 0)
			;
	}
	return refused(n);
}

/* Reading maps the one zero page again and again: only page tables grow, 4 KiB for 2 MiB of addresses. */
static int pagetables(const char *arg)
{
	const size_t step = 2 * MIB, window = 1ul << 40;
	unsigned long long n = 0;
	volatile char *p;

	(void) arg;
	while ((p = mmap(NULL, window, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) != MAP_FAILED) {
		madvise((void *) (uintptr_t) p, window, MADV_NOHUGEPAGE);
		for (size_t at = 0; at < window; at += step, n++)
			(void) p[at];
	}
	return refused(n);
}

/* Names that do not exist are remembered too. */
static int dentries(const char *arg)
{
	char name[256];
	struct stat st;

	(void) arg;
	memset(name, 'x', sizeof name - 1);
	for (unsigned long long n = 0;; n++) {
		snprintf(name, 21, "%020llu", n);
		name[20] = 'x';
		name[255] = '\0';
		stat(name, &st);
	}
}

static int sysv_shm(const char *arg)
{
	unsigned long long n = 0;
	int id;

	(void) arg;
	for (; (id = shmget(IPC_PRIVATE, MIB, 0600)) >= 0; n++) {
		void *p = shmat(id, NULL, 0);

		if (p == (void *) -1)
			break;
		memset(p, 1, MIB);
		shmdt(p);
	}
	return refused(n);
}

static int sysv_messages(const char *arg)
{
	static struct { long type; char text[8192]; } message = { .type = 1 };
	unsigned long long n = 0;
	int id;

	(void) arg;
	while ((id = msgget(IPC_PRIVATE, 0600)) >= 0)
		while (msgsnd(id, &message, sizeof message.text, IPC_NOWAIT) == 0)
			n++;
	return refused(n);
}

/* Every second byte, so that no two locks merge. */
static int locks(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	unsigned long long n = 0;

	for (; fcntl(fd, F_SETLK, &l) == 0; n++)
		l.l_start = (off_t) (2 * n + 2);
	return refused(n);
}

static int mappings(const char *arg)
{
	unsigned long long n = 0;

	(void) arg;
	/* Alternating protections keep neighbours from merging. */
	while (mmap(NULL, 4096, n % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		n++;
	return refused(n);
}

/* ---- processes ---- */

static int forks(const char *arg)
{
	(void) arg;
	for (;;)
		fork();
}

static void *sleep_on(void *arg)
{
	pause();
	return arg;
}

static int threads(const char *arg)
{
	unsigned long long n = 0;
	pthread_attr_t attr;
	pthread_t t;

	(void) arg;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16384);
	while ((errno = pthread_create(&t, &attr, sleep_on, NULL)) == 0)
		n++;
	return refused(n);
}

static int spin(const char *arg)
{
	for (int n = atoi(arg); n > 1 && fork() > 0; n--)
		;
	for (;;)
		;
}

/* ---- files ---- */

static int inodes(const char *arg)
{
	unsigned long long n = 0;
	char name[24];
	int fd;

	(void) arg;
	for (;; n++) {
		snprintf(name, sizeof name, "f%llu", n);
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (fd < 0)
			return refused(n);
		close(fd);
	}
}

static int deep(const char *arg)
{
	unsigned long long n = 0, most = strtoull(arg, NULL, 10);

	for (; n < most; n++)
		if (mkdir("d", 0700) < 0 || chdir("d") < 0)
			return refused(n);
	errno = 0;
	refused(n);
	return 0;
}

/* A file of 2^60 bytes, of which 1 MiB in each GiB is wanted. */
static int huge_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	unsigned long long n = 0;

	if (ftruncate(fd, 1ll << 60) < 0 && errno != EFBIG)
		return refused(n);
	while (pwrite(fd, block, sizeof block, (off_t) (n << 30)) > 0)
		n++;
	return refused(n);
}

static int fds(const char *arg)
{
	unsigned long long n = 0;

	(void) arg;
	while (dup(0) >= 0)
		n++;
	return refused(n);
}

/* ---- kernel objects ---- */

static int inotify(const char *arg)
{
	unsigned long long n = 0;

	(void) arg;
	while (inotify_init() >= 0)
		n++;
	return refused(n);
}

static int watches(const char *arg)
{
	unsigned long long n = 0;
	char name[24];
	int fd = inotify_init();

	(void) arg;
	for (;; n++) {
		snprintf(name, sizeof name, "w%llu", n);
		if (mkdir(name, 0700) < 0 || inotify_add_watch(fd, name, IN_ALL_EVENTS) < 0)
			return refused(n);
	}
}

static int timers(const char *arg)
{
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	unsigned long long n = 0;
	timer_t t;

	(void) arg;
	while (timer_create(CLOCK_MONOTONIC, &event, &t) == 0)
		n++;
	return refused(n);
}

static int signals(const char *arg)
{
	unsigned long long n = 0;
	sigset_t set;

	(void) arg;
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (sigqueue(getpid(), SIGRTMIN, (union sigval) { .sival_int = 1 }) == 0)
		n++;
	return refused(n);
}

static int mqueues(const char *arg)
{
	struct mq_attr attr = { .mq_maxmsg = 10, .mq_msgsize = 8192 };
	unsigned long long n = 0;
	char name[24];

	(void) arg;
	for (;; n++) {
		snprintf(name, sizeof name, "/q%llu", n);
		if (mq_open(name, O_CREAT | O_RDWR, 0600, &attr) < 0)
			return refused(n);
	}
}

static int ptys(const char *arg)
{
	unsigned long long n = 0;

	(void) arg;
	while (open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
		n++;
	return refused(n);
}

/* ---- sockets that are there when the sandbox ends ---- */

static int listeners(const char *arg)
{
	struct sockaddr_un path = { .sun_family = AF_UNIX, .sun_path = "/tmp/socket" };
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0name" };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = 0x5b1b };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = 0x5c1b };
	const struct { const void *addr; socklen_t len; } all[] = {
		{ &path, sizeof path }, { &name, sizeof name }, { &in, sizeof in }, { &in6, sizeof in6 },
	};

	(void) arg;
	for (size_t i = 0; i < 2 * sizeof all / sizeof *all; i++) {
		int type = i % 2 ? SOCK_DGRAM : SOCK_STREAM;
		int fd = socket(((const struct sockaddr *) all[i / 2].addr)->sa_family, type, 0);

		/* The names of unix sockets are common to all their types. */
		if (bind(fd, all[i / 2].addr, all[i / 2].len) < 0 && errno != EADDRINUSE)
			return refused(i);
		if (type == SOCK_STREAM && listen(fd, 5) < 0)
			return refused(i);
	}
	pause();
	return 0;
}

/* ---- output ---- */

static int flood(const char *arg)
{
	(void) arg;
	memset(block, 'y', sizeof block);
	for (;;)
		if (write(1, block, sizeof block) < 0)
			return 1;
}

static const struct {
	const char *name;
	int (*run)(const char *arg);
	const char *arg;
} kinds[] = {
	{ "dentries", dentries, "" },
	{ "deep", deep, "100000" },
	{ "fds", fds, "" },
	{ "fill", fill, "big" },
	{ "flood", flood, "" },
	{ "forks", forks, "" },
	{ "heap", heap, "" },
	{ "huge-file", huge_file, "huge" },
	{ "inodes", inodes, "" },
	{ "inotify", inotify, "" },
	{ "listeners", listeners, "" },
	{ "locks", locks, "locked" },
	{ "mappings", mappings, "" },
	{ "memfd", memfd, "" },
	{ "mqueues", mqueues, "" },
	{ "pagetables", pagetables, "" },
	{ "pipes", pipes, "" },
	{ "ptys", ptys, "" },
	{ "shm", sysv_shm, "" },
	{ "signals", signals, "" },
	{ "sockets", sockets, "" },
	{ "spin", spin, "4" },
	{ "sysv-messages", sysv_messages, "" },
	{ "threads", threads, "" },
	{ "timers", timers, "" },
	{ "watches", watches, "" },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof kinds / sizeof *kinds; i++) {
		if (strcmp(kinds[i].name, argv[1]))
			continue;
		kind = kinds[i].name;
		return kinds[i].run(argc > 2 ? argv[2] : kinds[i].arg);
	}
	fputs("usage: bomb KIND [ARGUMENT]\n", stderr);
	return 2;
}
