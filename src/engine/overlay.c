/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/overlay.h"

#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include "engine/sys.h"

int overlay_prepare_upper(int upper_fd, uint32_t owner, bool idmapped, int *ret_u_fd, struct err *err)
{
	/* On an idmapped mount the host's root has no id at all; there the directories are made by
	 * whoever formats the image. */
	if (!idmapped && (mkdirat(upper_fd, "u", 0755) < 0 || mkdirat(upper_fd, "w", 0700) < 0 ||
	                  fchownat(upper_fd, "u", owner, owner, 0) < 0))
		return err_sys(err, errno, "make the upper layer");
	*ret_u_fd = openat(upper_fd, "u", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_u_fd < 0)
		return err_sys(err, errno, "open the upper layer");
	return 0;
}

/* 0 also when the kernel knows no layer descriptors: then as a path. */
static int set_layer(int fs, const char *by_fd, const char *by_path, int fd)
{
	char path[40];

	if (sys_fsconfig(fs, FSCONFIG_SET_FD, by_fd, NULL, fd) == 0)
		return 0;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return sys_fsconfig(fs, FSCONFIG_SET_STRING, by_path, path, 0);
}

static int create(int fs, const struct overlay_spec *spec)
{
	int r;

	if (!spec->idmapped_upper)
		return sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	/*
	 * Overlay checks and writes its layers as the mounter.  On an idmapped upper only the
	 * range's own root has an id, so the mounter borrows it for this call, keeping its
	 * capabilities; otherwise every write inside would answer EROFS (K11).
	 */
	prctl(PR_SET_SECUREBITS, 1 << 2 /* SECBIT_NO_SETUID_FIXUP */, 0, 0, 0);
	setfsgid(spec->owner);
	setfsuid(spec->owner);
	r = sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	setfsuid(0);
	setfsgid(0);
	return r;
}

int overlay_mount(const struct overlay_spec *spec, int *ret_fd, struct err *err)
{
	_cleanup_close_ int fs = sys_fsopen("overlay"), upper = -1, work = -1;
	int fd;

	if (fs < 0)
		return err_sys(err, errno, "make an overlay");
	upper = openat(spec->upper_fd, "u", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	work = openat(spec->upper_fd, "w", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (upper < 0 || work < 0)
		return err_sys(err, errno, "open the upper layer");
	/* A redirect in a layer could name any path of the lower one: never followed. */
	if (set_layer(fs, "lowerdir+", "lowerdir", spec->lower_fd) < 0 ||
	    set_layer(fs, "upperdir", "upperdir", upper) < 0 || set_layer(fs, "workdir", "workdir", work) < 0 ||
	    sys_fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL, 0) < 0 ||
	    sys_fsconfig(fs, FSCONFIG_SET_STRING, "redirect_dir", "nofollow", 0) < 0)
		return err_sys(err, errno, "set up the overlay");
	if (create(fs, spec) < 0)
		return err_sys(err, errno, "mount the overlay");
	fd = sys_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (fd < 0)
		return err_sys(err, errno, "mount the overlay");
	*ret_fd = fd;
	return 0;
}
