/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cgroup-internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"

enum { KILL_TIMEOUT_MS = 5000, KILL_AT_ONCE_MS = 5 };

static int check_name(const char *name, struct err *err)
{
	if (!*name || *name == '.' || strchr(name, '/') || strlen(name) >= CGROUP_NAME_MAX)
		return err_set(err, ERR_INVALID, "not a name for a cgroup: \"%s\"", name);
	return 0;
}

static struct cgroup *cgroup_new(struct cgroup_tree *tree, const char *name)
{
	struct cgroup *cg = xcalloc(1, sizeof *cg);

	cg->tree = tree;
	strcpy(cg->name, name);
	cg->init_fd = cg->box_fd = cg->peak_fd = -1;
	for (size_t i = 0; i < ARRAY_SIZE(cg->tasks_fd); i++)
		cg->tasks_fd[i] = -1;
	return cg;
}

/* Where init is: below NAME where controllers forbid processes in NAME itself. */
static const char *init_sub(const struct cgroup *cg)
{
	return cg->tree->mode == CGROUP_V2 ? "init" : "";
}

/*
 * Where commands are.  On v1 hosts they share NAME with init, and it is their v1 groups that tell
 * them apart: to leave init's v2 group each command would have to write cgroup.procs, which waits
 * for an RCU grace period (K1).
 */
static const char *box_sub(const struct cgroup *cg)
{
	return cg->tree->mode == CGROUP_V1 ? "" : "box";
}

static int make_dir(struct cgroup *cg, const char *sub, struct err *err)
{
	char path[CG_PATH_MAX];

	snprintf(path, sizeof path, "%s%s%s", cg->name, *sub ? "/" : "", sub);
	if (mkdirat(cg->tree->v2_fd, path, 0755) < 0)
		return err_sys(err, errno, "create cgroup %s", path);
	if (cg->tree->made)
		cg->tree->made(cg->tree->v2_fd, path);
	return 0;
}

/* Lets init put its children into the group: the kernel asks for write access to cgroup.procs
 * of the target and of the common ancestor.  Nothing else is given away, so that nobody inside
 * can change a limit or make groups. */
static int give_procs(struct cgroup *cg, const char *sub, struct err *err)
{
	char path[CG_PATH_MAX];

	snprintf(path, sizeof path, "%s%s%s/cgroup.procs", cg->name, *sub ? "/" : "", sub);
	if (fchownat(cg->tree->v2_fd, path, cg->owner, cg->owner, 0) < 0)
		return err_sys(err, errno, "give %s to uid %u", path, (unsigned) cg->owner);
	return 0;
}

static int make_v2(struct cgroup *cg, struct err *err)
{
	if (make_dir(cg, "", err) < 0)
		return -1;
	cg->made_v2 = true;
	if (give_procs(cg, "", err) < 0)
		return -1;
	if (*box_sub(cg) && (make_dir(cg, box_sub(cg), err) < 0 || give_procs(cg, box_sub(cg), err) < 0))
		return -1;
	return *init_sub(cg) ? make_dir(cg, init_sub(cg), err) : 0;
}

static void open_dirs(struct cgroup *cg)
{
	if (cg->init_fd < 0)
		cg->init_fd = knob_open(cg->tree->v2_fd, cg->name, init_sub(cg), ".", O_PATH | O_DIRECTORY);
	if (cg->box_fd < 0)
		cg->box_fd = knob_open(cg->tree->v2_fd, cg->name, box_sub(cg), ".", O_PATH | O_DIRECTORY);
}

/* Removes only what creation itself has made, so that a name that is taken stays whole. */
static void undo_create(struct cgroup *cg)
{
	static const char *const subs[] = { "/init", "/box", "" };

	for (size_t i = 0; i < cg->tree->v1_count; i++)
		if (cg->made_v1 & 1u << i)
			(void) !cgroup_rmdir(cg->tree->v1[i].fd, cg->name);
	for (size_t i = 0; cg->made_v2 && i < ARRAY_SIZE(subs); i++) {
		char path[CG_PATH_MAX];

		snprintf(path, sizeof path, "%s%s", cg->name, subs[i]);
		(void) !cgroup_rmdir(cg->tree->v2_fd, path);
	}
	cgroup_forget(cg);
}

