/* SPDX-License-Identifier: Apache-2.0 */
/* D01-D09: the network of a sandbox without one, and what another sandbox holds. */
#include "probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- reaching out ---- */

/* Connects (a UDP socket only asks for a route then) and sends nothing. */
static long try_address(const char *address, unsigned port, int type)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t) port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t) port) };
	struct timeval patience = { .tv_sec = 3 };      /* for a packet that somebody did send out */
	bool is_v6 = strchr(address, ':');
	int sock = socket(is_v6 ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC, 0);
	long r;

	if (sock < 0)
		return -1;
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	inet_pton(is_v6 ? AF_INET6 : AF_INET, address, is_v6 ? (void *) &v6.sin6_addr : (void *) &v4.sin_addr);
	r = is_v6 ? connect(sock, (void *) &v6, sizeof v6) : connect(sock, (void *) &v4, sizeof v4);
	if (r < 0) {
		int saved = errno;

		close(sock);
		errno = saved;
		return -1;
	}
	return close(sock);
}

static long try_connect(const struct probe *p)
{
	return try_address(p->path, (unsigned) p->args[0], (int) p->args[1]);
}

/* A unix name, abstract in this network namespace. */
static long try_abstract(const char *text, int type)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	size_t len = strlen(text);
	int sock = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	if (sock < 0 || len + 1 > sizeof name.sun_path)
		return -1;
	memcpy(name.sun_path + 1, text, len);
	return connect(sock, (void *) &name, (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + len));
}

static long try_host_abstract(const struct probe *p)
{
	(void) p;
	return around.host_abstract ? try_abstract(around.host_abstract, SOCK_STREAM) : observe("no name was given");
}

/* Every address of the host must be as far away as the rest of the world. */
static long try_host_port(const struct probe *p)
{
	(void) p;
	if (!around.host_port || !around.host_address_count)
		return observe("no host address was given");
	for (size_t i = 0; i < around.host_address_count; i++)
		if (try_address(around.host_addresses[i], around.host_port, SOCK_STREAM) == 0 || errno != ENETUNREACH)
			return observe("%s: %s", around.host_addresses[i], errno_word(errno));
	return fail(ENETUNREACH);
}

static long try_host_loopback(const struct probe *p)
{
	return around.host_port ? try_address(p->path, around.host_port, SOCK_STREAM) : observe("no port was given");
}

/* ---- changing the network: each asks for what changes nothing, should it be granted ---- */

struct route_request {
	struct nlmsghdr head;
	union { struct ifaddrmsg address; struct rtmsg route; struct ifinfomsg link; } body;
	char attributes[64];
};

static void add_attribute(struct route_request *r, uint16_t type, const void *data, size_t len)
{
	struct rtattr *at = (void *) ((char *) r + NLMSG_ALIGN(r->head.nlmsg_len));

	at->rta_type = type;
	at->rta_len = (uint16_t) RTA_LENGTH(len);
	memcpy(RTA_DATA(at), data, len);
	r->head.nlmsg_len = NLMSG_ALIGN(r->head.nlmsg_len) + RTA_ALIGN(at->rta_len);
}

/* Deletes an address and a route that do not exist, sets no flag of lo. */
static long try_route(const struct probe *p)
{
	struct route_request r = { .head = { .nlmsg_type = (uint16_t) p->args[0], .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK } };
	uint32_t nowhere = htonl(0x7f090909);   /* 127.9.9.9 */

	switch (p->args[0]) {
	case RTM_DELADDR:
		r.head.nlmsg_len = NLMSG_LENGTH(sizeof r.body.address);
		r.body.address = (struct ifaddrmsg) { .ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = 1 };
		add_attribute(&r, IFA_LOCAL, &nowhere, sizeof nowhere);
		break;
	case RTM_DELROUTE:
		r.head.nlmsg_len = NLMSG_LENGTH(sizeof r.body.route);
		r.body.route = (struct rtmsg) { .rtm_family = AF_INET, .rtm_dst_len = 32, .rtm_table = RT_TABLE_MAIN,
		                                .rtm_scope = RT_SCOPE_NOWHERE };
		add_attribute(&r, RTA_DST, &nowhere, sizeof nowhere);
		break;
	default:
		r.head.nlmsg_len = NLMSG_LENGTH(sizeof r.body.link);
		r.body.link = (struct ifinfomsg) { .ifi_family = AF_UNSPEC, .ifi_index = 1 };
	}
	return netlink_ask(NETLINK_ROUTE, &r.head);
}

/* Sets the flags of lo to what they are. */
static long try_interface_flags(const struct probe *p)
{
	struct ifreq lo = { .ifr_name = "lo" };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void) p;
	if (ioctl(sock, SIOCGIFFLAGS, &lo) < 0)
		return -1;
	return ioctl(sock, SIOCSIFFLAGS, &lo);
}

static long see_loopback(const struct probe *p)
{
	struct ifreq lo = { .ifr_name = "lo" };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void) p;
	if (ioctl(sock, SIOCGIFFLAGS, &lo) < 0)
		return -1;
	return observe(lo.ifr_flags & IFF_UP ? "up" : "down");
}

