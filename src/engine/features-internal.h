/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * features-internal: how one layer is tried and worded.
 *
 * A probe gets a zeroed layer and calls exactly one of say_present(), say_degraded(),
 * say_missing() or say_blocked().  Whatever it tries happens in a child, or is closed
 * and removed before it returns.
 */
#include "engine/cgroup.h"
#include "engine/features.h"

struct probe {
	const char *data_dir;
	char near_dir[256];             /* the data directory, or its nearest parent that exists */
	bool is_root;                   /* of the host, not of a user namespace */
	bool has_sys_admin;
	bool is_filtered;               /* a seccomp filter is already loaded into this process */
	const char *container;          /* "Docker", NULL on the bare host */
	int userns_fd;                  /* with a range of ids mapped, -1 when that failed */
	struct cgroup_tree *tree;       /* NULL: see tree_err */
	struct cgroup *cgroup;          /* a slot of our own, NULL: see tree_err */
	struct err tree_err;
};

struct check {
	const char *name;
	bool required;
	const char *without;            /* the consequence of its absence */
	const char *config;             /* what a kernel needs for it, NULL for things that are not the kernel's */
	void (*run)(const struct probe *p, const struct check *c, struct layer *l);
};

void say_present(struct layer *l, const char *fmt, ...) _printf_(2, 3);
void say_degraded(struct layer *l, const char *fix, const char *fmt, ...) _printf_(3, 4);
/* The consequence is appended to the text. */
void say_missing(const struct check *c, struct layer *l, const char *fix, const char *fmt, ...) _printf_(4, 5);
/* Names the layer of the host that answered SYS (an errno) and the way around it. */
void say_blocked(const struct probe *p, const struct check *c, struct layer *l, int sys);
/* Present with TEXT when SYS is 0, else blocked. */
void say_result(const struct probe *p, const struct check *c, struct layer *l, int sys, const char *text);

/* Runs fn(arg) in a child: 0, or the errno it returned.  A child that a filter killed says EPERM. */
int try_in_child(int (*fn)(void *arg), void *arg);

/* A number from /proc/sys or /sys, -1 when there is none. */
int64_t host_number(const char *path);

/* Is there such a program where the system keeps them? */
bool find_program(const char *name);

/* A user namespace that maps COUNT ids from BASE, or -1 with errno. */
int make_userns(uint32_t base, uint32_t count);

typedef void check_fn(const struct probe *p, const struct check *c, struct layer *l);

/* features-host.c */
check_fn check_root, check_caps, check_kernel, check_container, check_data_dir, check_nofile, check_pid_max,
	check_namespace_limits, check_smt, check_sysctls, check_mmdebstrap, check_cgroups, check_controller_memory,
	check_controller_pids, check_controller_cpu, check_controller_io, check_into_cgroup, check_cgroup_kill,
	check_freezer;
/* features-kernel.c */
check_fn check_userns, check_pidns, check_mntns, check_netns, check_ipcns, check_utsns, check_cgroupns, check_timens,
	check_seccomp, check_no_new_privs, check_landlock, check_close_range, check_openat2, check_pidfd;
/* features-mount.c */
check_fn check_mount_api, check_idmapped, check_overlay, check_overlay_on_data, check_tmpfs, check_loop, check_ext4;
