/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/disk.h"

#include <inttypes.h>
#include <linux/loop.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "base/fd.h"

#ifndef O_TMPFILE
#define O_TMPFILE (020000000 | O_DIRECTORY)
#endif

/* DATA/NAME as a directory of ours, opened for use (not O_PATH). */
static int open_own_dir(struct engine *e, const char *name, struct err *err)
{
	int fd;

	if (mkdirat(e->data_fd, name, 0700) < 0 && errno != EEXIST) {
		err_sys(err, errno, "make %s in the data directory", name);
		return -1;
	}
	fd = sys_openat2(e->data_fd, name, O_RDONLY | O_DIRECTORY, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (fd < 0)
		err_sys(err, errno, "open %s in the data directory", name);
	return fd;
}

/* ---- the blank image ---- */

/* Runs mke2fs on an open file, in the host's mount namespace (ours holds no programs). */
static int run_mke2fs(struct engine *e, int image, uint64_t bytes, uint64_t inodes, struct err *err)
{
	static char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "MKE2FS_SYNC=0", NULL };
	char count[24], path[32];
	char *const argv[] = {
		"mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-I", "256", "-N", count,
		"-O", "^has_journal,^resize_inode,^metadata_csum", "-E", "lazy_itable_init=1,nodiscard", path, NULL,
	};
	int status;
	pid_t pid;

	snprintf(count, sizeof count, "%" PRIu64, inodes);
	snprintf(path, sizeof path, "/proc/self/fd/%d", image);
	pid = fork();
	if (pid < 0)
		return err_sys(err, errno, "start mke2fs");
	if (pid == 0) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		if (setns(e->host_mntns_fd, CLONE_NEWNS) < 0 || fcntl(image, F_SETFD, 0) < 0)
			_exit(126);
		/* Nothing but the image and the null device may pass: what it has to say would stand
		 * between the lines of our caller. */
		dup2(STDIN_FILENO, STDOUT_FILENO);
		dup2(STDIN_FILENO, STDERR_FILENO);
		for (int fd = 3; fd < 1024; fd++)
			if (fd != image)
				close(fd);
		for (const char *const *p = (const char *const[]) { "/sbin/mke2fs", "/usr/sbin/mke2fs", NULL }; *p; p++)
			execve(*p, argv, env);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return err_set(err, ERR_UNIMPLEMENTED, "disk images need mke2fs: install e2fsprogs, or use a disk in memory");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 1 && inodes > bytes / 512)
		return err_set(err, ERR_INVALID, "inodes: %" PRIu64 " do not fit into a disk image of %" PRIu64 " bytes "
		               "(each takes 256)", inodes, bytes);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
		return err_set(err, ERR_EXHAUSTED, "mke2fs could not make a disk image: is the data directory full?");
	return err_set(err, ERR_INTERNAL, "mke2fs failed with status %#x", status);
}

/* The upper and work directories belong to the container's root, id 0 on disk. */
static int make_layers(int mount_fd, struct err *err)
{
	if (mkdirat(mount_fd, "u", 0755) < 0 || mkdirat(mount_fd, "w", 0700) < 0)
		return err_sys(err, errno, "make the upper layer");
	return 0;
}

static int mount_image(struct engine *e, int image, int *ret_fd, struct err *err);

/* Opens DATA/disks/blank-BYTES-INODES, making it first when it is not there. */
static int open_blank(struct engine *e, int dir, uint64_t bytes, uint64_t inodes, int *ret_fd, struct err *err)
{
	_cleanup_close_ int fd = -1, mounted = -1;
	char name[64], path[40];

	snprintf(name, sizeof name, "blank-%" PRIu64 "-%" PRIu64, bytes, inodes);
	*ret_fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (*ret_fd >= 0)
		return 0;
	fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t) bytes) < 0)
		return err_sys(err, errno, "make a disk image");
	if (run_mke2fs(e, fd, bytes, inodes, err) < 0 || mount_image(e, fd, &mounted, err) < 0 || make_layers(mounted, err) < 0)
		return -1;
	mounted = close_fd(mounted);
	/* Appears under its name only when whole; somebody else's equal one is as good. */
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST)
		return err_sys(err, errno, "keep the blank disk image");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* ---- one image ---- */

