/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/create.h"

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "engine/caps.h"
#include "engine/landlock.h"
#include "engine/rlimit.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1u << 1)
#endif

enum step {
	STEP_NONE, STEP_TASKS, STEP_USERNS, STEP_CGROUPNS, STEP_CLONE,
	STEP_PROC, STEP_IDS, STEP_ROOT, STEP_PROC_ATTACH, STEP_DEV, STEP_SYS, STEP_TERMINALS, STEP_MASKS,
	STEP_READ_ONLY, STEP_HOSTNAME, STEP_SESSION, STEP_RLIMITS, STEP_TIME, STEP_BOUNDING, STEP_NO_NEW_PRIVS,
	STEP_LANDLOCK, STEP_CAPS, STEP_FDS, STEP_SECCOMP, STEP_EXEC,
};

static const char *const step_names[] = {
	[STEP_NONE] = "start the sandbox's first process",
	[STEP_TASKS] = "enter the cgroups",
	[STEP_USERNS] = "enter the user namespace",
	[STEP_CGROUPNS] = "enter the cgroup namespace",
	[STEP_CLONE] = "make pid, mount, ipc and uts namespaces",
	[STEP_PROC] = "make a proc mount",
	[STEP_IDS] = "become the root of the id range",
	[STEP_ROOT] = "change to the sandbox's root",
	[STEP_PROC_ATTACH] = "mount /proc (the template's /proc must be a directory)",
	[STEP_DEV] = "mount /dev (the template's /dev must be a directory)",
	[STEP_SYS] = "mount /sys (the template's /sys must be a directory)",
	[STEP_TERMINALS] = "mount /dev/pts",
	[STEP_MASKS] = "cover parts of /proc",
	[STEP_READ_ONLY] = "make parts of /proc read-only",
	[STEP_HOSTNAME] = "set the hostname",
	[STEP_SESSION] = "start a session",
	[STEP_RLIMITS] = "set resource limits",
	[STEP_TIME] = "make a time namespace",
	[STEP_BOUNDING] = "drop the capability bounding set",
	[STEP_NO_NEW_PRIVS] = "set no_new_privs",
	[STEP_LANDLOCK] = "apply Landlock",
	[STEP_CAPS] = "drop capabilities",
	[STEP_FDS] = "arrange descriptors",
	[STEP_SECCOMP] = "load the seccomp filter",
	[STEP_EXEC] = "execute the sandbox's first program",
};

enum { STACK_SIZE = 65536, FIRST_PASSED_FD = 3 };

/* Shared with the children; we are suspended while they write. */
struct performance {
	const struct create_plan *plan;
	enum step step;                 /* the one in progress, or that failed */
	int error;
	pid_t pid;
	int pidfd;
	int proc_fd;                    /* B made it in the table that we share */
};

/* The spawner is single-threaded and creations never nest. */
static char stack_a[STACK_SIZE] __attribute__((aligned(16)));
static char stack_b[STACK_SIZE] __attribute__((aligned(16)));

/* ---- B: builds the sandbox around itself ---- */

/* A directory of the template that must really be one: a link there could lead our mounts astray. */
static int open_mount_point(int root, const char *name)
{
	return sys_openat2(root, name, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_BENEATH);
}

