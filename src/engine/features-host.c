/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of this host: privileges, control groups, room, and settings that are advice. */
#include "engine/features-internal.h"

#include <linux/capability.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "engine/cgroup-internal.h"
#include "engine/sys.h"

/* ---- privileges ---- */

void check_root(const struct probe *p, const struct check *c, struct layer *l)
{
	if (p->is_root)
		say_present(l, "yes");
	else if (geteuid() == 0)
		say_missing(c, l, "start cuvette on the host, or in a container with --privileged and no user namespace",
		            "root only inside a user namespace (%s)", p->container ? p->container : "a sandbox");
	else
		say_missing(c, l, "run it as root (sudo cuvette ...)", "this is uid %u", (unsigned) geteuid());
}

static const struct {
	unsigned bit;
	const char *name;
} needed_caps[] = {
	{ CAP_SYS_ADMIN, "SYS_ADMIN" }, { CAP_SYS_CHROOT, "SYS_CHROOT" }, { CAP_SETUID, "SETUID" },
	{ CAP_SETGID, "SETGID" }, { CAP_SETPCAP, "SETPCAP" }, { CAP_CHOWN, "CHOWN" },
	{ CAP_DAC_OVERRIDE, "DAC_OVERRIDE" }, { CAP_DAC_READ_SEARCH, "DAC_READ_SEARCH" }, { CAP_FOWNER, "FOWNER" },
	{ CAP_FSETID, "FSETID" }, { CAP_MKNOD, "MKNOD" }, { CAP_NET_ADMIN, "NET_ADMIN" }, { CAP_KILL, "KILL" },
	{ CAP_SYS_PTRACE, "SYS_PTRACE" },
};

static uint64_t effective_caps(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (syscall(SYS_capget, &header, data) < 0)
		return 0;
	return data[0].effective | (uint64_t) data[1].effective << 32;
}

void check_caps(const struct probe *p, const struct check *c, struct layer *l)
{
	uint64_t have = effective_caps();
	char names[64] = "", fix[sizeof l->fix];
	size_t n = 0;
	int lacking = 0;

	for (size_t i = 0; i < ARRAY_SIZE(needed_caps); i++) {
		if (have >> needed_caps[i].bit & 1)
			continue;
		if (++lacking <= 3)
			n += (size_t) snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", needed_caps[i].name);
	}
	if (lacking) {
		snprintf(fix, sizeof fix, "%s", !p->is_root ? "run as root" : p->container ?
		         "start the container with --privileged" :
		         "grant them to the service (systemd: CapabilityBoundingSet=)");
		say_missing(c, l, fix, "%d of %zu are missing (%s%s)", lacking, ARRAY_SIZE(needed_caps), names,
		            lacking > 3 ? ", ..." : "");
	} else if (!(have >> CAP_SYS_RESOURCE & 1)) {
		say_degraded(l, "grant CAP_SYS_RESOURCE", "SYS_RESOURCE is missing: own limits (open files) can't be raised");
	} else if (!(have >> CAP_CHECKPOINT_RESTORE & 1)) {
		say_degraded(l, "grant CAP_CHECKPOINT_RESTORE", "CHECKPOINT_RESTORE is missing: no hibernation");
	} else {
		say_present(l, "all that the spawner needs");
	}
}

/* The one version that is read: layers of an overlay may be idmapped from 5.19 on, and trying that
 * needs a template. */
void check_kernel(const struct probe *p, const struct check *c, struct layer *l)
{
	unsigned major = 0, minor = 0;
	struct utsname u;

	(void) p;
	if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		say_missing(c, l, "boot Linux 5.19 or newer", "unknown kernel");
	else if (major < 5 || (major == 5 && minor < 19))
		say_missing(c, l, "boot Linux 5.19 or newer (Debian 12 has 6.1)", "Linux %.60s", u.release);
	else
		say_present(l, "Linux %s %s", u.release, u.machine);
}

void check_container(const struct probe *p, const struct check *c, struct layer *l)
{
	(void) c;
	if (p->container)
		say_degraded(l, "run on the host, or start the container with --privileged",
		             "inside %s%s: what is missing below may be its doing", p->container,
		             p->is_filtered ? " with a seccomp profile" : "");
	else if (p->is_filtered)
		say_degraded(l, "start cuvette outside of that sandbox",
		             "a seccomp filter of another program is on this process: it may block layers below");
	else
		say_present(l, "none, this is the host");
}

/* ---- control groups ---- */

