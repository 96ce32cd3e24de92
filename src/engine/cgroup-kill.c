/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cgroup-internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"

enum { RMDIR_TIMEOUT_MS = 2000 };

static void sleep_us(unsigned us)
{
	struct timespec t = { 0, (long) us * 1000 };

	nanosleep(&t, NULL);
}

static bool is_populated(int events_fd)
{
	char text[256];
	ssize_t n = pread(events_fd, text, sizeof text - 1, 0);

	if (n <= 0)     /* the group itself is gone */
		return false;
	text[n] = '\0';
	return knob_key(text, "populated") != 0;
}

/*
 * Waits until the group is empty.  The kernel reports changes of cgroup.events at most every
 * 10 ms, so a short kill would look like a long one: look again a few times first (here 20 us
 * to 2.5 ms), then sleep in poll().  Its time-out is short because a report may have been
 * swallowed by that throttle.
 */
static int wait_empty(int events_fd, uint64_t deadline_ns)
{
	struct pollfd p = { events_fd, POLLPRI, 0 };

	for (unsigned us = 20; us < 3000; us *= 2) {
		if (!is_populated(events_fd))
			return 0;
		if (now_ns() >= deadline_ns)
			return -1;
		sleep_us(us);
	}
	while (is_populated(events_fd)) {
		int left = ms_until(deadline_ns);

		if (!left)
			return -1;
		poll(&p, 1, MIN(left, 5));
	}
	return 0;
}

/* SIGKILL to every process but `spared` that is listed in dir_fd/PATH/cgroup.procs; returns how many
 * there were.  The reads go on to the end, because a killed process stays listed until it has left. */
static unsigned kill_listed(int dir_fd, const char *path, pid_t spared)
{
	_cleanup_close_ int fd = knob_open(dir_fd, path, "", "cgroup.procs", O_RDONLY);
	char text[4096];
	unsigned count = 0;
	pid_t pid = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, text, sizeof text)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] >= '0' && text[i] <= '9') {
				pid = pid * 10 + (text[i] - '0');
				continue;
			}
			/* 0 stands for a process of a foreign pid namespace: kill(0) would hit ourselves. */
			if (pid > 1 && pid != spared) {
				kill(pid, SIGKILL);
				count++;
			}
			pid = 0;
		}
	}
	return count;
}

/* The same for the group and everything below it: box, init and gN are at most two levels deep. */
static unsigned kill_below(int dir_fd, const char *path, unsigned depth, pid_t spared)
{
	int fd = knob_open(dir_fd, path, "", ".", O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	unsigned count = kill_listed(dir_fd, path, spared);
	struct dirent *e;

	if (!dir) {
		close_fd(fd);
		return count;
	}
	while (depth && (e = readdir(dir)))
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			count += kill_below(dirfd(dir), e->d_name, depth - 1, spared);
	closedir(dir);
	return count;
}

/*
 * Kills one by one, for a group that is used again: on current kernels a group whose cgroup.kill
 * was written once kills whatever is born into it by CLONE_INTO_CGROUP from then on.  (The kernel
 * compares the group's count of kills with that of the parent's group: 6.18.)  Also for kernels
 * before 5.14, which have no cgroup.kill.
 *
 * Processes that fork faster than they are found are frozen, where SIGKILL still gets through.
 */
static int kill_by_signal(int v2_fd, const char *path, int events_fd, uint64_t deadline_ns)
{
	uint64_t patience_ns = 1000000;
	bool is_frozen = false;
	int r;

	for (int round = 0;; round++) {
		kill_below(v2_fd, path, 2, 0);
		r = wait_empty(events_fd, MIN(deadline_ns, now_ns() + patience_ns));
		if (r == 0 || now_ns() >= deadline_ns)
			break;
		if (!is_frozen)
			is_frozen = knob_write(v2_fd, path, "", "cgroup.freeze", "1", NULL) == 0;
		else
			patience_ns = MIN(patience_ns * 2, 50000000u);
	}
	if (is_frozen)
		(void) !knob_write(v2_fd, path, "", "cgroup.freeze", "0", NULL);
	return r;
}

int cgroup_kill_path(int v2_fd, const char *name, const char *sub, enum cgroup_after after, unsigned timeout_ms,
                     struct err *err)
{
	uint64_t deadline = now_ns() + timeout_ms * 1000000ull;
	_cleanup_close_ int events = -1;
	char path[CG_PATH_MAX];
	int r;

	snprintf(path, sizeof path, "%s%s%s", name, *sub ? "/" : "", sub);
	events = knob_open(v2_fd, path, "", "cgroup.events", O_RDONLY);
	if (events < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "open cgroup.events of %s", path);
	if (!is_populated(events))
		return 0;
	if (after == CG_REMOVED_NEXT && knob_write(v2_fd, path, "", "cgroup.kill", "1", NULL) == 0)
		r = wait_empty(events, deadline);
	else
		r = kill_by_signal(v2_fd, path, events, deadline);
	if (r < 0)
		return err_set(err, ERR_DEADLINE, "processes of cgroup %s are still there %u ms after SIGKILL",
		               path, timeout_ms);
	return 0;
}

int cgroup_kill_but(int v2_fd, const char *name, pid_t spared, unsigned timeout_ms, struct err *err)
{
	uint64_t deadline = now_ns() + timeout_ms * 1000000ull;
	bool is_frozen = false;
	unsigned us = 20;

	/* From the second look on all of them stand still while they are found, `spared` too: nothing
	 * forks meanwhile, and SIGKILL still gets through. */
	while (kill_below(v2_fd, name, 2, spared)) {
		if (is_frozen)
			(void) !knob_write(v2_fd, name, "", "cgroup.freeze", "0", NULL);
		if (now_ns() >= deadline)
			return err_set(err, ERR_DEADLINE, "commands of cgroup %s are still there %u ms after SIGKILL",
			               name, timeout_ms);
		sleep_us(us);
		us = MIN(us * 2, 5000u);
		is_frozen = knob_write(v2_fd, name, "", "cgroup.freeze", "1", NULL) == 0;
	}
	if (is_frozen)
		(void) !knob_write(v2_fd, name, "", "cgroup.freeze", "0", NULL);
	return 0;
}

int cgroup_rmdir(int dir_fd, const char *path)
{
	uint64_t deadline = 0;

	for (unsigned us = 50;; us = MIN(us * 2, 10000u)) {
		if (unlinkat(dir_fd, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			return -1;
		if (!deadline)
			deadline = now_ns() + RMDIR_TIMEOUT_MS * 1000000ull;
		else if (now_ns() >= deadline)
			return -1;
		sleep_us(us);
	}
}

void cgroup_remove_groups(struct cgroup *cg, const char *box)
{
	int fd = knob_open(cg->tree->v2_fd, cg->name, box, ".", O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		close_fd(fd);
		return;
	}
	while ((e = readdir(dir)))
		if (e->d_type == DT_DIR && e->d_name[0] == 'g')
			(void) !cgroup_rmdir(dirfd(dir), e->d_name);
	closedir(dir);
}
