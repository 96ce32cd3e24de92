/* SPDX-License-Identifier: Apache-2.0 */
/* B10, B13-B23: the mount table, paths of the outside, extended attributes, setuid, core dumps. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- the mount table ---- */

struct mount_line {
	char root[512], point[512], options[512], type[64], source[512], super[2048];
};

/* Calls `judge` for each mount until it has something to say. */
static long each_mount(long (*judge)(const struct mount_line *m))
{
	static struct mount_line m;
	char line[8192];
	FILE *table = fopen("/proc/self/mountinfo", "re");

	if (!table)
		return -1;
	while (fgets(line, sizeof line, table)) {
		const char *dash = strstr(line, " - ");

		if (!dash || sscanf(line, "%*d %*d %*s %511s %511s %511s", m.root, m.point, m.options) != 3 ||
		    sscanf(dash + 3, "%63s %511s %2047s", m.type, m.source, m.super) != 3)
			return observe("unreadable line: %s", line);
		if (judge(&m))
			return 0;
	}
	fclose(table);
	return observe("none");
}

static bool has_option(const char *options, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = options; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, name, len) && (at[len] == ',' || at[len] == '\0'))
			return true;
	return false;
}

/* A16: a device node that got onto a writable mount must stay dead there.  devpts is devices. */
static long writable_with_devices(const struct mount_line *m)
{
	if (has_option(m->options, "nodev") || has_option(m->options, "ro") || !strcmp(m->type, "devpts"))
		return 0;
	observe("%s (%s)", m->point, m->type);
	return 1;
}

static long writable_with_setuid(const struct mount_line *m)
{
	if (has_option(m->options, "nosuid") || has_option(m->options, "ro"))
		return 0;
	observe("%s (%s)", m->point, m->type);
	return 1;
}

static long is_cgroup_mount(const struct mount_line *m)
{
	if (strncmp(m->type, "cgroup", 6))
		return 0;
	observe("%s (%s)", m->point, m->type);
	return 1;
}

static long is_kernel_interface(const struct mount_line *m)
{
	static const char *const types[] = { "sysfs", "debugfs", "tracefs", "securityfs", "bpf", "configfs", "efivarfs",
		                             "binfmt_misc", "pstore", "fusectl", "nsfs", "devtmpfs", NULL };

	for (size_t i = 0; types[i]; i++)
		if (!strcmp(m->type, types[i])) {
			observe("%s (%s)", m->point, m->type);
			return 1;
		}
	return 0;
}

/* Is the value of every layer option one of the names that the spawner gives? */
static bool names_only_layers(const char *super)
{
	char copy[2048];

	snprintf(copy, sizeof copy, "%s", super);
	for (char *option = strtok(copy, ","); option; option = strtok(NULL, ",")) {
		char *value = strchr(option, '=');

		if (!value || !strchr(value, '/'))
			continue;
		for (char *layer = value + 1; layer; ) {
			char *next = strchr(layer, ':');

			if (next)
				*next++ = '\0';
			if (layer[0] && strcmp(layer, "/") && strcmp(layer, "/u") && strcmp(layer, "/w"))
				return false;
			layer = next;
		}
	}
	return true;
}

/* B15.  Roots other than / are binds of a piece of the sandbox's own /proc, of the null device, and of the
 * empty directory that covers directories. */
static long tells_host_path(const struct mount_line *m)
{
	bool own_root = !strcmp(m->root, "/") || !strcmp(m->type, "proc") || !strcmp(m->root, "/null") ||
	                !strcmp(m->root, "/empty") || !strcmp(m->root, "/u") || !strcmp(m->root, "/w");

	if (!own_root)
		observe("root %s of %s", m->root, m->point);
	else if (strchr(m->source, '/'))
		observe("source %s of %s", m->source, m->point);
	else if (!names_only_layers(m->super))
		observe("options of %s: %s", m->point, m->super);
	else
		return 0;
	return 1;
}

