/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy is a table of exceptions over "allow"; everything above the newest
 * reviewed number answers ENOSYS, so that a kernel upgrade opens nothing.
 *
 * The compiled form is a balanced binary search over the ranges of numbers that
 * share an action.  That matters at load time: the kernel runs the program for
 * every system call number to fill its allow bitmap, so short paths load in
 * half the time that a linear chain takes.
 *
 * Debuggers are work: ptrace, process_vm_* and pidfd_getfd stay allowed, and
 * the kernel's own checks keep init out of their reach.
 */
#include "engine/seccomp.h"

#include <assert.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/prctl.h>

/* Numbers newer than the headers, from arch/x86/entry/syscalls/syscall_64.tbl. */
enum {
	NR_quotactl_fd = 443, NR_memfd_secret = 447, NR_set_mempolicy_home_node = 450,
	NR_statmount = 457, NR_listmount = 458, NR_open_tree_attr = 467,
	NR_file_setattr = 469,          /* the newest reviewed one, of Linux 6.17 */
};
#define NEWEST_REVIEWED NR_file_setattr

enum action { ALLOW, DENY_EPERM, DENY_ENOSYS, CHECK_CLONE, CHECK_PERSONALITY, CHECK_IOCTL, CHECK_SOCKET,
              CHECK_SETRLIMIT, CHECK_PRLIMIT, ACTION_COUNT };

static const uint16_t eperm[] = {
	/* mounts and roots */
	SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, NR_statmount, NR_listmount,
	SYS_swapon, SYS_swapoff, SYS_quotactl, NR_quotactl_fd, SYS_acct,
	/* namespaces and the host's identity */
	SYS_setns, SYS_unshare, SYS_sethostname, SYS_setdomainname, SYS_reboot, SYS_vhangup,
	/* the kernel itself */
	SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load, SYS_syslog,
	SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_lookup_dcookie,
	SYS_kcmp, SYS_fanotify_init,
	/* clocks */
	SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime,
	/* keyrings are not confined by any namespace a sandbox has */
	SYS_add_key, SYS_request_key, SYS_keyctl,
	/* files by handle reach outside of every mount (Shocker) */
	SYS_open_by_handle_at, SYS_name_to_handle_at,
	/* NUMA placement */
	SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy, SYS_migrate_pages, SYS_move_pages, NR_set_mempolicy_home_node,
	/* leftovers of old kernels */
	SYS_uselib, SYS_ustat, SYS_sysfs, SYS__sysctl, SYS_nfsservctl,
};

static const uint16_t enosys[] = {
	SYS_clone3,             /* its flags are behind a pointer; libc falls back to clone */
	SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
	SYS_open_tree, SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr,
	NR_open_tree_attr, NR_memfd_secret,
};

/* One entry per number, and one for all that nobody reviewed. */
static void fill_actions(uint8_t ret[NEWEST_REVIEWED + 2])
{
	memset(ret, ALLOW, NEWEST_REVIEWED + 2);
	for (size_t i = 0; i < ARRAY_SIZE(eperm); i++)
		ret[eperm[i]] = DENY_EPERM;
	for (size_t i = 0; i < ARRAY_SIZE(enosys); i++)
		ret[enosys[i]] = DENY_ENOSYS;
	ret[SYS_clone] = CHECK_CLONE;
	ret[SYS_personality] = CHECK_PERSONALITY;
	ret[SYS_ioctl] = CHECK_IOCTL;
	ret[SYS_socket] = ret[SYS_socketpair] = CHECK_SOCKET;
	ret[SYS_setrlimit] = CHECK_SETRLIMIT;
	ret[SYS_prlimit64] = CHECK_PRLIMIT;
	ret[NEWEST_REVIEWED + 1] = DENY_ENOSYS;
}

/* ---- assembling ---- */

/*
 * Programs are written backwards, from the end of the buffer to its start:
 * every jump then goes to code that already has an address, and the offset is
 * known at once.  A "label" is the distance from the end of the buffer.
 */
struct assembler {
	struct sock_filter code[SECCOMP_PROGRAM_MAX];
	unsigned used;
};

static unsigned emit(struct assembler *a, uint16_t op, uint32_t k, unsigned on_true, unsigned on_false)
{
	unsigned here = ++a->used;
	unsigned jt = on_true ? here - on_true - 1 : 0, jf = on_false ? here - on_false - 1 : 0;

	assert(here <= SECCOMP_PROGRAM_MAX && jt < 256 && jf < 256);
	a->code[SECCOMP_PROGRAM_MAX - here] = (struct sock_filter) BPF_JUMP(op, k, (uint8_t) jt, (uint8_t) jf);
	return here;
}