int cgroup_create(struct cgroup_tree *tree, const char *name, uid_t owner, struct cgroup **ret, struct err *err)
{
	struct cgroup *cg;

	if (check_name(name, err) < 0)
		return -1;
	cg = cgroup_new(tree, name);
	cg->owner = owner;
	if (make_v2(cg, err) < 0 || tree->ops->make(cg, err) < 0)
		goto failed;
	open_dirs(cg);
	if (cg->init_fd < 0 || cg->box_fd < 0) {
		err_sys(err, errno, "open cgroup %s", name);
		goto failed;
	}
	cg->limits_known = true;        /* new groups have none */
	*ret = cg;
	return 0;
failed:
	undo_create(cg);
	return err_wrap(err, "cgroup %s", name);
}

static bool exists(const struct cgroup *cg)
{
	if (cg->init_fd >= 0 || cg->box_fd >= 0 || faccessat(cg->tree->v2_fd, cg->name, F_OK, 0) == 0)
		return true;
	for (size_t i = 0; i < cg->tree->v1_count; i++)
		if (faccessat(cg->tree->v1[i].fd, cg->name, F_OK, 0) == 0)
			return true;
	return false;
}

/* The owner is read back from the box, so that groups can be made in an adopted slot. */
static void find_owner(struct cgroup *cg)
{
	struct stat st;

	if (cg->box_fd >= 0 && fstatat(cg->box_fd, "cgroup.procs", &st, 0) == 0)
		cg->owner = st.st_uid;
}

int cgroup_open(struct cgroup_tree *tree, const char *name, struct cgroup **ret, struct err *err)
{
	struct cgroup *cg;

	if (check_name(name, err) < 0)
		return -1;
	cg = cgroup_new(tree, name);
	open_dirs(cg);
	if (!exists(cg)) {
		cgroup_forget(cg);
		return err_set(err, ERR_NOT_FOUND, "no cgroup %s", name);
	}
	find_owner(cg);
	*ret = cg;
	return 0;
}

int cgroup_set_limits(struct cgroup *cg, const struct cgroup_limits *limits, struct err *err)
{
	const struct cgroup_ops *ops = cg->tree->ops;
	bool all = !cg->limits_known;
	struct cgroup_limits *now = &cg->limits;

	/* What is known is kept step by step, so that a failed call can be repeated. */
	if (all || now->memory_bytes != limits->memory_bytes) {
		if (ops->set_memory(cg, limits->memory_bytes, err) < 0)
			return err_wrap(err, "cgroup %s", cg->name);
		now->memory_bytes = limits->memory_bytes;
	}
	if (all || now->pids != limits->pids) {
		if (ops->set_pids(cg, limits->pids, err) < 0)
			return err_wrap(err, "cgroup %s", cg->name);
		now->pids = limits->pids;
	}
	if (all || now->cpu_milli != limits->cpu_milli) {
		if (ops->set_cpu(cg, limits->cpu_milli, err) < 0)
			return err_wrap(err, "cgroup %s", cg->name);
		now->cpu_milli = limits->cpu_milli;
	}
	cg->limits_known = true;
	return 0;
}

int cgroup_init_fd(struct cgroup *cg)
{
	open_dirs(cg);
	return cg->init_fd;
}

int cgroup_box_fd(struct cgroup *cg)
{
	open_dirs(cg);
	return cg->box_fd;
}

size_t cgroup_tasks_fds(struct cgroup *cg, int ret[CGROUP_TASKS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < cg->tree->v1_count; i++) {
		if (cg->tasks_fd[i] < 0)
			cg->tasks_fd[i] = knob_open(cg->tree->v1[i].fd, cg->name, "", "tasks", O_WRONLY);
		if (cg->tasks_fd[i] >= 0)
			ret[n++] = cg->tasks_fd[i];
	}
	return n;
}

