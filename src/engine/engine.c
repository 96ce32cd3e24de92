/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "engine/landlock.h"
#include "engine/mount.h"
#include "engine/sys-tree.h"

static int open_path(const char *path, int flags, const char *what, int *ret, struct err *err)
{
	*ret = open(path, flags | O_CLOEXEC);
	if (*ret < 0)
		return err_sys(err, errno, "open %s (%s)", path, what);
	return 0;
}

/* Slots are leased by byte locks on one file: they vanish with their holder, however it ends. */
static int open_slots(struct engine *e, struct err *err)
{
	if (mkdir("/run/cuvette", 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make /run/cuvette");
	e->slots_fd = open("/run/cuvette/slots", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (e->slots_fd < 0)
		return err_sys(err, errno, "open /run/cuvette/slots");
	return 0;
}

static int open_host(struct engine *e, const char *data_dir, struct err *err)
{
	int null_fd, proc;

	if (open_path("/dev/null", O_RDWR, "a device every host has", &null_fd, err) < 0)
		return -1;
	if (create_reserve_fds(null_fd) < 0)
		return err_sys(err, errno, "reserve descriptors");
	if (null_fd > 2)
		close_fd(null_fd);
	if (open_path("/proc", O_DIRECTORY | O_PATH, "proc must be mounted", &proc, err) < 0)
		return -1;
	/* Begins now and runs beside the rest of the start. */
	if (netns_start(&e->first_netns, proc, err) < 0)
		return -1;
	e->first_netns_started = true;
	e->proc_fd = proc;
	if (open_path("/proc/self/ns/net", O_RDONLY, "network namespaces", &e->own_netns_fd, err) < 0 ||
	    open_path("/proc/self/ns/mnt", O_RDONLY, "mount namespaces", &e->host_mntns_fd, err) < 0 ||
	    open_path("/dev", O_DIRECTORY | O_PATH, "the host's devices", &e->host_dev_fd, err) < 0)
		return -1;
	if (data_dir) {
		e->data_fd = open(data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (e->data_fd < 0)
			return err_sys(err, errno, "open the data directory %s", data_dir);
	}
	e->time_namespace = access("/proc/self/ns/time", F_OK) == 0;
	return open_slots(e, err);
}

static int leave_host(struct engine *e, struct err *err)
{
	int host_proc = e->proc_fd, dev;

	if (mount_dev_tree(&dev, err) < 0)
		return -1;
	e->dev_fd = dev;
	e->proc_fd = -1;
	if (mount_enter_own_root(dev, &e->root_fd, &e->proc_fd, err) < 0) {
		e->proc_fd = host_proc;
		return -1;
	}
	/* Not closed before the helper that makes the first network namespace is done with it. */
	e->host_proc_fd = host_proc;
	if (open_path("/proc/self/ns/mnt", O_RDONLY, "our own mount namespace", &e->own_mntns_fd, err) < 0)
		return -1;
	create_find_masks(e->proc_fd, &e->masks);
	if (mkdirat(e->root_fd, "empty", 0555) < 0)
		return err_sys(err, errno, "make an empty directory");
	return 0;
}

int engine_open(struct engine *e, const char *data_dir, struct err *err)
{
	*e = (struct engine) {
		.own_netns_fd = -1, .own_mntns_fd = -1, .host_mntns_fd = -1, .data_fd = -1, .host_dev_fd = -1,
		.root_fd = -1, .proc_fd = -1, .dev_fd = -1, .slots_fd = -1, .landlock_fd = -1,
		.host_proc_fd = -1,
	};
	if (open_host(e, data_dir, err) < 0 || cgroup_tree_open(&e->cgroups, err) < 0 || leave_host(e, err) < 0 ||
	    landlock_scope_open(&e->landlock_fd, err) < 0) {
		engine_close(e);
		return -1;
	}
	seccomp_compile(&e->filter, cgroup_tree_mode(e->cgroups) != CGROUP_V1);
	return 0;
}

void engine_close(struct engine *e)
{
	int *const fds[] = {
		&e->own_netns_fd, &e->own_mntns_fd, &e->host_mntns_fd, &e->data_fd, &e->host_dev_fd,
		&e->root_fd, &e->proc_fd, &e->dev_fd, &e->slots_fd, &e->landlock_fd,
		&e->host_proc_fd,
	};

	if (e->first_netns_started)
		netns_cancel(&e->first_netns);
	e->first_netns_started = false;
	sys_tree_free(e->sys_trees);
	e->sys_trees = NULL;
	cgroup_tree_close(e->cgroups);
	e->cgroups = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		*fds[i] = close_fd(*fds[i]);
}
