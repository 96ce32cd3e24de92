/* SPDX-License-Identifier: Apache-2.0 */
/* A30-A35: socket families and protocols, netlink, terminal ioctls. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/netlink.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	FAMILY_RDS = 21, FAMILY_CAN = 29, FAMILY_TIPC = 30, FAMILY_BLUETOOTH = 31, FAMILY_ALG = 38, FAMILY_NFC = 39,
	FAMILY_VSOCK = 40, FAMILY_KCM = 41, FAMILY_QIPCRTR = 42, FAMILY_SMC = 43, FAMILY_XDP = 44,
	PROTO_DCCP = 33, PROTO_L2TP = 115, PROTO_SCTP = 132, PROTO_UDPLITE = 136, PROTO_SMC = 256, PROTO_MPTCP = 262,
	TYPE_DCCP = 6,
	NETLINK_DIAG = 4,
};
#define UPPER_BITS (1L << 32)

/* ---- attempts ---- */

static long try_socketpair(const struct probe *p)
{
	int pair[2];

	return syscall(SYS_socketpair, p->args[0], p->args[1], p->args[2], pair);
}

/* An empty request: whoever may not even ask gets the refusal. */
static long try_netlink(const struct probe *p)
{
	struct { struct nlmsghdr head; char body[16]; } message = {
		.head = { .nlmsg_len = sizeof message, .nlmsg_type = (uint16_t) p->args[1],
		          .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
	};

	return netlink_ask((int) p->args[0], &message.head);
}

/*
 * NFT_MSG_NEWTABLE in a batch that is never ended, so nothing is committed: the
 * capability is checked when the batch begins.
 */
static long try_nftables(const struct probe *p)
{
	struct { struct nlmsghdr head; struct nfgenmsg body; } batch = {
		.head = { .nlmsg_len = sizeof batch, .nlmsg_type = NFNL_MSG_BATCH_BEGIN,
		          .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.body = { .res_id = htons(NFNL_SUBSYS_NFTABLES) },
	};

	(void) p;
	return netlink_ask(NETLINK_NETFILTER, &batch.head);
}

/*
 * Terminal ioctls on an own PTY.  A sandbox without terminals has none; the
 * filter judges the number before the descriptor, so any other will do.
 */
static int some_terminal(void)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY);

	return terminal >= 0 ? terminal : open("/dev/null", O_RDWR);
}

static long try_ioctl(const struct probe *p)
{
	static char letter[4] = "x";
	static int line_discipline = 21;        /* N_GSM0710 */

	return syscall(SYS_ioctl, some_terminal(), p->args[0], p->args[1] ? (void *) &line_discipline : letter);
}

/* ---- the table ---- */

#define TIOCSTI_NR   0x5412L
#define TIOCLINUX_NR 0x541cL
#define TIOCSETD_NR  0x5423L
#define GARBAGE      0x7eadbeef00000000L

#define SOCKET(probe_name, family, type, protocol, ...) \
	{ probe_name, .nr = SYS_socket, .args = { family, type, protocol }, __VA_ARGS__ }
#define PAIR(probe_name, family, type, ...) { probe_name, try_socketpair, .args = { family, type, 0 }, __VA_ARGS__ }
#define NETLINK(probe_name, protocol, type, ...) { probe_name, try_netlink, .args = { protocol, type }, __VA_ARGS__ }
#define IOCTL(probe_name, request, is_setd) { probe_name, try_ioctl, .args = { request, is_setd }, FILTERED("EPERM") }

#define NO_FAMILY   FILTERED("EAFNOSUPPORT")
#define NO_PROTOCOL FILTERED("EPROTONOSUPPORT EAFNOSUPPORT")

