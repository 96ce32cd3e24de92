/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/init.h"

void init_put_header(uint8_t at[INIT_HEADER], uint8_t type, uint16_t flags, uint32_t len)
{
	struct wire_writer w = { .data = at, .cap = INIT_HEADER };

	wire_put_u8(&w, INIT_VERSION);
	wire_put_u8(&w, type);
	wire_put_u16(&w, flags);
	wire_put_u32(&w, len);
}

bool init_get_header(const uint8_t *packet, size_t len, struct init_header *ret)
{
	struct wire_reader r = { .data = packet, .len = len };

	if (wire_get_u8(&r) != INIT_VERSION)
		return false;
	ret->type = wire_get_u8(&r);
	ret->flags = wire_get_u16(&r);
	ret->len = wire_get_u32(&r);
	return !r.failed && ret->len <= INIT_PAYLOAD_MAX && ret->len == len - INIT_HEADER;
}

/* ---- EXEC ---- */

static int put_field(struct buf *b, const char *s, struct err *err)
{
	size_t len = strlen(s);
	uint8_t prefix[4] = { (uint8_t) len, (uint8_t) (len >> 8), (uint8_t) (len >> 16), (uint8_t) (len >> 24) };

	/* The NUL travels along: it is the spare byte that lets init decode in place. */
	if (buf_append(b, prefix, sizeof prefix, err) < 0 || buf_append(b, s, len + 1, err) < 0)
		return err_wrap(err, "command, environment and paths");
	return 0;
}

static int put_list(struct buf *b, char *const *list, uint32_t max, const char *what, struct err *err)
{
	uint8_t prefix[4];
	uint32_t n = 0;

	while (list && list[n])
		n++;
	if (n > max)
		return err_set(err, ERR_INVALID, "more than %u %s", max, what);
	for (int i = 0; i < 4; i++)
		prefix[i] = (uint8_t) (n >> (8 * i));
	if (buf_append(b, prefix, sizeof prefix, err) < 0)
		return -1;
	for (uint32_t i = 0; i < n; i++)
		if (put_field(b, list[i], err) < 0)
			return -1;
	return 0;
}

int init_encode_exec(const struct init_exec *exec, struct buf *ret, struct err *err)
{
	uint8_t head[8];
	struct wire_writer w = { .data = head, .cap = sizeof head };

	wire_put_u32(&w, exec->flags);
	wire_put_u16(&w, exec->rows);
	wire_put_u16(&w, exec->cols);
	if (buf_append(ret, head, w.len, err) < 0 ||
	    put_field(ret, exec->user, err) < 0 || put_field(ret, exec->cwd, err) < 0 ||
	    put_field(ret, exec->tag, err) < 0 ||
	    put_list(ret, exec->argv, INIT_ARGS_MAX, "arguments", err) < 0 ||
	    put_list(ret, exec->env, INIT_ENV_MAX, "environment variables", err) < 0)
		return -1;
	return 0;
}

/* A string field with its NUL, in place; NULL when malformed. */
static char *get_field(struct wire_reader *r)
{
	const uint8_t *at;
	size_t len = wire_get_bytes(r, &at);

	if (r->failed || (len && memchr(at, '\0', len)) || wire_get_u8(r) != '\0' || r->failed) {
		r->failed = true;
		return NULL;
	}
	return (char *) (uintptr_t) at;
}

static void get_field_into(struct wire_reader *r, char *ret, size_t size)
{
	const char *s = get_field(r);
	size_t len = s ? strlen(s) : 0;

	ret[0] = '\0';
	if (len >= size)
		r->failed = true;
	else if (s)
		memcpy(ret, s, len + 1);
}

static char **get_list(struct wire_reader *r, uint32_t max)
{
	uint32_t n = wire_get_u32(r);
	char **list;

	/* Five bytes is the shortest field: a count the packet cannot hold is not allocated. */
	if (r->failed || n > max || n > (r->len - r->at) / 5) {
		r->failed = true;
		return NULL;
	}
	list = xcalloc(n + 1, sizeof *list);
	for (uint32_t i = 0; i < n && !r->failed; i++)
		list[i] = get_field(r);
	return list;
}

int init_decode_exec(uint8_t *body, size_t len, struct init_exec *ret, struct err *err)
{
	struct wire_reader r = { .data = body, .len = len };

	memset(ret, 0, sizeof *ret);
	ret->flags = wire_get_u32(&r);
	ret->rows = wire_get_u16(&r);
	ret->cols = wire_get_u16(&r);
	get_field_into(&r, ret->user, sizeof ret->user);
	get_field_into(&r, ret->cwd, sizeof ret->cwd);
	get_field_into(&r, ret->tag, sizeof ret->tag);
	ret->argv = get_list(&r, INIT_ARGS_MAX);
	ret->env = get_list(&r, INIT_ENV_MAX);
	if (!wire_done(&r) || !ret->argv[0] || (ret->flags & ~(uint32_t) INIT_EXEC_ALL)) {
		init_exec_done(ret);
		return err_set(err, ERR_INVALID, "malformed exec request");
	}
	return 0;
}

