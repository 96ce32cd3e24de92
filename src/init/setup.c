/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first things init does, in an order that matters:
 * descriptors 0 to 2 before anything else is opened (whatever is missing would
 * be taken by the next open), everything close-on-exec, no core or ptrace
 * access for the sandbox, and signals as data.
 */
#include "init/setup.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include "base/str.h"

struct setup setup = { .cgroup_fd = -1, .frozen_fd = -1, .oom_fd = -1 };

static bool is_null_device(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

/*
 * Commands without stdin inherit descriptor 0, so it must be the null device
 * and nothing else; 1 and 2 only have to be open.
 */
static int open_stdio(struct err *err)
{
	for (int fd = 0; fd <= 2; fd++) {
		int null;

		if (fd == 0 ? is_null_device(fd) : fcntl(fd, F_GETFD) >= 0)
			continue;
		null = open("/dev/null", O_RDWR);
		if (null < 0)
			return err_sys(err, errno, "open /dev/null");
		if (null != fd) {
			if (dup2(null, fd) < 0)
				return err_sys(err, errno, "make descriptor %d", fd);
			close(null);
		}
	}
	return 0;
}

static int take_descriptors(const char *digits, struct err *err)
{
	if (!digits || strlen(digits) != 2 || digits[0] < '0' || digits[0] > '2' ||
	    digits[1] < '0' || digits[1] > '0' + INIT_FD_TASKS_MAX)
		return err_set(err, ERR_INVALID, "usage: cuvette-init CT [NOFILE] (cuvette-spawner does this)");
	if (syscall(SYS_close_range, 3, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */) < 0)
		return err_sys(err, errno, "close_range");
	if (fcntl(INIT_FD_LISTEN, F_SETFL, O_RDWR | O_NONBLOCK) < 0)
		return err_sys(err, errno, "listening socket");
	if (digits[0] != '0')
		/* Not there in the root of a hierarchy, which cannot be frozen either. */
		setup.frozen_fd = openat(INIT_FD_CGROUP, "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (digits[0] == '1')
		setup.cgroup_fd = INIT_FD_CGROUP;
	setup.ntasks = (size_t) (digits[1] - '0');
	for (size_t i = 0; i < setup.ntasks; i++)
		setup.tasks_fds[i] = INIT_FD_TASKS + (int) i;
	return 0;
}

/*
 * Ignored signals stay ignored across exec; nothing that the spawner or its callers ignore is a
 * command's business.  By system call: some C libraries' own two real-time signals arrive ignored
 * from a posix_spawn() of theirs, and the function here refuses to touch those.
 */
static void reset_signals(void)
{
	static const struct { uint64_t handler, flags, restorer, mask; } by_default;
	sigset_t all;

	for (int sig = 1; sig <= 34; sig++)
		syscall(SYS_rt_sigaction, sig, &by_default, NULL, sizeof by_default.mask);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

/* Our program can't be read by anybody here, so /proc/self is the host's unless we say otherwise. */
static void open_oom_score(void)
{
	ssize_t n;

	prctl(PR_SET_DUMPABLE, 1);      /* nobody else is in this pid namespace yet */
	setup.oom_fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	prctl(PR_SET_DUMPABLE, 0);
	if (setup.oom_fd < 0)
		return;
	n = pread(setup.oom_fd, setup.oom_score, sizeof setup.oom_score - 1, 0);
	setup.oom_score[n > 0 ? n : 0] = '\0';
}

/* select(2) handles no more, so this is the soft limit that programs expect. */
enum { NOFILE_SOFT = 1024 };

static int set_nofile(const char *text, struct err *err)
{
	struct rlimit all;
	uint64_t hard;

	if (getrlimit(RLIMIT_NOFILE, &setup.nofile) < 0)
		return err_sys(err, errno, "limit of open files");
	all = setup.nofile;
	if (text) {
		if (parse_u64(text, 3, UINT32_MAX, &hard, err) < 0)
			return err_wrap(err, "limit of open files");
		setup.nofile.rlim_max = MIN((rlim_t) hard, all.rlim_max);
		setup.nofile.rlim_cur = MIN(setup.nofile.rlim_max, (rlim_t) NOFILE_SOFT);
	}
	all.rlim_cur = all.rlim_max;
	setrlimit(RLIMIT_NOFILE, &all);
	return 0;
}

/*
 * Commands are born into their cgroup by clone3, which the sandbox's filter
 * therefore has to leave to init.  Since its arguments are out of a filter's
 * sight, commands must not have it: see child.c.
 */
static void look_at_clone3(void)
{
	bool usable = syscall(SYS_clone3, NULL, 0) < 0 && errno != ENOSYS;

	setup.hide_clone3 = usable && prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER;
}

int setup_process(const char *digits, const char *nofile, struct err *err)
{
	if (open_stdio(err) < 0 || take_descriptors(digits, err) < 0)
		return -1;
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return err_sys(err, errno, "become undumpable");
	/* File operations switch the fsuid and rely on the kernel to drop and return capabilities with it. */
	if (prctl(PR_GET_SECUREBITS) & SECBIT_NO_SETUID_FIXUP)
		return err_set(err, ERR_PRECONDITION, "started with NO_SETUID_FIXUP");
	reset_signals();
	open_oom_score();
	look_at_clone3();
	if (set_nofile(nofile, err) < 0)
		return -1;
	umask(0);
	if (chdir("/") < 0)
		return err_sys(err, errno, "enter /");
	return 0;
}
