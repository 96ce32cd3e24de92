/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * engine: slots and boxes.
 *
 * An engine holds what all boxes share: the spawner's empty root, the device
 * tree, the filter, the cgroup hierarchies.  A slot is a lease on an id range
 * with everything dear that can be used again: user and cgroup namespaces,
 * cgroups, a network namespace.  A box is one running isolation: a root over a
 * template, and the processes below one PID 1.
 *
 * Knows descriptors, paths and numbers; not sandbox ids, templates' names or
 * requests.  Single-threaded: opening an engine changes the mount namespace and
 * reserves low descriptor numbers of the whole process.
 */
#include "engine/cgroup.h"
#include "engine/create.h"
#include "engine/netns.h"

enum {
	ENGINE_SLOTS = 8192,
	ENGINE_UID_BASE = 0x10000000,           /* slot N maps host ids from here + N * 65536 */
};

struct engine {
	struct cgroup_tree *cgroups;
	int own_netns_fd, own_mntns_fd, host_mntns_fd;
	int data_fd;                    /* state directory in the host's mount namespace, O_PATH; or -1 */
	int host_dev_fd;                /* the host's /dev, for loop devices */
	int host_proc_fd;               /* used by first_netns only */
	int root_fd, proc_fd, dev_fd;   /* the spawner's own mounts */
	int slots_fd;                   /* lock file: byte N is slot N */
	int landlock_fd;
	bool time_namespace;
	struct proc_masks masks;
	struct seccomp_filter filter;
	struct netns_maker first_netns; /* begun at the very start, for the first slot */
	bool first_netns_started;
	struct sys_tree_cache *sys_trees;
	unsigned next_slot;
	uint8_t leased[ENGINE_SLOTS / 8];       /* slots whose lock is ours */
	unsigned templates;             /* mount points used below our root */
};

/*
 * Opens everything that will ever be needed by path, then leaves the host's mount namespace.
 * Where cgroup controllers are missing it goes on: cgroup_tree_missing() tells.
 */
int engine_open(struct engine *e, const char *data_dir, struct err *err) _must_check_;
void engine_close(struct engine *e);

/* Kills and removes what spawners that no longer live left behind; *ret_reaped counts slots. */
int engine_reap_leftovers(struct engine *e, unsigned *ret_reaped, struct err *err) _must_check_;

/* ---- templates (template.c) ---- */

/* Attaches DATA/templates/DIGEST/rootfs read-only.  Both descriptors are the caller's to keep: while
 * the second is open, the template can't be removed. */
int engine_open_template(struct engine *e, const char *digest, int *ret_fd, int *ret_lock_fd, struct err *err) _must_check_;

/* Any directory of the host as a template (tests and benchmarks). */
int engine_open_tree(struct engine *e, const char *path, int *ret_fd, struct err *err) _must_check_;

/* ---- slots (slot.c) ---- */

struct slot {
	unsigned number;
	uint32_t uid_base;
	struct cgroup *cgroup;
	int userns_fd, cgroupns_fd, netns_fd;
	bool leased;                    /* the number is ours to give back */
	bool used;                      /* had a box before */
};

/* Leases a free slot and makes what it needs. */
int slot_create(struct engine *e, struct slot **ret, struct err *err) _must_check_;

/*
 * While its box lives, the box's own processes keep the namespaces: a slot at rest holds no
 * descriptor, so that thousands fit below RLIMIT_NOFILE.  Waking takes them back from the box's
 * PID 1, before that is killed; false when it can't, and then the slot can't be recycled.
 */
void slot_rest(struct slot *s);
bool slot_wake(struct engine *e, struct slot *s, pid_t pid);

/* After its box is gone: kills what may be left in it and makes it fit for the next box.
 * False: it can't be trusted; destroy it. */
bool slot_recycle(struct engine *e, struct slot *s);
void slot_destroy(struct engine *e, struct slot *s);

/* ---- boxes (box.c) ---- */

enum box_disk { BOX_DISK_MEMORY, BOX_DISK_IMAGE };

struct box_spec {
	int template_fd;
	const char *hostname;
	struct cgroup_limits limits;
	enum box_disk disk;
	uint64_t disk_bytes, disk_inodes;
	bool terminals;
	bool no_filter;                 /* test build only */
	bool limit_first;               /* PID 1 itself runs under the limits: it is no init */
	const int *pass;                /* descriptors 3, 4, ... of a PID 1 without a control socket of ours */
	size_t npass;
	int program_fd;
	char *const *argv, *const *envp;
};

struct box {
	struct slot *slot;              /* borrowed */
	pid_t pid;                      /* of its PID 1, ours to reap */
	int pidfd;
	int upper_fd;                   /* mount that holds the upper, for its usage */
	int image_fd;                   /* disk image, or -1 */
	uint64_t disk_bytes, disk_inodes;
	uint64_t create_us;
	unsigned groups;                /* command groups made so far */
	bool terminals;
};

/* *ret_conn (may be NULL: then no control socket is made) is a connection to its init. */
int box_create(struct engine *e, struct slot *s, const struct box_spec *spec, struct box **ret, int *ret_conn,
               struct err *err) _must_check_;

/* Another connection to its init. */
int box_connect(struct engine *e, const struct box *b, int *ret_conn, struct err *err) _must_check_;

/* Mounts devpts in a running box. */
int box_enable_terminals(struct engine *e, struct box *b, struct err *err) _must_check_;

struct box_usage { uint64_t disk_bytes, disk_inodes; };
int box_usage(const struct box *b, struct box_usage *ret, struct err *err) _must_check_;

/* Kills all but init and waits until init has reaped them. */
int box_kill_commands(struct box *b, unsigned timeout_ms, struct err *err) _must_check_;

/* Kills everything and waits for the end, at most ten seconds: false when it did not come.
 * Counters and disk can still be read. */
bool box_kill(struct box *b);

/* Kills everything, reaps PID 1 and frees the box; the slot stays.  *ret_status may be NULL. */
void box_destroy(struct box *b, int *ret_status);