void check_cgroups(const struct probe *p, const struct check *c, struct layer *l)
{
	const char *fix = "mount -t cgroup2 none /sys/fs/cgroup";

	if (p->cgroup) {
		say_present(l, "%s", cgroup_tree_mode(p->tree) == CGROUP_V2 ? "v2" :
		            cgroup_tree_mode(p->tree) == CGROUP_V1 ? "v1 controllers beside a v2 tree" :
		            "a v2 tree without controllers");
		return;
	}
	if (p->container)
		fix = "start the container with --privileged --cgroupns private, or mount cgroups read-write";
	else if (!p->is_root)
		fix = "run as root, or in a systemd unit with Delegate=yes";
	say_missing(c, l, fix, "%s: %s", p->tree ? "can't make a group" : "no writable cgroup v2 tree",
	            strerror(p->tree_err.sys));
}

/* Sets the limit on a slot of our own: where that works, the controller does. */
static void check_controller(const struct probe *p, const struct check *c, struct layer *l, unsigned controller,
                             const char *name, const struct cgroup_limits *limits)
{
	struct err err = { 0 };
	char fix[sizeof l->fix];

	if (!p->cgroup) {
		say_missing(c, l, "see \"cgroup tree\" above", "needs a cgroup tree");
		return;
	}
	if (p->tree->controllers & controller) {
		if (cgroup_set_limits(p->cgroup, limits, &err) == 0)
			say_present(l, "yes, by the %s controller", name);
		else
			say_missing(c, l, "see the kernel's log (dmesg), and check who else manages cgroups here",
			            "%.80s", err.msg);
		return;
	}
	if (cgroup_tree_mode(p->tree) == CGROUP_V2)
		snprintf(fix, sizeof fix, "echo +%s >/sys/fs/cgroup/cgroup.subtree_control, or Delegate=yes in the "
		         "systemd unit; check the kernel's command line for cgroup_disable", name);
	else
		snprintf(fix, sizeof fix, "boot with systemd.unified_cgroup_hierarchy=1, or mount the v1 hierarchy: "
		         "mount -t cgroup -o %s none /sys/fs/cgroup/%s", name, name);
	say_missing(c, l, fix, "no %s controller for us", name);
}

void check_controller_memory(const struct probe *p, const struct check *c, struct layer *l)
{
	check_controller(p, c, l, CG_MEMORY, "memory", &(struct cgroup_limits) { .memory_bytes = 64 << 20 });
}

void check_controller_pids(const struct probe *p, const struct check *c, struct layer *l)
{
	check_controller(p, c, l, CG_PIDS, "pids", &(struct cgroup_limits) { .pids = 16 });
}

void check_controller_cpu(const struct probe *p, const struct check *c, struct layer *l)
{
	check_controller(p, c, l, CG_CPU, "cpu", &(struct cgroup_limits) { .cpu_milli = 500 });
}

void check_controller_io(const struct probe *p, const struct check *c, struct layer *l)
{
	if (!p->cgroup)
		say_missing(c, l, "see \"cgroup tree\" above", "needs a cgroup tree");
	else if (!(p->tree->controllers & CG_IO))
		say_missing(c, l, "switch on the io controller (v2) or mount blkio (v1)", "no io controller for us");
	else if (cgroup_tree_mode(p->tree) == CGROUP_V1)
		say_degraded(l, "boot with systemd.unified_cgroup_hierarchy=1",
		             "v1 blkio sees direct I/O only: buffered writes are neither counted nor limited");
	else
		say_present(l, "yes, by the io controller");
}

/* A child that waits in the box of our slot; -1 with errno. */
static pid_t born_in_box(const struct probe *p)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t) cgroup_box_fd(p->cgroup),
	};
	pid_t pid = (pid_t) syscall(SYS_clone3, &args, sizeof args);

	if (pid)
		return pid;
	alarm(10);
	for (;;)
		pause();
}

/* False when there is no slot to try in; said then. */
static bool has_slot(const struct probe *p, const struct check *c, struct layer *l)
{
	if (!p->cgroup)
		say_missing(c, l, "see \"cgroup tree\" above", "needs a cgroup tree");
	return p->cgroup;
}

