/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sys-tree.h"

#include "engine/mount.h"

enum { CACHE_SIZE = 16 };

struct sys_tree_cache {
	struct { uint64_t cpu_milli, memory_bytes; int fd; } entry[CACHE_SIZE];
	unsigned used, oldest;
};

int sys_tree_get(struct sys_tree_cache **cache, uint64_t cpu_milli, uint64_t memory_bytes, int *ret_fd,
                 struct err *err)
{
	struct sys_tree_cache *c;
	unsigned at;
	int fd;

	if (!*cache)
		*cache = xcalloc(1, sizeof **cache);
	c = *cache;
	for (unsigned i = 0; i < c->used; i++) {
		if (c->entry[i].cpu_milli == cpu_milli && c->entry[i].memory_bytes == memory_bytes) {
			*ret_fd = c->entry[i].fd;
			return 0;
		}
	}
	if (mount_sys_tree(cpu_milli, memory_bytes, &fd, err) < 0)
		return -1;
	if (c->used < CACHE_SIZE) {
		at = c->used++;
	} else {
		at = c->oldest++ % CACHE_SIZE;
		close_fd(c->entry[at].fd);
	}
	c->entry[at].cpu_milli = cpu_milli;
	c->entry[at].memory_bytes = memory_bytes;
	c->entry[at].fd = *ret_fd = fd;
	return 0;
}

void sys_tree_free(struct sys_tree_cache *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < c->used; i++)
		close_fd(c->entry[i].fd);
	free(c);
}
