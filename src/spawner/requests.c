/* SPDX-License-Identifier: Apache-2.0 */
#include "spawner/requests.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { KILL_TIMEOUT_MS = 5000 };

typedef int request_fn(struct registry *r, const struct spawn_request *req, struct answer *a, struct err *err);

static void give_fd(struct answer *a, int fd)
{
	a->fds[a->nfds++] = fd;
}

static int hello(struct registry *r, const struct spawn_request *req, struct answer *a, struct err *err)
{
	(void) r; (void) req; (void) a; (void) err;
	return 0;
}

static int create(struct registry *r, const struct spawn_request *req, struct answer *a, struct err *err)
{
	struct sandbox *sb;
	bool pooled;
	int conn, pidfd;

	if (registry_create(r, req, &sb, &conn, &pooled, err) < 0)
		return -1;
	pidfd = fcntl(sb->box->pidfd, F_DUPFD_CLOEXEC, 0);
	if (pidfd < 0) {
		err_sys(err, errno, "duplicate a pidfd");
		close_fd(conn);
		registry_destroy(r, sb, NULL);
		return -1;
	}
	give_fd(a, pidfd);
	give_fd(a, conn);
	snprintf(a->reply.id, sizeof a->reply.id, "%s", sb->id);
	a->reply.init_pid = (uint32_t) sb->box->pid;
	a->reply.pooled = pooled;
	a->reply.stats.create_us = sb->box->create_us;
	return 0;
}

static int connect_init(struct registry *r, const struct spawn_request *req, struct answer *a, struct err *err)
{
	struct sandbox *sb;
	int conn;

	if (registry_get(r, req->id, &sb, err) < 0 || box_connect(&r->engine, sb->box, &conn, err) < 0)
		return -1;
	give_fd(a, conn);
	return 0;
}

static int stats(struct registry *r, const struct spawn_request *req, struct answer *a, struct err *err)
{
	struct sandbox *sb;

	if (registry_get(r, req->id, &sb, err) < 0)
		return -1;
	return registry_stats(sb, &a->reply.stats, err);
}

static int limits(struct registry *r, const struct spawn_request *req, struct answer *a, struct err *err)
{
	struct cgroup_limits cl;
	struct sandbox *sb;

	(void) a;
	if (registry_get(r, req->id, &sb, err) < 0)
		return -1;
	if (req->limits.disk_bytes || req->limits.disk_inodes || req->limits.nofile)
		return err_set(err, ERR_INVALID, "disk, inodes and nofile of a running sandbox can't change");
	cl = (struct cgroup_limits) {
		.memory_bytes = req->limits.memory_bytes ? req->limits.memory_bytes : sb->limits.memory_bytes,
		.pids = req->limits.pids ? req->limits.pids : sb->limits.pids,
		.cpu_milli = req->limits.cpu_milli ? req->limits.cpu_milli : sb->limits.cpu_milli,
	};
	if (cgroup_set_limits(sb->slot->cgroup, &cl, err) < 0)
		return -1;
	sb->limits.memory_bytes = cl.memory_bytes;
	sb->limits.pids = (uint32_t) cl.pids;
	sb->limits.cpu_milli = (uint32_t) cl.cpu_milli;
	return 0;
}

static int kill_commands(struct registry *r, const struct spawn_request *req, struct answer *a, struct err *err)
{
	struct sandbox *sb;

	(void) a;
	if (registry_get(r, req->id, &sb, err) < 0)
		return -1;
	return box_kill_commands(sb->box, KILL_TIMEOUT_MS, err);
}

static int destroy(struct registry *r, const struct spawn_request *req, struct answer *a, struct err *err)
{
	struct sandbox *sb;

	if (registry_get(r, req->id, &sb, err) < 0)
		return -1;
	registry_destroy(r, sb, &a->reply.stats);
	return 0;
}

static int pool(struct registry *r, const struct spawn_request *req, struct answer *a, struct err *err)
{
	(void) a;
	return registry_set_pool(r, req, err);
}

static int group(struct registry *r, const struct spawn_request *req, struct answer *a, struct err *err)
{
	struct sandbox *sb;
	int fd;

	if (registry_get(r, req->id, &sb, err) < 0 ||
	    cgroup_group_create(sb->slot->cgroup, sb->box->groups + 1, &fd, err) < 0)
		return -1;
	a->reply.group = ++sb->box->groups;
	give_fd(a, fd);
	return 0;
}

static int group_kill(struct registry *r, const struct spawn_request *req, struct answer *a, struct err *err)
{
	struct sandbox *sb;

	(void) a;
	if (registry_get(r, req->id, &sb, err) < 0)
		return -1;
	if (!req->group || req->group > sb->box->groups)
		return err_set(err, ERR_NOT_FOUND, "group: sandbox %s has no group %u", sb->id, req->group);
	return cgroup_group_kill(sb->slot->cgroup, req->group, KILL_TIMEOUT_MS, err);
}

static int terminal(struct registry *r, const struct spawn_request *req, struct answer *a, struct err *err)
{
	struct sandbox *sb;

	(void) a;
	if (registry_get(r, req->id, &sb, err) < 0)
		return -1;
	return box_enable_terminals(&r->engine, sb->box, err);
}

static request_fn *const table[SPAWN_TYPE_COUNT] = {
	[SPAWN_HELLO] = hello,
	[SPAWN_CREATE] = create,
	[SPAWN_CONNECT] = connect_init,
	[SPAWN_STATS] = stats,
	[SPAWN_LIMITS] = limits,
	[SPAWN_KILL] = kill_commands,
	[SPAWN_DESTROY] = destroy,
	[SPAWN_POOL] = pool,
	[SPAWN_GROUP] = group,
	[SPAWN_GROUP_KILL] = group_kill,
	[SPAWN_TERMINAL] = terminal,
};

/* Whoever asks, and for whatever: a pool's sandboxes are made with the same options. */
static int check_options(const struct spawn_request *req, struct err *err)
{
#ifndef CUVETTE_TEST_SPAWNER
	if (req->options & SPAWN_NO_FILTER)
		return err_set(err, ERR_PERMISSION, "options: this spawner always loads the seccomp filter");
#endif
	(void) req; (void) err;
	return 0;
}

void request_serve(struct registry *r, const struct spawn_request *req, struct answer *ret)
{
	struct err err = { 0 };

	memset(ret, 0, sizeof *ret);
	ret->reply.type = req->type;
	if (check_options(req, &err) < 0 || table[req->type](r, req, ret, &err) < 0)
		ret->reply.err = err;
}
