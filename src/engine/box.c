/* SPDX-License-Identifier: Apache-2.0 */
/*
 * box: one running isolation.  box_create() is the paragraph to read: limits, an
 * upper with an identity of its own, the root, then the first process.
 */
#include "engine/engine.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "engine/disk.h"
#include "engine/mount.h"
#include "engine/overlay.h"
#include "engine/sys-tree.h"

/* Where init listens, in the box's own network namespace. */
static const char init_name[] = "\0cuvette";

enum { LISTEN_BACKLOG = 128, KILL_TIMEOUT_MS = 10000, RESERVED_INODES = 8 };

/* ---- the upper and its identity ---- */

static int put_identity_file(int etc, const char *name, const char *text, struct err *err)
{
	_cleanup_close_ int fd = openat(etc, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	if (fd < 0 || write_all(fd, text, strlen(text)) < 0)
		return err_sys(err, errno, "write /etc/%s", name);
	return 0;
}

static int put_identity_files(int u, const char *hostname, struct err *err)
{
	_cleanup_close_ int etc = -1;
	uint8_t id[16];
	char text[160];

	if (mkdirat(u, "etc", 0755) < 0)
		return err_sys(err, errno, "make /etc");
	etc = openat(u, "etc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (etc < 0)
		return err_sys(err, errno, "open /etc");
	if (getrandom(id, sizeof id, 0) != sizeof id)
		return err_sys(err, errno, "draw a machine id");
	hex_encode(id, sizeof id, text);
	strcat(text, "\n");
	if (put_identity_file(etc, "machine-id", text, err) < 0)
		return -1;
	snprintf(text, sizeof text, "%s\n", hostname);
	if (put_identity_file(etc, "hostname", text, err) < 0)
		return -1;
	snprintf(text, sizeof text, "127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 %s\n", hostname);
	return put_identity_file(etc, "hosts", text, err);
}

/* Written as the range's own root: on an idmapped upper the host's root has no id. */
static int write_identity(int u, uint32_t owner, const char *hostname, struct err *err)
{
	int r;

	setfsgid(owner);
	setfsuid(owner);
	r = put_identity_files(u, hostname, err);
	setfsuid(0);
	setfsgid(0);
	return r;
}

static int make_upper(struct engine *e, const struct slot *s, const struct box_spec *spec, struct box *b, struct err *err)
{
	struct mount_attr idmap = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t) s->userns_fd };
	bool image = spec->disk == BOX_DISK_IMAGE;
	_cleanup_close_ int u = -1;

	if (image) {
		if (disk_create_image(e, spec->disk_bytes, spec->disk_inodes, &b->image_fd, &b->upper_fd, err) < 0)
			return -1;
		if (sys_mount_setattr(b->upper_fd, 0, &idmap) < 0)
			return err_sys(err, errno, "shift the owners of the disk image");
	} else if (mount_tmpfs(spec->disk_bytes, spec->disk_inodes + RESERVED_INODES, 0755,
	                       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &b->upper_fd, err) < 0) {
		return -1;
	}
	if (overlay_prepare_upper(b->upper_fd, s->uid_base, image, &u, err) < 0)
		return -1;
	return write_identity(u, s->uid_base, spec->hostname, err);
}

/* ---- the control socket ---- */

/* An init that does not accept has a queue that fills up, and we have other sandboxes to serve. */
static int connect_to_init(int *ret, struct err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = 1 };
	_cleanup_close_ int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(addr.sun_path, init_name, sizeof init_name - 1);
	if (sock < 0 || setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0 ||
	    connect(sock, (struct sockaddr *) &addr, offsetof(struct sockaddr_un, sun_path) + sizeof init_name - 1) < 0)
		return err_sys(err, errno, "connect to the sandbox's init");
	*ret = TAKE_FD(sock);
	return 0;
}

/* Made before anything inside exists, so nothing inside can take the name. */
static int listen_for_init(int *ret, struct err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	_cleanup_close_ int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(addr.sun_path, init_name, sizeof init_name - 1);
	if (sock < 0 || bind(sock, (struct sockaddr *) &addr, offsetof(struct sockaddr_un, sun_path) + sizeof init_name - 1) < 0 ||
	    listen(sock, LISTEN_BACKLOG) < 0)
		return err_sys(err, errno, "make the control socket of the sandbox");
	*ret = TAKE_FD(sock);
	return 0;
}

static void leave_netns(const struct engine *e)
{
	/* Staying would put every later sandbox on this network. */
	if (setns(e->own_netns_fd, CLONE_NEWNET) < 0)
		abort();
}

int box_connect(struct engine *e, const struct box *b, int *ret_conn, struct err *err)
{
	int r;

	if (setns(b->pidfd, CLONE_NEWNET) < 0)
		return err_sys(err, errno, "enter the sandbox's network namespace");
	r = connect_to_init(ret_conn, err);
	leave_netns(e);
	return r;
}

