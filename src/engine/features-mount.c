/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that are file systems and mounts.  All mounts are detached: they end with the child that made them. */
#include "engine/features-internal.h"

#include <ftw.h>
#include <linux/loop.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "engine/sys.h"

enum {
	BY_PATH = 200,          /* exit codes beyond every errno */
	NOT_VOLATILE = 201,
	TMPFS_SIZE = 64 << 10,
};

/* An id that is not mapped can't own a file. */
static int map_own_id(uid_t uid, gid_t gid)
{
	char users[32], groups[32];

	/* After a change of ids the files below /proc/self belong to root until this (K18). */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	snprintf(users, sizeof users, "0 %u 1", (unsigned) uid);
	snprintf(groups, sizeof groups, "0 %u 1", (unsigned) gid);
	if (write_file_at(AT_FDCWD, "/proc/self/setgroups", "deny", NULL) < 0 ||
	    write_file_at(AT_FDCWD, "/proc/self/uid_map", users, NULL) < 0)
		return -1;
	return write_file_at(AT_FDCWD, "/proc/self/gid_map", groups, NULL);
}

/* Root enters a mount namespace of its own; everybody else one inside a user namespace. */
static int enter_mntns(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWNS) < 0 &&
	    (!uid || unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || map_own_id(uid, gid) < 0))
		return -1;
	return sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static int finish_mount(int fs)
{
	if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return sys_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

/* A tmpfs with a limit, or -1 with errno. */
static int new_tmpfs(void)
{
	_cleanup_close_ int fs = sys_fsopen("tmpfs");
	char size[16];

	snprintf(size, sizeof size, "%d", TMPFS_SIZE);
	if (fs < 0 || sys_fsconfig(fs, FSCONFIG_SET_STRING, "size", size, 0) < 0 ||
	    sys_fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", "16", 0) < 0)
		return -1;
	return finish_mount(fs);
}

/* ---- the mount API ---- */

static int try_mount_api(void *arg)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	int tmpfs, clone;

	(void) arg;
	if (enter_mntns() < 0)
		return errno;
	tmpfs = new_tmpfs();
	if (tmpfs < 0 || sys_move_mount(tmpfs, "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return errno;
	clone = sys_open_tree(AT_FDCWD, "/tmp", OPEN_TREE_CLONE);
	return clone < 0 || sys_mount_setattr(clone, 0, &attr) < 0 ? errno : 0;
}

void check_mount_api(const struct probe *p, const struct check *c, struct layer *l)
{
	say_result(p, c, l, try_in_child(try_mount_api, NULL), "fsopen, open_tree, mount_setattr");
}

static int try_idmapped(void *arg)
{
	const struct probe *p = arg;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t) p->userns_fd };
	int clone = sys_open_tree(AT_FDCWD, p->near_dir, OPEN_TREE_CLONE);

	return clone < 0 || sys_mount_setattr(clone, 0, &attr) < 0 ? errno : 0;
}

void check_idmapped(const struct probe *p, const struct check *c, struct layer *l)
{
	int sys;

	if (p->userns_fd < 0) {
		say_missing(c, l, "see \"user namespaces\" above", "needs a user namespace with a range of ids");
		return;
	}
	sys = try_in_child(try_idmapped, (void *) p);
	if (sys == EINVAL)
		say_missing(c, l, "put the data directory (--data) on ext4, xfs or btrfs",
		            "the file system of %s can't do it", p->near_dir);
	else
		say_result(p, c, l, sys, "yes, on the data directory");
}

/* ---- overlay ---- */

static int layer_path(int fs, const char *key, int fd)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return sys_fsconfig(fs, FSCONFIG_SET_STRING, key, path, 0);
}

