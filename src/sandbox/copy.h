/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * copy: what copying in and copying out share.  Internal to sandbox/.
 */
#include <sys/stat.h>

#include "sandbox/sandbox.h"

/*
 * Copies the first `size` bytes of `from` to the empty file `to`, leaving holes where the
 * source has them, and makes `to` exactly as long as what was there.  Bytes that appear
 * after `size` was read are not copied: a file that grows as fast as it is read ends.
 * *left is how many bytes of data, not of holes, may be copied, and is counted down.
 */
int copy_sparse(int from, int to, uint64_t size, uint64_t *ret_bytes, uint64_t *left, struct err *err) _must_check_;

/* "dir/name" in `path` (of PATH_MAX); *len is its length and is restored by path_pop(). */
int path_push(char *path, size_t *len, const char *name, struct err *err) _must_check_;
void path_pop(char *path, size_t *len, size_t before);

/* Counts a file that is neither regular, directory nor link, and keeps the first one's name. */
void copy_skip(struct copy_stats *stats, const char *path);

/* openat2() beneath `root` with no link followed anywhere; -1 with errno. */
int open_beneath(int root, const char *path, int flags, unsigned mode);

/* A listing kept in memory: no connection stays open while its entries are worked on. */
struct listing {
	struct buf data;
	size_t at;
};
struct listing_entry {
	uint32_t mode;
	uint64_t size;
	int64_t mtime_s;
	uint32_t mtime_ns;
	int32_t sys;
	const char *name, *target;
};
/* `held`: bytes of the listings that the caller holds already; together they are bounded. */
int listing_read(struct sandbox *sb, const char *user, const char *box_path, size_t held, struct listing *ret,
                 struct err *err) _must_check_;
bool listing_next(struct listing *l, struct listing_entry *ret);
static inline void listing_done(struct listing *l) { buf_done(&l->data); }
