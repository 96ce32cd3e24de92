/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * cgroup-internal: what the files of the cgroup module share; also the seams its tests use.
 *
 * Every file of a slot is opened as NAME/FILE relative to a directory descriptor of the tree,
 * because the spawner later lives in a mount namespace where no cgroup path exists.  A slot
 * itself holds two or three descriptors, so that thousands of slots fit below RLIMIT_NOFILE.
 */
#include "base/fd.h"
#include "engine/cgroup.h"

enum {
	CG_MEMORY = 1,
	CG_PIDS   = 2,
	CG_CPU    = 4,
	CG_IO     = 8,
	CG_NEEDED = CG_MEMORY | CG_PIDS | CG_CPU,
	CG_ALL    = CG_NEEDED | CG_IO,
};

enum { CG_CPU_PERIOD_US = 100000, CG_PATH_MAX = CGROUP_NAME_MAX + 64 };

/* ---- where the hierarchies are (cgroup-find.c) ---- */

struct cgroup_place {
	char path[256];         /* mount point, "" when there is none */
	unsigned controllers;   /* v1: which of CG_ALL it carries */
};

struct cgroup_places {
	struct cgroup_place v2;
	struct cgroup_place v1[CGROUP_TASKS_MAX];
	size_t v1_count;
};

/* Reads the text of /proc/self/mountinfo.  What it does not understand it skips. */
void cgroup_find_mounts(const char *mountinfo, size_t len, struct cgroup_places *ret);

/* The own v2 path from the text of /proc/self/cgroup ("0::/a/b"), without the leading slash. */
int cgroup_find_own(const char *text, size_t len, char *ret, size_t size, struct err *err) _must_check_;

/* CG_* bits of a list of names that are separated by blanks or commas. */
unsigned cgroup_controllers_of(const char *list);

/* ---- the tree (cgroup-tree.c) ---- */

struct cgroup_ops;

struct hierarchy {
	int fd;                 /* directory that holds the slots */
	unsigned controllers;
};

struct cgroup_tree {
	enum cgroup_mode mode;
	const struct cgroup_ops *ops;
	int v2_fd;
	struct hierarchy v1[CGROUP_TASKS_MAX];
	size_t v1_count;
	unsigned controllers;           /* that slots can be limited by */
	char missing[32];
	/* Tests only: called after each mkdir, to put knob files into a directory of a
	 * file system that does not make them by itself. */
	void (*made)(int parent_fd, const char *path);
};

/* As cgroup_tree_open(), from given texts; own_path is the v2 path of this process. */
int cgroup_tree_open_from(const char *mountinfo, size_t len, const char *own_path,
                          struct cgroup_tree **ret, struct err *err) _must_check_;

/* Takes an already open directory for the root of a v2 tree. */
int cgroup_tree_open_root(int root_fd, void (*made)(int parent_fd, const char *path), const char *own_path,
                          struct cgroup_tree **ret, struct err *err) _must_check_;

/* ---- one slot (cgroup.c) ---- */

struct cgroup {
	struct cgroup_tree *tree;       /* borrowed */
	char name[CGROUP_NAME_MAX];
	uid_t owner;
	int init_fd, box_fd;            /* O_PATH; -1 when the directory is missing */
	int tasks_fd[CGROUP_TASKS_MAX]; /* v1, -1 until asked for */
	int peak_fd;                    /* v2: memory.peak forgets only for the descriptor that asked */
	uint64_t peak_before;           /* v2, where that is refused: the peak up to the last baseline */
	bool limits_known;
	struct cgroup_limits limits;    /* as last written */
	struct cgroup_stats base;       /* counters at the baseline */
	bool made_v2;                   /* directories that creation has made so far */
	unsigned made_v1;               /* a bit per hierarchy */
};

/* What differs between v1 and v2.  `cg` is complete up to its directories. */
struct cgroup_ops {
	const char *name;
	/* Makes the controllers' side of a slot; v2_fd/NAME exists. */
	int (*make)(struct cgroup *cg, struct err *err);
	int (*set_memory)(struct cgroup *cg, uint64_t bytes, struct err *err);
	int (*set_pids)(struct cgroup *cg, uint64_t count, struct err *err);
	int (*set_cpu)(struct cgroup *cg, uint64_t milli, struct err *err);
	/* The greatest weight against the rest of the host, or the usual one. */
	void (*set_hurry)(struct cgroup *cg, bool on);
	/* Everything but cpu_us, cpu_user_us and cpu_system_us, counted since creation. */
	int (*stats)(const struct cgroup *cg, struct cgroup_stats *ret, struct err *err);
	void (*reset_peak)(struct cgroup *cg);
	void (*drop_cache)(struct cgroup *cg);
};

extern const struct cgroup_ops cgroup_v1_ops;
extern const struct cgroup_ops cgroup_v2_ops;

/* ---- knobs (cgroup-knob.c): small files of a group, PATH "" or "NAME/box" ---- */

int knob_open(int dir_fd, const char *name, const char *sub, const char *file, int flags);
int knob_write(int dir_fd, const char *name, const char *sub, const char *file, const char *value,
               struct err *err) _must_check_;
int knob_write_u64(int dir_fd, const char *name, const char *sub, const char *file, uint64_t value,
                   struct err *err) _must_check_;
/* Text without its last newline. */
int knob_read(int dir_fd, const char *name, const char *sub, const char *file, char *ret, size_t size,
              struct err *err) _must_check_;
int knob_read_u64(int dir_fd, const char *name, const char *sub, const char *file, uint64_t *ret,
                  struct err *err) _must_check_;

/* The number after KEY on its own line ("oom_kill 3"); 0 when there is no such line. */
uint64_t knob_key(const char *text, const char *key);

/* Sums of the block devices' bytes: "8:0 Read 4096" lines (v1), "8:0 rbytes=4096 ..." (v2). */
void knob_io_v1(const char *text, uint64_t *ret_read, uint64_t *ret_write);
void knob_io_v2(const char *text, uint64_t *ret_read, uint64_t *ret_write);

/* ---- ending processes (cgroup-kill.c) ---- */

/* What happens to the group next; only one that is removed may be killed with cgroup.kill. */
enum cgroup_after { CG_USED_AGAIN, CG_REMOVED_NEXT };

/* Kills every process of the group at v2_fd/NAME/SUB and below; waits until none is left. */
int cgroup_kill_path(int v2_fd, const char *name, const char *sub, enum cgroup_after after, unsigned timeout_ms,
                     struct err *err) _must_check_;
/* rmdir that waits out EBUSY of a group whose last process is still leaving.  0 when it is gone. */
int cgroup_rmdir(int dir_fd, const char *path);
/* Kills every process of the group and below but one; waits until only that is left. */
int cgroup_kill_but(int v2_fd, const char *name, pid_t spared, unsigned timeout_ms, struct err *err) _must_check_;
/* Removes every gN below NAME/BOX. */
void cgroup_remove_groups(struct cgroup *cg, const char *box);
