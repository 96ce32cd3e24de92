/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of the kernel that need no file system: namespaces, filters, newer system calls. */
#include "engine/features-internal.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fd.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* ---- namespaces ---- */

/* Root makes one directly; everybody else needs a user namespace around it. */
static int try_unshare(void *arg)
{
	int flag = *(int *) arg;

	if (unshare(flag) == 0 || (errno == EPERM && geteuid() != 0 && unshare(CLONE_NEWUSER | flag) == 0))
		return 0;
	return errno;
}

static void check_namespace(const struct probe *p, const struct check *c, struct layer *l, int flag)
{
	say_result(p, c, l, try_in_child(try_unshare, &flag), "yes");
}

void check_pidns(const struct probe *p, const struct check *c, struct layer *l)
{
	check_namespace(p, c, l, CLONE_NEWPID);
}

void check_mntns(const struct probe *p, const struct check *c, struct layer *l)
{
	check_namespace(p, c, l, CLONE_NEWNS);
}

void check_netns(const struct probe *p, const struct check *c, struct layer *l)
{
	check_namespace(p, c, l, CLONE_NEWNET);
}

void check_ipcns(const struct probe *p, const struct check *c, struct layer *l)
{
	check_namespace(p, c, l, CLONE_NEWIPC);
}

void check_utsns(const struct probe *p, const struct check *c, struct layer *l)
{
	check_namespace(p, c, l, CLONE_NEWUTS);
}

void check_cgroupns(const struct probe *p, const struct check *c, struct layer *l)
{
	check_namespace(p, c, l, CLONE_NEWCGROUP);
}

void check_timens(const struct probe *p, const struct check *c, struct layer *l)
{
	check_namespace(p, c, l, CLONE_NEWTIME);
}

static bool write_map(pid_t pid, const char *file, uint32_t base, uint32_t count)
{
	char path[64], text[64];

	snprintf(path, sizeof path, "/proc/%d/%s", (int) pid, file);
	snprintf(text, sizeof text, "0 %u %u", base, count);
	return write_file_at(AT_FDCWD, path, text, NULL) == 0;
}

/* The child's part: one byte says that the namespace is there, or the errno of why not. */
static _noreturn_ void hold_userns(int report)
{
	unsigned char answer = unshare(CLONE_NEWUSER) < 0 ? (unsigned char) errno : 0;

	alarm(10);
	if (write(report, &answer, 1) == 1)
		for (;;)
			pause();
	_exit(1);
}

int make_userns(uint32_t base, uint32_t count)
{
	unsigned char answer = EIO;
	int ends[2], fd = -1, saved;
	char path[64];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (!pid)
		hold_userns(ends[1]);
	close(ends[1]);
	if (pid < 0 || read_full(ends[0], &answer, 1) != 1 || answer) {
		errno = pid < 0 ? errno : answer;
	} else if (write_map(pid, "uid_map", base, count) && write_map(pid, "gid_map", base, count)) {
		snprintf(path, sizeof path, "/proc/%d/ns/user", (int) pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	saved = errno;
	close(ends[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	errno = saved;
	return fd;
}

void check_userns(const struct probe *p, const struct check *c, struct layer *l)
{
	int flag = CLONE_NEWUSER, sys;

	if (host_number("/proc/sys/user/max_user_namespaces") == 0) {
		say_missing(c, l, "sysctl -w user.max_user_namespaces=15000", "switched off by user.max_user_namespaces");
		return;
	}
	sys = try_in_child(try_unshare, &flag);
	if (sys)
		say_blocked(p, c, l, sys);
	else if (p->userns_fd < 0)
		say_missing(c, l, "run as root", "only one id can be mapped, not a range of 65,536");
	else
		say_present(l, "yes, with a range of ids for each sandbox");
}

/* ---- filters ---- */

static int try_no_new_privs(void *arg)
{
	(void) arg;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : EIO;
}

void check_no_new_privs(const struct probe *p, const struct check *c, struct layer *l)
{
	say_result(p, c, l, try_in_child(try_no_new_privs, NULL), "yes");
}

/* Loads a filter that refuses getppid(), and sees it refused. */
static int try_seccomp(void *arg)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(code), code };

	(void) arg;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return errno;
	return syscall(SYS_getppid) < 0 && errno == EXDEV ? 0 : EIO;
}

void check_seccomp(const struct probe *p, const struct check *c, struct layer *l)
{
	say_result(p, c, l, try_in_child(try_seccomp, NULL), "yes");
}

/* An empty rule set that handles making files refuses every new file from then on. */
static int try_landlock(void *arg)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_REG };
	int fd = (int) syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);

	(void) arg;
	if (fd < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return errno;
	if (open("/tmp/cuvette-landlock-probe", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) < 0)
		return 0;
	unlink("/tmp/cuvette-landlock-probe");
	return EIO;
}

void check_landlock(const struct probe *p, const struct check *c, struct layer *l)
{
	int abi = (int) syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	int sys = abi < 0 ? errno : try_in_child(try_landlock, NULL);

	if (sys == EOPNOTSUPP)
		say_missing(c, l, "boot with lsm=landlock,... on the kernel's command line", "switched off at boot");
	else if (sys)
		say_blocked(p, c, l, sys);
	else if (abi < 6)
		say_degraded(l, "boot Linux 6.12 or newer",
		             "Landlock ABI %d: abstract sockets and signals are not scoped", abi);
	else
		say_present(l, "Landlock ABI %d", abi);
}

/* ---- system calls ---- */

static int try_close_range(void *arg)
{
	int fd = dup(0) < 0 ? open("/", O_PATH | O_CLOEXEC) : dup(0);

	(void) arg;
	if (syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_UNSHARE) < 0)
		return errno;
	return fd < 3 || fcntl(fd, F_GETFD) < 0 ? 0 : EIO;
}

void check_close_range(const struct probe *p, const struct check *c, struct layer *l)
{
	say_result(p, c, l, try_in_child(try_close_range, NULL), "yes");
}

/* Must stay below its root, even by a path that climbs. */
static int try_openat2(void *arg)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	int dir = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void) arg;
	return syscall(SYS_openat2, dir, "../../self", &how, sizeof how) < 0 ? errno : 0;
}

void check_openat2(const struct probe *p, const struct check *c, struct layer *l)
{
	say_result(p, c, l, try_in_child(try_openat2, NULL), "yes");
}

/* Opens a child, sends it a signal and sees its end. */
static int try_pidfd(void *arg)
{
	struct pollfd end = { .events = POLLIN };
	int sys = 0;
	pid_t pid = fork();

	(void) arg;
	if (!pid)
		for (;;)
			pause();
	end.fd = (int) syscall(SYS_pidfd_open, pid, 0);
	if (end.fd < 0 || syscall(SYS_pidfd_send_signal, end.fd, SIGKILL, NULL, 0) < 0) {
		sys = errno;
		kill(pid, SIGKILL);
	} else if (poll(&end, 1, 5000) != 1) {
		sys = ETIMEDOUT;
	}
	waitpid(pid, NULL, 0);
	return sys;
}

void check_pidfd(const struct probe *p, const struct check *c, struct layer *l)
{
	say_result(p, c, l, try_in_child(try_pidfd, NULL), "yes");
}
