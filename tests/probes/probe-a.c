/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A01-A29, A36-A40: namespaces, mounts and other system calls.
 *
 * Where a row names the capability as second layer, the call's own check of it
 * comes before its arguments are looked at (read in Linux 6.12), so EPERM is the
 * answer with the filter off as well.
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Numbers newer than musl's table. */
enum {
	NR_mount_setattr = 442, NR_quotactl_fd = 443, NR_memfd_secret = 447, NR_set_mempolicy_home_node = 450,
	NR_statmount = 457, NR_listmount = 458, NR_open_tree_attr = 467, NR_listns = 470,
};
#define PTR(p) ((long) (p))

/* ---- attempts that need more than one call ---- */

static long try_clone(const struct probe *p)
{
	pid_t child = (pid_t) syscall(SYS_clone, p->args[0] | SIGCHLD, 0, 0, 0, 0);

	if (child == 0)
		_exit(0);
	return child;
}

static long try_clone3(const struct probe *p)
{
	struct clone_args args = { .flags = (uint64_t) p->args[0], .exit_signal = SIGCHLD };
	pid_t child = (pid_t) syscall(SYS_clone3, &args, sizeof args);

	if (child == 0)
		_exit(0);
	return child;
}

static void *thread_body(void *arg)
{
	return arg;
}

static long try_threads(const struct probe *p)
{
	void *back = NULL;
	pthread_t thread;
	int error = pthread_create(&thread, NULL, thread_body, (void *) p);

	if (error)
		return fail(error);
	pthread_join(thread, &back);
	return back == p ? 0 : fail(EIO);
}

static long try_setns_of_init(const struct probe *p)
{
	int fd = open(p->path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : syscall(SYS_setns, fd, 0);
}

static long try_chroot(const struct probe *p)
{
	(void) p;
	mkdir("/tmp/probe-root", 0755);
	return chroot("/tmp/probe-root");
}

static long try_mknod(const struct probe *p)
{
	char path[64];
	long r;

	snprintf(path, sizeof path, "/tmp/probe-node-%d", getpid());
	r = mknod(path, (mode_t) p->args[0] | 0600, (dev_t) p->args[1]);
	if (r == 0)
		unlink(path);
	return r;
}

static long try_bpf_map(const struct probe *p)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1 };

	(void) p;
	return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr);
}

static long try_bpf_load(const struct probe *p)
{
	static const struct bpf_insn code[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K }, { .code = BPF_JMP | BPF_EXIT } };
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_KPROBE, .insns = (uintptr_t) code, .insn_cnt = 2,
	                        .license = (uintptr_t) "GPL" };

	(void) p;
	return syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr);
}

static long try_perf(const struct probe *p)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = PERF_ATTR_SIZE_VER0,
	                                .config = PERF_COUNT_SW_CPU_CLOCK };

	(void) p;
	return syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0);
}

static long try_clock_settime(const struct probe *p)
{
	struct timespec now;

	/* Should it work after all, the clock is set to what it shows. */
	clock_gettime(CLOCK_REALTIME, &now);
	return syscall(p->nr, CLOCK_REALTIME, &now);
}

static long try_handle(const struct probe *p)
{
	/* A root directory's handle on ext4: type 1, inode 2, generation 0. */
	struct { unsigned bytes; int type; unsigned char handle[64]; } handle = { .bytes = 8, .type = 1, .handle = { 2 } };

	(void) p;
	return syscall(SYS_open_by_handle_at, AT_FDCWD, &handle, O_RDONLY);
}

static long try_i386(const struct probe *p)
{
	long r;

	(void) p;
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory", "r8", "r9", "r10", "r11"); /* getpid there */
	return r < 0 ? fail((int) -r) : r;
}

static long try_hostname(const struct probe *p)
{
	struct utsname now;

	uname(&now);
	return syscall(p->nr, now.nodename, strlen(now.nodename));
}

static long try_capset(const struct probe *p)
{
	struct { unsigned version; int pid; } head = { 0x20080522, 0 };
	unsigned all[6];

	(void) p;
	memset(all, 0xff, sizeof all);
	return syscall(SYS_capset, &head, all);
}

/* CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID NET_BIND_SERVICE SETFCAP */
#define CAPS_KEPT ((uint64_t) 0x800004fb)

static long see_caps(const struct probe *p)
{
	uint64_t caps = status_field(p->path, 16);

	if (caps == 0)
		return observe("none");
	return caps & ~CAPS_KEPT ? observe("beyond: %016llx", (unsigned long long) caps) : observe("kept");
}

static long see_bounding(const struct probe *p)
{
	long r = prctl(PR_CAPBSET_READ, p->args[0], 0, 0, 0);

	return r < 0 ? -1 : observe(r ? "yes" : "no");
}

static long see_status(const struct probe *p)
{
	return observe("%llu", (unsigned long long) status_field(p->path, 10));
}

static long try_write(const struct probe *p)
{
	return write_once(p->path, (const char *) p->args[0]);
}

static pid_t fork_sleeper(void)
{
	pid_t child = fork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	return child;
}

static long try_ptrace_child(const struct probe *p)
{
	pid_t child = fork_sleeper();

	(void) p;
	return ptrace(PTRACE_SEIZE, child, 0, 0);
}

static long try_traceme(const struct probe *p)
{
	pid_t child = fork();
	int status;

	(void) p;
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
			_exit(errno);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(child, &status, WUNTRACED);
	return WIFSTOPPED(status) ? ptrace(PTRACE_CONT, child, 0, 0) : fail(WEXITSTATUS(status));
}

static long try_read_child(const struct probe *p)
{
	static char word[8] = "cuvette";
	char copy[8];
	struct iovec here = { copy, sizeof copy }, there = { word, sizeof word };
	ssize_t n = process_vm_readv(fork_sleeper(), &here, 1, &there, 1, 0);

	(void) p;
	if (n < 0)
		return -1;
	return strcmp(copy, "cuvette") ? fail(EIO) : 0;
}

/* ---- the table ---- */

