/* SPDX-License-Identifier: Apache-2.0 */
/* B01-B12: what /proc, /sys and /dev show and take. */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* ---- attempts ---- */

static long try_open_write(const struct probe *p)
{
	return open_close(p->path, O_WRONLY);
}

static bool is_null_device(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

/* Opening a masked file for writing works, and reaches the null device. */
static long try_open_masked(const struct probe *p)
{
	int fd = open(p->path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	return is_null_device(fd) ? observe("masked") : 0;
}

static long try_read(const struct probe *p)
{
	char text[512];
	ssize_t n = read_text(p->path, text, sizeof text);

	if (n < 0)
		return -1;
	return n ? observe("readable, %zd bytes or more", n) : observe("empty");
}

/* A masked directory: nothing in it. */
static long try_list(const struct probe *p)
{
	DIR *dir = opendir(p->path);
	struct dirent *entry;

	if (!dir)
		return -1;
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			return observe("shows %s", entry->d_name);
	return observe("empty");
}

static long try_stat(const struct probe *p)
{
	struct stat st;

	return lstat(p->path, &st);
}

static long try_create(const struct probe *p)
{
	long r = open_close(p->path, O_WRONLY | O_CREAT | O_EXCL);

	if (r >= 0)
		unlink(p->path);
	return r;
}

static long try_unlink(const struct probe *p)
{
	return unlink(p->path);
}

static long try_chmod(const struct probe *p)
{
	return chmod(p->path, 0666);
}

static bool is_listed(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(name, *list))
			return true;
	return false;
}

static long see_dev_names(const struct probe *p)
{
	static const char *const known[] = { ".", "..", "null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts",
		                             "shm", "fd", "stdin", "stdout", "stderr", NULL };
	DIR *dir = opendir("/dev");
	struct dirent *entry;

	(void) p;
	if (!dir)
		return -1;
	while ((entry = readdir(dir)))
		if (!is_listed(entry->d_name, known))
			return observe("/dev/%s", entry->d_name);
	return observe("none");
}

/* Every node is the device that its name says. */
static long see_dev_numbers(const struct probe *p)
{
	static const struct { const char *path; unsigned major, minor; } nodes[] = {
		{ "/dev/null", 1, 3 }, { "/dev/zero", 1, 5 }, { "/dev/full", 1, 7 }, { "/dev/random", 1, 8 },
		{ "/dev/urandom", 1, 9 }, { "/dev/tty", 5, 0 },
	};
	struct stat st;

	(void) p;
	for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
		if (stat(nodes[i].path, &st) < 0)
			return observe("%s: %s", nodes[i].path, errno_word(errno));
		if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(nodes[i].major, nodes[i].minor))
			return observe("%s is %u:%u", nodes[i].path, major(st.st_rdev), minor(st.st_rdev));
	}
	return observe("right");
}

/* Any name in /sys beyond the synthetic files. */
static long see_sys_names(const struct probe *p)
{
	static const char *const known[] = {
		"/sys/devices", "/sys/devices/system", "/sys/devices/system/cpu", "/sys/devices/system/cpu/online",
		"/sys/devices/system/cpu/possible", "/sys/devices/system/cpu/present", "/sys/fs", "/sys/fs/cgroup",
		"/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/memory.max", NULL,
	};
	static const char *const places[] = { "/sys", "/sys/devices", "/sys/devices/system", "/sys/devices/system/cpu", "/sys/fs",
		                              "/sys/fs/cgroup", NULL };
	char path[512];

	(void) p;
	for (size_t i = 0; places[i]; i++) {
		DIR *dir = opendir(places[i]);
		struct dirent *entry;

		while (dir && (entry = readdir(dir))) {
			if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
				continue;
			snprintf(path, sizeof path, "%s/%s", places[i], entry->d_name);
			if (!is_listed(path, known))
				return observe("%s", path);
		}
	}
	return observe("none");
}

/* ---- the table ---- */

#define WRITE(probe_name, file, want) { probe_name, try_open_write, .path = file, ALWAYS(want) }
#define READ(probe_name, file, want)  { probe_name, try_read, .path = file, ALWAYS(want) }
#define ABSENT(probe_name, file)      { probe_name, try_stat, .path = file, ALWAYS("ENOENT") }
#define LIST(probe_name, file, want)  { probe_name, try_list, .path = file, ALWAYS(want) }

