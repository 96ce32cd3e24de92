/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sandbox.h"

#include <string.h>

#include "base/fd.h"

static void close_all(const int *fds, size_t nfds)
{
	for (size_t i = 0; i < nfds; i++)
		close(fds[i]);
}

int sandbox_create(struct spawner *s, const struct spawn_request *spec, struct sandbox **ret, struct err *err)
{
	struct spawn_request req = *spec;
	struct spawn_reply reply;
	int fds[FD_PASS_MAX];
	struct sandbox *sb;
	size_t nfds = 0;

	req.type = SPAWN_CREATE;
	spawn_default_limits(&req.limits);
	if (spawner_call(s, &req, &reply, fds, &nfds, err) < 0)
		return -1;
	if (nfds != 2) {
		close_all(fds, nfds);
		return err_set(err, ERR_INTERNAL, "the spawner sent %zu descriptors with a sandbox, expected 2", nfds);
	}
	sb = xcalloc(1, sizeof *sb);
	sb->spawner = s;
	memcpy(sb->id, reply.id, sizeof sb->id);
	sb->pidfd = fds[0];
	sb->first_conn = fds[1];
	sb->limits = req.limits;
	sb->create_us = reply.stats.create_us;
	*ret = sb;
	return 0;
}

/* A request about this sandbox that may bring one descriptor. */
static int call(struct sandbox *sb, uint16_t type, struct spawn_reply *reply, int *ret_fd, struct err *err)
{
	struct spawn_request req = { .type = type };
	int fds[FD_PASS_MAX];
	size_t nfds = 0;

	memcpy(req.id, sb->id, sizeof req.id);
	if (spawner_call(sb->spawner, &req, reply, ret_fd ? fds : NULL, ret_fd ? &nfds : NULL, err) < 0)
		return -1;
	if (!ret_fd)
		return 0;
	if (nfds != 1) {
		close_all(fds, nfds);
		return err_set(err, ERR_INTERNAL, "the spawner did not send one descriptor");
	}
	*ret_fd = fds[0];
	return 0;
}

int sandbox_connect(struct sandbox *sb, int *ret_fd, struct err *err)
{
	struct spawn_reply reply;

	if (sb->first_conn >= 0) {
		*ret_fd = TAKE_FD(sb->first_conn);
		return 0;
	}
	if (call(sb, SPAWN_CONNECT, &reply, ret_fd, err) < 0)
		return err_wrap(err, "connect to sandbox %s", sb->id);
	return 0;
}

int sandbox_stats(struct sandbox *sb, struct spawn_stats *ret, struct err *err)
{
	struct spawn_reply reply;

	if (call(sb, SPAWN_STATS, &reply, NULL, err) < 0)
		return err_wrap(err, "read the counters of sandbox %s", sb->id);
	*ret = reply.stats;
	return 0;
}

int sandbox_kill(struct sandbox *sb, struct err *err)
{
	struct spawn_reply reply;

	if (call(sb, SPAWN_KILL, &reply, NULL, err) < 0)
		return err_wrap(err, "kill the processes of sandbox %s", sb->id);
	return 0;
}

int sandbox_destroy(struct sandbox *sb, struct spawn_stats *ret, struct err *err)
{
	struct spawn_reply reply;
	int r;

	close_fd(sb->first_conn);
	r = call(sb, SPAWN_DESTROY, &reply, NULL, err);
	if (r < 0)
		err_wrap(err, "destroy sandbox %s", sb->id);
	else if (ret)
		*ret = reply.stats;
	close_fd(sb->pidfd);
	free(sb);
	return r;
}