static const struct probe probes[] = {
	{ "A01-unshare-user", .nr = SYS_unshare, .args = { CLONE_NEWUSER }, FILTERED("EPERM"), BARE("ENOSPC") },
	{ "A01-unshare-user-and-mount", .nr = SYS_unshare, .args = { CLONE_NEWUSER | CLONE_NEWNS }, FILTERED("EPERM"), BARE("ENOSPC") },
	{ "A02-unshare-net", .nr = SYS_unshare, .args = { CLONE_NEWNET }, ALWAYS("EPERM") },
	{ "A03-unshare-mount", .nr = SYS_unshare, .args = { CLONE_NEWNS }, ALWAYS("EPERM") },
	{ "A04-unshare-pid", .nr = SYS_unshare, .args = { CLONE_NEWPID }, ALWAYS("EPERM") },
	{ "A05-unshare-cgroup", .nr = SYS_unshare, .args = { CLONE_NEWCGROUP }, ALWAYS("EPERM") },
	{ "A06-unshare-time", .nr = SYS_unshare, .args = { CLONE_NEWTIME }, ALWAYS("EPERM") },
	{ "A06-unshare-ipc", .nr = SYS_unshare, .args = { CLONE_NEWIPC }, ALWAYS("EPERM") },
	{ "A06-unshare-uts", .nr = SYS_unshare, .args = { CLONE_NEWUTS }, ALWAYS("EPERM") },
	{ "A07-clone-user", try_clone, .args = { CLONE_NEWUSER }, FILTERED("EPERM"), BARE("ENOSPC") },
	{ "A07-clone-net", try_clone, .args = { CLONE_NEWNET }, ALWAYS("EPERM") },
	{ "A07-clone-mount", try_clone, .args = { CLONE_NEWNS }, ALWAYS("EPERM") },
	{ "A07-clone-pid", try_clone, .args = { CLONE_NEWPID }, ALWAYS("EPERM") },
	{ "A07-clone-upper-bits", try_clone, .args = { CLONE_NEWUSER | 1L << 40 }, FILTERED("EPERM"), BARE("ENOSPC") },
	{ "A08-clone3-user", try_clone3, .args = { CLONE_NEWUSER }, FILTERED("ENOSYS") },
	{ "A08-clone3-plain", try_clone3, FILTERED("ENOSYS") },
	{ "A08-threads-start", try_threads, ALWAYS("ok") },
	{ "A09-setns-mnt-of-init", try_setns_of_init, .path = "/proc/1/ns/mnt", ALWAYS("EACCES") },
	{ "A09-setns-net-of-init", try_setns_of_init, .path = "/proc/1/ns/net", ALWAYS("EACCES") },
	{ "A09-setns-pid-of-init", try_setns_of_init, .path = "/proc/1/ns/pid", ALWAYS("EACCES") },
	{ "A09-setns-user-of-init", try_setns_of_init, .path = "/proc/1/ns/user", ALWAYS("EACCES") },
	{ "A09-setns-cgroup-of-init", try_setns_of_init, .path = "/proc/1/ns/cgroup", ALWAYS("EACCES") },
	{ "A10-setns-own-user", try_setns_of_init, .path = "/proc/self/ns/user", FILTERED("EPERM") },
	{ "A11-chroot", try_chroot, ALWAYS("EPERM") },
	{ "A11-pivot-root", .nr = SYS_pivot_root, .args = { PTR("/tmp"), PTR("/tmp") }, ALWAYS("EPERM") },
	{ "A12-mount-tmpfs", .nr = SYS_mount, .args = { PTR("none"), PTR("/tmp"), PTR("tmpfs") }, ALWAYS("EPERM") },
	{ "A12-mount-cgroup", .nr = SYS_mount, .args = { PTR("none"), PTR("/tmp"), PTR("cgroup"), 0, PTR("memory") }, ALWAYS("EPERM") },
	{ "A12-mount-cgroup2", .nr = SYS_mount, .args = { PTR("none"), PTR("/tmp"), PTR("cgroup2") }, ALWAYS("EPERM") },
	{ "A12-mount-proc", .nr = SYS_mount, .args = { PTR("none"), PTR("/tmp"), PTR("proc") }, ALWAYS("EPERM") },
	{ "A12-mount-bind", .nr = SYS_mount, .args = { PTR("/"), PTR("/tmp"), 0, MS_BIND }, ALWAYS("EPERM") },
	{ "A12-mount-shared", .nr = SYS_mount, .args = { 0, PTR("/"), 0, MS_SHARED }, ALWAYS("EPERM") },
	{ "A13-remount-proc-sys", .nr = SYS_mount, .args = { 0, PTR("/proc/sys"), 0, MS_REMOUNT | MS_BIND }, ALWAYS("EPERM") },
	{ "A13-umount-proc-sys", .nr = SYS_umount2, .args = { PTR("/proc/sys"), MNT_DETACH }, ALWAYS("EPERM") },
	{ "A13-umount-mask", .nr = SYS_umount2, .args = { PTR("/proc/cmdline"), MNT_DETACH }, ALWAYS("EPERM") },
	{ "A13-umount-root", .nr = SYS_umount2, .args = { PTR("/"), MNT_DETACH }, ALWAYS("EPERM") },
	{ "A14-fsopen", .nr = SYS_fsopen, .args = { PTR("tmpfs") }, ALWAYS("ENOSYS EPERM") },
	{ "A14-fspick", .nr = SYS_fspick, .args = { AT_FDCWD, PTR("/") }, ALWAYS("ENOSYS EPERM") },
	{ "A14-open-tree-clone", .nr = SYS_open_tree, .args = { AT_FDCWD, PTR("/"), 1 }, ALWAYS("ENOSYS EPERM") },
	{ "A14-open-tree-attr", .nr = NR_open_tree_attr, .args = { AT_FDCWD, PTR("/"), 1 }, ALWAYS("ENOSYS EPERM") },
	{ "A14-move-mount", .nr = SYS_move_mount, .args = { AT_FDCWD, PTR("/proc/sys"), AT_FDCWD, PTR("/tmp") }, ALWAYS("ENOSYS EPERM") },
	{ "A14-mount-setattr", .nr = NR_mount_setattr, .args = { AT_FDCWD, PTR("/proc/sys"), 0, PTR("\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 32 }, ALWAYS("ENOSYS EPERM") },
	{ "A15-statmount", .nr = NR_statmount, .args = { PTR("\30\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"), 0, 0, 0 }, FILTERED("EPERM") },
	{ "A15-listmount", .nr = NR_listmount, .args = { PTR("\30\0\0\0\0\0\0\0\377\377\377\377\377\377\377\377\0\0\0\0\0\0\0\0"), 0, 0, 0 }, FILTERED("EPERM") },
	/* Since 6.19; until it is reviewed the ceiling of the filter refuses it. */
	{ "A15-listns", .nr = NR_listns, FILTERED("ENOSYS EPERM") },
	{ "A16-mknod-block", try_mknod, .args = { S_IFBLK, makedev(254, 0) }, ALWAYS("EPERM") },
	{ "A16-mknod-mem", try_mknod, .args = { S_IFCHR, makedev(1, 1) }, ALWAYS("EPERM") },
	/* Anyone may make a whiteout, but not through the overlay (ovl_mknod). */
	{ "A16-mknod-whiteout", try_mknod, .args = { S_IFCHR, 0 }, ALWAYS("EPERM") },
	/* Second layer: kernel.unprivileged_bpf_disabled, whose default is 2. */
	{ "A17-bpf-map", try_bpf_map, ALWAYS("EPERM") },
	{ "A17-bpf-load", try_bpf_load, ALWAYS("EPERM") },
	/* perf_allow_cpu() and perf_allow_kernel() answer EACCES. */
	{ "A17-perf-event-open", try_perf, FILTERED("EPERM"), BARE("EACCES EPERM") },
	{ "A17-userfaultfd", .nr = SYS_userfaultfd, ALWAYS("EPERM") },
	{ "A17-userfaultfd-user-mode", .nr = SYS_userfaultfd, .args = { 1 }, FILTERED("EPERM") },
	{ "A18-io-uring-setup", .nr = SYS_io_uring_setup, .args = { 4, PTR((char [128]) { 0 }) }, FILTERED("ENOSYS EPERM") },
	{ "A18-io-uring-enter", .nr = SYS_io_uring_enter, .args = { -1 }, FILTERED("ENOSYS EPERM") },
	{ "A18-io-uring-register", .nr = SYS_io_uring_register, .args = { -1 }, FILTERED("ENOSYS EPERM") },
	{ "A19-add-key", .nr = SYS_add_key, .args = { PTR("user"), PTR("probe"), PTR("x"), 1, -1 }, FILTERED("EPERM") },
	{ "A19-keyctl", .nr = SYS_keyctl, .args = { 0, -3, 0 }, FILTERED("EPERM") },
	{ "A19-request-key", .nr = SYS_request_key, .args = { PTR("user"), PTR("probe"), 0, 0 }, FILTERED("EPERM") },
	/* Bare: ENOSYS where the kernel was built without (CONFIG_MODULES, CONFIG_KEXEC, CONFIG_BSD_PROCESS_ACCT). */
	{ "A20-init-module", .nr = SYS_init_module, .args = { PTR("x"), 1, PTR("") }, FILTERED("EPERM"), BARE("EPERM ENOSYS") },
	{ "A20-finit-module", .nr = SYS_finit_module, .args = { -1, PTR(""), 0 }, FILTERED("EPERM"), BARE("EPERM ENOSYS") },
	{ "A20-delete-module", .nr = SYS_delete_module, .args = { PTR("probe"), 0 }, FILTERED("EPERM"), BARE("EPERM ENOSYS") },
	{ "A20-kexec-load", .nr = SYS_kexec_load, FILTERED("EPERM"), BARE("EPERM ENOSYS") },
	{ "A20-kexec-file-load", .nr = SYS_kexec_file_load, .args = { -1, -1 }, FILTERED("EPERM"), BARE("EPERM ENOSYS") },
	{ "A20-swapon", .nr = SYS_swapon, .args = { PTR("/tmp/probe-none"), 0 }, FILTERED("EPERM"), BARE("EPERM ENOSYS") },
	{ "A20-swapoff", .nr = SYS_swapoff, .args = { PTR("/tmp/probe-none") }, FILTERED("EPERM"), BARE("EPERM ENOSYS") },
	/* CAD_OFF: only says that Ctrl-Alt-Del is not to reboot. */
	{ "A20-reboot-cad-off", .nr = SYS_reboot, .args = { 0xfee1dead, 672274793, 0, 0 }, ALWAYS("EPERM") },
	{ "A21-clock-settime", try_clock_settime, .nr = SYS_clock_settime, ALWAYS("EPERM") },
	{ "A21-settimeofday", .nr = SYS_settimeofday, ALWAYS("EPERM") },
	{ "A21-clock-adjtime", .nr = SYS_clock_adjtime, .args = { 0, PTR((char [256]) { 0 }) }, FILTERED("EPERM") },
	{ "A21-acct", .nr = SYS_acct, .args = { PTR("/tmp/probe-none") }, FILTERED("EPERM"), BARE("EPERM ENOSYS") },
	{ "A21-iopl", .nr = SYS_iopl, .args = { 3 }, FILTERED("EPERM"), BARE("EPERM ENOSYS") },
	{ "A21-ioperm", .nr = SYS_ioperm, .args = { 0x80, 1, 1 }, FILTERED("EPERM"), BARE("EPERM ENOSYS") },
	/* Q_QUOTAON.  Bare: the block device is looked up before the capability, and none is in reach. */
	{ "A21-quotactl", .nr = SYS_quotactl, .args = { 0x800002 << 8, PTR("/dev/null"), 0, 0 }, FILTERED("EPERM"), BARE("ENOTBLK EPERM ENOSYS") },
	{ "A21-quotactl-fd", .nr = NR_quotactl_fd, .args = { -1 }, FILTERED("EPERM") },
	{ "A22-open-by-handle", try_handle, ALWAYS("EPERM") },
	{ "A22-name-to-handle", .nr = SYS_name_to_handle_at, .args = { AT_FDCWD, PTR("/"), 0, 0, 0 }, FILTERED("EPERM") },
	{ "A23-modify-ldt", .nr = SYS_modify_ldt, .args = { 0x11, PTR((char [16]) { 0 }), 16 }, FILTERED("EPERM") },
	{ "A23-kcmp", .nr = SYS_kcmp, .args = { 1, 1, 0, 0, 0 }, FILTERED("EPERM") },
	{ "A23-mbind", .nr = SYS_mbind, .args = { 0, 4096, 1, 0, 0, 0 }, FILTERED("EPERM") },
	{ "A23-set-mempolicy", .nr = SYS_set_mempolicy, FILTERED("EPERM") },
	{ "A23-get-mempolicy", .nr = SYS_get_mempolicy, FILTERED("EPERM") },
	{ "A23-mempolicy-home", .nr = NR_set_mempolicy_home_node, FILTERED("EPERM") },
	{ "A23-migrate-pages", .nr = SYS_migrate_pages, .args = { 1 }, FILTERED("EPERM") },
	{ "A23-move-pages-init", .nr = SYS_move_pages, .args = { 1 }, FILTERED("EPERM") },
	{ "A23-fanotify-init", .nr = SYS_fanotify_init, FILTERED("EPERM") },
	{ "A23-syslog", .nr = SYS_syslog, .args = { 10 }, FILTERED("EPERM") },
	{ "A23-lookup-dcookie", .nr = SYS_lookup_dcookie, FILTERED("EPERM") },
	{ "A23-vhangup", .nr = SYS_vhangup, FILTERED("EPERM") },
	{ "A23-uselib", .nr = SYS_uselib, .args = { PTR("/tmp/probe-none") }, FILTERED("EPERM") },
	{ "A23-ustat", .nr = SYS_ustat, FILTERED("EPERM") },
	{ "A23-sysfs", .nr = SYS_sysfs, .args = { 3 }, FILTERED("EPERM") },
	{ "A23-sysctl", .nr = SYS__sysctl, FILTERED("EPERM") },
	{ "A24-personality-no-randomize", .nr = SYS_personality, .args = { 0x0040000 }, FILTERED("EPERM") },
	{ "A24-personality-read-implies-exec", .nr = SYS_personality, .args = { 0x0400000 }, FILTERED("EPERM") },
	{ "A24-personality-upper-bits", .nr = SYS_personality, .args = { 0x100040000 }, FILTERED("EPERM") },
	{ "A24-personality-linux", .nr = SYS_personality, ALWAYS("ok") },
	{ "A24-personality-ask", .nr = SYS_personality, .args = { 0xffffffff }, ALWAYS("ok") },
	/* SIGSEGV: a kernel without 32-bit entry has no gate at 0x80. */
	{ "A25-i386-call", try_i386, FILTERED("SIGSYS SIGSEGV ENOSYS") },
	{ "A26-x32-getpid", .nr = 0x40000000 | SYS_getpid, FILTERED("ENOSYS") },
	{ "A26-x32-only-number", .nr = 0x40000000 | 520, FILTERED("ENOSYS") },
	{ "A27-number-600", .nr = 600, FILTERED("ENOSYS") },
	{ "A27-number-470", .nr = 470, FILTERED("ENOSYS") },
	{ "A27-number-511", .nr = 511, FILTERED("ENOSYS") },
	{ "A27-number-max", .nr = 0x3fffffff, FILTERED("ENOSYS") },
	{ "A28-memfd-secret", .nr = NR_memfd_secret, FILTERED("EPERM ENOSYS") },
	{ "A29-sethostname", try_hostname, .nr = SYS_sethostname, ALWAYS("EPERM") },
	{ "A29-setdomainname", try_hostname, .nr = SYS_setdomainname, ALWAYS("EPERM") },
	{ "A36-undo-seccomp", .nr = SYS_prctl, .args = { PR_SET_SECCOMP, 0 }, ALWAYS("EINVAL") },
	{ "A36-undo-no-new-privs", .nr = SYS_prctl, .args = { PR_SET_NO_NEW_PRIVS, 0 }, ALWAYS("EINVAL") },
	{ "A36-seccomp-mode", see_status, .path = "Seccomp", FILTERED("2"), BARE("0") },
	{ "A36-no-new-privs", see_status, .path = "NoNewPrivs", ALWAYS("1") },
	{ "A37-capset-all", try_capset, ALWAYS("EPERM") },
	{ "A37-bounding-sys-admin", see_bounding, .args = { 21 }, ALWAYS("no") },
	{ "A37-bounding-sys-ptrace", see_bounding, .args = { 19 }, ALWAYS("no") },
	{ "A37-bounding-set", see_caps, .path = "CapBnd", ALWAYS("kept") },
	{ "A37-effective-set", see_caps, .path = "CapEff", .user = "none", .root = "kept", .bare_user = "none", .bare_root = "kept" },
	{ "A37-permitted-set", see_caps, .path = "CapPrm", .user = "none", .root = "kept", .bare_user = "none", .bare_root = "kept" },
	{ "A37-inheritable-set", see_caps, .path = "CapInh", ALWAYS("none") },
	{ "A37-ambient-set", see_caps, .path = "CapAmb", ALWAYS("none") },
	{ "A38-uid-map", try_write, .path = "/proc/self/uid_map", .args = { PTR("0 0 1") }, ALWAYS("EPERM EACCES") },
	{ "A38-gid-map", try_write, .path = "/proc/self/gid_map", .args = { PTR("0 0 1") }, ALWAYS("EPERM EACCES") },
	{ "A38-setgroups", try_write, .path = "/proc/self/setgroups", .args = { PTR("allow") }, ALWAYS("EPERM EACCES") },
	{ "A39-attr-current", try_write, .path = "/proc/self/attr/current", .args = { PTR("probe") }, ALWAYS("refused") },
	{ "A40-ptrace-own-child", try_ptrace_child, ALWAYS("ok") },
	{ "A40-ptrace-traceme", try_traceme, ALWAYS("ok") },
	{ "A40-read-own-child", try_read_child, ALWAYS("ok") },
};

const struct probe_group probes_calls = { probes, sizeof probes / sizeof probes[0] };