static long see_mounts(const struct probe *p)
{
	return each_mount((long (*)(const struct mount_line *)) p->args[0]);
}

/* ---- paths of the outside ---- */

static long see_host_paths(const struct probe *p)
{
	struct stat st;

	(void) p;
	if (!around.host_path_count)
		return observe("no host path was given");
	for (size_t i = 0; i < around.host_path_count; i++) {
		if (lstat(around.host_paths[i], &st) == 0)
			return observe("%s is here", around.host_paths[i]);
		if (errno != ENOENT)
			return observe("%s: %s", around.host_paths[i], errno_word(errno));
	}
	return fail(ENOENT);
}

/* Does a file about ourselves name a path of the host? */
static long see_host_names(const struct probe *p)
{
	static char text[1 << 18];

	if (read_text(p->path, text, sizeof text) < 0)
		return -1;
	for (size_t i = 0; i < around.host_path_count; i++)
		if (strstr(text, around.host_paths[i]))
			return observe("names %s", around.host_paths[i]);
	return observe("none");
}

static long see_where(const char *path)
{
	struct stat root, there;

	if (stat("/", &root) < 0 || stat(path, &there) < 0)
		return -1;
	return observe(root.st_dev == there.st_dev && root.st_ino == there.st_ino ? "inside" : "elsewhere");
}

static long see_path(const struct probe *p)
{
	return see_where(p->path);
}

static long see_above_deleted_cwd(const struct probe *p)
{
	if (mkdir("/tmp/probe-cwd", 0700) < 0 || chdir("/tmp/probe-cwd") < 0 || rmdir("/tmp/probe-cwd") < 0)
		return -1;
	return see_where(p->path);
}

/* A directory that moves away while we stand in it. */
static long see_above_moved_cwd(const struct probe *p)
{
	mkdir("/tmp/probe-a", 0700);
	mkdir("/tmp/probe-a/b", 0700);
	if (chdir("/tmp/probe-a/b") < 0 || rename("/tmp/probe-a/b", "/tmp/probe-b") < 0 || rmdir("/tmp/probe-a") < 0)
		return -1;
	rmdir("/tmp/probe-b");
	return see_where(p->path);
}

/* B16: v1 and v2 lines alike end in ":/". */
static long see_cgroup(const struct probe *p)
{
	char text[8192];

	(void) p;
	if (read_text("/proc/self/cgroup", text, sizeof text) < 0)
		return -1;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		const char *path = strrchr(line, ':');

		if (!path || strcmp(path, ":/"))
			return observe("%s", line);
	}
	return observe("/");
}

/* ---- namespaces, attributes, setuid, core ---- */

