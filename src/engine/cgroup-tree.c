/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's hierarchies, opened once.
 *
 * v1 controllers: slots are made at the root of each hierarchy (or below
 * $CUVETTE_CGROUP), beside whatever the host has there.
 *
 * v2 controllers: a group that has controllers switched on for its children may
 * hold no process itself.  "cuvette" below the root is ours, so nothing is in it.
 * In a group that was delegated to us (systemd's Delegate=yes, a container's own
 * root) we sit ourselves, so its processes first move to the leaf "supervisor".
 * That is the one place where processes are moved, once, before any sandbox is.
 */
#include "engine/cgroup-internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

static const struct {
	unsigned bit;
	const char *name;
} controllers[] = {
	{ CG_MEMORY, "memory" }, { CG_PIDS, "pids" }, { CG_CPU, "cpu" }, { CG_IO, "io" },
};

static int open_dir(int dir_fd, const char *path)
{
	return openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool is_cgroup2(int fd)
{
	struct statfs st;

	return fstatfs(fd, &st) == 0 && st.f_type == CGROUP2_SUPER_MAGIC;
}

/* A v2 tree of our own, where the host shows none: it never appears in any mount namespace. */
static int mount_privately(void)
{
	_cleanup_close_ int fs = (int) syscall(SYS_fsopen, "cgroup2", FSOPEN_CLOEXEC);
	_cleanup_close_ int mnt = -1;

	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	mnt = (int) syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	/* fsmount gives an O_PATH descriptor; listing needs a readable one. */
	return mnt < 0 ? -1 : open_dir(mnt, ".");
}

static unsigned controllers_at(int dir_fd, const char *file)
{
	char text[256];

	return knob_read(dir_fd, "", "", file, text, sizeof text, NULL) < 0 ? 0 : cgroup_controllers_of(text);
}

/* Moves what sits in the group itself to its leaf "supervisor"; 0 when the group is empty. */
static int evacuate(int dir_fd)
{
	_cleanup_close_ int leaf = -1;
	char pids[8192];

	if (mkdirat(dir_fd, "supervisor", 0755) < 0 && errno != EEXIST)
		return -1;
	leaf = open_dir(dir_fd, "supervisor");
	if (leaf < 0)
		return -1;
	/* A few rounds: what is there may fork meanwhile. */
	for (int round = 0; round < 8; round++) {
		char *rest = pids, *pid;

		if (knob_read(dir_fd, "", "", "cgroup.procs", pids, sizeof pids, NULL) < 0)
			return -1;
		if (!pids[0])
			return 0;
		while ((pid = strsep(&rest, "\n")))
			if (*pid && knob_write(leaf, "", "", "cgroup.procs", pid, NULL) < 0 && errno != ESRCH)
				return -1;
	}
	return -1;
}

/* Switches on for the children what the group itself has; returns what is on. */
static unsigned enable_controllers(int dir_fd, bool may_evacuate)
{
	unsigned wanted = controllers_at(dir_fd, "cgroup.controllers") & CG_ALL;
	unsigned on = controllers_at(dir_fd, "cgroup.subtree_control");

	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++) {
		char text[16];

		if (!(wanted & ~on & controllers[i].bit))
			continue;
		/* One by one, so that one that the host refuses does not take the others along. */
		snprintf(text, sizeof text, "+%s", controllers[i].name);
		if (knob_write(dir_fd, "", "", "cgroup.subtree_control", text, NULL) < 0 && errno == EBUSY &&
		    may_evacuate && evacuate(dir_fd) == 0)
			(void) !knob_write(dir_fd, "", "", "cgroup.subtree_control", text, NULL);
	}
	return controllers_at(dir_fd, "cgroup.subtree_control") & wanted;
}

/* Did somebody hand this group to us?  systemd says so in an attribute; to others by ownership. */
static bool is_delegated(int dir_fd)
{
	struct stat st;
	char value[2];

	if ((fgetxattr(dir_fd, "trusted.delegate", value, sizeof value) == 1 ||
	     fgetxattr(dir_fd, "user.delegate", value, sizeof value) == 1) && value[0] == '1')
		return true;
	return fstat(dir_fd, &st) == 0 && st.st_uid != 0 && st.st_uid == geteuid();
}

