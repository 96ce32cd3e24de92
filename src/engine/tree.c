/* SPDX-License-Identifier: Apache-2.0 */
/* tree: template root file systems, fetched from the host's mount namespace by descriptor. */
#include "engine/engine.h"

#include <sched.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

/*
 * Clones a tree while in the host's mount namespace: a mount can only be cloned by who is in its
 * namespace, and the new clone is detached and free to be attached in ours.
 */
static int clone_from_host(struct engine *e, int dir, const char *path, bool beneath, int *ret_fd, struct err *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
	_cleanup_close_ int at = -1, tree = -1;
	int saved;

	if (setns(e->host_mntns_fd, CLONE_NEWNS) < 0)
		return err_sys(err, errno, "enter the host's mount namespace");
	at = sys_openat2(dir, path, O_PATH | O_DIRECTORY, 0, beneath ? RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS : 0);
	if (at >= 0)
		tree = sys_open_tree(at, "", AT_EMPTY_PATH | OPEN_TREE_CLONE);
	saved = errno;
	/* Staying there would build later boxes over the host's mounts. */
	if (setns(e->own_mntns_fd, CLONE_NEWNS) < 0)
		abort();
	if (at < 0)
		return err_sys(err, saved, "open %s", path);
	if (tree < 0)
		return err_sys(err, saved, "clone %s", path);
	if (sys_mount_setattr(tree, 0, &attr) < 0)
		return err_sys(err, errno, "make %s read-only", path);
	*ret_fd = TAKE_FD(tree);
	return 0;
}

static int attach(struct engine *e, int tree, struct err *err)
{
	char name[16];

	snprintf(name, sizeof name, "t%u", e->templates);
	if (mkdirat(e->root_fd, name, 0500) < 0 ||
	    sys_move_mount(tree, "", e->root_fd, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(err, errno, "attach a template");
	e->templates++;
	return 0;
}

int engine_open_tree(struct engine *e, const char *path, int *ret_fd, struct err *err)
{
	_cleanup_close_ int tree = -1;

	if (clone_from_host(e, AT_FDCWD, path, false, &tree, err) < 0 || attach(e, tree, err) < 0)
		return -1;
	*ret_fd = TAKE_FD(tree);
	return 0;
}

/* Whoever removes templates asks for this lock first. */
static int lock_template(struct engine *e, const char *digest, int *ret_fd, struct err *err)
{
	_cleanup_close_ int fd = -1;
	char path[80];

	snprintf(path, sizeof path, "templates/%.64s", digest);
	fd = sys_openat2(e->data_fd, path, O_RDONLY | O_DIRECTORY, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (fd < 0)
		return err_sys(err, errno, "open template %.12s", digest);
	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		return err_sys(err, errno, "template %.12s is being removed", digest);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int engine_open_template(struct engine *e, const char *digest, int *ret_fd, int *ret_lock_fd, struct err *err)
{
	_cleanup_close_ int tree = -1, lock = -1;
	char path[96];

	snprintf(path, sizeof path, "templates/%.64s/rootfs", digest);
	if (lock_template(e, digest, &lock, err) < 0)
		return -1;
	if (clone_from_host(e, e->data_fd, path, true, &tree, err) < 0)
		return err_wrap(err, "template %.12s", digest);
	if (attach(e, tree, err) < 0)
		return -1;
	*ret_fd = TAKE_FD(tree);
	*ret_lock_fd = TAKE_FD(lock);
	return 0;
}
