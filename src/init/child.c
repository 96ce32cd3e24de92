/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between clone and exec.
 *
 * The child runs in init's memory on a stack of its own while init waits for
 * it.  It does nothing but system calls on prepared arguments: no
 * allocation, no stdio, no libc function that keeps state (setuid() of a libc
 * signals other threads; the raw call does not), and it never returns.  Its
 * calls are in one order, in run_child().
 */
#include "init/child.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include "init/scratch.h"
#include "init/setup.h"

/* The sanitizers would look for the bounds of a stack that they do not know. */
#define _child_code_ __attribute__((no_sanitize("address", "undefined")))

/* Of waiting for a child that is stopped again and again: what stops it may be as quick as we are, so
 * after the first look the next ones come soon.  Ten seconds in all. */
enum { FIRST_LOOK_NS = 20000000, NEXT_LOOK_NS = 500000, TRIES_MAX = 20000 };

/* The child calls fn(fn_arg) on the new stack; `tid` is the fourth argument of clone. */
long clone_onto_stack(long nr, long arg1, long arg2, long tid, void (*fn)(void *), void *arg);

/* A system call that leaves errno alone; a failure is a negative number. */
static long raw_call(long nr, long arg1, long arg2, long arg3, long arg4)
{
	register long fourth __asm__("r10") = arg4;
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "0"(nr), "D"(arg1), "S"(arg2), "d"(arg3), "r"(fourth)
	                 : "rcx", "r11", "memory");
	return result;
}

#if defined __x86_64__
__asm__(
	".pushsection .text\n"
	".globl clone_onto_stack\n"
	".type clone_onto_stack, @function\n"
	"clone_onto_stack:\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rsi\n"
	"	mov %rcx, %r10\n"       /* the system call overwrites rcx and r11 only */
	"	syscall\n"
	"	test %rax, %rax\n"
	"	jz 1f\n"
	"	ret\n"
	"1:	xor %ebp, %ebp\n"
	"	mov %r9, %rdi\n"
	"	call *%r8\n"
	"	hlt\n"
	".size clone_onto_stack, . - clone_onto_stack\n"
	".popsection\n");
#else
#error "clone_onto_stack() is written per architecture"
#endif

/*
 * Init goes on as soon as this process lets go of its memory, which is before it
 * lets go of its descriptors.  While copies of init's live, what init closes
 * stays in its epoll set, so they go first.
 */
static _noreturn_ _child_code_ void fail(struct launch *l, enum init_step step, int sys)
{
	l->step = step;
	l->sys = sys ? sys : EIO;
	syscall(SYS_close_range, 3, ~0U, 0);
	for (;;)
		syscall(SYS_exit, 127);
}

static _child_code_ void enter_cgroups(struct launch *l)
{
	/* "0" is "me": the one way into a v1 group that does not wait for an RCU grace period. */
	for (size_t i = 0; i < setup.ntasks; i++)
		if (syscall(SYS_write, setup.tasks_fds[i], "0", 1) != 1)
			fail(l, INIT_STEP_CGROUP, errno);
	if (l->move_to_cgroup) {
		long fd = syscall(SYS_openat, l->cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC, 0);

		if (fd < 0 || syscall(SYS_write, fd, "0", 1) != 1)
			fail(l, INIT_STEP_CGROUP, errno);
	}
}

static _child_code_ void set_signals(void)
{
	uint64_t none = 0;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
}

static _child_code_ void set_stdio(struct launch *l)
{
	for (int fd = 0; fd < 3; fd++)
		if (syscall(SYS_dup2, l->stdio[fd] < 0 ? 0 : l->stdio[fd], fd) < 0)
			fail(l, INIT_STEP_PIPES, errno);
}

static _child_code_ void set_session(struct launch *l)
{
	if (syscall(SYS_setsid) < 0)
		fail(l, INIT_STEP_FORK, errno);
	if (l->terminal && syscall(SYS_ioctl, 0, TIOCSCTTY, 0) < 0)
		fail(l, INIT_STEP_PIPES, errno);
}