void init_exec_done(struct init_exec *exec)
{
	free(exec->argv);
	free(exec->env);
	exec->argv = exec->env = NULL;
}

/* ---- EXIT ---- */

void init_encode_exit(struct wire_writer *w, const struct init_exit *exit)
{
	wire_put_u32(w, exit->pid);
	wire_put_u8(w, exit->signaled);
	wire_put_u8(w, exit->status);
	wire_put_u8(w, exit->core);
	wire_put_u8(w, exit->flags);
	wire_put_u64(w, exit->stdout_bytes);
	wire_put_u64(w, exit->stderr_bytes);
	wire_put_u64(w, exit->user_us);
	wire_put_u64(w, exit->system_us);
	wire_put_u64(w, exit->max_rss_bytes);
	wire_put_u64(w, exit->wall_us);
	wire_put_u32(w, exit->killed_pid);
	wire_put_str(w, exit->killed_name);
}

bool init_decode_exit(struct wire_reader *r, struct init_exit *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->pid = wire_get_u32(r);
	ret->signaled = wire_get_u8(r);
	ret->status = wire_get_u8(r);
	ret->core = wire_get_u8(r);
	ret->flags = wire_get_u8(r);
	ret->stdout_bytes = wire_get_u64(r);
	ret->stderr_bytes = wire_get_u64(r);
	ret->user_us = wire_get_u64(r);
	ret->system_us = wire_get_u64(r);
	ret->max_rss_bytes = wire_get_u64(r);
	ret->wall_us = wire_get_u64(r);
	ret->killed_pid = wire_get_u32(r);
	wire_get_str(r, ret->killed_name, sizeof ret->killed_name);
	return wire_done(r) && (!ret->signaled || (ret->status >= 1 && ret->status <= 64));
}

/* ---- ERROR ---- */

void init_encode_error(struct wire_writer *w, const struct init_error *error)
{
	wire_put_u8(w, error->code);
	wire_put_u32(w, (uint32_t) error->sys);
	wire_put_u8(w, error->step);
	wire_put_str(w, error->msg);
}

bool init_decode_error(struct wire_reader *r, struct init_error *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->code = wire_get_u8(r);
	ret->sys = (int32_t) wire_get_u32(r);
	ret->step = wire_get_u8(r);
	wire_get_str(r, ret->msg, sizeof ret->msg);
	return wire_done(r) && ret->code > ERR_OK && ret->code < ERR_CODE_COUNT;
}

/* ---- FILE ---- */

void init_encode_file(struct wire_writer *w, const struct init_file *file)
{
	wire_put_u8(w, file->op);
	wire_put_u32(w, file->flags);
	wire_put_u32(w, file->mode);
	wire_put_str(w, file->user);
	wire_put_str(w, file->path);
	wire_put_str(w, file->target);
}

bool init_decode_file(struct wire_reader *r, struct init_file *ret)
{
	ret->op = wire_get_u8(r);
	ret->flags = wire_get_u32(r);
	ret->mode = wire_get_u32(r);
	wire_get_str(r, ret->user, sizeof ret->user);
	wire_get_str(r, ret->path, sizeof ret->path);
	wire_get_str(r, ret->target, sizeof ret->target);
	return wire_done(r) && ret->op >= INIT_FILE_OPEN && ret->op <= INIT_FILE_SYMLINK &&
	       !(ret->flags & ~(uint32_t) INIT_FILE_ALL) && ret->mode <= 07777 && ret->path[0];
}

void init_encode_stat(struct wire_writer *w, const struct init_stat *st)
{
	wire_put_u32(w, st->mode);
	wire_put_u32(w, st->uid);
	wire_put_u32(w, st->gid);
	wire_put_u64(w, st->size);
	wire_put_u64(w, st->blocks);
	wire_put_u64(w, st->inode);
	wire_put_u64(w, (uint64_t) st->mtime_s);
	wire_put_u32(w, st->mtime_ns);
	wire_put_u32(w, st->links);
	wire_put_str(w, st->target);
	wire_put_u32(w, (uint32_t) st->sys);
}

bool init_decode_stat(struct wire_reader *r, struct init_stat *ret)
{
	ret->mode = wire_get_u32(r);
	ret->uid = wire_get_u32(r);
	ret->gid = wire_get_u32(r);
	ret->size = wire_get_u64(r);
	ret->blocks = wire_get_u64(r);
	ret->inode = wire_get_u64(r);
	ret->mtime_s = (int64_t) wire_get_u64(r);
	ret->mtime_ns = wire_get_u32(r);
	ret->links = wire_get_u32(r);
	wire_get_str(r, ret->target, sizeof ret->target);
	ret->sys = (int32_t) wire_get_u32(r);
	return !r->failed;
}
