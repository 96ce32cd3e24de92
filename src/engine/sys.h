/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * sys: system calls that the C library does not wrap, spelled as the manual does.
 *
 * musl 1.2.3 knows none of the mount API of Linux 5.2 and glibc's <sys/mount.h>
 * clashes with <linux/mount.h>, so the engine includes this instead of either.
 * Everything returns -1 with errno.  Safe in a child that shares our memory.
 */
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <fcntl.h>
#include "base/base.h"

/* Newer than the installed kernel headers. */
#ifndef FSCONFIG_SET_FD
#define FSCONFIG_SET_FD 5
#endif
#ifndef MNT_DETACH
#define MNT_DETACH 2
#endif

static inline int sys_fsopen(const char *fs)
{
	return (int) syscall(SYS_fsopen, fs, FSOPEN_CLOEXEC);
}

static inline int sys_fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux)
{
	return (int) syscall(SYS_fsconfig, fd, cmd, key, value, aux);
}

static inline int sys_fsmount(int fd, unsigned attrs)
{
	return (int) syscall(SYS_fsmount, fd, FSMOUNT_CLOEXEC, attrs);
}

static inline int sys_open_tree(int dir, const char *path, unsigned flags)
{
	return (int) syscall(SYS_open_tree, dir, path, flags | OPEN_TREE_CLOEXEC);
}

static inline int sys_move_mount(int from, const char *from_path, int to, const char *to_path, unsigned flags)
{
	return (int) syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}

static inline int sys_mount_setattr(int fd, unsigned flags, struct mount_attr *attr)
{
	return (int) syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | flags, attr, sizeof *attr);
}

static inline int sys_mount(const char *source, const char *target, const char *fs, unsigned long flags, const void *data)
{
	return (int) syscall(SYS_mount, source, target, fs, flags, data);
}

static inline int sys_umount(const char *target, int flags)
{
	return (int) syscall(SYS_umount2, target, flags);
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int) syscall(SYS_pivot_root, new_root, put_old);
}

static inline int sys_openat2(int dir, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .mode = mode, .resolve = resolve };

	return (int) syscall(SYS_openat2, dir, path, &how, sizeof how);
}

static inline int sys_execveat(int fd, char *const argv[], char *const envp[])
{
	return (int) syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
}

static inline int sys_close_range(unsigned first, unsigned last, unsigned flags)
{
	return (int) syscall(SYS_close_range, first, last, flags);
}

static inline int sys_pidfd_open(pid_t pid)
{
	return (int) syscall(SYS_pidfd_open, pid, 0);
}

static inline int sys_pidfd_send_signal(int pidfd, int sig)
{
	return (int) syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

/*
 * A system call that answers -errno and does not touch `errno`: for helpers that
 * share our memory and run at the same time, where errno is one variable for both.
 */
static inline long sys_raw(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
	                 : "rcx", "r11", "memory");
	return ret;
}
#define SYS_RAW_(nr, a, b, c, d, e, ...) sys_raw(nr, (long) (a), (long) (b), (long) (c), (long) (d), (long) (e))
#define SYS_RAW(...) SYS_RAW_(__VA_ARGS__, 0, 0, 0, 0, 0)

/*
 * clone3() onto a stack of its own, for children that share our memory: runs
 * fn(arg) there and exits with its result.  The child must not return into the
 * caller's frames, which is why this cannot be plain C (engine notes, K5).
 */
pid_t sys_clone_call(struct clone_args *args, void *stack, size_t stack_size, int (*fn)(void *), void *arg);
