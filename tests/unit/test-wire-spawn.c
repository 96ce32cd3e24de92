/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the spawner: the boundary an unprivileged client meets a privileged program at. */
#include "tap.h"

#include "wire/spawn.h"

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct spawn_request good = {
	.type = SPAWN_CREATE, .options = SPAWN_TERMINALS, .disk = SPAWN_DISK_IMAGE, .count = 3, .group = 9,
	.id = "abcdefghij0123456789", .digest = DIGEST,
	.limits = { .memory_bytes = 1ull << 30, .pids = 100, .cpu_milli = 1500, .disk_bytes = 1ull << 28,
	            .disk_inodes = 5000, .nofile = 1024 },
};

/* Decodes what `req` encodes to. */
static int transfer(const struct spawn_request *req, struct spawn_request *ret, struct err *err)
{
	uint8_t packet[SPAWN_REQUEST_SIZE];

	spawn_encode_request(req, packet);
	return spawn_decode_request(packet, sizeof packet, ret, err);
}

TEST(a_request_survives_the_journey)
{
	struct spawn_request req;
	struct err err = { 0 };

	CHECK_OK(transfer(&good, &req, &err));
	CHECK_INT(req.type, good.type);
	CHECK_INT(req.options, good.options);
	CHECK_INT(req.disk, good.disk);
	CHECK_INT(req.count, good.count);
	CHECK_INT(req.group, good.group);
	CHECK_STR(req.id, good.id);
	CHECK_STR(req.digest, good.digest);
	CHECK(req.limits.memory_bytes == good.limits.memory_bytes);
	CHECK_INT(req.limits.pids, good.limits.pids);
	CHECK_INT(req.limits.cpu_milli, good.limits.cpu_milli);
	CHECK(req.limits.disk_bytes == good.limits.disk_bytes);
	CHECK(req.limits.disk_inodes == good.limits.disk_inodes);
	CHECK_INT(req.limits.nofile, good.limits.nofile);
}

