/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/netns.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "base/fd.h"

enum { STEP_UNSHARE = 1, STEP_OPEN, STEP_LO };

static const char *const step_names[] = {
	[STEP_UNSHARE] = "make a network namespace",
	[STEP_OPEN] = "open the new network namespace",
	[STEP_LO] = "bring up its loopback interface",
};

/* From here to make(): runs in a helper, raw system calls only. */

static int fail(struct netns_maker *m, int step, long result)
{
	m->step = step;
	m->error = (int) -result;
	return 1;
}

static long bring_lo_up(void)
{
	struct ifreq req = { .ifr_name = "lo" };
	long sock = SYS_RAW(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

	if (sock < 0)
		return sock;
	req.ifr_flags = IFF_UP;
	r = SYS_RAW(SYS_ioctl, sock, SIOCSIFFLAGS, &req);
	SYS_RAW(SYS_close, sock);
	return r;
}

/* Low ports are free to all inside: the namespace is the sandbox's own, and its root could not
 * be allowed to bind them otherwise (it has no capability over this namespace). */
static void free_low_ports(int proc_fd)
{
	long fd = SYS_RAW(SYS_openat, proc_fd, "sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	SYS_RAW(SYS_write, fd, "0", 1);
	SYS_RAW(SYS_close, fd);
}

static int make(void *arg)
{
	struct netns_maker *m = arg;
	long r;

	r = SYS_RAW(SYS_unshare, CLONE_NEWNET);
	if (r < 0)
		return fail(m, STEP_UNSHARE, r);
	r = SYS_RAW(SYS_openat, m->proc_fd, "self/ns/net", O_RDONLY | O_CLOEXEC);
	if (r < 0)
		return fail(m, STEP_OPEN, r);
	m->fd = (int) r;
	r = bring_lo_up();
	if (r < 0)
		return fail(m, STEP_LO, r);
	free_low_ports(m->proc_fd);
	return 0;
}

int netns_start(struct netns_maker *m, int proc_fd, struct err *err)
{
	m->helper.pid = 0;
	m->proc_fd = proc_fd;
	m->fd = -1;
	m->step = m->error = 0;
	return helper_start(&m->helper, 0, -1, make, m, err);
}

int netns_finish(struct netns_maker *m, int *ret_fd, struct err *err)
{
	if (helper_join(&m->helper, NULL) < 0) {
		m->fd = close_fd(m->fd);
		if (!m->step)
			return err_set(err, ERR_INTERNAL, "the helper that makes network namespaces died");
		return err_sys(err, m->error, "%s", step_names[m->step]);
	}
	*ret_fd = TAKE_FD(m->fd);
	return 0;
}

void netns_cancel(struct netns_maker *m)
{
	helper_done(&m->helper);
	m->fd = close_fd(m->fd);
}

/* ---- is it clean? ---- */

/* Sends one dump request; returns how many sockets it named (at most a few), or -1. */
static int count_sockets(int nl, const void *request, size_t len)
{
	char reply[8192] __attribute__((aligned(8)));
	int count = 0;

	if (send(nl, request, len, 0) < 0)
		return -1;
	for (;;) {
		ssize_t n = recv(nl, reply, sizeof reply, 0);
		struct nlmsghdr *h = (struct nlmsghdr *) reply;

		if (n <= 0)
			return -1;
		for (unsigned left = (unsigned) n; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return count;
			if (h->nlmsg_type == NLMSG_ERROR)
				/* ENOENT: the kernel has no such family, so it has no such socket. */
				return ((struct nlmsgerr *) NLMSG_DATA(h))->error == -ENOENT ? count : -1;
			count++;
		}
	}
}

static int count_inet(int nl, uint8_t family, uint8_t protocol)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 body;
	} request = {
		.header = { .nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		            .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.body = { .sdiag_family = family, .sdiag_protocol = protocol, .idiag_states = ~0u },
	};

	return count_sockets(nl, &request, sizeof request);
}

static int count_unix(int nl)
{
	struct {
		struct nlmsghdr header;
		struct unix_diag_req body;
	} request = {
		.header = { .nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		            .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.body = { .sdiag_family = AF_UNIX, .udiag_states = ~0u },
	};

	return count_sockets(nl, &request, sizeof request);
}

/*
 * The namespace's own counters, read from within: all sockets of any family, and TIME_WAIT, which
 * is no socket any more.  A dump of the TCP sockets walks a table that the whole host shares,
 * which takes milliseconds.
 */
static bool has_counted_none(int proc_fd)
{
	char text[1024];
	const char *waiting;

	if (read_file_at(proc_fd, "self/net/sockstat", text, sizeof text, NULL) < 0)
		return false;
	waiting = strstr(text, " tw ");
	return !strncmp(text, "sockets: used 0\n", 16) && waiting && !strncmp(waiting, " tw 0 ", 6);
}

/* A netlink socket is counted for some milliseconds after its end, so a count is no proof. */
static bool has_dumped_none(void)
{
	static const uint8_t protocols[] = { IPPROTO_TCP, IPPROTO_UDP };
	int nl, found = -1;

	nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (nl >= 0) {
		found = count_unix(nl);
		for (size_t i = 0; !found && i < ARRAY_SIZE(protocols); i++) {
			found = count_inet(nl, AF_INET, protocols[i]);
			if (!found)
				found = count_inet(nl, AF_INET6, protocols[i]);
		}
	}
	close_fd(nl);
	return found == 0;
}

bool netns_is_clean(int fd, int own_fd, int proc_fd)
{
	bool clean;

	if (setns(fd, CLONE_NEWNET) < 0)
		return false;
	clean = has_counted_none(proc_fd) || has_dumped_none();
	/* Staying behind would put every later sandbox on this network. */
	if (setns(own_fd, CLONE_NEWNET) < 0)
		abort();
	return clean;
}
