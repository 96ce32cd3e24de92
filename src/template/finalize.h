/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * finalize: makes any unpacked root filesystem fit for a sandbox.
 *
 * Mount points exist as real directories, uid 1000 has an entry, nothing of the
 * machine it was made on is left.  Idempotent.  Never follows a link of the tree.
 */
#include <jansson.h>

#include "base/err.h"

int finalize_tree(int root_fd, struct err *err) _must_check_;

/* Which programs the tree has: {"sh": "/bin/sh", "bash": null, "python": ..., "node": ..., "git": ...}. */
json_t *finalize_programs(int root_fd);