static long try_ns_ioctl(const struct probe *p)
{
	char info[64] = { 0 };
	int fd = open(p->path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : ioctl(fd, (unsigned long) p->args[0], info);
}

/* A copy of this program in /tmp, or NULL. */
static const char *copy_self(mode_t mode)
{
	static char path[64], chunk[65536];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to;
	ssize_t n;

	snprintf(path, sizeof path, "/tmp/probe-copy-%d", getpid());
	to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (from < 0 || to < 0)
		return NULL;
	while ((n = read(from, chunk, sizeof chunk)) > 0)
		if (write(to, chunk, (size_t) n) != n)
			return NULL;
	close(from);
	close(to);
	return chmod(path, mode) < 0 ? NULL : path;
}

static long try_xattr(const struct probe *p)
{
	const char *copy = copy_self(0755);
	long r = copy ? setxattr(copy, p->path, "y", 1, 0) : -1;
	int saved = errno;

	if (copy)
		unlink(copy);
	errno = saved;
	return r;
}

/* NET_RAW and SYS_ADMIN, permitted and effective, in a revision 2 attribute (which the kernel
 * stores as revision 3 of this user namespace). */
static long try_file_caps(const struct probe *p)
{
	unsigned caps[5] = { 0x02000001, 1u << 13 | 1u << 21, 0, 0, 0 };
	const char *copy = copy_self(0755);
	int status;

	(void) p;
	if (!copy)
		return -1;
	if (setxattr(copy, "security.capability", caps, sizeof caps, 0) < 0) {
		int saved = errno;

		unlink(copy);
		return fail(saved);
	}
	status = run_action(copy, "have-caps", 1000);
	unlink(copy);
	return observe(status == 0 ? "gains-nothing" : status == 98 ? "EPERM" : "gains (status %d)", status);
}

/* B19: made by root inside, run by 1000. */
static long try_setuid_copy(const struct probe *p)
{
	const char *copy = copy_self(04755);
	int status;

	(void) p;
	if (!copy)
		return -1;
	status = run_action(copy, "have-root", 1000);
	unlink(copy);
	return observe(status == 0 ? "1000" : "status %d", status);
}

/* B22: "kernel rules" is that protected_hardlinks decides about the link; the rename of another
 * owner's file out of another owner's directory never works. */
static long try_link_lower(const struct probe *p)
{
	char sysctl[8] = "";
	long r = link("/etc/passwd", "/tmp/probe-link");

	(void) p;
	if (r == 0)
		unlink("/tmp/probe-link");
	if (r < 0)
		return -1;
	read_text("/proc/sys/fs/protected_hardlinks", sysctl, sizeof sysctl);
	return observe(geteuid() == 0 || sysctl[0] == '0' ? "by-the-rules" : "linked against protected_hardlinks");
}

static long try_rename_lower(const struct probe *p)
{
	long r = rename("/etc/passwd", "/etc/probe-passwd");

	(void) p;
	if (r == 0)
		rename("/etc/probe-passwd", "/etc/passwd");
	return r;
}

static long see_core_limit(const struct probe *p)
{
	struct rlimit limit;

	(void) p;
	getrlimit(RLIMIT_CORE, &limit);
	return observe("%llu", (unsigned long long) limit.rlim_max);
}

static long try_raise_core(const struct probe *p)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	(void) p;
	return setrlimit(RLIMIT_CORE, &limit);
}

static long see_core_of_crash(const struct probe *p)
{
	pid_t child = fork();
	int status;

	(void) p;
	if (child == 0)
		abort();
	if (waitpid(child, &status, 0) < 0)
		return -1;
	return observe(WIFSIGNALED(status) && !WCOREDUMP(status) ? "none" : "core (status %#x)", status);
}

/* ---- the table ---- */

#define MOUNTS(probe_name, judge) { probe_name, see_mounts, .args = { (long) (judge) }, ALWAYS("none") }
#define NS_IOCTL(probe_name, file, request, want) \
	{ probe_name, try_ns_ioctl, .path = file, .args = { request }, ALWAYS(want) }
#define NS_GET_USERNS_NR  0xb701
#define NS_GET_PARENT_NR  0xb702
#define NS_MNT_GET_NEXT_NR _IOR(0xb7, 11, char [16])
#define NS_MNT_GET_PREV_NR _IOR(0xb7, 12, char [16])