/* Root keeps the bounding set of the sandbox; everybody else has no capability in any set. */
static _child_code_ void become_user(struct launch *l)
{
	const struct user *user = l->user;
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };

	if (syscall(SYS_setgroups, user->ngroups, user->groups) < 0 ||
	    syscall(SYS_setresgid, user->gid, user->gid, user->gid) < 0 ||
	    syscall(SYS_setresuid, user->uid, user->uid, user->uid) < 0)
		fail(l, INIT_STEP_USER, errno);
	if (user->uid && syscall(SYS_capset, &header, none) < 0)
		fail(l, INIT_STEP_USER, errno);
}

/*
 * A second filter of four instructions on top of the sandbox's: clone3 does not
 * exist, so that libc falls back to clone, whose flags the first filter sees.
 */
static _child_code_ void hide_clone3(struct launch *l)
{
	static const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(code), (struct sock_filter *) (uintptr_t) code };

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		fail(l, INIT_STEP_USER, errno);
}

static _child_code_ void enter_cwd(struct launch *l)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd = -1;

	for (int tries = 0; tries < 64 && fd < 0; tries++) {
		fd = syscall(SYS_openat2, AT_FDCWD, l->cwd, &how, sizeof how);
		if (fd < 0 && errno != EAGAIN)
			break;
	}
	/* Where there is no home the command starts in /, where init already is. */
	if (fd < 0 && l->cwd_optional)
		return;
	if (fd < 0 || syscall(SYS_fchdir, fd) < 0)
		fail(l, INIT_STEP_CWD, errno);
}

/* What can be known about a program that did not start, seen with the user's own eyes. */
static _child_code_ void look_at_program(struct launch *l)
{
	struct stat st;
	long fd, n;

	if (syscall(SYS_newfstatat, AT_FDCWD, scratch.found, &st, 0) < 0)
		return;
	l->found = true;
	l->is_directory = S_ISDIR(st.st_mode);
	if (!S_ISREG(st.st_mode))
		return;
	fd = syscall(SYS_openat, AT_FDCWD, scratch.found, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	n = syscall(SYS_read, fd, scratch.head, sizeof scratch.head - 1);
	l->head_len = n > 0 ? (size_t) n : 0;
}

/* Writes DIR/NAME into scratch.found; false when it is too long for any file system. */
static _child_code_ bool join(const char *dir, size_t dir_len, const char *name)
{
	size_t name_len = strlen(name), at = 0;

	if (dir_len + name_len + 2 > sizeof scratch.found)
		return false;
	memcpy(scratch.found, dir, dir_len);
	at = dir_len;
	if (dir_len)
		scratch.found[at++] = '/';
	memcpy(scratch.found + at, name, name_len + 1);
	return true;
}

/* The rules of execvp(): what means "not here" goes on, a file that may not be run is remembered. */
static _child_code_ int search_and_exec(struct launch *l)
{
	const char *name = l->argv[0], *dir = l->search, *end, *refused = NULL;
	size_t refused_len = 0;

	for (;; dir = end + 1) {
		for (end = dir; *end && *end != ':'; end++)
			;
		if (join(dir, (size_t) (end - dir), name)) {
			syscall(SYS_execve, scratch.found, l->argv, l->env);
			if (errno == EACCES) {
				refused = dir;
				refused_len = (size_t) (end - dir);
			} else if (errno != ENOENT && errno != ENOTDIR && errno != ENODEV && errno != ESTALE &&
			         errno != ETIMEDOUT) {
				return errno;
			} else if (errno == ENOENT && syscall(SYS_faccessat, AT_FDCWD, scratch.found, X_OK) == 0) {
				return ENOENT;  /* it is there: what is missing is its interpreter */
			}
		}
		if (!*end)
			break;
	}
	return refused && join(refused, refused_len, name) ? EACCES : ENOENT;
}

static _noreturn_ _child_code_ void exec_program(struct launch *l)
{
	const char *name = l->argv[0];
	int sys;

	if (!name[0]) {
		sys = ENOENT;
		scratch.found[0] = '\0';
	} else if (strchr(name, '/')) {
		if (!join("", 0, name))
			fail(l, INIT_STEP_EXEC, ENAMETOOLONG);
		syscall(SYS_execve, scratch.found, l->argv, l->env);
		sys = errno;
	} else {
		sys = search_and_exec(l);
	}
	if (sys == ENOENT || sys == EACCES || sys == ENOEXEC)
		look_at_program(l);
	fail(l, INIT_STEP_EXEC, sys);
}

static _noreturn_ _child_code_ void run_child(void *arg)
{
	struct launch *l = arg;

	enter_cgroups(l);       /* first: everything after is the command's own cost */
	set_signals();
	set_stdio(l);
	set_session(l);
	syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &setup.nofile, NULL);
	become_user(l);
	if (setup.hide_clone3)
		hide_clone3(l);
	syscall(SYS_umask, 022);
	enter_cwd(l);
	syscall(SYS_close_range, 3, ~0U, 0);
	exec_program(l);
}