static int copy_sparse(int from, int to, struct err *err)
{
	off_t at = 0, end;

	while ((at = lseek(from, at, SEEK_DATA)) >= 0) {
		end = lseek(from, at, SEEK_HOLE);
		if (end < 0 || lseek(to, at, SEEK_SET) < 0)
			return err_sys(err, errno, "copy the blank disk image");
		while (at < end) {
			ssize_t n = sendfile(to, from, &at, (size_t) (end - at));

			if (n <= 0)
				return err_sys(err, n ? errno : EIO, "copy the blank disk image");
		}
	}
	return errno == ENXIO ? 0 : err_sys(err, errno, "copy the blank disk image");
}

/* Binds a free loop device to the image; it frees itself when the mount goes. */
static int bind_loop(struct engine *e, int image, int *ret_fd, struct err *err)
{
	struct loop_config config = { .fd = (uint32_t) image, .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };
	_cleanup_close_ int control = openat(e->host_dev_fd, "loop-control", O_RDWR | O_CLOEXEC);

	if (control < 0)
		return err_sys(err, errno, "disk images need loop devices: open /dev/loop-control");
	/* Another process may take the number first: try again, a bounded number of times. */
	for (int tries = 0; tries < 64; tries++) {
		_cleanup_close_ int loop = -1;
		char name[16];
		int n = ioctl(control, LOOP_CTL_GET_FREE);

		if (n < 0)
			return err_sys(err, errno, "find a free loop device");
		snprintf(name, sizeof name, "loop%d", n);
		loop = openat(e->host_dev_fd, name, O_RDWR | O_CLOEXEC);
		if (loop < 0)
			return err_sys(err, errno, "open /dev/%s", name);
		if (ioctl(loop, LOOP_CONFIGURE, &config) == 0) {
			*ret_fd = TAKE_FD(loop);
			return 0;
		}
		if (errno != EBUSY)
			return err_sys(err, errno, "set up /dev/%s", name);
	}
	return err_set(err, ERR_EXHAUSTED, "no loop device could be had");
}

static int mount_image(struct engine *e, int image, int *ret_fd, struct err *err)
{
	_cleanup_close_ int loop = -1, fs = -1;
	char path[40];
	int fd;

	if (bind_loop(e, image, &loop, err) < 0)
		return -1;
	/* Our namespace has no /dev of the host: the device is named by our descriptor of it. */
	snprintf(path, sizeof path, "/proc/self/fd/%d", loop);
	fs = sys_fsopen("ext4");
	if (fs < 0 || sys_fsconfig(fs, FSCONFIG_SET_STRING, "source", path, 0) < 0 ||
	    sys_fsconfig(fs, FSCONFIG_SET_FLAG, "noinit_itable", NULL, 0) < 0 ||
	    sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(err, errno, "mount a disk image");
	fd = sys_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME);
	if (fd < 0)
		return err_sys(err, errno, "mount a disk image");
	*ret_fd = fd;
	return 0;
}

int disk_create_image(struct engine *e, uint64_t bytes, uint64_t inodes, int *ret_image_fd, int *ret_mount_fd,
                      struct err *err)
{
	_cleanup_close_ int dir = -1, blank = -1, image = -1;

	bytes &= ~(uint64_t) 4095;
	dir = open_own_dir(e, "disks", err);
	if (dir < 0 || open_blank(e, dir, bytes, inodes, &blank, err) < 0)
		return -1;
	image = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (image < 0 || ftruncate(image, (off_t) bytes) < 0)
		return err_sys(err, errno, "make a disk image");
	if (copy_sparse(blank, image, err) < 0 || mount_image(e, image, ret_mount_fd, err) < 0)
		return -1;
	*ret_image_fd = TAKE_FD(image);
	return 0;
}
