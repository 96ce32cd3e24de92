/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * cgroup: the control groups of one sandbox slot, on cgroup v1 and v2 hosts.
 *
 * A host offers controllers through cgroup v2 ("unified"), through v1
 * hierarchies, or has v1 controllers beside a v2 tree without any ("hybrid").
 * Killing, freezing and finding processes always uses a v2 tree (mounted
 * privately when the host shows none); limits use wherever the controllers are.
 *
 * With v2 controllers:
 *      v2 tree        NAME/init/   init
 *                     NAME/box/    every command, and the limits
 *                     NAME/box/gN/ one command's tree, on request
 * With v1 controllers:
 *      v2 tree        NAME/        init and every command
 *                     NAME/gN/     one command's tree, on request
 *      v1 trees       NAME/        limits; every command enters by writing "0" to `tasks`
 *
 * Owns the directories and their descriptors.  Knows nothing of sandboxes or
 * requests: limits in, counters out.  Never moves another process (a write of a
 * pid waits for an RCU grace period, 6-12 ms): processes are born inside or
 * move themselves.  Not thread-safe; the spawner is single-threaded.
 */
#include "base/err.h"

enum cgroup_mode {
	CGROUP_NONE,            /* a v2 tree at most, no controllers: nothing can be limited */
	CGROUP_V1,              /* v1 controllers; v2 tree for kill and freeze */
	CGROUP_V2,
};

enum { CGROUP_TASKS_MAX = 4, CGROUP_NAME_MAX = 64 };

/* The host's hierarchies: found once, used for every slot. */
struct cgroup_tree;

/*
 * Finds the hierarchies (mountinfo, /proc/self/cgroup) and opens the directory below
 * which slots are made: the root of each hierarchy on v1; on v2 "cuvette" below the root,
 * or the delegated own cgroup when the process sits in one it owns; $CUVETTE_CGROUP
 * (relative to the v2 root) overrides.  Fails only where not even a v2 tree can be had.
 */
int cgroup_tree_open(struct cgroup_tree **ret, struct err *err) _must_check_;
void cgroup_tree_close(struct cgroup_tree *tree);
DEFINE_CLEANUP(struct cgroup_tree *, cgroup_tree_close)

enum cgroup_mode cgroup_tree_mode(const struct cgroup_tree *tree);

/* Names of the controllers that are missing ("pids cpu"), "" when all of memory, pids and cpu
 * are there.  (io/blkio is optional.) */
const char *cgroup_tree_missing(const struct cgroup_tree *tree);

/* Calls found() for each slot directory below the tree whose name starts with PREFIX. */
int cgroup_tree_list(struct cgroup_tree *tree, const char *prefix,
                     void (*found)(void *ctx, const char *name), void *ctx, struct err *err) _must_check_;

struct cgroup_limits {
	uint64_t memory_bytes;          /* 0: no limit */
	uint64_t pids;
	uint64_t cpu_milli;             /* thousandths of one CPU; period 100 ms */
};

struct cgroup;

/* Makes the directories of NAME, owned so that uid/gid OWNER (init's kuid) may be born into and
 * start processes where commands are.  On failure nothing is left behind. */
int cgroup_create(struct cgroup_tree *tree, const char *name, uid_t owner, struct cgroup **ret, struct err *err) _must_check_;

/* Opens what an earlier process made, to reap it; missing parts are fine. */
int cgroup_open(struct cgroup_tree *tree, const char *name, struct cgroup **ret, struct err *err) _must_check_;

/* Writes what differs from the last call (cpu quota writes walk every group of the host). */
int cgroup_set_limits(struct cgroup *cg, const struct cgroup_limits *limits, struct err *err) _must_check_;

/* Directory for clone3(CLONE_INTO_CGROUP) of init, and of a command.  On v1 hosts both are NAME, so
 * that a child of init needs neither. */
int cgroup_init_fd(struct cgroup *cg);
int cgroup_box_fd(struct cgroup *cg);

/* The open v1 `tasks` files (opened by the host's root, so that the writer needs no rights);
 * returns how many. */
size_t cgroup_tasks_fds(struct cgroup *cg, int ret[CGROUP_TASKS_MAX]);

/* Closes all of these until one is needed again: for a slot that stays but starts nothing for now. */
void cgroup_rest(struct cgroup *cg);

/* Makes NAME/box/gN for one command; *ret_fd is its directory (the caller's). */
int cgroup_group_create(struct cgroup *cg, unsigned group, int *ret_fd, struct err *err) _must_check_;
/* Kills its tree, waits until it is empty, removes it. */
int cgroup_group_kill(struct cgroup *cg, unsigned group, unsigned timeout_ms, struct err *err) _must_check_;

/* Kill all commands, sparing the host pid of init (0: there is none) / everything.  Wait until no process is left, at most timeout_ms. */
int cgroup_kill_box(struct cgroup *cg, pid_t init, unsigned timeout_ms, struct err *err) _must_check_;
int cgroup_kill_all(struct cgroup *cg, unsigned timeout_ms, struct err *err) _must_check_;

struct cgroup_stats {
	uint64_t memory_bytes, memory_peak_bytes;
	uint64_t oom_kills;                     /* since cgroup_baseline() */
	uint64_t pids, pids_refused;            /* refused: since the baseline */
	uint64_t cpu_us, cpu_user_us, cpu_system_us, cpu_throttled_us;
	uint64_t io_read_bytes, io_write_bytes;
};

/* Counters never go back to zero: remember them now, report differences from here on.
 * Resets the memory peak where the kernel allows that. */
int cgroup_baseline(struct cgroup *cg, struct err *err) _must_check_;
int cgroup_stats(const struct cgroup *cg, struct cgroup_stats *ret, struct err *err) _must_check_;

/* Makes a used slot like new: kills, drops the page cache charged to it, removes groups.  Limits stay. */
int cgroup_recycle(struct cgroup *cg, struct err *err) _must_check_;

/* Kills what is inside, waits until it is empty, removes the directories.  NULL is fine. */
void cgroup_destroy(struct cgroup *cg);
DEFINE_CLEANUP(struct cgroup *, cgroup_destroy)

/* Closes the descriptors and leaves the directories.  NULL is fine. */
void cgroup_forget(struct cgroup *cg);
