/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/features-internal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fd.h"

#define NO_SANDBOX "no sandbox can be made"

/* In the order in which a person should read it: what everything else rests on comes first. */
static const struct check checks[] = {
	{ "root", true, NO_SANDBOX, NULL, check_root },
	{ "capabilities", true, NO_SANDBOX, NULL, check_caps },
	{ "kernel", true, NO_SANDBOX, NULL, check_kernel },
	{ "container", false, "layers below may be blocked by it", NULL, check_container },

	{ "user namespaces", true, NO_SANDBOX, "CONFIG_USER_NS", check_userns },
	{ "pid namespaces", true, NO_SANDBOX, "CONFIG_PID_NS", check_pidns },
	{ "mount namespaces", true, NO_SANDBOX, "CONFIG_NAMESPACES", check_mntns },
	{ "network namespaces", true, NO_SANDBOX, "CONFIG_NET_NS", check_netns },
	{ "ipc namespaces", true, NO_SANDBOX, "CONFIG_IPC_NS", check_ipcns },
	{ "uts namespaces", true, NO_SANDBOX, "CONFIG_UTS_NS", check_utsns },
	{ "cgroup namespaces", true, NO_SANDBOX, "CONFIG_CGROUPS", check_cgroupns },
	{ "time namespaces", false, "the monotonic clock jumps when a sandbox is restored", "CONFIG_TIME_NS", check_timens },

	{ "cgroup tree", true, "processes can't be found, frozen or killed as one", "CONFIG_CGROUPS", check_cgroups },
	{ "memory limit", true, "a sandbox could take all memory", "CONFIG_MEMCG", check_controller_memory },
	{ "process limit", true, "a fork bomb would reach the host", "CONFIG_CGROUP_PIDS", check_controller_pids },
	{ "cpu limit", true, "a sandbox could take every processor", "CONFIG_CFS_BANDWIDTH", check_controller_cpu },
	{ "io limit", false, "disk traffic is not limited", "CONFIG_BLK_CGROUP", check_controller_io },
	{ "clone into cgroup", true, NO_SANDBOX, "Linux 5.7 or newer", check_into_cgroup },
	{ "freezer", false, "no pause", "CONFIG_CGROUPS, Linux 5.2 or newer", check_freezer },
	/* The last one: a group that was killed so takes no new process. */
	{ "cgroup.kill", false, "killing goes process by process, and slower", "Linux 5.14 or newer", check_cgroup_kill },

	{ "mount API", true, NO_SANDBOX, "Linux 5.12 or newer", check_mount_api },
	{ "idmapped mounts", true, "templates can't be shared between sandboxes", "Linux 5.12 or newer", check_idmapped },
	{ "overlay", true, NO_SANDBOX, "CONFIG_OVERLAY_FS (or: modprobe overlay)", check_overlay },
	{ "overlay on data directory", false, "no sandboxes whose disk is a plain directory", "CONFIG_OVERLAY_FS (or: modprobe overlay)",
	  check_overlay_on_data },
	{ "tmpfs limits", true, "disks in memory would have no size", "CONFIG_TMPFS", check_tmpfs },
	{ "loop devices", false, "no persistent disks with a hard limit", "CONFIG_BLK_DEV_LOOP", check_loop },
	{ "ext4", false, "no persistent disks with a hard limit", "CONFIG_EXT4_FS", check_ext4 },

	{ "seccomp filters", true, "the kernel's rare system calls would stay open", "CONFIG_SECCOMP_FILTER",
	  check_seccomp },
	{ "no_new_privs", true, "setuid programs would gain rights", "Linux 3.5 or newer", check_no_new_privs },
	{ "Landlock", false, "one wall less; worktrees and cells are not confined", "CONFIG_SECURITY_LANDLOCK",
	  check_landlock },
	{ "close_range", true, "descriptors can't be closed safely", "Linux 5.9 or newer", check_close_range },
	{ "openat2", true, "paths inside can't be walked safely", "Linux 5.6 or newer", check_openat2 },
	{ "pidfd", true, "processes can't be watched safely", "Linux 5.3 or newer", check_pidfd },

	{ "hyperthreads", false, "", NULL, check_smt },
	{ "sysctls", false, "", NULL, check_sysctls },
	{ "open files", false, "", NULL, check_nofile },
	{ "process ids", false, "", NULL, check_pid_max },
	{ "namespace limits", false, "", NULL, check_namespace_limits },
	{ "data directory", true, "nothing can be stored", NULL, check_data_dir },
	{ "mmdebstrap", false, "the default template can't be built here", NULL, check_mmdebstrap },
};
_Static_assert(ARRAY_SIZE(checks) <= LAYERS_MAX, "more layers than struct layers holds");