static const struct probe probes[] = {
	/* By packet sockets' own check of NET_RAW the second layer is EPERM. */
	SOCKET("A30-packet", AF_PACKET, SOCK_RAW, 0, NO_FAMILY, BARE("EPERM")),
	SOCKET("A30-packet-dgram", AF_PACKET, SOCK_DGRAM, 0, NO_FAMILY, BARE("EPERM")),
	SOCKET("A30-vsock", FAMILY_VSOCK, SOCK_STREAM, 0, NO_FAMILY),
	SOCKET("A30-vsock-dgram", FAMILY_VSOCK, SOCK_DGRAM, 0, NO_FAMILY),
	SOCKET("A30-vsock-upper-bits", FAMILY_VSOCK | UPPER_BITS, SOCK_STREAM, 0, NO_FAMILY),
	SOCKET("A30-alg", FAMILY_ALG, SOCK_SEQPACKET, 0, NO_FAMILY),
	SOCKET("A30-bluetooth", FAMILY_BLUETOOTH, SOCK_RAW, 1, NO_FAMILY),
	SOCKET("A30-tipc", FAMILY_TIPC, SOCK_SEQPACKET, 0, NO_FAMILY),
	SOCKET("A30-rds", FAMILY_RDS, SOCK_SEQPACKET, 0, NO_FAMILY),
	SOCKET("A30-xdp", FAMILY_XDP, SOCK_RAW, 0, NO_FAMILY),
	SOCKET("A30-can", FAMILY_CAN, SOCK_RAW, 1, NO_FAMILY),
	SOCKET("A30-nfc", FAMILY_NFC, SOCK_SEQPACKET, 0, NO_FAMILY),
	SOCKET("A30-kcm", FAMILY_KCM, SOCK_DGRAM, 0, NO_FAMILY),
	SOCKET("A30-qipcrtr", FAMILY_QIPCRTR, SOCK_DGRAM, 0, NO_FAMILY),
	SOCKET("A30-smc", FAMILY_SMC, SOCK_STREAM, 0, NO_FAMILY),
	/* Without the filter the socket is made (and its module loaded) before EOPNOTSUPP. */
	PAIR("A30-socketpair-vsock", FAMILY_VSOCK, SOCK_STREAM, NO_FAMILY),
	PAIR("A30-socketpair-tipc", FAMILY_TIPC, SOCK_SEQPACKET, NO_FAMILY),
	PAIR("A30-socketpair-unix", AF_UNIX, SOCK_STREAM, ALWAYS("ok")),

	SOCKET("A31-raw-icmp", AF_INET, SOCK_RAW, IPPROTO_ICMP, ALWAYS("EPERM")),
	SOCKET("A31-raw-icmp6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6, ALWAYS("EPERM")),
	SOCKET("A31-raw-tcp", AF_INET, SOCK_RAW, IPPROTO_TCP, ALWAYS("EPERM")),
	/* Protocol 255 is not on the filter's list. */
	SOCKET("A31-raw-any", AF_INET, SOCK_RAW, IPPROTO_RAW, FILTERED("EPERM EAFNOSUPPORT"), BARE("EPERM")),
	SOCKET("A31-ping", AF_INET, SOCK_DGRAM, IPPROTO_ICMP, ALWAYS("EACCES")),
	SOCKET("A31-ping6", AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6, ALWAYS("EACCES")),

	SOCKET("A32-netlink-usersock", AF_NETLINK, SOCK_RAW, 2, NO_FAMILY),
	SOCKET("A32-netlink-diag", AF_NETLINK, SOCK_RAW, NETLINK_DIAG, NO_FAMILY),
	SOCKET("A32-netlink-xfrm", AF_NETLINK, SOCK_RAW, 6, NO_FAMILY),
	SOCKET("A32-netlink-uevent", AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT, NO_FAMILY),
	SOCKET("A32-netlink-generic", AF_NETLINK, SOCK_RAW, NETLINK_GENERIC, NO_FAMILY),
	SOCKET("A32-netlink-crypto", AF_NETLINK, SOCK_RAW, 21, NO_FAMILY),
	SOCKET("A32-netlink-route", AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, ALWAYS("ok")),
	/*
	 * The second layer of these is at the message, not at the socket: audit answers every other
	 * user namespace with ECONNREFUSED (audit_netlink_ok), netfilter asks for NET_ADMIN over the netns.
	 */
	NETLINK("A32-audit-get", NETLINK_AUDIT, 1000, NO_FAMILY, BARE("ECONNREFUSED EPERM EPROTONOSUPPORT")),
	NETLINK("A32-netfilter-get", NETLINK_NETFILTER, NFNL_SUBSYS_NFTABLES << 8 | 1, NO_FAMILY, BARE("EPERM EPROTONOSUPPORT")),

	SOCKET("A33-sctp", AF_INET, SOCK_STREAM, PROTO_SCTP, NO_PROTOCOL),
	SOCKET("A33-sctp-seqpacket", AF_INET6, SOCK_SEQPACKET, PROTO_SCTP, NO_PROTOCOL),
	SOCKET("A33-mptcp", AF_INET, SOCK_STREAM, PROTO_MPTCP, NO_PROTOCOL),
	SOCKET("A33-mptcp6", AF_INET6, SOCK_STREAM, PROTO_MPTCP, NO_PROTOCOL),
	SOCKET("A33-mptcp-upper-bits", AF_INET, SOCK_STREAM, PROTO_MPTCP | UPPER_BITS, NO_PROTOCOL),
	SOCKET("A33-dccp", AF_INET, TYPE_DCCP, PROTO_DCCP, NO_PROTOCOL),
	SOCKET("A33-udplite", AF_INET, SOCK_DGRAM, PROTO_UDPLITE, NO_PROTOCOL),
	SOCKET("A33-l2tp", AF_INET, SOCK_DGRAM, PROTO_L2TP, NO_PROTOCOL),
	SOCKET("A33-smc", AF_INET, SOCK_STREAM, PROTO_SMC, NO_PROTOCOL),
	/*
	 * Protocol 0 leaves the choice to the kernel, and the type alone brings SCTP (where loaded) or DCCP (by
	 * module alias) in.  ESOCKTNOSUPPORT would be the kernel that happens to lack them, not a refusal.
	 */
	SOCKET("A33-sctp-by-type", AF_INET, SOCK_SEQPACKET, 0, FILTERED("EPROTONOSUPPORT EAFNOSUPPORT")),
	SOCKET("A33-dccp-by-type", AF_INET, TYPE_DCCP, 0, FILTERED("EPROTONOSUPPORT EAFNOSUPPORT")),
	SOCKET("A33-tcp-works", AF_INET, SOCK_STREAM, 0, ALWAYS("ok")),
	SOCKET("A33-udp-works", AF_INET, SOCK_DGRAM, IPPROTO_UDP, ALWAYS("ok")),

	{ "A34-nftables-batch", try_nftables, FILTERED("EAFNOSUPPORT"), BARE("EPERM EPROTONOSUPPORT") },

	IOCTL("A35-tiocsti", TIOCSTI_NR, 0),
	IOCTL("A35-tioclinux", TIOCLINUX_NR, 0),
	IOCTL("A35-tiocsetd-gsm", TIOCSETD_NR, 1),
	IOCTL("A35-tiocsti-upper-bits", TIOCSTI_NR | GARBAGE, 0),
	IOCTL("A35-tioclinux-upper-bits", TIOCLINUX_NR | GARBAGE, 0),
	IOCTL("A35-tiocsetd-upper-bits", TIOCSETD_NR | GARBAGE, 1),
};

const struct probe_group probes_sockets = { probes, sizeof probes / sizeof probes[0] };