/* Mounts an overlay of DIR/lower and DIR/upper and copies a file up; what a sandbox's root does. */
static int overlay_below(int dir)
{
	int lower, upper, work, fs, merged, result = 0;

	if ((mkdirat(dir, "lower", 0755) | mkdirat(dir, "upper", 0755) | mkdirat(dir, "work", 0755)) < 0)
		return errno;
	lower = openat(dir, "lower", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	upper = openat(dir, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	work = openat(dir, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lower < 0 || upper < 0 || work < 0 || mkdirat(lower, "sub", 0755) < 0)
		return errno;
	fs = sys_fsopen("overlay");
	if (fs < 0)
		return errno;
	if (sys_fsconfig(fs, FSCONFIG_SET_FD, "lowerdir+", NULL, lower) < 0) {
		result = BY_PATH;
		if (layer_path(fs, "lowerdir", lower) < 0 || layer_path(fs, "upperdir", upper) < 0 ||
		    layer_path(fs, "workdir", work) < 0)
			return errno;
	} else if (sys_fsconfig(fs, FSCONFIG_SET_FD, "upperdir", NULL, upper) < 0 ||
	           sys_fsconfig(fs, FSCONFIG_SET_FD, "workdir", NULL, work) < 0) {
		return errno;
	}
	if (sys_fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL, 0) < 0)
		result = NOT_VOLATILE;
	merged = finish_mount(fs);
	if (merged < 0 || mkdirat(merged, "sub/new", 0755) < 0)
		return errno;
	return faccessat(upper, "sub/new", F_OK, 0) < 0 ? EIO : result;
}

static int try_overlay(void *arg)
{
	int dir;

	(void) arg;
	if (enter_mntns() < 0)
		return errno;
	dir = new_tmpfs();
	/* fsmount gives an O_PATH descriptor, which is enough here. */
	return dir < 0 ? errno : overlay_below(dir);
}

static void say_overlay(const struct probe *p, const struct check *c, struct layer *l, int result)
{
	if (result == BY_PATH)
		say_degraded(l, "boot Linux 6.13 or newer", "layers only by path: creating a sandbox is slower");
	else if (result == NOT_VOLATILE)
		say_degraded(l, "boot Linux 5.10 or newer",
		             "no \"volatile\": ending a sandbox waits for every write of the host");
	else
		say_result(p, c, l, result, "volatile, layers by descriptor");
}

void check_overlay(const struct probe *p, const struct check *c, struct layer *l)
{
	say_overlay(p, c, l, try_in_child(try_overlay, NULL));
}

static int try_overlay_at(void *arg)
{
	int dir;

	/* First the namespace: a layer has to be reached through a mount that belongs to it. */
	if (enter_mntns() < 0)
		return errno;
	dir = open(arg, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? errno : overlay_below(dir);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void) st; (void) type; (void) ftw;
	return remove(path);
}

void check_overlay_on_data(const struct probe *p, const struct check *c, struct layer *l)
{
	char dir[sizeof p->near_dir + 32];
	int result;

	snprintf(dir, sizeof dir, "%s/.cuvette-probe-XXXXXX", p->near_dir);
	if (!mkdtemp(dir)) {
		say_missing(c, l, "see \"data directory\" below", "%s can't be written (%s)", p->near_dir, strerror(errno));
		return;
	}
	result = try_in_child(try_overlay_at, dir);
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	if (result == EINVAL)
		say_missing(c, l, "put the data directory (--data) on ext4, xfs or btrfs; overlay can't be stacked "
		            "on a container's overlay", "the file system of %s can't hold an upper layer", p->near_dir);
	else
		say_overlay(p, c, l, result);
}

/* ---- disks ---- */

/* Writes more than the limit. */
static int try_tmpfs(void *arg)
{
	static const char page[4096];
	int dir, fd;

	(void) arg;
	if (enter_mntns() < 0)
		return errno;
	dir = new_tmpfs();
	fd = dir < 0 ? -1 : openat(dir, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	for (int i = 0; i <= TMPFS_SIZE / 4096; i++)
		if (write(fd, page, sizeof page) != sizeof page)
			return errno == ENOSPC ? 0 : errno;
	return EIO;
}

void check_tmpfs(const struct probe *p, const struct check *c, struct layer *l)
{
	say_result(p, c, l, try_in_child(try_tmpfs, NULL), "bytes and inodes");
}

/* Another program may take the free device first: a few rounds. */
static int try_loop(void *arg)
{
	struct loop_config config = { .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int file = memfd_create("probe", MFD_CLOEXEC);

	(void) arg;
	if (control < 0 || file < 0 || ftruncate(file, 1 << 20) < 0)
		return errno;
	config.fd = (uint32_t) file;
	for (int round = 0; round < 5; round++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE), device;
		char path[32];

		if (number < 0)
			return errno;
		snprintf(path, sizeof path, "/dev/loop%d", number);
		device = open(path, O_RDWR | O_CLOEXEC);
		if (device < 0)
			return errno;
		if (ioctl(device, LOOP_CONFIGURE, &config) == 0)
			return 0;       /* AUTOCLEAR: it is free again when we are gone */
		if (errno != EBUSY)
			return errno;
		close(device);
	}
	return EBUSY;
}

void check_loop(const struct probe *p, const struct check *c, struct layer *l)
{
	int sys = try_in_child(try_loop, NULL);

	if (sys == ENOENT || sys == ENXIO || sys == ENODEV)
		say_missing(c, l, "modprobe loop; in a container: --device /dev/loop-control and some /dev/loopN",
		            "no loop devices here");
	else if (sys == EBUSY)
		say_degraded(l, "release some (losetup -a)", "others keep taking the free loop devices");
	else
		say_result(p, c, l, sys, "yes");
}

static bool has_file_system(const char *name)
{
	_cleanup_buf_ struct buf text = BUF_INIT(64u << 10);
	_cleanup_close_ int fd = open("/proc/filesystems", O_RDONLY | O_CLOEXEC);
	char line[32];

	snprintf(line, sizeof line, "\t%s\n", name);
	return fd >= 0 && read_to_buf(fd, &text, NULL) == 0 && text.data && strstr(text.data, line);
}

void check_ext4(const struct probe *p, const struct check *c, struct layer *l)
{
	(void) p;
	if (!has_file_system("ext4"))
		say_missing(c, l, "modprobe ext4, or boot a kernel with CONFIG_EXT4_FS", "not in this kernel");
	else if (!find_program("mke2fs"))
		say_missing(c, l, "apt-get install e2fsprogs", "the program mke2fs is not installed");
	else
		say_present(l, "yes, with mke2fs");
}
