/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of idle sandboxes at once. */
#include "boxes.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "base/fd.h"
#include "base/str.h"

enum { LIVE_MAX = ENGINE_SLOTS };

static struct live {
	struct box *box;
	struct slot *slot;              /* its own, or NULL: in the shared one */
} live[LIVE_MAX];
static size_t nlive;
static struct slot *shared;

/* ---- one in a slot of its own ---- */

static int make_own(struct err *err)
{
	struct slot *s;

	if (slot_create(&bench_engine, &s, err) < 0)
		return -1;
	if (bench_create_with_init(s, &live[nlive].box, err) < 0) {
		slot_destroy(&bench_engine, s);
		return -1;
	}
	/* Four descriptors fewer, as for a sandbox that starts nothing for now. */
	cgroup_rest(s->cgroup);
	live[nlive++].slot = s;
	return 0;
}

/* ---- one of many in the shared slot ---- */

/* In one network namespace inits can't all have the same name: the kernel picks one for each. */
static int make_socket_pair(int *ret_listener, int *ret_conn, struct err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = sizeof addr;
	_cleanup_close_ int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	_cleanup_close_ int conn = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (listener < 0 || conn < 0 || bind(listener, (struct sockaddr *) &addr, sizeof addr.sun_family) < 0 ||
	    listen(listener, 128) < 0 || getsockname(listener, (struct sockaddr *) &addr, &len) < 0 ||
	    connect(conn, (struct sockaddr *) &addr, len) < 0)
		return err_sys(err, errno, "make a control socket");
	*ret_listener = TAKE_FD(listener);
	*ret_conn = TAKE_FD(conn);
	return 0;
}

static int make_sockets(int *ret_listener, int *ret_conn, struct err *err)
{
	int r;

	if (setns(shared->netns_fd, CLONE_NEWNET) < 0)
		return err_sys(err, errno, "enter the shared network namespace");
	r = make_socket_pair(ret_listener, ret_conn, err);
	if (setns(bench_engine.own_netns_fd, CLONE_NEWNET) < 0)
		abort();
	return r;
}

static int make_shared(struct err *err)
{
	static char *const argv[] = { "cuvette-init", "10", NULL };
	_cleanup_close_ int listener = -1, conn = -1;
	struct box_spec spec = bench_spec();
	struct box *box;
	int pass[2];

	if (!shared && slot_create(&bench_engine, &shared, err) < 0)
		return -1;
	if (make_sockets(&listener, &conn, err) < 0)
		return -1;
	pass[0] = listener;
	pass[1] = cgroup_box_fd(shared->cgroup);
	spec.program_fd = bench_init_fd;
	spec.argv = argv;
	spec.pass = pass;
	spec.npass = ARRAY_SIZE(pass);
	if (box_create(&bench_engine, shared, &spec, &box, NULL, err) < 0)
		return -1;
	if (talk_ping(conn, err) < 0) {
		box_destroy(box, NULL);
		return -1;
	}
	live[nlive++] = (struct live) { .box = box };
	return 0;
}

/* ---- requests ---- */

int live_make(int argc, char **argv, uint64_t *ret, struct err *err)
{
	uint64_t count;
	bool own;

	if (argc != 3 || parse_u64(argv[2], 0, LIVE_MAX - nlive, &count, err) < 0)
		return err_set(err, ERR_INVALID, "usage: live own|shared COUNT");
	own = !strcmp(argv[1], "own");
	for (uint64_t i = 0; i < count; i++)
		if ((own ? make_own(err) : make_shared(err)) < 0)
			return err_wrap(err, "after %zu live sandboxes", nlive);
	*ret = nlive;
	return 0;
}

int live_pid(int argc, char **argv, uint64_t *ret, struct err *err)
{
	uint64_t k;

	if (argc != 2 || parse_u64(argv[1], 0, nlive - 1, &k, err) < 0)
		return err_set(err, ERR_INVALID, "usage: pid NUMBER");
	*ret = (uint64_t) live[k].box->pid;
	return 0;
}

int live_drop(_unused_ int argc, _unused_ char **argv, uint64_t *ret, _unused_ struct err *err)
{
	*ret = nlive;
	while (nlive) {
		struct live *l = &live[--nlive];

		box_destroy(l->box, NULL);
		slot_destroy(&bench_engine, l->slot);
		*l = (struct live) { 0 };
	}
	slot_destroy(&bench_engine, shared);
	shared = NULL;
	return 0;
}
