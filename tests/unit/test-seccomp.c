/* SPDX-License-Identifier: Apache-2.0 */
/* The seccomp policy, judged by running the compiled program on made-up calls (rows A01-A35). */
#include <linux/audit.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "engine/seccomp.h"
#include "tap.h"

static struct seccomp_filter filter;

static int verdict(int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	const uint64_t args[6] = { a0, a1, a2 };

	if (!filter.count)
		seccomp_compile(&filter, false);
	return seccomp_verdict(&filter, AUDIT_ARCH_X86_64, nr, args);
}

TEST(ordinary_calls_are_allowed)
{
	static const int calls[] = {
		SYS_read, SYS_write, SYS_openat, SYS_mmap, SYS_execve, SYS_futex, SYS_ptrace, SYS_process_vm_readv,
		SYS_memfd_create, SYS_getrandom, SYS_close_range, SYS_openat2, 438 /* pidfd_getfd */,
		449 /* futex_waitv */, 454, 455, 456 /* futex_wake, _wait, _requeue */, 462 /* mseal */, 469,
	};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (verdict(calls[i], 0, 0, 0))
			FAIL("call %d is refused", calls[i]);
}

TEST(privileged_calls_answer_EPERM)
{
	static const int calls[] = {
		SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_setns, SYS_unshare, SYS_swapon, SYS_swapoff,
		SYS_reboot, SYS_sethostname, SYS_setdomainname, SYS_iopl, SYS_ioperm, SYS_init_module,
		SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load, SYS_acct, SYS_syslog,
		SYS_quotactl, 443, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_add_key,
		SYS_request_key, SYS_keyctl, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_open_by_handle_at,
		SYS_name_to_handle_at, SYS_lookup_dcookie, SYS_fanotify_init, SYS_kcmp, SYS_mbind,
		SYS_set_mempolicy, SYS_get_mempolicy, SYS_migrate_pages, SYS_move_pages, 450, SYS_modify_ldt,
		SYS_uselib, SYS_ustat, SYS_sysfs, SYS__sysctl, SYS_vhangup, SYS_nfsservctl, 457, 458,
	};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (verdict(calls[i], 0, 0, 0) != -EPERM)
			FAIL("call %d answers %d", calls[i], verdict(calls[i], 0, 0, 0));
}

TEST(calls_that_libc_can_do_without_answer_ENOSYS)
{
	static const int calls[] = { SYS_clone3, 425, 426, 427, 428, 429, 430, 431, 432, 433, 442, 447, 467 };

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (verdict(calls[i], 0, 0, 0) != -ENOSYS)
			FAIL("call %d answers %d", calls[i], verdict(calls[i], 0, 0, 0));
}

TEST(clone3_is_left_to_an_init_that_hides_it)
{
	seccomp_compile(&filter, true);
	CHECK_INT(verdict(SYS_clone3, 0, 0, 0), 0);
	CHECK_INT(verdict(SYS_unshare, 0, 0, 0), -EPERM);
}

TEST(numbers_that_nobody_reviewed_answer_ENOSYS)
{
	CHECK_INT(verdict(470, 0, 0, 0), -ENOSYS);
	CHECK_INT(verdict(600, 0, 0, 0), -ENOSYS);
	CHECK_INT(verdict(0x40000000 | SYS_getpid, 0, 0, 0), -ENOSYS);
	CHECK_INT(verdict(-1, 0, 0, 0), -ENOSYS);
}

TEST(another_architecture_kills)
{
	const uint64_t args[6] = { 0 };

	verdict(0, 0, 0, 0);
	CHECK_INT(seccomp_verdict(&filter, AUDIT_ARCH_I386, 20, args), -1000);
	CHECK_INT(seccomp_verdict(&filter, AUDIT_ARCH_AARCH64, 20, args), -1000);
}