static unsigned ret(struct assembler *a, uint32_t value)
{
	return emit(a, BPF_RET | BPF_K, value, 0, 0);
}

static unsigned load(struct assembler *a, size_t offset)
{
	return emit(a, BPF_LD | BPF_W | BPF_ABS, (uint32_t) offset, 0, 0);
}

static unsigned jump_if_equal(struct assembler *a, uint32_t k, unsigned yes, unsigned no)
{
	return emit(a, BPF_JMP | BPF_JEQ | BPF_K, k, yes, no);
}

/* The kernel truncates these arguments to 32 bits, so the filter looks at those 32 only. */
#define ARG_LOW(n) (offsetof(struct seccomp_data, args) + 8 * (n))

/* "Is the loaded value one of these?" as a chain; falls to `no` at its end. */
static unsigned any_of(struct assembler *a, const uint32_t *values, size_t n, unsigned yes, unsigned no)
{
	unsigned next = no;

	for (size_t i = n; i-- > 0;)
		next = jump_if_equal(a, values[i], yes, next);
	return next;
}

struct verdicts { unsigned allow, eperm, einval, enosys, eafnosupport, kill; };

static unsigned check_clone(struct assembler *a, const struct verdicts *v)
{
	/* CLONE_NEW* with CLONE_NEWTIME, which shares its bit with the exit signal (none is that high). */
	emit(a, BPF_JMP | BPF_JSET | BPF_K, 0x7e020080, v->eperm, v->allow);
	return load(a, ARG_LOW(0));
}

static unsigned check_personality(struct assembler *a, const struct verdicts *v)
{
	/* Linux, the same with 32-bit uname or the short address space, and "ask". */
	static const uint32_t fine[] = { 0, 8, 0x20000, 0x20008, 0xffffffff };

	any_of(a, fine, ARRAY_SIZE(fine), v->allow, v->eperm);
	return load(a, ARG_LOW(0));
}

static unsigned check_ioctl(struct assembler *a, const struct verdicts *v)
{
	static const uint32_t refused[] = { 0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */, 0x5423 /* TIOCSETD */ };

	any_of(a, refused, ARRAY_SIZE(refused), v->eperm, v->allow);
	return load(a, ARG_LOW(1));
}

static unsigned check_socket(struct assembler *a, const struct verdicts *v)
{
	/* any, ICMP, TCP, UDP, ICMPv6: no SCTP, MPTCP, DCCP or UDP-Lite code is reachable */
	static const uint32_t inet[] = { 0, 1, 6, 17, 58 };
	/* STREAM, DGRAM, RAW: the type alone can choose SCTP (SEQPACKET) or DCCP */
	static const uint32_t inet_types[] = { 1, 2, 3 };
	unsigned inet_protocol, route_protocol;

	any_of(a, inet, ARRAY_SIZE(inet), v->allow, v->eafnosupport);
	inet_protocol = load(a, ARG_LOW(2));
	any_of(a, inet_types, ARRAY_SIZE(inet_types), inet_protocol, v->eafnosupport);
	emit(a, BPF_ALU | BPF_AND | BPF_K, 0xf, 0, 0);  /* SOCK_TYPE_MASK: without CLOEXEC and NONBLOCK */
	inet_protocol = load(a, ARG_LOW(1));
	jump_if_equal(a, 0, v->allow, v->eafnosupport);
	route_protocol = load(a, ARG_LOW(2));

	unsigned family = jump_if_equal(a, 16 /* AF_NETLINK */, route_protocol, v->eafnosupport);

	family = jump_if_equal(a, 10 /* AF_INET6 */, inet_protocol, family);
	family = jump_if_equal(a, 2 /* AF_INET */, inet_protocol, family);
	jump_if_equal(a, 1 /* AF_UNIX */, v->allow, family);
	return load(a, ARG_LOW(0));
}

/*
 * A core dump that goes to a program of the host (a core_pattern that begins with a pipe) ignores
 * RLIMIT_CORE but for the value 1, which is what a sandbox starts with; so the value must stay.
 * EINVAL, because gpg and others that lower it go on after that and give up after EPERM.
 */
static unsigned check_setrlimit(struct assembler *a, const struct verdicts *v)
{
	jump_if_equal(a, 4 /* RLIMIT_CORE */, v->einval, v->allow);
	return load(a, ARG_LOW(0));
}

static unsigned check_prlimit(struct assembler *a, const struct verdicts *v)
{
	unsigned set_core, core, other;

	/* Asking (a new limit of NULL) is fine. */
	jump_if_equal(a, 0, v->allow, v->einval);
	set_core = load(a, ARG_LOW(2) + 4);
	jump_if_equal(a, 0, set_core, v->einval);
	core = load(a, ARG_LOW(2));
	jump_if_equal(a, 4, core, v->allow);
	other = load(a, ARG_LOW(1));
	/* Root inside has init's uid, and init needs its descriptors. */
	jump_if_equal(a, 1, v->eperm, other);
	return load(a, ARG_LOW(0));
}