/* ---- wording ---- */

static _printf_(4, 0) void say(struct layer *l, enum layer_state state, const char *fix, const char *fmt, va_list ap)
{
	l->state = state;
	vsnprintf(l->text, sizeof l->text, fmt, ap);
	snprintf(l->fix, sizeof l->fix, "%s", fix);
}

void say_present(struct layer *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(l, LAYER_PRESENT, "", fmt, ap);
	va_end(ap);
}

void say_degraded(struct layer *l, const char *fix, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(l, LAYER_DEGRADED, fix, fmt, ap);
	va_end(ap);
}

void say_missing(const struct check *c, struct layer *l, const char *fix, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	say(l, LAYER_MISSING, fix, fmt, ap);
	va_end(ap);
	n = strlen(l->text);
	snprintf(l->text + n, sizeof l->text - n, ": %s", c->without);
}

static bool is_userns(const struct check *c)
{
	return c->run == check_userns;
}

/* EPERM says nothing about who refused.  The candidates, the most specific first. */
static void say_refused(const struct probe *p, const struct check *c, struct layer *l)
{
	if (!p->is_root && is_userns(c) && host_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1)
		say_missing(c, l, "run as root, or: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
		            "AppArmor refuses user namespaces to ordinary users");
	else if (!p->is_root && is_userns(c) && host_number("/proc/sys/kernel/unprivileged_userns_clone") == 0)
		say_missing(c, l, "run as root, or: sysctl -w kernel.unprivileged_userns_clone=1",
		            "a sysctl refuses user namespaces to ordinary users");
	else if (p->is_filtered && p->container)
		say_missing(c, l, "start the container with --privileged, or with --cap-add SYS_ADMIN --security-opt "
		            "seccomp=unconfined --security-opt apparmor=unconfined",
		            "refused by the seccomp profile of %s", p->container);
	else if (p->is_filtered)
		say_missing(c, l, "start cuvette outside that sandbox",
		            "refused by a seccomp filter of the program that started this one");
	else if (p->container && !p->has_sys_admin)
		say_missing(c, l, "start the container with --privileged, or at least --cap-add SYS_ADMIN",
		            "%s withholds CAP_SYS_ADMIN", p->container);
	else if (!p->is_root)
		say_missing(c, l, "run as root", "refused to this user");
	else if (!p->has_sys_admin)
		say_missing(c, l, "grant CAP_SYS_ADMIN (systemd: CapabilityBoundingSet=)", "CAP_SYS_ADMIN is missing");
	else
		say_missing(c, l, "look for Landlock, AppArmor or SELinux denials (dmesg), and start cuvette outside "
		            "of any other sandbox", "refused by a security module");
}

void say_blocked(const struct probe *p, const struct check *c, struct layer *l, int sys)
{
	if (sys == EPERM || sys == EACCES || (sys == ENOSYS && p->is_filtered))
		say_refused(p, c, l);
	else if (sys == ENOSPC)
		say_missing(c, l, "raise the limits below /proc/sys/user (max_user_namespaces and its siblings)",
		            "a limit on namespaces is used up");
	else if (c->config && (sys == ENOSYS || sys == EINVAL || sys == ENODEV || sys == EOPNOTSUPP || sys == ENOENT)) {
		char fix[sizeof l->fix];

		snprintf(fix, sizeof fix, "boot a kernel with %s", c->config);
		say_missing(c, l, fix, "not in this kernel (%s)", strerror(sys));
	} else {
		say_missing(c, l, "see the kernel's log (dmesg) for the reason, and run cuvette doctor again", "%s",
		            strerror(sys));
	}
}

void say_result(const struct probe *p, const struct check *c, struct layer *l, int sys, const char *text)
{
	if (sys)
		say_blocked(p, c, l, sys);
	else
		say_present(l, "%s", text);
}

/* ---- trying ---- */

int try_in_child(int (*fn)(void *arg), void *arg)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (!pid) {
		alarm(10);
		_exit(fn(arg) & 0xff);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return WTERMSIG(status) == SIGSYS ? EPERM : WTERMSIG(status) == SIGALRM ? ETIMEDOUT : EIO;
}