void cgroup_rest(struct cgroup *cg)
{
	cg->init_fd = close_fd(cg->init_fd);
	cg->box_fd = close_fd(cg->box_fd);
	for (size_t i = 0; i < ARRAY_SIZE(cg->tasks_fd); i++)
		cg->tasks_fd[i] = close_fd(cg->tasks_fd[i]);
}

static void group_sub(const struct cgroup *cg, char ret[32], unsigned group)
{
	snprintf(ret, 32, "%s%sg%u", box_sub(cg), *box_sub(cg) ? "/" : "", group);
}

/* Within the box. */
static const char *group_name(const struct cgroup *cg, const char *sub)
{
	return *box_sub(cg) ? sub + strlen(box_sub(cg)) + 1 : sub;
}

int cgroup_group_create(struct cgroup *cg, unsigned group, int *ret_fd, struct err *err)
{
	char sub[32];
	int fd;

	group_sub(cg, sub, group);
	if (make_dir(cg, sub, err) < 0)
		return -1;
	if (give_procs(cg, sub, err) < 0)
		goto failed;
	fd = knob_open(cg->tree->v2_fd, cg->name, sub, ".", O_PATH | O_DIRECTORY);
	if (fd < 0) {
		err_sys(err, errno, "open cgroup %s/%s", cg->name, sub);
		goto failed;
	}
	*ret_fd = fd;
	return 0;
failed:
	(void) !cgroup_rmdir(cgroup_box_fd(cg), group_name(cg, sub));
	return -1;
}

int cgroup_group_kill(struct cgroup *cg, unsigned group, unsigned timeout_ms, struct err *err)
{
	char sub[32];

	group_sub(cg, sub, group);
	if (cgroup_kill_path(cg->tree->v2_fd, cg->name, sub, CG_REMOVED_NEXT, timeout_ms, err) < 0)
		return -1;
	if (cgroup_box_fd(cg) >= 0 && cgroup_rmdir(cg->box_fd, group_name(cg, sub)) < 0)
		return err_sys(err, errno, "remove cgroup %s/%s", cg->name, sub);
	return 0;
}

/* With an init to spare, its commands; without one, everything. */
static int kill_now(struct cgroup *cg, const pid_t *init, enum cgroup_after after, unsigned timeout_ms, struct err *err)
{
	if (init && !*box_sub(cg))
		return cgroup_kill_but(cg->tree->v2_fd, cg->name, *init, timeout_ms, err);
	return cgroup_kill_path(cg->tree->v2_fd, cg->name, init ? box_sub(cg) : "", after, timeout_ms, err);
}

/*
 * A killed process needs CPU time to leave.  A group that has used up its quota gets none until the
 * next period, up to 100 ms, and on a busy host all processes of a group together have the weight of
 * one outside.  So both are lifted while they die, but only when a kill does not come to its end at
 * once, because writing the quota walks every group of the host.
 */
static int kill_hurrying(struct cgroup *cg, const pid_t *init, enum cgroup_after after, unsigned timeout_ms,
                         struct err *err)
{
	const struct cgroup_ops *ops = cg->tree->ops;
	unsigned at_once = MIN(timeout_ms, (unsigned) KILL_AT_ONCE_MS);
	struct err e = { 0 };
	int r;

	if (kill_now(cg, init, after, at_once, &e) == 0)
		return 0;
	if (e.code != ERR_DEADLINE)
		return err_set(err, e.code, "%s", e.msg);
	ops->set_hurry(cg, true);
	(void) !ops->set_cpu(cg, 0, NULL);
	r = kill_now(cg, init, after, timeout_ms, err);
	ops->set_hurry(cg, false);
	if (cg->limits_known && ops->set_cpu(cg, cg->limits.cpu_milli, NULL) < 0)
		cg->limits_known = false;       /* the next cgroup_set_limits() writes all */
	return r;
}

int cgroup_kill_box(struct cgroup *cg, pid_t init, unsigned timeout_ms, struct err *err)
{
	return kill_hurrying(cg, &init, CG_USED_AGAIN, timeout_ms, err);
}

int cgroup_kill_all(struct cgroup *cg, unsigned timeout_ms, struct err *err)
{
	return kill_hurrying(cg, NULL, CG_USED_AGAIN, timeout_ms, err);
}

