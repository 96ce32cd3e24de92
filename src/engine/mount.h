/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * mount: the mounts that all sandboxes share, and the spawner's own empty root.
 *
 * Everything is made detached and attached by descriptor; no path of a request
 * or of a template is ever resolved here.
 */
#include "engine/sys.h"
#include "base/err.h"

/* A new, detached tmpfs.  size and inodes of 0 leave the kernel's defaults; mode is that of its root. */
int mount_tmpfs(uint64_t size, uint64_t inodes, unsigned mode, unsigned attrs, int *ret_fd, struct err *err) _must_check_;

/*
 * Enters a mount namespace of our own whose root is a small tmpfs holding proc and dev, and
 * nothing of the host.  The shared device tree (below) becomes its /dev.  What lies under a
 * sandbox's root mount is this (K3), so nothing else may ever be attached but read-only templates.
 */
int mount_enter_own_root(int dev_tree, int *ret_root_fd, int *ret_proc_fd, struct err *err) _must_check_;

/*
 * The shared /dev: null zero full random urandom tty, the usual links, and directories pts and
 * shm.  Device nodes are checked after making: masks are bound from its null node (the class
 * of runc's 2025 mask bugs).
 */
int mount_dev_tree(int *ret_fd, struct err *err) _must_check_;

/* The synthetic /sys for programs that size themselves: cpu lists and the limits as cgroup v2
 * files.  No cgroup or sysfs superblock is behind it. */
int mount_sys_tree(uint64_t cpu_milli, uint64_t memory_bytes, int *ret_fd, struct err *err) _must_check_;

/* A detached copy of an attached (or, since Linux 6.15, detached) mount, made read-only where asked. */
int mount_clone(int fd, bool read_only, int *ret_fd, struct err *err) _must_check_;

/* The same, with ids shifted by a user namespace. */
int mount_clone_idmapped(int fd, int userns_fd, bool read_only, int *ret_fd, struct err *err) _must_check_;