int64_t host_number(const char *path)
{
	char text[64], *end;
	long long n;

	if (read_file_at(AT_FDCWD, path, text, sizeof text, NULL) < 0)
		return -1;
	n = strtoll(text, &end, 10);
	return end == text ? -1 : n;
}

/* ---- the surroundings ---- */

static bool status_line(const char *key, char ret[64])
{
	char text[4096];
	const char *at;

	if (read_file_at(AT_FDCWD, "/proc/self/status", text, sizeof text, NULL) < 0 || !(at = strstr(text, key)))
		return false;
	snprintf(ret, 64, "%.*s", (int) strcspn(at + strlen(key), "\n"), at + strlen(key));
	return true;
}

/* In the host's own user namespace every id maps to itself. */
static bool in_first_userns(void)
{
	unsigned long long inside = 1, outside = 1, count = 0;
	char map[256];

	return read_file_at(AT_FDCWD, "/proc/self/uid_map", map, sizeof map, NULL) == 0 &&
	       sscanf(map, "%llu %llu %llu", &inside, &outside, &count) == 3 &&
	       !inside && !outside && count == 4294967295ull;
}

/* The host's own namespaces have fixed numbers (PROC_PID_INIT_INO, PROC_CGROUP_INIT_INO). */
static bool in_first_namespaces(void)
{
	struct stat pid, cgroup;

	return stat("/proc/self/ns/pid", &pid) == 0 && pid.st_ino == 0xeffffffc &&
	       stat("/proc/self/ns/cgroup", &cgroup) == 0 && cgroup.st_ino == 0xeffffffb;
}

/* The marker files alone prove nothing: a virtual machine may be made from a container's image. */
static const char *find_container(void)
{
	if (in_first_userns() && in_first_namespaces())
		return NULL;
	if (access("/.dockerenv", F_OK) == 0)
		return "Docker";
	if (access("/run/.containerenv", F_OK) == 0)
		return "Podman";
	if (getenv("KUBERNETES_SERVICE_HOST"))
		return "Kubernetes";
	if (access("/run/systemd/container", F_OK) == 0)
		return "a container";
	return in_first_userns() ? "a pid or cgroup namespace" : "a user namespace";
}

static void find_near_dir(struct probe *p)
{
	struct stat st;

	snprintf(p->near_dir, sizeof p->near_dir, "%s", p->data_dir);
	while (stat(p->near_dir, &st) < 0 || !S_ISDIR(st.st_mode)) {
		char *slash = strrchr(p->near_dir, '/');

		if (!slash) {
			strcpy(p->near_dir, ".");
			return;
		}
		slash[slash == p->near_dir] = '\0';
		if (slash == p->near_dir && stat("/", &st) < 0)
			return;
	}
}

/* A slot for the cgroup probes; cgroup_destroy() removes it again. */
static void open_cgroup(struct probe *p)
{
	char name[CGROUP_NAME_MAX];

	if (cgroup_tree_open(&p->tree, &p->tree_err) < 0)
		return;
	snprintf(name, sizeof name, "cuvette-doctor-%d", (int) getpid());
	(void) !cgroup_create(p->tree, name, geteuid(), &p->cgroup, &p->tree_err);
}

static void probe_init(struct probe *p, const char *data_dir)
{
	char text[64];

	*p = (struct probe) { .data_dir = data_dir };
	p->is_root = geteuid() == 0 && in_first_userns();
	p->has_sys_admin = status_line("CapEff:", text) && strtoull(text, NULL, 16) & 1ull << 21;
	p->is_filtered = status_line("Seccomp:", text) && strtoul(text, NULL, 10) != 0;
	p->container = find_container();
	find_near_dir(p);
	p->userns_fd = make_userns(1u << 20, 65536);
	open_cgroup(p);
}

static void probe_done(struct probe *p)
{
	cgroup_destroy(p->cgroup);
	cgroup_tree_close(p->tree);
	close_fd(p->userns_fd);
}

void features_probe(const char *data_dir, struct layers *ret)
{
	struct probe p;

	memset(ret, 0, sizeof *ret);
	fflush(NULL);           /* children must not print our buffers a second time */
	probe_init(&p, data_dir);
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		struct layer *l = &ret->list[ret->count++];

		l->name = checks[i].name;
		l->required = checks[i].required;
		checks[i].run(&p, &checks[i], l);
	}
	probe_done(&p);
}