/* Binary search of the loaded number in ranges [first, last); returns its entry. */
static unsigned search(struct assembler *a, const uint16_t *starts, const unsigned *targets, unsigned first, unsigned last)
{
	unsigned mid, high, low;

	if (last - first == 1)
		return targets[first];
	mid = first + (last - first) / 2;
	high = search(a, starts, targets, mid, last);
	low = search(a, starts, targets, first, mid);
	/* One side may be the instruction right after this one; emit() needs a real label for both. */
	return emit(a, BPF_JMP | BPF_JGE | BPF_K, starts[mid], high, low);
}

void seccomp_compile(struct seccomp_filter *filter, bool leave_clone3)
{
	static struct assembler a;      /* single-threaded callers; 4 KiB of stack saved */
	struct verdicts v;
	unsigned actions[ACTION_COUNT], targets[2 * (ARRAY_SIZE(eperm) + ARRAY_SIZE(enosys)) + 12], entry, n = 0;
	uint16_t starts[ARRAY_SIZE(targets)];
	uint8_t action_of[NEWEST_REVIEWED + 2];

	_Static_assert(sizeof filter->insns[0] == sizeof a.code[0], "opaque instruction size");
	memset(&a, 0, sizeof a);
	v.allow = ret(&a, SECCOMP_RET_ALLOW);
	v.eperm = ret(&a, SECCOMP_RET_ERRNO | EPERM);
	v.einval = ret(&a, SECCOMP_RET_ERRNO | EINVAL);
	v.enosys = ret(&a, SECCOMP_RET_ERRNO | ENOSYS);
	v.eafnosupport = ret(&a, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
	v.kill = ret(&a, SECCOMP_RET_KILL_PROCESS);
	actions[ALLOW] = v.allow;
	actions[DENY_EPERM] = v.eperm;
	actions[DENY_ENOSYS] = v.enosys;
	actions[CHECK_CLONE] = check_clone(&a, &v);
	actions[CHECK_PERSONALITY] = check_personality(&a, &v);
	actions[CHECK_IOCTL] = check_ioctl(&a, &v);
	actions[CHECK_SOCKET] = check_socket(&a, &v);
	actions[CHECK_SETRLIMIT] = check_setrlimit(&a, &v);
	actions[CHECK_PRLIMIT] = check_prlimit(&a, &v);

	fill_actions(action_of);
	if (leave_clone3)
		action_of[SYS_clone3] = ALLOW;
	for (int nr = 0; nr <= NEWEST_REVIEWED + 1; nr++) {
		if (nr && action_of[nr] == action_of[nr - 1])
			continue;
		assert(n < ARRAY_SIZE(starts));
		starts[n] = (uint16_t) nr;
		targets[n++] = actions[action_of[nr]];
	}
	/* x32 numbers have bit 30 set and so fall into the last range: ENOSYS. */
	search(&a, starts, targets, 0, n);
	load(&a, offsetof(struct seccomp_data, nr));
	entry = a.used;
	jump_if_equal(&a, AUDIT_ARCH_X86_64, entry, v.kill);
	load(&a, offsetof(struct seccomp_data, arch));

	filter->count = a.used;
	memcpy(filter->insns, a.code + SECCOMP_PROGRAM_MAX - a.used, a.used * sizeof a.code[0]);
}

int seccomp_load(const struct seccomp_filter *filter)
{
	struct sock_fprog prog = {
		.len = (unsigned short) filter->count,
		.filter = (struct sock_filter *) (uintptr_t) filter->insns,
	};

	return (int) syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

int seccomp_verdict(const struct seccomp_filter *filter, uint32_t arch, int nr, const uint64_t args[6])
{
	const struct sock_filter *code = (const struct sock_filter *) filter->insns;
	struct seccomp_data data = { .nr = nr, .arch = arch };
	uint32_t acc = 0;

	memcpy(data.args, args, sizeof data.args);
	for (size_t pc = 0; pc < filter->count; pc++) {
		const struct sock_filter *i = &code[pc];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&acc, (const char *) &data + i->k, sizeof acc);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			acc &= i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += acc == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += acc >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			pc += acc & i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			if (i->k == SECCOMP_RET_ALLOW)
				return 0;
			return i->k == SECCOMP_RET_KILL_PROCESS ? -1000 : -(int) (i->k & SECCOMP_RET_DATA);
		default:
			abort();
		}
	}
	abort();
}
