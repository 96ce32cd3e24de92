/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* extract-internal: what extract.c and extract-meta.c share. */
#include <archive_entry.h>
#include <sys/types.h>
#include <time.h>

#include "base/str.h"
#include "template/extract.h"

/* One member on its way into the tree. */
struct member {
	struct archive *archive;        /* borrowed, like entry */
	struct archive_entry *entry;
	unsigned type;
	int parent;                     /* O_PATH of its directory */
	const char *base;               /* its name there */
	int fd;                         /* of a new regular file, else -1 */
	ino_t old_ino;                  /* what had the name before; 0: nothing */
	mode_t old_mode;
};

static inline void member_done(struct member *m)
{
	m->parent = close_fd(m->parent);
	m->fd = close_fd(m->fd);
}

/* Modification times of directories, set at the end because filling one changes it. */
struct dir_times {
	struct dir_time {
		char *path;
		struct timespec mtime;
	} *list;
	size_t count, cap;
	size_t bytes;                   /* of the paths */
};

/* Past this many bytes of paths, directories keep the time of their making. */
enum { DIR_TIMES_MAX = 64 << 20 };

void dir_times_free(struct dir_times *d);
DEFINE_CLEANUP(struct dir_times *, dir_times_free)

/* FNV-1a; a collision confuses only the archive that made it. */
static inline uint64_t extract_name_hash(const char *name)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *name; name++)
		h = (h ^ (unsigned char) *name) * 0x100000001b3u;
	return h;
}

const char *extract_split(char *path, const char **ret_dir);
int extract_clear_way(struct extract *x, struct member *m, struct err *err);
int extract_archive_error(struct archive *a, struct err *err);
int extract_check_xattrs(struct extract *x, struct archive_entry *entry, struct err *err);
int extract_metadata(struct extract *x, struct member *m, struct err *err);
int extract_whiteout(struct extract *x, struct member *m, struct err *err);
void extract_set_dir_times(struct extract *x);