TEST(clone_refuses_every_namespace_flag_and_allows_threads)
{
	static const uint64_t flags[] = {
		0x80, 0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
	};

	CHECK_INT(verdict(SYS_clone, 0x3d0f00, 0, 0), 0);
	CHECK_INT(verdict(SYS_clone, 17, 0, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		CHECK_INT(verdict(SYS_clone, flags[i] | 17, 0, 0), -EPERM);
	/* The kernel looks at the low half only, and so must the filter. */
	CHECK_INT(verdict(SYS_clone, 0x1234567810000011ull, 0, 0), -EPERM);
}

TEST(ioctl_compares_the_low_32_bits)
{
	CHECK_INT(verdict(SYS_ioctl, 0, 0x5401, 0), 0);
	CHECK_INT(verdict(SYS_ioctl, 0, 0x5412, 0), -EPERM);
	CHECK_INT(verdict(SYS_ioctl, 0, 0x541c, 0), -EPERM);
	CHECK_INT(verdict(SYS_ioctl, 0, 0x5423, 0), -EPERM);
	CHECK_INT(verdict(SYS_ioctl, 0, 0xdeadbeef00005412ull, 0), -EPERM);
}

TEST(personality_allows_what_programs_use)
{
	CHECK_INT(verdict(SYS_personality, 0, 0, 0), 0);
	CHECK_INT(verdict(SYS_personality, 0xffffffff, 0, 0), 0);
	CHECK_INT(verdict(SYS_personality, 0x20008, 0, 0), 0);
	CHECK_INT(verdict(SYS_personality, 0x0040000, 0, 0), -EPERM);
	CHECK_INT(verdict(SYS_personality, 0x0400000, 0, 0), -EPERM);
}

TEST(sockets_are_unix_inet_and_route_netlink)
{
	CHECK_INT(verdict(SYS_socket, 1, 1, 0), 0);
	CHECK_INT(verdict(SYS_socketpair, 1, 1, 0), 0);
	CHECK_INT(verdict(SYS_socket, 2, 1, 0), 0);
	CHECK_INT(verdict(SYS_socket, 2, 1, 6), 0);
	CHECK_INT(verdict(SYS_socket, 2, 2, 17), 0);
	CHECK_INT(verdict(SYS_socket, 10, 1, 6), 0);
	CHECK_INT(verdict(SYS_socket, 10, 2, 58), 0);
	CHECK_INT(verdict(SYS_socket, 16, 3, 0), 0);
	CHECK_INT(verdict(SYS_socket, 2, 1, 132), -EAFNOSUPPORT);      /* SCTP */
	CHECK_INT(verdict(SYS_socket, 2, 1, 262), -EAFNOSUPPORT);      /* MPTCP */
	CHECK_INT(verdict(SYS_socket, 2, 1, 0x100000000ull | 132), -EAFNOSUPPORT);
	CHECK_INT(verdict(SYS_socket, 2, 2, 136), -EAFNOSUPPORT);      /* UDP-Lite */
	for (int protocol = 1; protocol < 24; protocol++)
		CHECK_INT(verdict(SYS_socket, 16, 3, (uint64_t) protocol), -EAFNOSUPPORT);
	for (int family = 0; family < 48; family++)
		if (family != 1 && family != 2 && family != 10 && family != 16)
			CHECK_INT(verdict(SYS_socket, (uint64_t) family, 1, 0), -EAFNOSUPPORT);
	CHECK_INT(verdict(SYS_socketpair, 30, 1, 0), -EAFNOSUPPORT);   /* TIPC pairs */
}

TEST(types_that_choose_a_protocol_by_themselves_are_refused)     /* A33 */
{
	CHECK_INT(verdict(SYS_socket, 2, 5, 0), -EAFNOSUPPORT);        /* SEQPACKET: SCTP */
	CHECK_INT(verdict(SYS_socket, 10, 6, 0), -EAFNOSUPPORT);       /* DCCP */
	CHECK_INT(verdict(SYS_socket, 2, 5 | 02000000, 0), -EAFNOSUPPORT);
	CHECK_INT(verdict(SYS_socket, 2, 1 | 02004000, 0), 0);
	CHECK_INT(verdict(SYS_socket, 1, 5, 0), 0);
}

TEST(the_core_limit_stays_and_init_keeps_its_limits)            /* B23, C10 */
{
	CHECK_INT(verdict(SYS_setrlimit, 4, 1, 0), -EINVAL);
	CHECK_INT(verdict(SYS_setrlimit, 7, 1, 0), 0);
	CHECK_INT(verdict(SYS_prlimit64, 0, 4, 0x7fff00000000ull), -EINVAL);
	CHECK_INT(verdict(SYS_prlimit64, 0, 4, 0x1000), -EINVAL);
	CHECK_INT(verdict(SYS_prlimit64, 0, 4, 0), 0);
	CHECK_INT(verdict(SYS_prlimit64, 0, 7, 0x1000), 0);
	CHECK_INT(verdict(SYS_prlimit64, 1, 7, 0x1000), -EPERM);
}

TEST(the_kernel_takes_the_program_and_obeys_it)
{
	seccomp_compile(&filter, false);
	CHECK(filter.count < SECCOMP_PROGRAM_MAX);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(seccomp_load(&filter) == 0);
	CHECK(syscall(SYS_getpid) > 0);
	CHECK(syscall(SYS_unshare, 0) == -1 && errno == EPERM);
	CHECK(syscall(600) == -1 && errno == ENOSYS);
}
