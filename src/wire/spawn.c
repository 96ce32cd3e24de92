/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/spawn.h"

#include "base/str.h"

static void put_limits(struct wire_writer *w, const struct spawn_limits *l)
{
	wire_put_u64(w, l->memory_bytes);
	wire_put_u32(w, l->pids);
	wire_put_u32(w, l->cpu_milli);
	wire_put_u64(w, l->disk_bytes);
	wire_put_u64(w, l->disk_inodes);
	wire_put_u32(w, l->nofile);
}

static void get_limits(struct wire_reader *r, struct spawn_limits *ret)
{
	ret->memory_bytes = wire_get_u64(r);
	ret->pids = wire_get_u32(r);
	ret->cpu_milli = wire_get_u32(r);
	ret->disk_bytes = wire_get_u64(r);
	ret->disk_inodes = wire_get_u64(r);
	ret->nofile = wire_get_u32(r);
}

void spawn_encode_request(const struct spawn_request *req, uint8_t ret[SPAWN_REQUEST_SIZE])
{
	struct wire_writer w = { .data = ret, .cap = SPAWN_REQUEST_SIZE };

	memset(ret, 0, SPAWN_REQUEST_SIZE);
	wire_put_u16(&w, SPAWN_VERSION);
	wire_put_u16(&w, req->type);
	wire_put_u32(&w, req->options);
	wire_put_u8(&w, req->disk);
	wire_put_u32(&w, req->count);
	wire_put_u32(&w, req->group);
	wire_put_str(&w, req->id);
	wire_put_str(&w, req->digest);
	put_limits(&w, &req->limits);
}

static int check_range(const char *field, uint64_t v, uint64_t min, uint64_t max, struct err *err)
{
	if (v && (v < min || v > max))
		return err_set(err, ERR_INVALID, "%s: %llu is out of range (%llu to %llu)", field,
		               (unsigned long long) v, (unsigned long long) min, (unsigned long long) max);
	return 0;
}

int spawn_check_limits(const struct spawn_limits *l, struct err *err)
{
	if (check_range("memory", l->memory_bytes, SPAWN_MIN_MEMORY, SPAWN_MAX_MEMORY, err) < 0 ||
	    check_range("pids", l->pids, SPAWN_MIN_PIDS, SPAWN_MAX_PIDS, err) < 0 ||
	    check_range("cpus", l->cpu_milli, SPAWN_MIN_CPU, SPAWN_MAX_CPU, err) < 0 ||
	    check_range("disk", l->disk_bytes, SPAWN_MIN_DISK, SPAWN_MAX_DISK, err) < 0 ||
	    check_range("inodes", l->disk_inodes, SPAWN_MIN_INODES, SPAWN_MAX_INODES, err) < 0 ||
	    check_range("nofile", l->nofile, SPAWN_MIN_NOFILE, SPAWN_MAX_NOFILE, err) < 0)
		return -1;
	return 0;
}

void spawn_default_limits(struct spawn_limits *l)
{
	if (!l->memory_bytes)
		l->memory_bytes = SPAWN_DEFAULT_MEMORY;
	if (!l->pids)
		l->pids = SPAWN_DEFAULT_PIDS;
	if (!l->cpu_milli)
		l->cpu_milli = SPAWN_DEFAULT_CPU;
	if (!l->disk_bytes)
		l->disk_bytes = MIN((uint64_t) SPAWN_DEFAULT_DISK, l->memory_bytes / 2);
	if (!l->disk_inodes) {
		/* An inode of a disk image takes 256 bytes of it. */
		uint64_t few = MIN((uint64_t) 4096, l->disk_bytes / 1024);

		l->disk_inodes = MIN(l->disk_bytes / 4096, SPAWN_MAX_INODES);
		l->disk_inodes = MAX(l->disk_inodes, few);
	}
	if (!l->nofile)
		l->nofile = SPAWN_DEFAULT_NOFILE;
}

