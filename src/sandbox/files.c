/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/clock.h"
#include "base/fd.h"
#include "sandbox/copy.h"

/* What the listings held at one time may take: some 200,000 entries with names of ordinary length. */
enum { LISTING_MAX = 32 << 20 };

/* How long init may be silent; a listing is a packet at a time. */
enum { ANSWER_MS = 60000 };

/* ---- one operation on one connection ---- */

static int send_file(int conn, const struct init_file *file, struct err *err)
{
	_cleanup_free_ uint8_t *packet = xcalloc(1, INIT_PACKET_MAX);
	struct wire_writer w = { .data = packet + INIT_HEADER, .cap = INIT_PAYLOAD_MAX };

	init_encode_file(&w, file);
	if (w.failed)
		return err_set(err, ERR_INVALID, "the path is too long");
	init_put_header(packet, INIT_FILE, 0, (uint32_t) w.len);
	/* A connection that init has closed may still hold the reason. */
	if (send_msg(conn, packet, INIT_HEADER + w.len, NULL, 0) < 0 && errno != EPIPE && errno != ECONNRESET)
		return err_sys(err, errno, "ask the sandbox's init");
	return 0;
}

static int wait_for_answer(const struct sandbox *sb, int conn, struct err *err)
{
	uint64_t deadline = now_ns() + (sb->answer_ms ? sb->answer_ms : ANSWER_MS) * UINT64_C(1000000);
	struct pollfd p = { .fd = conn, .events = POLLIN };
	int n;

	do
		n = poll(&p, 1, ms_until(deadline));
	while (n < 0 && errno == EINTR);
	if (n == 0)
		errno = ETIMEDOUT;
	return n > 0 ? 0 : err_sys(err, errno, "wait for the sandbox's init");
}

static int from_error(struct wire_reader *r, struct err *err)
{
	struct init_error e;

	if (!init_decode_error(r, &e))
		return err_set(err, ERR_INTERNAL, "malformed error of the sandbox's init");
	if (err) {
		err->code = e.code;
		err->sys = e.sys;
		memcpy(err->msg, e.msg, sizeof err->msg);
	}
	return -1;
}

/* One packet of the answer; the payload stays in `packet`.  An ERROR becomes err. */
static int recv_answer(const struct sandbox *sb, int conn, uint8_t *packet, struct init_header *h,
                       struct wire_reader *body, int *ret_fd, struct err *err)
{
	int fds[FD_PASS_MAX];
	size_t nfds = 0;
	ssize_t n;

	*ret_fd = -1;
	if (wait_for_answer(sb, conn, err) < 0)
		return -1;
	n = recv_msg(conn, packet, INIT_PACKET_MAX, fds, &nfds);
	/* A reset is told once, before the packets that still wait. */
	if (n < 0 && errno == ECONNRESET)
		n = recv_msg(conn, packet, INIT_PACKET_MAX, fds, &nfds);
	if (n < 0)
		return err_sys(err, errno, "read the answer of the sandbox's init");
	if (nfds)
		*ret_fd = fds[0];
	while (nfds > 1)
		close(fds[--nfds]);
	if (n == 0)
		return err_set(err, ERR_UNAVAILABLE, "the sandbox ended");
	if (!init_get_header(packet, (size_t) n, h)) {
		*ret_fd = close_fd(*ret_fd);
		return err_set(err, ERR_INTERNAL, "malformed packet of the sandbox's init");
	}
	*body = (struct wire_reader) { .data = packet + INIT_HEADER, .len = h->len };
	if (h->type == INIT_ERROR) {
		*ret_fd = close_fd(*ret_fd);
		return from_error(body, err);
	}
	return 0;
}

/*
 * What comes from inside may be anything.  Only regular files and directories never block; and what a
 * file of procfs does or shows depends on who reads or writes it, which is us and not the sandbox.
 */
static int check_descriptor(int fd, const char *path, struct err *err)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return err_sys(err, errno, "look at %.160s", path);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return err_set(err, ERR_INTERNAL, "the sandbox's init sent something else than a file");
	if (S_ISREG(st.st_mode) && fs.f_type == PROC_SUPER_MAGIC)
		return err_set(err, ERR_PRECONDITION, "%.120s is a file of /proc: only a command can read or write it",
		               path);
	return 0;
}

int sandbox_file(struct sandbox *sb, const struct init_file *file, struct init_stat *ret, int *ret_fd,
                 struct err *err)
{
	_cleanup_free_ uint8_t *packet = xcalloc(1, INIT_PACKET_MAX);
	_cleanup_free_ struct init_stat *st = xcalloc(1, sizeof *st);
	_cleanup_close_ int conn = -1, fd = -1;
	struct wire_reader body;
	struct init_header h;