#define READ_ONLY "EACCES EROFS"
/* Knobs that a kernel may be built without: absent is as closed as read-only. */
#define READ_ONLY_OR_ABSENT "EACCES EROFS ENOENT"
/* "A missing file is not an error": masks go where the kernel has the file. */
#define MASKED "empty ENOENT"
#define HIDDEN "ENOENT EACCES empty"

static const struct probe probes[] = {
	WRITE("B01-core-pattern", "/proc/sys/kernel/core_pattern", READ_ONLY),
	WRITE("B01-modprobe", "/proc/sys/kernel/modprobe", READ_ONLY_OR_ABSENT),                /* CONFIG_MODULES */
	WRITE("B01-ns-last-pid", "/proc/sys/kernel/ns_last_pid", READ_ONLY_OR_ABSENT),          /* CONFIG_CHECKPOINT_RESTORE */
	WRITE("B01-hostname", "/proc/sys/kernel/hostname", READ_ONLY),
	WRITE("B01-domainname", "/proc/sys/kernel/domainname", READ_ONLY),
	WRITE("B01-core-pipe-limit", "/proc/sys/kernel/core_pipe_limit", READ_ONLY),
	WRITE("B01-poweroff-cmd", "/proc/sys/kernel/poweroff_cmd", READ_ONLY_OR_ABSENT),
	WRITE("B01-usermodehelper", "/proc/sys/kernel/usermodehelper/bset", READ_ONLY_OR_ABSENT),
	WRITE("B01-hotplug", "/proc/sys/kernel/hotplug", READ_ONLY_OR_ABSENT),                  /* CONFIG_UEVENT_HELPER */
	WRITE("B01-sysrq", "/proc/sys/kernel/sysrq", READ_ONLY_OR_ABSENT),                      /* CONFIG_MAGIC_SYSRQ */
	WRITE("B01-randomize-va-space", "/proc/sys/kernel/randomize_va_space", READ_ONLY),
	WRITE("B01-msgmax", "/proc/sys/kernel/msgmax", READ_ONLY),
	WRITE("B01-shmmax", "/proc/sys/kernel/shmmax", READ_ONLY),
	WRITE("B01-mqueue", "/proc/sys/fs/mqueue/queues_max", READ_ONLY),
	WRITE("B01-suid-dumpable", "/proc/sys/fs/suid_dumpable", READ_ONLY),
	WRITE("B01-file-max", "/proc/sys/fs/file-max", READ_ONLY),
	{ "B01-create", try_create, .path = "/proc/sys/kernel/probe", ALWAYS("EACCES EROFS EPERM ENOENT") },
	WRITE("B02-panic-on-oom", "/proc/sys/vm/panic_on_oom", READ_ONLY),
	WRITE("B02-drop-caches", "/proc/sys/vm/drop_caches", READ_ONLY),
	WRITE("B02-overcommit", "/proc/sys/vm/overcommit_memory", READ_ONLY),
	WRITE("B03-ip-forward", "/proc/sys/net/ipv4/ip_forward", READ_ONLY),
	WRITE("B03-ping-group-range", "/proc/sys/net/ipv4/ping_group_range", READ_ONLY),
	WRITE("B03-unprivileged-port", "/proc/sys/net/ipv4/ip_unprivileged_port_start", READ_ONLY),
	WRITE("B04-max-user-namespaces", "/proc/sys/user/max_user_namespaces", READ_ONLY),
	WRITE("B04-max-net-namespaces", "/proc/sys/user/max_net_namespaces", READ_ONLY),
	WRITE("B05-binfmt-misc", "/proc/sys/fs/binfmt_misc/register", "ENOENT"),
	{ "B06-sysrq-trigger", try_open_masked, .path = "/proc/sysrq-trigger", ALWAYS("ENOENT EACCES masked") },
	WRITE("B06-irq-affinity", "/proc/irq/default_smp_affinity", READ_ONLY_OR_ABSENT),
	{ "B06-latency-stats", try_open_masked, .path = "/proc/latency_stats", ALWAYS("ENOENT EACCES masked") },

	READ("B07-kcore", "/proc/kcore", HIDDEN),
	READ("B07-kmsg", "/proc/kmsg", HIDDEN),
	READ("B07-slabinfo", "/proc/slabinfo", HIDDEN),
	READ("B07-kpagecount", "/proc/kpagecount", HIDDEN),
	READ("B07-kpageflags", "/proc/kpageflags", HIDDEN),
	READ("B07-kpagecgroup", "/proc/kpagecgroup", HIDDEN),
	READ("B07-vmallocinfo", "/proc/vmallocinfo", HIDDEN),
	READ("B07-pagetypeinfo", "/proc/pagetypeinfo", HIDDEN),
	READ("B07-vmcore", "/proc/vmcore", HIDDEN),
	READ("B08-keys", "/proc/keys", MASKED),
	READ("B08-timer-list", "/proc/timer_list", MASKED),
	READ("B08-kallsyms", "/proc/kallsyms", MASKED),
	READ("B08-config", "/proc/config.gz", MASKED),
	READ("B08-cmdline", "/proc/cmdline", "empty"),
	READ("B08-iomem", "/proc/iomem", MASKED),
	READ("B08-ioports", "/proc/ioports", MASKED),
	READ("B08-sched-debug", "/proc/sched_debug", MASKED),
	LIST("B08-acpi", "/proc/acpi", "empty ENOENT ENOTDIR EACCES"),
	/* The empty directory that covers it is shared by sandboxes. */
	{ "B08-acpi-create", try_create, .path = "/proc/acpi/probe", ALWAYS("EROFS EACCES ENOENT ENOTDIR") },
	LIST("B08-scsi", "/proc/scsi", "empty ENOENT ENOTDIR EACCES"),
	LIST("B08-asound", "/proc/asound", "empty ENOENT ENOTDIR EACCES"),

	{ "B09-sys-beyond-synthetic", see_sys_names, ALWAYS("none") },
	ABSENT("B09-sys-kernel", "/sys/kernel"),
	ABSENT("B09-sys-kernel-debug", "/sys/kernel/debug"),
	ABSENT("B09-tracefs", "/sys/kernel/tracing"),
	ABSENT("B09-sys-firmware", "/sys/firmware"),
	ABSENT("B09-bpffs", "/sys/fs/bpf"),
	ABSENT("B09-sys-class", "/sys/class"),
	ABSENT("B09-sys-block", "/sys/block"),
	ABSENT("B09-sys-module", "/sys/module"),
	ABSENT("B09-sys-power", "/sys/power"),
	ABSENT("B09-uevent-helper", "/sys/kernel/uevent_helper"),
	{ "B09-sys-create", try_create, .path = "/sys/probe", ALWAYS("EROFS ENOENT") },
	ABSENT("B10-release-agent", "/sys/fs/cgroup/release_agent"),
	ABSENT("B10-release-agent-v1", "/sys/fs/cgroup/memory/release_agent"),
	ABSENT("B10-notify-on-release", "/sys/fs/cgroup/memory/notify_on_release"),
	ABSENT("B10-cgroup-procs", "/sys/fs/cgroup/cgroup.procs"),
	ABSENT("B10-cgroup-unified", "/sys/fs/cgroup/unified"),

	{ "B11-dev-names", see_dev_names, ALWAYS("none") },
	{ "B11-dev-numbers", see_dev_numbers, ALWAYS("right") },
	{ "B11-dev-create", try_create, .path = "/dev/probe", ALWAYS("EROFS") },
	{ "B11-dev-unlink", try_unlink, .path = "/dev/null", ALWAYS("EROFS") },
	{ "B11-dev-chmod", try_chmod, .path = "/dev/null", ALWAYS("EROFS") },
	ABSENT("B12-loop-control", "/dev/loop-control"),
	ABSENT("B12-loop0", "/dev/loop0"),
	ABSENT("B12-tun", "/dev/net/tun"),
	ABSENT("B12-kvm", "/dev/kvm"),
	ABSENT("B12-fuse", "/dev/fuse"),
	ABSENT("B12-kmsg", "/dev/kmsg"),
	ABSENT("B12-console", "/dev/console"),
	ABSENT("B12-mem", "/dev/mem"),
	ABSENT("B12-port", "/dev/port"),
	ABSENT("B12-vsock", "/dev/vsock"),
	ABSENT("B12-vhost-vsock", "/dev/vhost-vsock"),
	ABSENT("B12-vda", "/dev/vda"),
	ABSENT("B12-userfaultfd", "/dev/userfaultfd"),
	ABSENT("B12-tty0", "/dev/tty0"),
};

const struct probe_group probes_files = { probes, sizeof probes / sizeof probes[0] };