/* Goes down PATH from *fd, making what is missing, with controllers on all the way. */
static int descend(struct cgroup_tree *tree, int *fd, const char *path, bool v2, struct err *err)
{
	char copy[256], *rest = copy, *part;

	if (strlen(path) >= sizeof copy || strstr(path, ".."))
		return err_set(err, ERR_INVALID, "not a cgroup path: %s", path);
	strcpy(copy, path);
	while ((part = strsep(&rest, "/"))) {
		int next;

		if (!*part)
			continue;
		if (v2)
			enable_controllers(*fd, false);
		if (mkdirat(*fd, part, 0755) == 0) {
			if (tree->made)
				tree->made(*fd, part);
		} else if (errno != EEXIST) {
			return err_sys(err, errno, "create cgroup %s", path);
		}
		next = open_dir(*fd, part);
		if (next < 0)
			return err_sys(err, errno, "open cgroup %s", path);
		close_fd(*fd);
		*fd = next;
	}
	return 0;
}

static void name_missing(struct cgroup_tree *tree)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++)
		if (CG_NEEDED & ~tree->controllers & controllers[i].bit)
			n += (size_t) snprintf(tree->missing + n, sizeof tree->missing - n, "%s%s", n ? " " : "",
			                       controllers[i].name);
}

/* The group below which slots are made; tree->v2_fd is the root of the v2 tree. */
static int settle_v2(struct cgroup_tree *tree, const char *own_path, struct err *err)
{
	const char *chosen = getenv("CUVETTE_CGROUP");
	bool may_evacuate = false;

	if (chosen) {
		if (descend(tree, &tree->v2_fd, chosen, true, err) < 0)
			return -1;
	} else {
		_cleanup_close_ int own = open_dir(tree->v2_fd, *own_path ? own_path : ".");
		/* The real root of the host has no cgroup.type; a container's root has one. */
		bool inner_root = !*own_path && own >= 0 && faccessat(own, "cgroup.type", F_OK, 0) == 0;

		may_evacuate = own >= 0 && (inner_root || is_delegated(own));
		if (may_evacuate) {
			close_fd(tree->v2_fd);
			tree->v2_fd = TAKE_FD(own);
		} else if (descend(tree, &tree->v2_fd, "cuvette", true, err) < 0) {
			return -1;
		}
	}
	tree->controllers = enable_controllers(tree->v2_fd, may_evacuate);
	return 0;
}

static unsigned v1_controllers(const struct cgroup_tree *tree)
{
	unsigned all = 0;

	for (size_t i = 0; i < tree->v1_count; i++)
		all |= tree->v1[i].controllers;
	return all;
}

/* Chooses the mode: whichever side has more of what is needed. */
static int settle(struct cgroup_tree *tree, const char *own_path, struct err *err)
{
	const char *chosen = getenv("CUVETTE_CGROUP");
	unsigned v2 = controllers_at(tree->v2_fd, "cgroup.controllers") & CG_NEEDED;
	unsigned v1 = v1_controllers(tree) & CG_NEEDED;

	if (v2 && __builtin_popcount(v2) >= __builtin_popcount(v1)) {
		tree->mode = CGROUP_V2;
		tree->ops = &cgroup_v2_ops;
		if (settle_v2(tree, own_path, err) < 0)
			return -1;
		while (tree->v1_count)
			close_fd(tree->v1[--tree->v1_count].fd);
	} else {
		tree->mode = v1 ? CGROUP_V1 : CGROUP_NONE;
		tree->ops = &cgroup_v1_ops;
		tree->controllers = v1_controllers(tree);
		if (chosen && descend(tree, &tree->v2_fd, chosen, false, err) < 0)
			return -1;
		for (size_t i = 0; chosen && i < tree->v1_count; i++)
			if (descend(tree, &tree->v1[i].fd, chosen, false, err) < 0)
				return -1;
	}
	name_missing(tree);
	return 0;
}

static struct cgroup_tree *tree_new(void)
{
	struct cgroup_tree *tree = xcalloc(1, sizeof *tree);

	tree->v2_fd = -1;
	return tree;
}

int cgroup_tree_open_root(int root_fd, void (*made)(int parent_fd, const char *path), const char *own_path,
                          struct cgroup_tree **ret, struct err *err)
{
	_cleanup_(cgroup_tree_closep) struct cgroup_tree *tree = tree_new();