	if (sandbox_connect(sb, &conn, err) < 0 || send_file(conn, file, err) < 0 ||
	    recv_answer(sb, conn, packet, &h, &body, &fd, err) < 0)
		return -1;
	if (h.type != INIT_OK && h.type != INIT_FILE_REPLY)
		return err_set(err, ERR_INTERNAL, "unexpected packet %u of the sandbox's init", h.type);
	if (h.type == INIT_FILE_REPLY && (!init_decode_stat(&body, st) || !wire_done(&body)))
		return err_set(err, ERR_INTERNAL, "malformed file report of the sandbox's init");
	if (file->op == INIT_FILE_OPEN && ret_fd && fd < 0)
		return err_set(err, ERR_INTERNAL, "the sandbox's init sent no descriptor");
	if (fd >= 0 && check_descriptor(fd, file->path, err) < 0)
		return -1;
	if (ret)
		*ret = *st;
	if (ret_fd)
		*ret_fd = TAKE_FD(fd);
	return 0;
}

/* ---- listing ---- */

static int take_entries(struct wire_reader *r, bool more,
                        int (*entry)(void *, const char *, const struct init_stat *, struct err *), void *ctx,
                        struct err *err)
{
	_cleanup_free_ struct init_stat *st = xcalloc(1, sizeof *st);
	uint32_t count = wire_get_u32(r);
	char name[INIT_NAME_MAX];

	if (more && !count)
		return err_set(err, ERR_INTERNAL, "malformed listing of the sandbox's init");
	for (uint32_t i = 0; i < count; i++) {
		wire_get_str(r, name, sizeof name);
		if (!init_decode_stat(r, st))
			return err_set(err, ERR_INTERNAL, "malformed listing of the sandbox's init");
		/* A name with a slash, or one that means another directory, would leave the tree. */
		if (!name[0] || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, ".."))
			return err_set(err, ERR_INTERNAL, "the sandbox's init listed an impossible name");
		if (entry(ctx, name, st, err) < 0)
			return -1;
	}
	return wire_done(r) ? 0 : err_set(err, ERR_INTERNAL, "malformed listing of the sandbox's init");
}

int sandbox_list(struct sandbox *sb, const char *user, const char *box_path,
                 int (*entry)(void *ctx, const char *name, const struct init_stat *st, struct err *err),
                 void *ctx, struct err *err)
{
	_cleanup_free_ uint8_t *packet = xcalloc(1, INIT_PACKET_MAX);
	_cleanup_free_ struct init_file *file = xcalloc(1, sizeof *file);
	_cleanup_close_ int conn = -1;
	struct wire_reader body;
	struct init_header h;

	file->op = INIT_FILE_LIST;
	snprintf(file->user, sizeof file->user, "%s", user);
	snprintf(file->path, sizeof file->path, "%s", box_path);
	if (sandbox_connect(sb, &conn, err) < 0 || send_file(conn, file, err) < 0)
		return -1;
	do {
		_cleanup_close_ int fd = -1;

		if (recv_answer(sb, conn, packet, &h, &body, &fd, err) < 0)
			return -1;
		if (h.type != INIT_ENTRIES)
			return err_set(err, ERR_INTERNAL, "unexpected packet %u of the sandbox's init", h.type);
		if (take_entries(&body, h.flags & INIT_MORE, entry, ctx, err) < 0)
			return -1;
	} while (h.flags & INIT_MORE);
	return 0;
}

/* One record per entry: the fixed fields, then two strings with their NUL. */
struct record {
	uint64_t size;
	int64_t mtime_s;
	uint32_t mode, mtime_ns;
	int32_t sys;
};

static int keep_entry(void *ctx, const char *name, const struct init_stat *st, struct err *err)
{
	struct record rec = { st->size, st->mtime_s, st->mode, st->mtime_ns, st->sys };
	struct buf *data = ctx;

	if (buf_append(data, &rec, sizeof rec, err) < 0 || buf_append(data, name, strlen(name) + 1, err) < 0 ||
	    buf_append(data, st->target, strlen(st->target) + 1, err) < 0)
		return err_wrap(err, "too many entries in one directory");
	return 0;
}

int listing_read(struct sandbox *sb, const char *user, const char *box_path, size_t held, struct listing *ret,
                 struct err *err)
{
	ret->data = BUF_INIT(held < LISTING_MAX ? LISTING_MAX - held : 0);
	ret->at = 0;
	return sandbox_list(sb, user, box_path, keep_entry, &ret->data, err);
}

bool listing_next(struct listing *l, struct listing_entry *ret)
{
	struct record rec;

	if (l->at >= l->data.len)
		return false;
	memcpy(&rec, l->data.data + l->at, sizeof rec);
	ret->name = l->data.data + l->at + sizeof rec;
	ret->target = ret->name + strlen(ret->name) + 1;
	l->at = (size_t) (ret->target + strlen(ret->target) + 1 - l->data.data);
	ret->size = rec.size;
	ret->mtime_s = rec.mtime_s;
	ret->mtime_ns = rec.mtime_ns;
	ret->mode = rec.mode;
	ret->sys = rec.sys;
	return true;
}

