/* SPDX-License-Identifier: Apache-2.0 */
/*
 * E03, E04, E09: limits of one process, each tried just beyond where it must stop.
 *
 * Nothing here lasts: the child that fills a table ends at once.  The real
 * bombs (E01, E02, E05, E06) need a watcher outside and are tests of their own.
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- one more of each ---- */

static long one_more_fd(void)
{
	return dup(0);
}

static long one_more_inotify(void)
{
	return inotify_init1(IN_CLOEXEC);
}

static long one_more_timer(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	int id;

	return syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id);
}

/* Real-time signals queue; this one is blocked, so they stay. */
static long one_more_signal(void)
{
	static bool blocked;

	if (!blocked) {
		sigset_t set;

		sigemptyset(&set);
		sigaddset(&set, SIGRTMIN + 1);
		sigprocmask(SIG_BLOCK, &set, NULL);
		blocked = true;
	}
	return sigqueue(getpid(), SIGRTMIN + 1, (union sigval) { 0 });
}

static long one_more_queue(void)
{
	static unsigned n;
	char name[64];
	long r;

	snprintf(name, sizeof name, "cuvette-probe-%d-%u", getpid(), n++);
	r = syscall(SYS_mq_open, name, O_RDWR | O_CREAT | O_EXCL, 0600, NULL);
	if (r >= 0)
		syscall(SYS_mq_unlink, name);   /* gone with the last descriptor */
	return r;
}

/* Neighbours that differ in protection do not merge into one mapping. */
static long one_more_mapping(void)
{
	static bool odd;

	odd = !odd;
	return mmap(NULL, 4096, odd ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
}

static long one_more_terminal(void)
{
	/* Not posix_openpt(): musl's turns ENOSPC into EAGAIN. */
	return open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
}

/* Until it is refused; args[0] is where it must have been. */
static long fill(const struct probe *p)
{
	long (*one_more)(void) = (long (*)(void)) p->args[1];

	for (long n = 0; n < p->args[0]; n++)
		if (one_more() < 0)
			return -1;
	return observe("no end after %ld", p->args[0]);
}

/* ---- observations ---- */

static long see_hard_limit(const struct probe *p)
{
	struct rlimit limit;

	if (getrlimit((int) p->args[0], &limit) < 0)
		return -1;
	if (limit.rlim_max <= (rlim_t) p->args[1])
		return observe("bounded");
	return limit.rlim_max == RLIM_INFINITY ? observe("unlimited") : observe("%llu", (unsigned long long) limit.rlim_max);
}

static long try_allocate(const struct probe *p)
{
	char path[64];
	int fd, saved;
	long r;

	snprintf(path, sizeof path, "/tmp/probe-big-%d", getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	r = syscall(SYS_fallocate, fd, 0, 0L, p->args[0]);
	saved = errno;
	unlink(path);
	errno = saved;
	return r;
}

/* ---- the table ---- */

#define FILL(probe_name, most, what, want) { probe_name, fill, .args = { most, (long) (what) }, ALWAYS(want) }
#define HARD(probe_name, resource, most)   { probe_name, see_hard_limit, .args = { resource, most }, ALWAYS("bounded") }

static const struct probe probes[] = {
	{ "E03-file-of-2^60-bytes", try_allocate, .args = { 1L << 60 }, ALWAYS("ENOSPC EFBIG") },
	FILL("E04-descriptors", 1 << 16, one_more_fd, "EMFILE"),
	FILL("E04-inotify-instances", 1 << 16, one_more_inotify, "EMFILE"),
	FILL("E04-timers", 8192, one_more_timer, "EAGAIN"),
	FILL("E04-queued-signals", 8192, one_more_signal, "EAGAIN"),
	/* ENOSPC is the namespace's queues_max, EMFILE the user's RLIMIT_MSGQUEUE. */
	FILL("E04-posix-queues", 4096, one_more_queue, "EMFILE ENOSPC ENOMEM"),
	FILL("E04-mappings", 1 << 20, one_more_mapping, "ENOMEM"),
	HARD("E04-limit-nofile", RLIMIT_NOFILE, 4096),
	HARD("E04-limit-memlock", RLIMIT_MEMLOCK, 8 << 20),
	HARD("E04-limit-msgqueue", RLIMIT_MSGQUEUE, 800 << 10),
	HARD("E04-limit-sigpending", RLIMIT_SIGPENDING, 4096),
	HARD("E04-limit-core", RLIMIT_CORE, 1),
	HARD("E04-limit-rtprio", RLIMIT_RTPRIO, 0),
	HARD("E04-limit-nice", RLIMIT_NICE, 0),
	/* Without a terminal asked for there is no devpts at all; with one it ends at max=64. */
	FILL("E09-terminals", 80, one_more_terminal, "ENOENT ENOSPC"),
};

const struct probe_group probes_resources = { probes, sizeof probes / sizeof probes[0] };
