/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/userns.h"

#include <stdio.h>
#include "base/fd.h"

enum { STEP_TASKS = 1, STEP_UNSHARE, STEP_LIMITS, STEP_OPEN };

static const char *const step_names[] = {
	[STEP_TASKS] = "enter the slot's cgroups",
	[STEP_UNSHARE] = "make a user namespace",
	[STEP_LIMITS] = "forbid nested namespaces",
	[STEP_OPEN] = "open the new namespaces",
};

struct maker {
	const struct userns_spec *spec;
	int state;              /* 0 working, 1 ready for its id maps, 2 failed */
	int go;                 /* the parent is done with it */
	int step, error;
	int user_fd, cgroup_fd;
};

static int fail(struct maker *m, int step, long result)
{
	m->step = step;
	m->error = (int) -result;
	helper_post(&m->state, 2);
	return 1;
}

static long write_text(int proc_fd, const char *path, const char *text, size_t len)
{
	long fd = SYS_RAW(SYS_openat, proc_fd, path, O_WRONLY | O_CLOEXEC), r;

	if (fd < 0)
		return fd;
	r = SYS_RAW(SYS_write, fd, text, len);
	SYS_RAW(SYS_close, fd);
	return r < 0 ? r : 0;
}

/* Runs beside the parent: raw system calls only. */
static int make(void *arg)
{
	struct maker *m = arg;
	const struct userns_spec *spec = m->spec;
	long r;

	/* Still the host's root here; the cgroup namespace takes its root from where we are now. */
	for (size_t i = 0; i < spec->ntasks; i++) {
		r = SYS_RAW(SYS_write, spec->tasks_fds[i], "0", 1);
		if (r < 0)
			return fail(m, STEP_TASKS, r);
	}
	r = SYS_RAW(SYS_unshare, CLONE_NEWUSER | CLONE_NEWCGROUP);
	if (r < 0)
		return fail(m, STEP_UNSHARE, r);
	/* Limits of 0 only: counts of mount and pid namespaces fall late, so a limit of 1 would
	 * fail a slot that is used again at once. */
	r = write_text(spec->proc_fd, "sys/user/max_user_namespaces", "0", 1);
	if (r == 0)
		r = write_text(spec->proc_fd, "sys/user/max_net_namespaces", "0", 1);
	if (r < 0)
		return fail(m, STEP_LIMITS, r);
	r = m->user_fd = (int) SYS_RAW(SYS_openat, spec->proc_fd, "self/ns/user", O_RDONLY | O_CLOEXEC);
	if (r >= 0)
		r = m->cgroup_fd = (int) SYS_RAW(SYS_openat, spec->proc_fd, "self/ns/cgroup", O_RDONLY | O_CLOEXEC);
	if (r < 0)
		return fail(m, STEP_OPEN, r);
	helper_post(&m->state, 1);
	/* Bounded: a spawner that is killed meanwhile never answers. */
	return helper_wait(&m->go, 0, 10000) ? 0 : 1;
}

static int write_maps(const struct userns_spec *spec, pid_t pid, struct err *err)
{
	char path[32], map[48];

	snprintf(map, sizeof map, "0 %u %u\n", spec->uid_base, USERNS_RANGE);
	snprintf(path, sizeof path, "%d/uid_map", pid);
	if (write_file_at(spec->proc_fd, path, map, err) < 0)
		return -1;
	snprintf(path, sizeof path, "%d/gid_map", pid);
	return write_file_at(spec->proc_fd, path, map, err);
}

int userns_create(const struct userns_spec *spec, int *ret_user_fd, int *ret_cgroup_fd, struct err *err)
{
	struct maker m = { .spec = spec, .user_fd = -1, .cgroup_fd = -1 };
	static struct helper helper;    /* single-threaded; too large to clear each time */
	int r = -1;

	if (helper_start(&helper, spec->cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0, spec->cgroup_fd, make, &m, err) < 0)
		return err_wrap(err, "make a user namespace");
	switch (helper_wait(&m.state, 0, 5000)) {
	case 0:
		err_set(err, ERR_DEADLINE, "make a user namespace: no answer for 5 s");
		break;
	case 1:
		r = write_maps(spec, helper.pid, err);
		break;
	default:
		err_sys(err, m.error, "%s", step_names[m.step]);
	}
	if (m.state == 0)
		helper_done(&helper);
	helper_post(&m.go, 1);
	helper_join(&helper, NULL);
	if (r < 0) {
		close_fd(m.user_fd);
		close_fd(m.cgroup_fd);
		return -1;
	}
	*ret_user_fd = m.user_fd;
	*ret_cgroup_fd = m.cgroup_fd;
	return 0;
}