/* ---- helpers of both directions ---- */

static int copy_range(int from, int to, uint64_t at, uint64_t end, char *chunk, size_t size, uint64_t *left,
                      struct err *err)
{
	while (at < end) {
		ssize_t n = pread(from, chunk, MIN(end - at, (uint64_t) size), (off_t) at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "read");
		if (n == 0)
			return 0;       /* it shrank meanwhile: what is there is what there is */
		if ((uint64_t) n > *left)
			return err_set(err, ERR_EXHAUSTED, "the files hold more than a sandbox of this size can");
		*left -= (uint64_t) n;
		for (ssize_t done = 0; done < n;) {
			ssize_t w = pwrite(to, chunk + done, (size_t) (n - done), (off_t) at + done);

			if (w < 0 && errno == EINTR)
				continue;
			if (w <= 0)
				return err_sys(err, w < 0 ? errno : ENOSPC, "write");
			done += w;
		}
		at += (uint64_t) n;
	}
	return 0;
}

int copy_sparse(int from, int to, uint64_t size, uint64_t *ret_bytes, uint64_t *left, struct err *err)
{
	enum { CHUNK = 256 << 10 };
	_cleanup_free_ char *chunk = xcalloc(1, CHUNK);
	off_t end = (off_t) size, at = 0;

	/* The length first: a hole at the end needs it, and a file too large for `to` fails at once. */
	if (ftruncate(to, end) < 0)
		return err_sys(err, errno, "set the length");
	while (at < end) {
		off_t data = lseek(from, at, SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			break;          /* only a hole is left */
		if (data < 0)
			data = at;      /* a filesystem without holes */
		if (data >= end)
			break;
		hole = lseek(from, data, SEEK_HOLE);
		if (hole < 0 || hole > end)
			hole = end;
		if (copy_range(from, to, (uint64_t) data, (uint64_t) hole, chunk, CHUNK, left, err) < 0)
			return -1;
		at = hole;
	}
	*ret_bytes += size;
	return 0;
}

int path_push(char *path, size_t *len, const char *name, struct err *err)
{
	int n = snprintf(path + *len, PATH_MAX - *len, "%s%s", *len && path[*len - 1] != '/' ? "/" : "", name);

	if (n < 0 || (size_t) n >= PATH_MAX - *len) {
		path[*len] = '\0';
		return err_sys(err, ENAMETOOLONG, "%.60s/.../%.60s", path, name);
	}
	*len += (size_t) n;
	return 0;
}

void path_pop(char *path, size_t *len, size_t before)
{
	*len = before;
	path[before] = '\0';
}

void copy_skip(struct copy_stats *stats, const char *path)
{
	size_t n = 0, size = sizeof stats->first_skipped;

	if (stats->skipped++)
		return;
	for (; *path && n + 5 < size; path++) {
		unsigned char c = (unsigned char) *path;

		if (c < 0x20 || c == 0x7f)
			n += (size_t) snprintf(stats->first_skipped + n, size - n, "\\x%02x", c);
		else
			stats->first_skipped[n++] = (char) c;
	}
	stats->first_skipped[n] = '\0';
}

int open_beneath(int root, const char *path, int flags, unsigned mode)
{
	struct open_how how = {
		.flags = (uint64_t) flags | O_CLOEXEC, .mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	do
		fd = syscall(SYS_openat2, root, path, &how, sizeof how);
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return (int) fd;
}

int sandbox_write_file(struct sandbox *sb, const char *user, const char *box_path, uint32_t mode,
                       const void *data, size_t len, struct err *err)
{
	_cleanup_free_ struct init_file *file = xcalloc(1, sizeof *file);
	_cleanup_close_ int fd = -1;

	if (strlen(box_path) >= sizeof file->path)
		return err_set(err, ERR_INVALID, "the path is too long: %.60s...", box_path);
	file->op = INIT_FILE_OPEN;
	file->flags = INIT_FILE_WRITE | INIT_FILE_CREATE | INIT_FILE_TRUNCATE | INIT_FILE_PARENTS | INIT_FILE_FOLLOW;
	file->mode = mode & 0777;
	snprintf(file->user, sizeof file->user, "%s", user);
	memcpy(file->path, box_path, strlen(box_path) + 1);
	if (sandbox_file(sb, file, NULL, &fd, err) < 0)
		return err_wrap(err, "write %s in the sandbox", box_path);
	if (write_all(fd, data, len) < 0)
		return err_sys(err, errno, "write %s in the sandbox", box_path);
	return 0;
}
