/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * path: paths of the sandbox, as init may follow them.
 *
 * Init's root is the sandbox's root, so ".." and absolute links stay inside by
 * themselves.  What must not be followed are the magic links of /proc: through
 * /proc/self/fd init would reach its own descriptors.
 */
#include "base/base.h"

#include <sys/types.h>

/* open() from the root with that rule, always close-on-exec.  -1 with errno. */
int path_open(const char *path, int flags, mode_t mode);

/* The same below `dir_fd`, where not even ".." may lead above it. */
int path_open_beneath(int dir_fd, const char *name, int flags);

/*
 * Opens the directory that the last component of PATH is in, and points
 * *ret_name at that component (in `path`, which loses trailing slashes).  With
 * `make`, what is missing is made with mode 0755 by whoever the process acts
 * as.  A path that ends in "." or ".." has no last component: EINVAL.
 */
int path_open_parent(char *path, bool make, const char **ret_name);