static int attach(int mount_fd, int root, const char *name)
{
	int point = open_mount_point(root, name), r;

	if (point < 0)
		return -1;
	r = sys_move_mount(mount_fd, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	close_fd(point);
	return r;
}

static int make_proc(void)
{
	_cleanup_close_ int fs = sys_fsopen("proc");

	if (fs < 0 || sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return sys_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

static int become_range_root(void)
{
	/* By system call: the C library would signal threads that we do not have. */
	if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0)
		return -1;
	return (int) syscall(SYS_setresuid, 0, 0, 0);
}

/* move_mount() over "/" instead of pivot_root(), which would walk every task of the host (K3). */
static int change_root(int root)
{
	if (sys_move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0 || fchdir(root) < 0 || chroot(".") < 0)
		return -1;
	return 0;
}

int create_mount_terminals(void)
{
	_cleanup_close_ int fs = sys_fsopen("devpts"), fd = -1;

	/* A new instance by itself; group 5 is tty. */
	if (fs < 0 || sys_fsconfig(fs, FSCONFIG_SET_STRING, "ptmxmode", "0666", 0) < 0 ||
	    sys_fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0620", 0) < 0 ||
	    sys_fsconfig(fs, FSCONFIG_SET_STRING, "gid", "5", 0) < 0 ||
	    sys_fsconfig(fs, FSCONFIG_SET_STRING, "max", "64", 0) < 0 ||
	    sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	fd = sys_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (fd < 0)
		return -1;
	return sys_move_mount(fd, "", AT_FDCWD, "/dev/pts", MOVE_MOUNT_F_EMPTY_PATH);
}

/* Nobody else is in this mount namespace and /proc and /dev are our own mounts by now, so plain
 * paths are safe here. */
static int cover_proc(int proc, const struct create_plan *plan)
{
	const struct proc_masks *m = plan->masks;

	for (size_t i = 0; i < m->files; i++)
		if (sys_mount("/dev/null", m->file[i], NULL, MS_BIND, NULL) < 0)
			return -1;
	for (size_t i = 0; i < m->dirs; i++)
		if (sys_move_mount(plan->empty_fds[i], "", proc, m->dir[i] + strlen("/proc/"), MOVE_MOUNT_F_EMPTY_PATH) < 0)
			return -1;
	return 0;
}

static int protect_proc(int proc, const struct proc_masks *m)
{
	struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY };

	for (size_t i = 0; i < m->read_only; i++) {
		const char *name = m->ro[i] + strlen("/proc/");
		_cleanup_close_ int tree = sys_open_tree(proc, name, OPEN_TREE_CLONE);

		if (tree < 0 || sys_mount_setattr(tree, 0, &read_only) < 0 ||
		    sys_move_mount(tree, "", proc, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
			return -1;
	}
	return 0;
}

/*
 * The program gets its descriptors as 3, 4, ... and itself at the number after them; the rest of
 * the table, which we share with the spawner until here, is left behind (K4).
 */
static int arrange_fds(const struct create_plan *plan)
{
	int program = FIRST_PASSED_FD + (int) plan->npass;

	for (size_t i = 0; i < plan->npass; i++)
		if (dup3(plan->pass[i], FIRST_PASSED_FD + (int) i, 0) < 0)
			return -1;
	if (dup3(plan->program_fd, program, O_CLOEXEC) < 0)
		return -1;
	return sys_close_range((unsigned) program + 1, ~0u, CLOSE_RANGE_UNSHARE);
}

static int fail(struct performance *p)
{
	p->error = errno;
	return 1;
}

static int build_root(struct performance *p)
{
	const struct create_plan *plan = p->plan;
	int proc = p->proc_fd;

	p->step = STEP_ROOT;
	if (change_root(plan->root_fd) < 0)
		return -1;
	p->step = STEP_PROC_ATTACH;
	if (attach(proc, plan->root_fd, "proc") < 0)
		return -1;
	p->step = STEP_DEV;
	if (attach(plan->dev_fd, plan->root_fd, "dev") < 0)
		return -1;
	p->step = STEP_SYS;
	if (plan->sys_fd >= 0 && attach(plan->sys_fd, plan->root_fd, "sys") < 0)
		return -1;
	p->step = STEP_TERMINALS;
	if (plan->terminals && create_mount_terminals() < 0)
		return -1;
	p->step = STEP_MASKS;
	if (cover_proc(proc, plan) < 0)
		return -1;
	p->step = STEP_READ_ONLY;
	return protect_proc(proc, plan->masks);
}

static int settle(struct performance *p)
{
	const struct create_plan *plan = p->plan;

	p->step = STEP_HOSTNAME;
	if (sethostname(plan->hostname, strlen(plan->hostname)) < 0)
		return -1;
	p->step = STEP_SESSION;
	if (chdir("/") < 0 || setsid() < 0)
		return -1;
	umask(022);
	p->step = STEP_RLIMITS;
	if (rlimit_apply() < 0)
		return -1;
	/* Takes effect at the exec, where the memory is no longer shared. */
	p->step = STEP_TIME;
	return plan->time_namespace ? unshare(CLONE_NEWTIME) : 0;
}

static int drop_privileges(struct performance *p)
{
	const struct create_plan *plan = p->plan;

	p->step = STEP_BOUNDING;
	if (caps_bound() < 0)
		return -1;
	p->step = STEP_NO_NEW_PRIVS;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	p->step = STEP_LANDLOCK;
	if (landlock_restrict(plan->landlock_fd) < 0)
		return -1;
	p->step = STEP_CAPS;
	if (caps_apply() < 0)
		return -1;
	p->step = STEP_FDS;
	if (arrange_fds(plan) < 0)
		return -1;
	p->step = STEP_SECCOMP;
	return plan->filter ? seccomp_load(plan->filter) : 0;
}

static int run_b(void *arg)
{
	struct performance *p = arg;
	const struct create_plan *plan = p->plan;
	sigset_t none;

	/* Needs the fully visible proc of the spawner's namespace, so before the root changes (K12). */
	p->step = STEP_PROC;
	p->proc_fd = make_proc();
	if (p->proc_fd < 0)
		return fail(p);
	p->step = STEP_IDS;
	if (become_range_root() < 0 || build_root(p) < 0 || settle(p) < 0 || drop_privileges(p) < 0)
		return fail(p);
	p->step = STEP_EXEC;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	sys_execveat(FIRST_PASSED_FD + (int) plan->npass, plan->argv, plan->envp);
	return fail(p);
}

/* ---- A: enters what B must inherit ---- */

static int run_a(void *arg)
{
	struct performance *p = arg;
	const struct create_plan *plan = p->plan;
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_PARENT | CLONE_PIDFD |
		         CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS,
		.pidfd = (uint64_t) (uintptr_t) &p->pidfd,
	};

	p->step = STEP_TASKS;
	for (size_t i = 0; i < plan->ntasks; i++)
		if (write(plan->tasks_fds[i], "0", 1) != 1)
			return fail(p);
	p->step = STEP_USERNS;
	if (setns(plan->userns_fd, CLONE_NEWUSER) < 0)
		return fail(p);
	p->step = STEP_CGROUPNS;
	if (plan->cgroupns_fd >= 0 && setns(plan->cgroupns_fd, CLONE_NEWCGROUP) < 0)
		return fail(p);
	p->step = STEP_CLONE;
	p->pid = sys_clone_call(&args, stack_b, sizeof stack_b, run_b, p);
	return p->pid < 0 ? fail(p) : 0;
}

int create_reserve_fds(int null_fd)
{
	/* Fills the lowest numbers; dup never returns one that is taken. */
	for (;;) {
		int fd = fcntl(null_fd, F_DUPFD_CLOEXEC, 0);

		if (fd < 0)
			return -1;
		if (fd > FIRST_PASSED_FD + CREATE_PASS_MAX)
			return close_fd(fd) + 1;
	}
}

/* B arranged the program's descriptors in the table that we share: cover them again, or a slot's
 * listener would live on with us. */
static void restore_fds(const struct create_plan *plan)
{
	for (int fd = FIRST_PASSED_FD; fd <= FIRST_PASSED_FD + (int) plan->npass; fd++)
		dup3(FIRST_PASSED_FD + CREATE_PASS_MAX, fd, O_CLOEXEC);
}

static int reap(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	return status;
}

/* Somebody killed A, so nothing else was reported.  B may live: the kernel has told its pidfd, and
 * it runs on our stacks, so it must be gone before the next creation. */
static void end_orphan(struct performance *p)
{
	siginfo_t info;

	p->error = EINTR;
	if (p->pidfd < 0)
		return;
	sys_pidfd_send_signal(p->pidfd, SIGKILL);
	while (waitid(P_PIDFD, (id_t) p->pidfd, &info, WEXITED | __WALL) < 0 && errno == EINTR)
		;
	p->pid = -1;
}

int create_perform(const struct create_plan *plan, pid_t *ret_pid, int *ret_pidfd, struct err *err)
{
	struct performance p = { .plan = plan, .pid = -1, .pidfd = -1, .proc_fd = -1 };
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK | CLONE_FILES | (plan->cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0),
		.cgroup = plan->cgroup_fd >= 0 ? (uint64_t) plan->cgroup_fd : 0,
	};
	pid_t a;

	a = sys_clone_call(&args, stack_a, sizeof stack_a, run_a, &p);
	if (a < 0)
		return err_sys(err, errno, "start the sandbox's first process");
	if (WIFSIGNALED(reap(a)))
		end_orphan(&p);
	restore_fds(plan);
	/* Or the proc and pid namespace of every sandbox that ever was would stay with us. */
	close_fd(p.proc_fd);
	if (!p.error) {
		*ret_pid = p.pid;
		*ret_pidfd = p.pidfd;
		return 0;
	}
	if (p.pid > 0)
		reap(p.pid);
	close_fd(p.pidfd);
	return err_sys(err, p.error, "%s", step_names[p.step]);
}

/* ---- masks ---- */

void create_find_masks(int proc_fd, struct proc_masks *ret)
{
	static const char *const covered[] = {
		"/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/timer_list", "/proc/kallsyms", "/proc/config.gz",
		"/proc/cmdline", "/proc/iomem", "/proc/ioports", "/proc/sysrq-trigger", "/proc/kmsg", "/proc/acpi",
		"/proc/asound", "/proc/scsi", "/proc/latency_stats", "/proc/sched_debug",
	};
	static const char *const read_only[] = { "/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs" };
	struct stat st;

	memset(ret, 0, sizeof *ret);
	for (size_t i = 0; i < ARRAY_SIZE(covered); i++) {
		if (fstatat(proc_fd, covered[i] + strlen("/proc/"), &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (!S_ISDIR(st.st_mode))
			ret->file[ret->files++] = covered[i];
		else if (ret->dirs < CREATE_DIRS_MAX)
			ret->dir[ret->dirs++] = covered[i];
	}
	for (size_t i = 0; i < ARRAY_SIZE(read_only); i++)
		if (fstatat(proc_fd, read_only[i] + strlen("/proc/"), &st, AT_SYMLINK_NOFOLLOW) == 0)
			ret->ro[ret->read_only++] = read_only[i];
}
