/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * extract: a tar archive, or the layers of an image one by one, into a directory.
 *
 * The archive is hostile.  Whatever it holds, nothing outside the root is created,
 * changed or read (F04, C19, C21): names are walked with RESOLVE_IN_ROOT, so a link
 * planted by an earlier member leads at most to another place of the same tree,
 * exactly as in a chroot.  What cannot be taken is refused with the member's name;
 * what is harmless to lose (device nodes, foreign attributes) is dropped and counted.
 *
 * One extraction per root at a time; no threads.
 */
#include <archive.h>

#include "template/progress.h"

enum {
	EXTRACT_MAX_ENTRIES = 2000000,
	EXTRACT_MAX_DEPTH = 200,        /* directories; walks hold two descriptors per level */
};

/* How ".wh." names are read, and who wins over what was there before. */
enum extract_mode {
	EXTRACT_TREE,           /* a whole root filesystem: whiteouts are refused */
	EXTRACT_LAYER,          /* a layer: whiteouts remove what lower layers brought */
	EXTRACT_FILES,          /* plain files and directories of an image archive: nothing else */
};

struct extract_report {
	uint64_t entries;
	uint64_t bytes;                 /* of regular files, holes included */
	uint64_t devices_dropped;
	uint64_t xattrs_dropped;
	uint64_t owners_mapped;         /* ids above 65535, now 65534 */
	uint64_t setuid_cleared;
};

/* One root being filled, by one archive or by several layers. */
struct extract {
	int root_fd;                    /* borrowed */
	uint64_t max_bytes;
	struct progress *progress;      /* borrowed; may be NULL */
	struct extract_report report;   /* sums over all archives */

	enum extract_mode mode;
	struct inode_set *layer;        /* what this layer brought; NULL otherwise */
	struct dir_times *dirs;
};

/* Reads all of `a` (opened with extract_reader_new()) into x->root_fd. */
int extract_archive(struct extract *x, struct archive *a, enum extract_mode mode, struct err *err) _must_check_;

/* A reader for tar, plain or compressed with gzip, xz or zstd, and nothing else. */
struct archive *extract_reader_new(void);

static inline void archive_freep(struct archive **a)
{
	if (*a)
		archive_read_free(*a);
}

/* The member's name as a path below the root: no leading "/" or "./", no empty
 * or "." parts, "" for the root itself.  A ".." or an overlong part is refused. */
int extract_clean_name(const char *name, char ret[4096], struct err *err) _must_check_;
