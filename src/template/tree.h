/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * tree: opening and removing below a root directory that someone else filled.
 *
 * Paths are relative to `root_fd`.  Links on the way are followed only as a
 * chroot would follow them (RESOLVE_IN_ROOT), so nothing outside is ever reached.
 * Not thread-safe with other writers of the same tree.
 */
#include <sys/types.h>

#include "base/err.h"

/* openat2() with RESOLVE_IN_ROOT, no magic links, no other mount; -1 with errno. */
int tree_open(int root_fd, const char *path, int flags, mode_t mode);

/* Opens the real directory `path`, component by component without following any
 * link, creating what is missing with `mode`.  Something else in the way is an
 * error that names it. */
int tree_real_dir(int root_fd, const char *path, mode_t mode, int *ret_fd, struct err *err) _must_check_;

/* Whether an entry stays when its surroundings are removed. */
struct tree_keep {
	bool (*keep)(void *arg, ino_t dir, const char *name);
	void *arg;
};

/* Removes dir_fd/name and all below it, whatever it is; absent is fine.  Never
 * enters another mount.  Entries that `keep` (may be NULL) wants stay, and so do
 * the directories that hold them.  -1 with errno. */
int tree_remove(int dir_fd, const char *name, const struct tree_keep *keep) _must_check_;

/* The same for everything below the directory dir_fd, not itself. */
int tree_empty(int dir_fd, const struct tree_keep *keep) _must_check_;

/* A foreign name for a message: bytes outside printable ASCII become '?', long
 * ones lose their middle.  Answers `ret`. */
const char *tree_printable(const char *name, char ret[96]);
