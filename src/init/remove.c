/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_remove_tree(): rm -r for trees that somebody made to be hard to remove.
 *
 * Depth costs 16 bytes per level and no stack.  Descriptors are held for the
 * first levels only; below, the way up is "..", and what that leads to must be
 * the directory that was come from, or else somebody moved it meanwhile and
 * going on would remove something that was not asked for.  Names are not
 * remembered: after an emptied directory the parent is read again from the
 * place where it stood, and then removing it works.
 */
#include "init/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include "init/path.h"
#include "init/scratch.h"

enum { HELD_MAX = 256, CHECK_EVERY = 1024 };

struct entry {                  /* struct linux_dirent64, which no header of libc has in full */
	uint64_t inode;
	int64_t offset;         /* where the next one begins */
	uint16_t size;
	uint8_t type;
	char name[];
};

struct level {
	dev_t dev;
	ino_t inode;
};

struct walk {
	int conn_fd;
	struct level *levels;   /* from the top to the current directory */
	size_t depth, room;
	int held[HELD_MAX];     /* descriptors of the first levels */
	int current;            /* the deepest directory; one of `held` while there is room */
	unsigned steps;
};

static bool peer_left(struct walk *w)
{
	struct pollfd poll_fd = { .fd = w->conn_fd, .events = POLLRDHUP };

	return ++w->steps % CHECK_EVERY == 0 && poll(&poll_fd, 1, 0) > 0 && poll_fd.revents & (POLLHUP | POLLRDHUP);
}

/* Makes `fd` the current directory, one level down; takes it over. */
static int push(struct walk *w, int fd, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0) {
		close_fd(fd);
		return err_sys(err, errno, "stat");
	}
	if (w->depth == w->room) {
		w->room = w->room ? w->room * 2 : 64;
		w->levels = xrealloc(w->levels, w->room, sizeof *w->levels);
	}
	w->levels[w->depth] = (struct level) { st.st_dev, st.st_ino };
	if (w->depth > HELD_MAX)
		close(w->current);
	if (w->depth < HELD_MAX)
		w->held[w->depth] = fd;
	w->current = fd;
	w->depth++;
	return 0;
}

/* Back to the parent of the current directory, which is empty now. */
static int pop(struct walk *w, struct err *err)
{
	struct stat st;
	int parent;

	w->depth--;
	if (w->depth <= HELD_MAX) {
		close(w->current);
		w->current = w->depth ? w->held[w->depth - 1] : -1;
		return 0;
	}
	parent = openat(w->current, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	close(w->current);
	w->current = parent;
	if (parent < 0 || fstat(parent, &st) < 0)
		return err_sys(err, errno, "go back up");
	if (st.st_dev != w->levels[w->depth - 1].dev || st.st_ino != w->levels[w->depth - 1].inode)
		return err_set(err, ERR_PRECONDITION, "the tree was moved while it was being removed");
	return 0;
}

static void walk_done(struct walk *w)
{
	if (w->depth > HELD_MAX)
		close_fd(w->current);
	for (size_t i = 0; i < w->depth && i < HELD_MAX; i++)
		close_fd(w->held[i]);
	free(w->levels);
}

/* Descends into a directory that is not empty, so that it is met again on return. */
static int descend(struct walk *w, const char *name, int64_t before, struct err *err)
{
	int fd = openat(w->current, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, errno, "'%.80s'", name);
	if (lseek(w->current, before, SEEK_SET) < 0) {
		close(fd);
		return err_sys(err, errno, "seek in a directory");
	}
	return push(w, fd, err);
}

enum removed { REMOVED, NOT_EMPTY, FAILED };

static enum removed remove_entry(struct walk *w, const struct entry *e, struct err *err)
{
	if (e->type != DT_DIR) {
		if (unlinkat(w->current, e->name, 0) == 0 || errno == ENOENT)
			return REMOVED;
		if (errno != EISDIR) {
			err_sys(err, errno, "'%.80s'", e->name);
			return FAILED;
		}
	}
	if (unlinkat(w->current, e->name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return REMOVED;
	if (errno == ENOTEMPTY || errno == EEXIST)
		return NOT_EMPTY;
	err_sys(err, errno, "'%.80s'", e->name);
	return FAILED;
}

static bool is_dot(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/*
 * Removes a buffer full of entries of the current directory, or stops early by
 * descending into one.  *ret_end: there was nothing left in it.
 */
static int remove_some(struct walk *w, int64_t *at, bool *ret_end, struct err *err)
{
	long n = syscall(SYS_getdents64, w->current, scratch.packet, sizeof scratch.packet);

	if (n < 0)
		return err_sys(err, errno, "read a directory");
	*ret_end = n == 0;
	for (long i = 0; i < n; ) {
		const struct entry *e = (const void *) (scratch.packet + i);
		enum removed removed = is_dot(e->name) ? REMOVED : remove_entry(w, e, err);

		if (removed == FAILED)
			return -1;
		if (removed == NOT_EMPTY) {
			int result = descend(w, e->name, *at, err);

			*at = 0;
			return result;
		}
		*at = e->offset;
		i += e->size;
		if (peer_left(w))
			return err_set(err, ERR_CANCELED, "the caller left");
	}
	return 0;
}

static int empty_tree(struct walk *w, struct err *err)
{
	int64_t at = 0;

	while (w->depth) {
		bool end = false;

		if (remove_some(w, &at, &end, err) < 0)
			return -1;
		if (!end)
			continue;
		if (pop(w, err) < 0)
			return -1;
		if (w->depth)
			at = lseek(w->current, 0, SEEK_CUR);
	}
	return 0;
}

int file_remove_tree(int fd, int parent, const char *name, struct err *err)
{
	_cleanup_(walk_done) struct walk w = { .conn_fd = fd, .current = -1 };
	int top;

	/* Something may be added while this runs; whoever does that in a loop ends up with an error here. */
	for (int tries = 0; tries < 16; tries++) {
		top = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (top < 0)
			return errno == ENOENT ? 0 : err_sys(err, errno, "open it");
		if (push(&w, top, err) < 0 || empty_tree(&w, err) < 0)
			return -1;
		if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			break;
	}
	return err_sys(err, errno, "remove it");
}