void check_into_cgroup(const struct probe *p, const struct check *c, struct layer *l)
{
	pid_t pid;

	if (!has_slot(p, c, l))
		return;
	pid = born_in_box(p);
	if (pid < 0) {
		say_blocked(p, c, l, errno);
		return;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	say_present(l, "yes");
}

void check_cgroup_kill(const struct probe *p, const struct check *c, struct layer *l)
{
	struct err err = { 0 };
	pid_t pid;

	if (!has_slot(p, c, l))
		return;
	pid = born_in_box(p);
	if (pid < 0) {
		say_blocked(p, c, l, errno);
		return;
	}
	if (write_file_at(cgroup_box_fd(p->cgroup), "cgroup.kill", "1", &err) < 0) {
		kill(pid, SIGKILL);
		say_degraded(l, "boot Linux 5.14 or newer", "missing: %s", c->without);
	} else {
		say_present(l, "yes");
	}
	waitpid(pid, NULL, 0);
}

static bool becomes_frozen(const struct probe *p)
{
	uint64_t deadline = now_ns() + 1000000000u;
	char text[256];

	if (write_file_at(cgroup_box_fd(p->cgroup), "cgroup.freeze", "1", NULL) < 0)
		return false;
	while (now_ns() < deadline) {
		if (read_file_at(cgroup_box_fd(p->cgroup), "cgroup.events", text, sizeof text, NULL) == 0 &&
		    knob_key(text, "frozen"))
			return true;
		poll(NULL, 0, 1);
	}
	return false;
}

void check_freezer(const struct probe *p, const struct check *c, struct layer *l)
{
	bool frozen;
	pid_t pid;

	if (!has_slot(p, c, l))
		return;
	pid = born_in_box(p);
	if (pid < 0) {
		say_blocked(p, c, l, errno);
		return;
	}
	frozen = becomes_frozen(p);
	(void) !write_file_at(cgroup_box_fd(p->cgroup), "cgroup.freeze", "0", NULL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (frozen)
		say_present(l, "yes");
	else
		say_missing(c, l, "boot Linux 5.2 or newer", "a group could not be frozen");
}

/* ---- room ---- */

static const char *fs_name(const char *path)
{
	static const struct {
		uint32_t magic;
		const char *name;
	} known[] = {
		{ EXT4_SUPER_MAGIC, "ext4" }, { BTRFS_SUPER_MAGIC, "btrfs" }, { 0x58465342, "xfs" },
		{ OVERLAYFS_SUPER_MAGIC, "overlay" }, { TMPFS_MAGIC, "tmpfs" }, { NFS_SUPER_MAGIC, "nfs" },
	};
	struct statfs st;

	if (statfs(path, &st) == 0)
		for (size_t i = 0; i < ARRAY_SIZE(known); i++)
			if ((uint32_t) st.f_type == known[i].magic)
				return known[i].name;
	return "unknown file system";
}

void check_data_dir(const struct probe *p, const struct check *c, struct layer *l)
{
	char dir[sizeof p->near_dir + 32], size[16];
	const char *fs = fs_name(p->near_dir);
	struct statvfs st;
	uint64_t free_bytes;

	snprintf(dir, sizeof dir, "%s/.cuvette-probe-XXXXXX", p->near_dir);
	if (!mkdtemp(dir) || rmdir(dir) < 0 || statvfs(p->near_dir, &st) < 0) {
		say_missing(c, l, "choose a writable one with --data or CUVETTE_DATA", "%.50s: %s", p->data_dir,
		            strerror(errno));
		return;
	}
	free_bytes = (uint64_t) st.f_bavail * st.f_frsize;
	size_text(free_bytes, size);
	if (free_bytes < 64u << 20)
		say_missing(c, l, "make room, or choose another one with --data", "%.50s: only %s free", p->data_dir, size);
	else if (free_bytes < 2ull << 30)
		say_degraded(l, "make room, or choose another one with --data",
		             "%.50s (%s): %s free holds a template and little else", p->data_dir, fs, size);
	else if (!strcmp(fs, "overlay") || !strcmp(fs, "tmpfs"))
		say_degraded(l, "choose one on ext4, xfs or btrfs with --data (in a container: a volume)",
		             "%.50s is on %s: templates and disks end with it", p->data_dir, fs);
	else
		say_present(l, "%.60s: %s, %s free", p->data_dir, fs, size);
}

void check_nofile(const struct probe *p, const struct check *c, struct layer *l)
{
	struct rlimit r = { 0 };
	bool can_raise = p->is_root && effective_caps() >> CAP_SYS_RESOURCE & 1;

	(void) c;
	getrlimit(RLIMIT_NOFILE, &r);
	/* The spawner holds some eight descriptors per live sandbox. */
	if (r.rlim_max < 65536 && !can_raise)
		say_degraded(l, "LimitNOFILE=1048576 in the systemd unit, or ulimit -Hn 1048576 before the start",
		             "hard limit %llu: room for about %llu sandboxes at once", (unsigned long long) r.rlim_max,
		             (unsigned long long) r.rlim_max / 8);
	else
		say_present(l, "%s", can_raise ? "can be raised as needed" : "enough");
}

void check_pid_max(const struct probe *p, const struct check *c, struct layer *l)
{
	int64_t max = host_number("/proc/sys/kernel/pid_max");

	(void) p;
	(void) c;
	if (max >= 0 && max < 131072)
		say_degraded(l, "sysctl -w kernel.pid_max=4194304",
		             "%lld: all processes of the host and its sandboxes share them", (long long) max);
	else
		say_present(l, "%lld", (long long) max);
}

/* The detached mounts of a sandbox each count as a mount namespace. */
void check_namespace_limits(const struct probe *p, const struct check *c, struct layer *l)
{
	static const char *const kinds[] = { "user", "mnt", "net", "pid", "ipc", "uts", "cgroup" };
	int64_t least = INT64_MAX;
	const char *which = "user";

	(void) p;
	(void) c;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		char path[64];
		int64_t n;

		snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kinds[i]);
		n = host_number(path);
		if (n >= 0 && n < least) {
			least = n;
			which = kinds[i];
		}
	}
	if (least < 16384) {
		char fix[sizeof l->fix];

		snprintf(fix, sizeof fix, "sysctl -w user.max_%s_namespaces=200000", which);
		say_degraded(l, fix, "max_%s_namespaces is %lld: room for fewer sandboxes than that", which,
		             (long long) least);
	} else {
		say_present(l, "enough");
	}
}