int spawn_decode_request(const uint8_t *data, size_t len, struct spawn_request *ret, struct err *err)
{
	struct wire_reader r = { .data = data, .len = len };
	unsigned version;

	if (len != SPAWN_REQUEST_SIZE)
		return err_set(err, ERR_INVALID, "request of %zu bytes, expected %d", len, SPAWN_REQUEST_SIZE);
	version = wire_get_u16(&r);
	if (version != SPAWN_VERSION)
		return err_set(err, ERR_INVALID, "request of version %u, expected %d", version, SPAWN_VERSION);
	memset(ret, 0, sizeof *ret);
	ret->type = wire_get_u16(&r);
	ret->options = wire_get_u32(&r);
	ret->disk = wire_get_u8(&r);
	ret->count = wire_get_u32(&r);
	ret->group = wire_get_u32(&r);
	wire_get_str(&r, ret->id, sizeof ret->id);
	wire_get_str(&r, ret->digest, sizeof ret->digest);
	get_limits(&r, &ret->limits);
	if (r.failed)
		return err_set(err, ERR_INVALID, "malformed request");
	if (ret->type < SPAWN_HELLO || ret->type >= SPAWN_TYPE_COUNT)
		return err_set(err, ERR_INVALID, "type: %u is not a request", ret->type);
	if (ret->options & ~(uint32_t) SPAWN_OPTIONS_ALL)
		return err_set(err, ERR_INVALID, "options: unknown bits %#x", ret->options);
	if (ret->disk > SPAWN_DISK_IMAGE)
		return err_set(err, ERR_INVALID, "disk: unknown kind %u", ret->disk);
	if (ret->digest[0] && !is_hex(ret->digest, SPAWN_DIGEST_SIZE - 1))
		return err_set(err, ERR_INVALID, "digest: expected 64 hex digits");
	if (ret->id[strspn(ret->id, "abcdefghijklmnopqrstuvwxyz0123456789")])
		return err_set(err, ERR_INVALID, "id: expected lower-case letters and digits");
	return spawn_check_limits(&ret->limits, err);
}

/* The order in which the counters travel. */
#define STATS_FIELDS(X)                                                                         \
	X(memory_bytes) X(memory_peak_bytes) X(memory_limit_bytes) X(oom_kills)                 \
	X(pids) X(pids_limit) X(pids_refused)                                                   \
	X(cpu_us) X(cpu_user_us) X(cpu_system_us) X(cpu_throttled_us) X(cpu_milli_limit)        \
	X(io_read_bytes) X(io_write_bytes)                                                      \
	X(disk_used_bytes) X(disk_limit_bytes) X(inodes_used) X(inodes_limit)                   \
	X(create_us)

void spawn_encode_reply(const struct spawn_reply *reply, uint8_t ret[SPAWN_REPLY_SIZE])
{
	struct wire_writer w = { .data = ret, .cap = SPAWN_REPLY_SIZE };

	memset(ret, 0, SPAWN_REPLY_SIZE);
	wire_put_u16(&w, SPAWN_VERSION);
	wire_put_u16(&w, reply->type);
	wire_put_u32(&w, reply->err.code);
	wire_put_u32(&w, (uint32_t) reply->err.sys);
	wire_put_str(&w, reply->err.code ? reply->err.msg : "");
	wire_put_str(&w, reply->id);
	wire_put_u32(&w, reply->init_pid);
	wire_put_u32(&w, reply->group);
	wire_put_u8(&w, reply->pooled);
#define X(field) wire_put_u64(&w, reply->stats.field);
	STATS_FIELDS(X)
#undef X
}

int spawn_decode_reply(const uint8_t *data, size_t len, struct spawn_reply *ret, struct err *err)
{
	struct wire_reader r = { .data = data, .len = len };
	unsigned version;

	if (len != SPAWN_REPLY_SIZE)
		return err_set(err, ERR_INTERNAL, "reply of %zu bytes, expected %d", len, SPAWN_REPLY_SIZE);
	version = wire_get_u16(&r);
	if (version != SPAWN_VERSION)
		return err_set(err, ERR_INTERNAL, "the spawner speaks version %u, expected %d", version, SPAWN_VERSION);
	memset(ret, 0, sizeof *ret);
	ret->type = wire_get_u16(&r);
	ret->err.code = wire_get_u32(&r);
	ret->err.sys = (int) wire_get_u32(&r);
	wire_get_str(&r, ret->err.msg, sizeof ret->err.msg);
	wire_get_str(&r, ret->id, sizeof ret->id);
	ret->init_pid = wire_get_u32(&r);
	ret->group = wire_get_u32(&r);
	ret->pooled = wire_get_u8(&r);
#define X(field) ret->stats.field = wire_get_u64(&r);
	STATS_FIELDS(X)
#undef X
	if (r.failed || ret->err.code >= ERR_CODE_COUNT)
		return err_set(err, ERR_INTERNAL, "malformed reply of the spawner");
	return 0;
}