static void refused(const struct spawn_request *bad, const char *why)
{
	struct spawn_request req;
	struct err err = { 0 };

	CHECK_ERR(transfer(bad, &req, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, why);
}

TEST(a_bad_field_is_named)
{
#define BAD(set, why) do { struct spawn_request b = good; b.set; refused(&b, why); } while (0)
	BAD(type = 0, "type: 0");
	BAD(type = SPAWN_TYPE_COUNT, "type: ");
	BAD(options = 0x80, "options: unknown bits 0x80");
	BAD(disk = 2, "disk: unknown kind 2");
	BAD(digest[0] = 'G', "digest: ");
	BAD(digest[0] = 'A', "digest: ");
	BAD(digest[63] = '\0', "digest: ");
	BAD(digest[5] = '/', "digest: ");
	BAD(id[0] = '/', "id: ");
	BAD(id[0] = '.', "id: ");
	BAD(id[0] = 'A', "id: ");
	BAD(limits.memory_bytes = SPAWN_MIN_MEMORY - 1, "memory: ");
	BAD(limits.memory_bytes = SPAWN_MAX_MEMORY + 1, "memory: ");
	BAD(limits.pids = SPAWN_MIN_PIDS - 1, "pids: ");
	BAD(limits.pids = UINT32_MAX, "pids: ");
	BAD(limits.cpu_milli = SPAWN_MIN_CPU - 1, "cpus: ");
	BAD(limits.cpu_milli = SPAWN_MAX_CPU + 1, "cpus: ");
	BAD(limits.disk_bytes = SPAWN_MIN_DISK - 1, "disk: ");
	BAD(limits.disk_bytes = UINT64_MAX, "disk: ");
	BAD(limits.disk_inodes = 1, "inodes: ");
	BAD(limits.nofile = SPAWN_MAX_NOFILE + 1, "nofile: ");
#undef BAD
}

TEST(the_least_and_the_most_are_accepted)
{
	struct spawn_request req, edge = good;
	struct err err = { 0 };

	edge.limits = (struct spawn_limits) { SPAWN_MIN_MEMORY, SPAWN_MIN_PIDS, SPAWN_MIN_CPU, SPAWN_MIN_DISK,
	                                      SPAWN_MIN_INODES, SPAWN_MIN_NOFILE };
	CHECK_OK(transfer(&edge, &req, &err));
	edge.limits = (struct spawn_limits) { SPAWN_MAX_MEMORY, SPAWN_MAX_PIDS, SPAWN_MAX_CPU, SPAWN_MAX_DISK,
	                                      SPAWN_MAX_INODES, SPAWN_MAX_NOFILE };
	CHECK_OK(transfer(&edge, &req, &err));
	edge.limits = (struct spawn_limits) { 0 };
	edge.digest[0] = edge.id[0] = '\0';
	CHECK_OK(transfer(&edge, &req, &err));
}

TEST(another_size_or_version_is_refused)
{
	uint8_t packet[SPAWN_REQUEST_SIZE + 1] = { 0 };
	struct spawn_request req;
	struct err err = { 0 };

	spawn_encode_request(&good, packet);
	CHECK_ERR(spawn_decode_request(packet, SPAWN_REQUEST_SIZE - 1, &req, &err), ERR_INVALID);
	CHECK_ERR(spawn_decode_request(packet, SPAWN_REQUEST_SIZE + 1, &req, &err), ERR_INVALID);
	CHECK_ERR(spawn_decode_request(packet, 0, &req, &err), ERR_INVALID);
	packet[0] = SPAWN_VERSION + 1;
	CHECK_ERR(spawn_decode_request(packet, SPAWN_REQUEST_SIZE, &req, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "version");
}

TEST(defaults_fill_what_is_zero_and_leave_the_rest)
{
	struct spawn_limits l = { .pids = 7 };
	struct err err = { 0 };

	spawn_default_limits(&l);
	CHECK(l.memory_bytes == SPAWN_DEFAULT_MEMORY);
	CHECK_INT(l.pids, 7);
	CHECK_INT(l.cpu_milli, SPAWN_DEFAULT_CPU);
	CHECK(l.disk_bytes == SPAWN_DEFAULT_DISK);
	CHECK_INT(l.disk_inodes, SPAWN_DEFAULT_DISK / 4096);
	CHECK_INT(l.nofile, SPAWN_DEFAULT_NOFILE);
	CHECK_OK(spawn_check_limits(&l, &err));
}

TEST(the_default_disk_is_at_most_half_the_memory)
{
	struct spawn_limits l = { .memory_bytes = 64ull << 20 };
	struct err err = { 0 };

	spawn_default_limits(&l);
	CHECK_INT(l.disk_bytes, 32ull << 20);
	l = (struct spawn_limits) { .memory_bytes = SPAWN_MIN_MEMORY };
	spawn_default_limits(&l);
	CHECK_OK(spawn_check_limits(&l, &err));
	l = (struct spawn_limits) { .disk_bytes = SPAWN_MAX_DISK };
	spawn_default_limits(&l);
	CHECK_OK(spawn_check_limits(&l, &err));
}

TEST(a_reply_survives_the_journey)
{
	struct spawn_reply in = { .type = SPAWN_STATS, .id = "abc", .init_pid = 4711, .group = 2, .pooled = 1,
	                          .stats = { .memory_bytes = 1, .cpu_us = 1ull << 40, .create_us = 77 } }, out;
	uint8_t packet[SPAWN_REPLY_SIZE];
	struct err err = { 0 };

	err_sys(&in.err, ENOSPC, "make %s", "it");
	spawn_encode_reply(&in, packet);
	CHECK_OK(spawn_decode_reply(packet, sizeof packet, &out, &err));
	CHECK_INT(out.type, SPAWN_STATS);
	CHECK_INT(out.err.code, ERR_EXHAUSTED);
	CHECK_INT(out.err.sys, ENOSPC);
	CHECK_STR(out.err.msg, "make it: No space left on device");
	CHECK_STR(out.id, "abc");
	CHECK_INT(out.init_pid, 4711);
	CHECK_INT(out.group, 2);
	CHECK_INT(out.pooled, 1);
	CHECK(memcmp(&in.stats, &out.stats, sizeof in.stats) == 0);
}

TEST(a_malformed_reply_is_our_own_fault)
{
	struct spawn_reply in = { .type = SPAWN_STATS }, out;
	uint8_t packet[SPAWN_REPLY_SIZE];
	struct err err = { 0 };

	spawn_encode_reply(&in, packet);
	CHECK_ERR(spawn_decode_reply(packet, 10, &out, &err), ERR_INTERNAL);
	packet[4] = ERR_CODE_COUNT;
	CHECK_ERR(spawn_decode_reply(packet, sizeof packet, &out, &err), ERR_INTERNAL);
	packet[4] = 0;
	packet[15] = 0xff;              /* the length of the message */
	CHECK_ERR(spawn_decode_reply(packet, sizeof packet, &out, &err), ERR_INTERNAL);
}

/* The longest of everything still fits the fixed sizes. */
TEST(the_largest_messages_fit)
{
	struct spawn_reply in = { .type = SPAWN_CREATE, .id = "abcdefghij0123456789" }, out;
	uint8_t packet[SPAWN_REPLY_SIZE];
	struct err err = { 0 };

	memset(&in.stats, 0xff, sizeof in.stats);
	in.err.code = ERR_INTERNAL;
	memset(in.err.msg, 'm', sizeof in.err.msg - 1);
	spawn_encode_reply(&in, packet);
	CHECK_OK(spawn_decode_reply(packet, sizeof packet, &out, &err));
	CHECK_STR(out.err.msg, in.err.msg);
	CHECK(out.stats.create_us == UINT64_MAX);
}