/* ---- creation ---- */

static int make_sys(struct engine *e, const struct cgroup_limits *limits, int *ret, struct err *err)
{
	int shared;

	if (sys_tree_get(&e->sys_trees, limits->cpu_milli, limits->memory_bytes, &shared, err) < 0)
		return -1;
	if (mount_clone(shared, false, ret, err) == 0)
		return 0;
	/* Detached mounts can be cloned since Linux 6.15 only. */
	return mount_sys_tree(limits->cpu_milli, limits->memory_bytes, ret, err);
}

static int start(struct engine *e, struct slot *s, const struct box_spec *spec, struct create_plan *plan,
                 struct box *b, int *ret_conn, struct err *err)
{
	_cleanup_close_ int listener = -1, conn = -1;
	int tasks[CGROUP_TASKS_MAX], r;
	size_t ntasks = cgroup_tasks_fds(s->cgroup, tasks);

	if (setns(s->netns_fd, CLONE_NEWNET) < 0)
		return err_sys(err, errno, "enter the sandbox's network namespace");
	if (ret_conn) {
		if (listen_for_init(&listener, err) < 0 || connect_to_init(&conn, err) < 0) {
			leave_netns(e);
			return -1;
		}
		plan->pass[plan->npass++] = listener;
		plan->pass[plan->npass++] = cgroup_box_fd(s->cgroup);
		for (size_t i = 0; i < ntasks; i++)
			plan->pass[plan->npass++] = tasks[i];
	}
	for (size_t i = 0; i < spec->npass && plan->npass < ARRAY_SIZE(plan->pass); i++)
		plan->pass[plan->npass++] = spec->pass[i];
	if (spec->limit_first) {
		plan->tasks_fds = tasks;
		plan->ntasks = ntasks;
	}
	r = create_perform(plan, &b->pid, &b->pidfd, err);
	leave_netns(e);
	if (r < 0)
		return -1;
	if (ret_conn)
		*ret_conn = TAKE_FD(conn);
	return 0;
}

/* One clone for each directory that gets covered: a child in another mount namespace could not
 * make them. */
static int clone_empty_dirs(struct engine *e, struct create_plan *plan, struct err *err)
{
	struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY };

	for (size_t i = 0; i < ARRAY_SIZE(plan->empty_fds); i++)
		plan->empty_fds[i] = -1;
	for (size_t i = 0; i < e->masks.dirs; i++) {
		plan->empty_fds[i] = sys_open_tree(e->root_fd, "empty", OPEN_TREE_CLONE);
		if (plan->empty_fds[i] < 0 || sys_mount_setattr(plan->empty_fds[i], 0, &read_only) < 0)
			return err_sys(err, errno, "clone an empty directory");
	}
	return 0;
}

static int create(struct engine *e, struct slot *s, const struct box_spec *spec, struct box *b, int *ret_conn, struct err *err)
{
	_cleanup_close_ int lower = -1, root = -1, dev = -1, sys = -1;
	struct overlay_spec overlay;
	struct create_plan plan;
	int r = -1;

	/* The counters of new cgroups are zero without being asked. */
	if (cgroup_set_limits(s->cgroup, &spec->limits, err) < 0 ||
	    (s->used && cgroup_baseline(s->cgroup, err) < 0))
		return -1;
	s->used = true;
	if (make_upper(e, s, spec, b, err) < 0 ||
	    mount_clone_idmapped(spec->template_fd, s->userns_fd, true, &lower, err) < 0)
		return -1;
	overlay = (struct overlay_spec) {
		.lower_fd = lower, .upper_fd = b->upper_fd, .owner = s->uid_base,
		.idmapped_upper = spec->disk == BOX_DISK_IMAGE,
	};
	if (overlay_mount(&overlay, &root, err) < 0 || mount_clone(e->dev_fd, true, &dev, err) < 0 ||
	    make_sys(e, &spec->limits, &sys, err) < 0)
		return -1;
	plan = (struct create_plan) {
		.userns_fd = s->userns_fd, .cgroupns_fd = s->cgroupns_fd,
		.cgroup_fd = spec->limit_first ? cgroup_box_fd(s->cgroup) : cgroup_init_fd(s->cgroup),
		.root_fd = root, .dev_fd = dev, .sys_fd = sys, .masks = &e->masks,
		.terminals = spec->terminals, .hostname = spec->hostname, .landlock_fd = e->landlock_fd,
		.filter = spec->no_filter ? NULL : &e->filter, .time_namespace = e->time_namespace,
		.program_fd = spec->program_fd, .argv = spec->argv, .envp = spec->envp,
	};
	if (clone_empty_dirs(e, &plan, err) == 0)
		r = start(e, s, spec, &plan, b, ret_conn, err);
	for (size_t i = 0; i < ARRAY_SIZE(plan.empty_fds); i++)
		close_fd(plan.empty_fds[i]);
	return r;
}