/* ---- advice ---- */

void check_smt(const struct probe *p, const struct check *c, struct layer *l)
{
	(void) p;
	(void) c;
	if (host_number("/sys/devices/system/cpu/smt/active") == 1)
		say_degraded(l, "for tenants that distrust each other: echo off >/sys/devices/system/cpu/smt/control",
		             "on: sandboxes may share a core at the same moment, and caches tell tales");
	else
		say_present(l, "not shared");
}

void check_sysctls(const struct probe *p, const struct check *c, struct layer *l)
{
	static const struct {
		const char *path, *setting;
		int64_t least, most;
	} advice[] = {
		{ "/proc/sys/kernel/io_uring_disabled", "kernel.io_uring_disabled=2", 2, 2 },
		{ "/proc/sys/dev/tty/legacy_tiocsti", "dev.tty.legacy_tiocsti=0", 0, 0 },
		{ "/proc/sys/kernel/unprivileged_bpf_disabled", "kernel.unprivileged_bpf_disabled=2", 1, 2 },
		{ "/proc/sys/vm/unprivileged_userfaultfd", "vm.unprivileged_userfaultfd=0", 0, 0 },
		{ "/proc/sys/kernel/kptr_restrict", "kernel.kptr_restrict=1", 1, 2 },
		{ "/proc/sys/kernel/dmesg_restrict", "kernel.dmesg_restrict=1", 1, 1 },
	};
	char fix[sizeof l->fix] = "sysctl -w";
	size_t n = strlen(fix);
	int count = 0;

	(void) p;
	(void) c;
	for (size_t i = 0; i < ARRAY_SIZE(advice); i++) {
		int64_t value = host_number(advice[i].path);

		/* What a kernel does not have it does not need to have switched off. */
		if (value < 0 || (value >= advice[i].least && value <= advice[i].most) || n >= sizeof fix)
			continue;
		n += (size_t) snprintf(fix + n, sizeof fix - n, " %s", advice[i].setting);
		count++;
	}
	if (count)
		say_degraded(l, fix, "%d of the host's settings could be stricter; sandboxes are filtered either way", count);
	else
		say_present(l, "as recommended");
}

bool find_program(const char *name)
{
	static const char *const dirs[] = {
		"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
	};

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		char path[128];

		snprintf(path, sizeof path, "%s/%s", dirs[i], name);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

void check_mmdebstrap(const struct probe *p, const struct check *c, struct layer *l)
{
	(void) p;
	if (find_program("mmdebstrap"))
		say_present(l, "installed");
	else
		say_missing(c, l, "apt-get install mmdebstrap, or import a template (cuvette template import)",
		            "not installed");
}