/* Counters as the kernel has them, since the slot was made. */
static int raw_stats(const struct cgroup *cg, struct cgroup_stats *ret, struct err *err)
{
	char text[2048];

	memset(ret, 0, sizeof *ret);
	/* v2 counts CPU time even where it has no controllers, and exactly, unlike v1's cpuacct.stat. */
	if (knob_read(cg->tree->v2_fd, cg->name, "", "cpu.stat", text, sizeof text, err) < 0)
		return -1;
	ret->cpu_us = knob_key(text, "usage_usec");
	ret->cpu_user_us = knob_key(text, "user_usec");
	ret->cpu_system_us = knob_key(text, "system_usec");
	return cg->tree->ops->stats(cg, ret, err);
}

int cgroup_baseline(struct cgroup *cg, struct err *err)
{
	struct cgroup_stats now;

	cg->tree->ops->reset_peak(cg);
	if (raw_stats(cg, &now, err) < 0)
		return err_wrap(err, "counters of cgroup %s", cg->name);
	cg->base = now;
	return 0;
}

static void subtract(uint64_t *value, uint64_t base)
{
	*value = *value > base ? *value - base : 0;
}

int cgroup_stats(const struct cgroup *cg, struct cgroup_stats *ret, struct err *err)
{
	struct cgroup_stats now;

	if (raw_stats(cg, &now, err) < 0)
		return err_wrap(err, "counters of cgroup %s", cg->name);
	subtract(&now.oom_kills, cg->base.oom_kills);
	subtract(&now.pids_refused, cg->base.pids_refused);
	subtract(&now.cpu_us, cg->base.cpu_us);
	subtract(&now.cpu_user_us, cg->base.cpu_user_us);
	subtract(&now.cpu_system_us, cg->base.cpu_system_us);
	subtract(&now.cpu_throttled_us, cg->base.cpu_throttled_us);
	subtract(&now.io_read_bytes, cg->base.io_read_bytes);
	subtract(&now.io_write_bytes, cg->base.io_write_bytes);
	*ret = now;
	return 0;
}

int cgroup_recycle(struct cgroup *cg, struct err *err)
{
	if (cgroup_kill_all(cg, KILL_TIMEOUT_MS, err) < 0)
		return -1;
	cgroup_remove_groups(cg, box_sub(cg));
	cg->tree->ops->drop_cache(cg);
	return cgroup_baseline(cg, err);
}

/* Removes the slot's directories from the inside out; false when one stays. */
static bool remove_dirs(struct cgroup *cg)
{
	static const char *const subs[] = { "/init", "/box", "" };
	bool gone = true;

	for (size_t i = 0; i < cg->tree->v1_count; i++)
		gone &= cgroup_rmdir(cg->tree->v1[i].fd, cg->name) == 0;
	/* On v1 hosts NAME is mostly all there is; a version with another layout may have left more. */
	if (!*box_sub(cg) && unlinkat(cg->tree->v2_fd, cg->name, AT_REMOVEDIR) == 0)
		return gone;
	cgroup_remove_groups(cg, "");
	cgroup_remove_groups(cg, "box");
	for (size_t i = 0; i < ARRAY_SIZE(subs); i++) {
		char path[CG_PATH_MAX];

		snprintf(path, sizeof path, "%s%s", cg->name, subs[i]);
		gone &= cgroup_rmdir(cg->tree->v2_fd, path) == 0;
	}
	return gone;
}

void cgroup_destroy(struct cgroup *cg)
{
	struct err err = { 0 };

	if (!cg)
		return;
	/* A slot that stays is found again by name, with cgroup_tree_list(). */
	if (kill_hurrying(cg, NULL, CG_REMOVED_NEXT, KILL_TIMEOUT_MS, &err) < 0)
		log_debug("cgroup not empty", "name", cg->name, "error", err.msg);
	else if (!remove_dirs(cg))
		log_debug("cgroup not removed", "name", cg->name);
	cgroup_forget(cg);
}

void cgroup_forget(struct cgroup *cg)
{
	if (!cg)
		return;
	close_fd(cg->peak_fd);
	cgroup_rest(cg);
	free(cg);
}