/*
 * The child inherits the OOM score, so init wears the command's for as long as
 * the clone takes: two writes to an open file instead of an open, a write and a
 * close of the child's own.
 */
static void wear_oom_score(const char *score)
{
	if (setup.oom_fd >= 0)
		(void) !pwrite(setup.oom_fd, score, strlen(score), 0);
}

/*
 * Waits until the child has left our memory, by exec or by its end: the kernel then clears `busy`.
 * Not by CLONE_VFORK, which waits for ever: what runs as the command's user, and be it with kill(-1),
 * can stop the child before its exec.  It is sent on its way again, and given up when that does not
 * help.  The child's errno is ours, so these calls must not be libc's.
 */
static void wait_for_child(const int *busy, pid_t pid)
{
	struct timespec patience = { .tv_nsec = FIRST_LOOK_NS };

	for (int tries = 0; __atomic_load_n(busy, __ATOMIC_ACQUIRE); tries++) {
		if (raw_call(SYS_futex, (long) busy, FUTEX_WAIT, 1, (long) &patience) == -ETIMEDOUT)
			raw_call(SYS_kill, pid, tries < TRIES_MAX ? SIGCONT : SIGKILL, 0, 0);
		patience.tv_nsec = NEXT_LOOK_NS;
	}
}

pid_t child_start(struct launch *l)
{
	static bool no_clone3;
	static int busy;
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_CHILD_CLEARTID | (l->cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0),
		.exit_signal = SIGCHLD,
		.child_tid = (uintptr_t) &busy,
		.stack = (uintptr_t) scratch.stack,
		.stack_size = sizeof scratch.stack,
		.cgroup = l->cgroup_fd >= 0 ? (uint64_t) l->cgroup_fd : 0,
	};
	long pid = -ENOSYS;

	l->sys = 0;
	busy = 1;
	wear_oom_score("500");
	l->move_to_cgroup = false;
	if (!no_clone3)
		pid = clone_onto_stack(SYS_clone3, (long) &args, sizeof args, 0, run_child, l);
	/* Filters often hide clone3, since they cannot look into its arguments.  A child of plain
	 * clone has to move itself into its group, which may take milliseconds. */
	if (pid == -ENOSYS) {
		no_clone3 = true;
		l->move_to_cgroup = l->cgroup_fd >= 0;
		pid = clone_onto_stack(SYS_clone, CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD,
		                       (long) (scratch.stack + sizeof scratch.stack), (long) &busy, run_child, l);
	}
	if (pid > 0)
		wait_for_child(&busy, (pid_t) pid);
	wear_oom_score(setup.oom_score);
	if (pid < 0) {
		errno = (int) -pid;
		return -1;
	}
	return (pid_t) pid;
}