/* Only lo, no matter what the host has. */
static long see_interfaces(const struct probe *p)
{
	struct if_nameindex *all = if_nameindex();

	(void) p;
	if (!all)
		return -1;
	for (size_t i = 0; all[i].if_name; i++)
		if (strcmp(all[i].if_name, "lo"))
			return observe("%s", all[i].if_name);
	return observe("lo");
}

static long try_option(const struct probe *p)
{
	int one = 1, sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return setsockopt(sock, (int) p->args[0], (int) p->args[1], &one, sizeof one);
}

static long try_sysctl(const struct probe *p)
{
	return open_close(p->path, O_WRONLY);
}

/* ---- what another sandbox holds ---- */

static long try_held_port(const struct probe *p)
{
	return try_address(p->path, HELD_PORT, SOCK_STREAM);
}

static long try_held_abstract(const struct probe *p)
{
	(void) p;
	return try_abstract(HELD_ABSTRACT, SOCK_STREAM);
}

static long try_held_sysv(const struct probe *p)
{
	(void) p;
	return shmget(HELD_SYSV, 0, 0);
}

static long try_held_queue(const struct probe *p)
{
	(void) p;
	return syscall(SYS_mq_open, HELD_QUEUE + 1, O_RDONLY, 0, NULL);   /* the call takes the name without its slash */
}

static long try_held_file(const struct probe *p)
{
	struct stat st;

	return stat(p->path, &st);
}

/* ---- the table ---- */

#define CONNECT(probe_name, address, port, type, want) \
	{ probe_name, try_connect, .path = address, .args = { port, type }, ALWAYS(want) }
/* Where IPv6 is off there is no address family or no address to start from. */
#define NO_ROUTE_V6 "ENETUNREACH EADDRNOTAVAIL EAFNOSUPPORT"
#define OPTION(probe_name, level, option) { probe_name, try_option, .args = { level, option }, ALWAYS("EPERM") }
#define READ_ONLY "EACCES EROFS"

static const struct probe probes[] = {
	CONNECT("D01-connect-1.1.1.1", "1.1.1.1", 80, SOCK_STREAM, "ENETUNREACH"),
	CONNECT("D01-connect-metadata", "169.254.169.254", 80, SOCK_STREAM, "ENETUNREACH"),
	CONNECT("D01-connect-dns-udp", "8.8.8.8", 53, SOCK_DGRAM, "ENETUNREACH"),
	CONNECT("D01-connect-private", "10.0.0.1", 80, SOCK_STREAM, "ENETUNREACH"),
	CONNECT("D01-connect-v6", "2606:4700:4700::1111", 80, SOCK_STREAM, NO_ROUTE_V6),
	CONNECT("D01-connect-mapped-v4", "::ffff:1.1.1.1", 80, SOCK_STREAM, NO_ROUTE_V6),
	{ "D01-interfaces", see_interfaces, ALWAYS("lo") },
	{ "D01-loopback-is-up", see_loopback, ALWAYS("up") },
	{ "D02-host-abstract-name", try_host_abstract, ALWAYS("ECONNREFUSED") },
	{ "D03-host-addresses", try_host_port, ALWAYS("ENETUNREACH") },
	{ "D03-host-port-on-own-loopback", try_host_loopback, .path = "127.0.0.1", ALWAYS("ECONNREFUSED") },
	{ "D08-delete-address", try_route, .args = { RTM_DELADDR }, ALWAYS("EPERM") },
	{ "D08-delete-route", try_route, .args = { RTM_DELROUTE }, ALWAYS("EPERM") },
	{ "D08-set-link", try_route, .args = { RTM_SETLINK }, ALWAYS("EPERM") },
	{ "D08-interface-flags", try_interface_flags, ALWAYS("EPERM") },
	OPTION("D08-mark", SOL_SOCKET, SO_MARK),
	OPTION("D08-force-buffer", SOL_SOCKET, SO_RCVBUFFORCE),
	OPTION("D08-transparent", IPPROTO_IP, IP_TRANSPARENT),
	OPTION("D08-tcp-repair", IPPROTO_TCP, TCP_REPAIR),
	{ "D08-sysctl-forwarding", try_sysctl, .path = "/proc/sys/net/ipv4/conf/all/forwarding", ALWAYS(READ_ONLY) },
	{ "D08-sysctl-somaxconn", try_sysctl, .path = "/proc/sys/net/core/somaxconn", ALWAYS(READ_ONLY) },
	{ "D08-sysctl-v6", try_sysctl, .path = "/proc/sys/net/ipv6/conf/all/disable_ipv6", ALWAYS(READ_ONLY " ENOENT") },
	{ "D09-held-port", try_held_port, .path = "127.0.0.1", ALWAYS("ECONNREFUSED") },
	{ "D09-held-abstract-name", try_held_abstract, ALWAYS("ECONNREFUSED") },
	{ "D09-held-sysv-key", try_held_sysv, ALWAYS("ENOENT") },
	{ "D09-held-queue", try_held_queue, ALWAYS("ENOENT") },
	{ "D09-held-shm", try_held_file, .path = HELD_SHM, ALWAYS("ENOENT") },
	{ "D09-held-tmp", try_held_file, .path = HELD_TMP, ALWAYS("ENOENT") },
};

const struct probe_group probes_network = { probes, sizeof probes / sizeof probes[0] };
