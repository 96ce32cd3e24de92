/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * create: from prepared descriptors to a running PID 1.
 *
 * The plan is a struct of finished arguments; performing it is two children
 * that share our memory and suspend us until the second has exec'd:
 *
 *      A  enters the v1 cgroups (if asked), the slot's user and cgroup namespaces
 *      B  is born in new pid, mount, ipc and uts namespaces, builds its root,
 *         drops everything and execs
 *
 * B is our child, not A's (CLONE_PARENT), and its namespaces belong to the slot's
 * user namespace, which checkpointing needs.  Between clone and exec nothing is
 * allocated, looked up or logged; a failed step is reported as {step, errno}.
 */
#include "engine/seccomp.h"
#include "engine/sys.h"

enum { CREATE_PASS_MAX = 7, CREATE_MASKS_MAX = 24, CREATE_DIRS_MAX = 4 };

/* Paths in proc that get covered; found once per host. */
struct proc_masks {
	size_t files, dirs, read_only;
	const char *file[CREATE_MASKS_MAX];     /* covered by the null device */
	const char *dir[CREATE_DIRS_MAX];       /* covered by an empty directory */
	const char *ro[CREATE_MASKS_MAX];       /* bound read-only */
};

struct create_plan {
	/* where it is born */
	int userns_fd, cgroupns_fd;
	int cgroup_fd;                  /* v2 directory of PID 1, or -1 */
	const int *tasks_fds;           /* v1 `tasks` that PID 1 itself enters (only without an init) */
	size_t ntasks;

	/* its root, all detached */
	int root_fd, dev_fd, sys_fd;    /* sys_fd -1: the template's own /sys stays */
	int empty_fds[CREATE_DIRS_MAX]; /* an empty directory for each of masks->dir */
	const struct proc_masks *masks;
	bool terminals;                 /* mount devpts */

	/* what it may do */
	const char *hostname;
	int landlock_fd;                /* or -1 */
	const struct seccomp_filter *filter;    /* NULL only in the test build */
	bool time_namespace;

	/* what it runs */
	int program_fd;
	char *const *argv, *const *envp;
	int pass[CREATE_PASS_MAX];      /* become descriptors 3, 4, ... of the program */
	size_t npass;
};

/* Performs the plan.  On success *ret_pid is our child (exit signal 0: wait with __WALL) and
 * *ret_pidfd is the caller's.  On failure nothing of it is left. */
int create_perform(const struct create_plan *plan, pid_t *ret_pid, int *ret_pidfd, struct err *err) _must_check_;

/* Takes the descriptor numbers that B arranges, once, before anything else may land on them.
 * Everything that a plan names must be above; -1 with errno. */
int create_reserve_fds(int null_fd);

/* Mounts a new devpts at /dev/pts of the mount namespace that the caller is in; -1 with errno. */
int create_mount_terminals(void);

/* Which of the known paths this host's proc has. */
void create_find_masks(int proc_fd, struct proc_masks *ret);