	tree->made = made;
	tree->v2_fd = open_dir(root_fd, ".");
	if (tree->v2_fd < 0)
		return err_sys(err, errno, "open the cgroup v2 tree");
	if (settle(tree, own_path, err) < 0)
		return -1;
	*ret = TAKE_PTR(tree);
	return 0;
}

int cgroup_tree_open_from(const char *mountinfo, size_t len, const char *own_path,
                          struct cgroup_tree **ret, struct err *err)
{
	_cleanup_(cgroup_tree_closep) struct cgroup_tree *tree = tree_new();
	struct cgroup_places places;

	cgroup_find_mounts(mountinfo, len, &places);
	if (places.v2.path[0])
		tree->v2_fd = open_dir(AT_FDCWD, places.v2.path);
	if (tree->v2_fd >= 0 && !is_cgroup2(tree->v2_fd))
		tree->v2_fd = close_fd(tree->v2_fd);
	if (tree->v2_fd < 0)
		tree->v2_fd = mount_privately();
	if (tree->v2_fd < 0)
		return err_sys(err, errno, "no writable cgroup v2 tree, and none can be mounted");
	for (size_t i = 0; i < places.v1_count; i++) {
		int fd = open_dir(AT_FDCWD, places.v1[i].path);

		if (fd < 0)     /* another mount hides it: its controllers count as missing */
			continue;
		tree->v1[tree->v1_count++] = (struct hierarchy) { fd, places.v1[i].controllers };
	}
	if (settle(tree, own_path, err) < 0)
		return -1;
	*ret = TAKE_PTR(tree);
	return 0;
}

static int read_proc(const char *path, struct buf *ret, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, errno, "open %s", path);
	if (read_to_buf(fd, ret, err) < 0)
		return err_wrap(err, "%s", path);
	return 0;
}

int cgroup_tree_open(struct cgroup_tree **ret, struct err *err)
{
	_cleanup_buf_ struct buf mounts = BUF_INIT(64u << 20), own = BUF_INIT(64u << 10);
	char own_path[256] = "";

	if (read_proc("/proc/self/mountinfo", &mounts, err) < 0 || read_proc("/proc/self/cgroup", &own, err) < 0)
		return -1;
	if (cgroup_find_own(own.data, own.len, own_path, sizeof own_path, NULL) < 0)
		own_path[0] = '\0';
	return cgroup_tree_open_from(mounts.data, mounts.len, own_path, ret, err);
}

void cgroup_tree_close(struct cgroup_tree *tree)
{
	if (!tree)
		return;
	close_fd(tree->v2_fd);
	for (size_t i = 0; i < tree->v1_count; i++)
		close_fd(tree->v1[i].fd);
	free(tree);
}

enum cgroup_mode cgroup_tree_mode(const struct cgroup_tree *tree)
{
	return tree->mode;
}

const char *cgroup_tree_missing(const struct cgroup_tree *tree)
{
	return tree->missing;
}

struct entry {                  /* of getdents64(2) */
	uint64_t inode;
	int64_t next;
	unsigned short len;
	unsigned char type;
	char name[];
};

/*
 * The v2 directory of a slot is the first that is made and the last that is removed, so its list
 * is the list of all.  Read without a DIR: every start of a spawner comes here, and musl maps and
 * unmaps pages for one.
 */
int cgroup_tree_list(struct cgroup_tree *tree, const char *prefix,
                     void (*found)(void *ctx, const char *name), void *ctx, struct err *err)
{
	_cleanup_close_ int fd = open_dir(tree->v2_fd, ".");
	char space[4096] __attribute__((aligned(8)));
	long n = -1;

	while (fd >= 0 && (n = syscall(SYS_getdents64, fd, space, sizeof space)) > 0) {
		for (long at = 0; at < n;) {
			const struct entry *e = (const struct entry *) (space + at);

			at += e->len;
			if (e->type == DT_DIR && e->name[0] != '.' && strlen(e->name) < CGROUP_NAME_MAX &&
			    !strncmp(e->name, prefix, strlen(prefix)))
				found(ctx, e->name);
		}
	}
	return n < 0 ? err_sys(err, errno, "list cgroups") : 0;
}