static const struct probe probes[] = {
	MOUNTS("A16-writable-mounts-with-devices", writable_with_devices),
	MOUNTS("B10-cgroup-mounts", is_cgroup_mount),
	MOUNTS("B09-kernel-interface-mounts", is_kernel_interface),
	{ "B13-dots-above-root", see_path, .path = "/../../../../..", ALWAYS("inside") },
	{ "B13-proc-self-root", see_path, .path = "/proc/self/root", ALWAYS("inside") },
	{ "B13-above-proc-self-root", see_path, .path = "/proc/self/root/../../..", ALWAYS("inside") },
	{ "B13-proc-thread-self-root", see_path, .path = "/proc/thread-self/root/..", ALWAYS("inside") },
	/* ENOENT: the deleted directory itself can no longer be walked through. */
	{ "B13-deleted-cwd", see_above_deleted_cwd, .path = "../../../../..", ALWAYS("inside ENOENT") },
	{ "B13-deleted-proc-self-cwd", see_above_deleted_cwd, .path = "/proc/self/cwd/../../../../..", ALWAYS("inside ENOENT") },
	{ "B13-moved-cwd", see_above_moved_cwd, .path = "../../../../..", ALWAYS("inside ENOENT") },
	{ "B14-host-paths", see_host_paths, ALWAYS("ENOENT") },
	MOUNTS("B15-mountinfo", tells_host_path),
	{ "B15-mountinfo-names", see_host_names, .path = "/proc/self/mountinfo", ALWAYS("none") },
	{ "B15-mounts-names", see_host_names, .path = "/proc/self/mounts", ALWAYS("none") },
	{ "B15-mountstats-names", see_host_names, .path = "/proc/self/mountstats", ALWAYS("none") },
	{ "B15-maps-names", see_host_names, .path = "/proc/self/maps", ALWAYS("none") },
	{ "B15-environ-names", see_host_names, .path = "/proc/self/environ", ALWAYS("none") },
	{ "B16-cgroup-path", see_cgroup, ALWAYS("/") },
	NS_IOCTL("B17-parent-of-userns", "/proc/self/ns/user", NS_GET_PARENT_NR, "EPERM"),
	NS_IOCTL("B17-userns-of-userns", "/proc/self/ns/user", NS_GET_USERNS_NR, "EPERM"),
	NS_IOCTL("B17-userns-of-netns", "/proc/self/ns/net", NS_GET_USERNS_NR, "EPERM"),
	NS_IOCTL("B17-parent-of-pidns", "/proc/self/ns/pid", NS_GET_PARENT_NR, "EPERM"),
	/* Since 6.12.  ENOENT: none of the others is ours to see (get_sequential_mnt_ns); later EPERM at
	 * once; before, ENOTTY. */
	NS_IOCTL("B17-next-mount-namespace", "/proc/self/ns/mnt", NS_MNT_GET_NEXT_NR, "EPERM ENOENT ENOTTY"),
	NS_IOCTL("B17-previous-mount-namespace", "/proc/self/ns/mnt", NS_MNT_GET_PREV_NR, "EPERM ENOENT ENOTTY"),
	{ "B18-trusted-xattr", try_xattr, .path = "trusted.probe", ALWAYS("EPERM") },
	{ "B18-trusted-overlay-xattr", try_xattr, .path = "trusted.overlay.redirect", ALWAYS("EPERM") },
	{ "B18-security-xattr", try_xattr, .path = "security.probe", ALWAYS("EPERM") },
	{ "B18-file-caps", try_file_caps, .user = "EPERM", .root = "EPERM gains-nothing",
	  .bare_user = "EPERM", .bare_root = "EPERM gains-nothing" },
	MOUNTS("B19-writable-mounts-with-setuid", writable_with_setuid),
	{ "B19-setuid-copy", try_setuid_copy, ROOT_ONLY("1000") },
	{ "B22-link-lower-file", try_link_lower, .user = "EPERM by-the-rules", .root = "by-the-rules",
	  .bare_user = "EPERM by-the-rules", .bare_root = "by-the-rules" },
	{ "B22-rename-lower-file", try_rename_lower, .user = "EACCES", .root = "ok", .bare_user = "EACCES", .bare_root = "ok" },
	/* No file fits into 1 byte either, and 1 is what the kernel takes for "no piped handler" (fs/coredump.c). */
	{ "B23-core-limit", see_core_limit, ALWAYS("0 1") },
	/* The filter refuses any change of it, and says EINVAL so that gpg and its like go on. */
	{ "B23-raise-core-limit", try_raise_core, FILTERED("EINVAL"), BARE("EPERM") },
	{ "B23-core-of-crash", see_core_of_crash, ALWAYS("none") },
};

const struct probe_group probes_mounts = { probes, sizeof probes / sizeof probes[0] };
