/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* sys-tree: one synthetic /sys per pair of limits, shared by all boxes that have them. */
#include "base/err.h"

struct sys_tree_cache;

/* The tree for these limits, made on first use.  *cache grows to a bound and then forgets the
 * oldest (boxes keep their own clones).  The descriptor stays the cache's. */
int sys_tree_get(struct sys_tree_cache **cache, uint64_t cpu_milli, uint64_t memory_bytes, int *ret_fd,
                 struct err *err) _must_check_;
void sys_tree_free(struct sys_tree_cache *cache);
