/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/mount.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "base/fd.h"

static int set_number(int fs, const char *key, uint64_t value)
{
	char text[24];

	if (!value)
		return 0;
	snprintf(text, sizeof text, "%" PRIu64, value);
	return sys_fsconfig(fs, FSCONFIG_SET_STRING, key, text, 0);
}

int mount_tmpfs(uint64_t size, uint64_t inodes, unsigned mode, unsigned attrs, int *ret_fd, struct err *err)
{
	_cleanup_close_ int fs = sys_fsopen("tmpfs");
	char text[8];
	int fd;

	snprintf(text, sizeof text, "%04o", mode);
	if (fs < 0 || set_number(fs, "size", size) < 0 || set_number(fs, "nr_inodes", inodes) < 0 ||
	    sys_fsconfig(fs, FSCONFIG_SET_STRING, "mode", text, 0) < 0 ||
	    sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(err, errno, "make a tmpfs");
	fd = sys_fsmount(fs, attrs);
	if (fd < 0)
		return err_sys(err, errno, "mount a tmpfs");
	*ret_fd = fd;
	return 0;
}

int mount_clone(int fd, bool read_only, int *ret_fd, struct err *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	_cleanup_close_ int tree = sys_open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE);

	if (tree < 0)
		return err_sys(err, errno, "clone a mount");
	if (read_only && sys_mount_setattr(tree, 0, &attr) < 0)
		return err_sys(err, errno, "make a mount read-only");
	*ret_fd = TAKE_FD(tree);
	return 0;
}

int mount_clone_idmapped(int fd, int userns_fd, bool read_only, int *ret_fd, struct err *err)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (read_only ? MOUNT_ATTR_RDONLY : 0),
		.userns_fd = (uint64_t) userns_fd,
	};
	_cleanup_close_ int tree = sys_open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE);

	if (tree < 0)
		return err_sys(err, errno, "clone a mount");
	if (sys_mount_setattr(tree, 0, &attr) < 0)
		return err_sys(err, errno, "shift the owners of a mount (idmapped mounts)");
	*ret_fd = TAKE_FD(tree);
	return 0;
}

/* ---- the spawner's own root ---- */

static int attach_proc(int root, int *ret_fd, struct err *err)
{
	_cleanup_close_ int fs = sys_fsopen("proc");
	_cleanup_close_ int fd = -1;

	if (fs < 0 || sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(err, errno, "make a proc mount");
	fd = sys_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (fd < 0 || mkdirat(root, "proc", 0555) < 0 || sys_move_mount(fd, "", root, "proc", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(err, errno, "attach a proc mount");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int mount_enter_own_root(int dev_tree, int *ret_root_fd, int *ret_proc_fd, struct err *err)
{
	_cleanup_close_ int root = -1, proc = -1;

	if (unshare(CLONE_NEWNS) < 0)
		return err_sys(err, errno, "make a mount namespace");
	if (sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(err, errno, "cut mount propagation");
	if (mount_tmpfs(64 << 10, 0, 0755, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, &root, err) < 0)
		return -1;
	/* Attached over a directory that every host has, then made the root of this namespace. */
	if (sys_move_mount(root, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(err, errno, "attach an empty root");
	if (mkdirat(root, "dev", 0555) < 0 || sys_move_mount(dev_tree, "", root, "dev", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(err, errno, "attach the device tree");
	if (attach_proc(root, &proc, err) < 0)
		return -1;
	if (fchdir(root) < 0 || sys_pivot_root(".", ".") < 0 || sys_umount(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_sys(err, errno, "change to the empty root");
	*ret_root_fd = TAKE_FD(root);
	*ret_proc_fd = TAKE_FD(proc);
	return 0;
}

/* ---- /dev ---- */

static int make_node(int dir, const char *name, unsigned major_nr, unsigned minor_nr, struct err *err)
{
	struct stat st;

	if (mknodat(dir, name, S_IFCHR | 0666, makedev(major_nr, minor_nr)) < 0 ||
	    fchmodat(dir, name, 0666, 0) < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, errno, "make device %s", name);
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(major_nr, minor_nr))
		return err_set(err, ERR_INTERNAL, "device %s is not %u:%u", name, major_nr, minor_nr);
	return 0;
}

int mount_dev_tree(int *ret_fd, struct err *err)
{
	static const struct { const char *name; unsigned major_nr, minor_nr; } nodes[] = {
		{ "null", 1, 3 }, { "zero", 1, 5 }, { "full", 1, 7 }, { "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
	};
	static const struct { const char *name, *target; } links[] = {
		{ "fd", "/proc/self/fd" }, { "stdin", "/proc/self/fd/0" }, { "stdout", "/proc/self/fd/1" },
		{ "stderr", "/proc/self/fd/2" }, { "ptmx", "pts/ptmx" },
		/* In the upper, like /tmp: one superblock less per sandbox (K8), limited with the disk. */
		{ "shm", "/run/shm" },
	};
	_cleanup_close_ int fd = -1;

	if (mount_tmpfs(64 << 10, 64, 0755, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, &fd, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
		if (make_node(fd, nodes[i].name, nodes[i].major_nr, nodes[i].minor_nr, err) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (symlinkat(links[i].target, fd, links[i].name) < 0)
			return err_sys(err, errno, "make /dev/%s", links[i].name);
	if (mkdirat(fd, "pts", 0755) < 0)
		return err_sys(err, errno, "make /dev/pts");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* ---- /sys ---- */

static int put_file(int dir, const char *path, const char *text, struct err *err)
{
	_cleanup_close_ int fd = openat(dir, path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);

	if (fd < 0 || write_all(fd, text, strlen(text)) < 0)
		return err_sys(err, errno, "make /sys/%s", path);
	return 0;
}

int mount_sys_tree(uint64_t cpu_milli, uint64_t memory_bytes, int *ret_fd, struct err *err)
{
	static const char *const dirs[] = {
		"devices", "devices/system", "devices/system/cpu", "fs", "fs/cgroup",
	};
	struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY };
	_cleanup_close_ int fd = -1;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	char text[64];

	if (mount_tmpfs(64 << 10, 64, 0755, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, &fd, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdirat(fd, dirs[i], 0755) < 0)
			return err_sys(err, errno, "make /sys/%s", dirs[i]);
	snprintf(text, sizeof text, cpus > 1 ? "0-%ld\n" : "0\n", cpus - 1);
	if (put_file(fd, "devices/system/cpu/online", text, err) < 0)
		return -1;
	if (symlinkat("online", fd, "devices/system/cpu/possible") < 0 ||
	    symlinkat("online", fd, "devices/system/cpu/present") < 0)
		return err_sys(err, errno, "make /sys/devices/system/cpu");
	snprintf(text, sizeof text, "%" PRIu64 " 100000\n", cpu_milli * 100);
	if (put_file(fd, "fs/cgroup/cpu.max", cpu_milli ? text : "max 100000\n", err) < 0)
		return -1;
	snprintf(text, sizeof text, "%" PRIu64 "\n", memory_bytes);
	if (put_file(fd, "fs/cgroup/memory.max", memory_bytes ? text : "max\n", err) < 0)
		return -1;
	if (sys_mount_setattr(fd, 0, &read_only) < 0)
		return err_sys(err, errno, "make /sys read-only");
	*ret_fd = TAKE_FD(fd);
	return 0;
}