static void close_fds(struct box *b)
{
	close_fd(b->pidfd);
	close_fd(b->upper_fd);
	close_fd(b->image_fd);
}

int box_create(struct engine *e, struct slot *s, const struct box_spec *spec, struct box **ret, int *ret_conn,
               struct err *err)
{
	uint64_t began = now_ns();
	struct box *b = xcalloc(1, sizeof *b);

	*b = (struct box) {
		.slot = s, .pidfd = -1, .upper_fd = -1, .image_fd = -1,
		.disk_bytes = spec->disk_bytes, .disk_inodes = spec->disk_inodes, .terminals = spec->terminals,
	};
	if (create(e, s, spec, b, ret_conn, err) < 0) {
		close_fds(b);
		free(b);
		return -1;
	}
	b->create_us = (now_ns() - began) / 1000;
	*ret = b;
	return 0;
}

/* ---- in its life ---- */

struct terminals_arg {
	int pidfd;
	int (*mount)(void);
	int step;
	int error;
};

static int enter_and_mount(void *arg)
{
	struct terminals_arg *t = arg;

	if (setns(t->pidfd, CLONE_NEWUSER | CLONE_NEWNS) < 0 || t->mount() < 0) {
		t->error = errno;
		return 1;
	}
	return 0;
}

int box_enable_terminals(struct engine *e, struct box *b, struct err *err)
{
	struct terminals_arg arg = { .pidfd = b->pidfd, .mount = create_mount_terminals };
	static struct helper helper;    /* single-threaded; too large to clear each time */

	(void) e;
	if (b->terminals)
		return 0;
	/* CLONE_VFORK: errno is shared, so we must not run meanwhile. */
	if (helper_start(&helper, CLONE_VFORK, -1, enter_and_mount, &arg, err) < 0)
		return -1;
	if (helper_join(&helper, NULL) < 0)
		return err_sys(err, arg.error, "mount /dev/pts in the sandbox");
	b->terminals = true;
	return 0;
}

int box_usage(const struct box *b, struct box_usage *ret, struct err *err)
{
	struct statfs st;
	uint64_t free_bytes;

	if (fstatfs(b->upper_fd, &st) < 0)
		return err_sys(err, errno, "read the disk usage");
	/* Counted from the limit and by what is available, so that all that a filesystem keeps for
	 * itself is in use and a full disk is seen to be full. */
	free_bytes = (uint64_t) st.f_bavail * (uint64_t) st.f_bsize;
	ret->disk_bytes = b->disk_bytes - MIN(b->disk_bytes, free_bytes);
	ret->disk_inodes = (uint64_t) (st.f_files - st.f_ffree);
	/* What make_upper() added to the limit is no file of the box. */
	if (b->image_fd < 0)
		ret->disk_inodes -= MIN(ret->disk_inodes, (uint64_t) RESERVED_INODES);
	return 0;
}

int box_kill_commands(struct box *b, unsigned timeout_ms, struct err *err)
{
	uint64_t deadline = now_ns() + timeout_ms * 1000000ull;
	struct timespec pause = { .tv_nsec = 200000 };
	struct cgroup_stats stats;

	if (cgroup_kill_box(b->slot->cgroup, b->pid, timeout_ms, err) < 0)
		return -1;
	/* They are dead, and count until init has reaped them. */
	for (;;) {
		if (cgroup_stats(b->slot->cgroup, &stats, err) < 0)
			return -1;
		if (!stats.pids)
			return 0;
		if (now_ns() >= deadline)
			return err_set(err, ERR_DEADLINE, "%u killed processes are not reaped after %u ms",
			               (unsigned) stats.pids, timeout_ms);
		nanosleep(&pause, NULL);
	}
}

bool box_kill(struct box *b)
{
	struct pollfd end = { .fd = b->pidfd, .events = POLLIN };
	uint64_t deadline = now_ns() + KILL_TIMEOUT_MS * 1000000ull;
	int n;

	/* PID 1 ends last: the kernel first kills and reaps all that its pid namespace holds, and
	 * lets nothing new start there. */
	sys_pidfd_send_signal(b->pidfd, SIGKILL);
	do
		n = poll(&end, 1, ms_until(deadline));
	while (n < 0 && errno == EINTR);
	return n > 0;
}

void box_destroy(struct box *b, int *ret_status)
{
	int status = 0;
	bool ended;

	if (!b)
		return;
	ended = box_kill(b);
	/* One that hangs in the kernel is left to the next spawner: its cgroup stays. */
	while (waitpid(b->pid, &status, __WALL | (ended ? 0 : WNOHANG)) < 0 && errno == EINTR)
		;
	if (ret_status)
		*ret_status = status;
	close_fds(b);
	free(b);
}
