/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * registry: the spawner's sandboxes, templates and pools.
 *
 * A sandbox is an id, a slot and a box.  A pool keeps blank ones of one kind
 * ready; each is handed out once, with the identity it was born with.
 * Single-threaded like the whole program.
 */
#include <sys/queue.h>
#include "engine/engine.h"
#include "wire/spawn.h"

struct sandbox {
	LIST_ENTRY(sandbox) link;       /* in a bucket, or in a pool's list */
	char id[SPAWN_ID_SIZE];
	struct slot *slot;
	struct box *box;
	struct spawn_limits limits;
	int conn;                       /* of a blank one: its first connection to init */
};
LIST_HEAD(sandbox_list, sandbox);

/* What makes two blank sandboxes interchangeable.  Memory, pids and cpu can be changed at the
 * claim; these can't. */
struct kind {
	char digest[SPAWN_DIGEST_SIZE];
	uint32_t options;
	uint8_t disk;
	uint64_t disk_bytes, disk_inodes;
	uint32_t nofile;
};

struct pool {
	SLIST_ENTRY(pool) link;
	struct kind kind;
	struct spawn_limits limits;
	uint32_t target, ready;
	struct sandbox_list blank;
	uint64_t retry_ns;              /* after a failure: not before this time */
};

enum { REGISTRY_BUCKETS = 1024, TEMPLATES_MAX = 64, FREE_SLOTS_MAX = 64 };

struct registry {
	struct engine engine;
	int init_fd;
	bool recycle;                   /* keep slots for the next sandbox */
	struct sandbox_list buckets[REGISTRY_BUCKETS];
	SLIST_HEAD(, pool) pools;
	struct { char digest[SPAWN_DIGEST_SIZE]; int fd, lock_fd; } templates[TEMPLATES_MAX];
	unsigned ntemplates;
	struct slot *free_slots[FREE_SLOTS_MAX];
	unsigned nfree;
};

/* From the pool when it has one that fits, else new.  *ret_conn is its first connection to init. */
int registry_create(struct registry *r, const struct spawn_request *req, struct sandbox **ret, int *ret_conn,
                    bool *ret_pooled, struct err *err) _must_check_;

int registry_get(struct registry *r, const char *id, struct sandbox **ret, struct err *err) _must_check_;

/* Kills, counts, removes; `ret` (may be NULL) gets the last counters. */
void registry_destroy(struct registry *r, struct sandbox *sb, struct spawn_stats *ret);

int registry_stats(const struct sandbox *sb, struct spawn_stats *ret, struct err *err) _must_check_;

/* Keeps `count` blank sandboxes of the request's kind ready from now on. */
int registry_set_pool(struct registry *r, const struct spawn_request *req, struct err *err) _must_check_;

/* Makes one blank sandbox where one is missing; false when nothing was to do.  *ret_wait_ms is
 * how long to wait before the next try, -1 for "until something changes". */
bool registry_refill(struct registry *r, int *ret_wait_ms);

void registry_done(struct registry *r);
