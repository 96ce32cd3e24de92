/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * spawn: requests to cuvette-spawner and its replies, over SOCK_SEQPACKET.
 *
 * Every request is one packet of exactly SPAWN_REQUEST_SIZE bytes, every reply
 * one of SPAWN_REPLY_SIZE, zero padded, with descriptors by SCM_RIGHTS where
 * noted.  One request at a time per connection.  No path ever travels: a
 * template is named by its digest, a sandbox by its id.
 *
 * Encode and decode only.  docs/protocol/spawner.md describes the conversation.
 */
#include "wire/codec.h"

enum {
	SPAWN_VERSION = 1,
	SPAWN_REQUEST_SIZE = 512,
	SPAWN_REPLY_SIZE = 1024,
	SPAWN_DIGEST_SIZE = 65,         /* 64 hex digits and NUL */
	SPAWN_ID_SIZE = 21,             /* 20 characters [a-z0-9] and NUL */
};

enum spawn_type {
	SPAWN_HELLO = 1,        /* -> instance id in `id`; version mismatch is an error */
	SPAWN_CREATE,           /* template, limits, options -> id, init_pid, stats; fds: pidfd of init, connection to init */
	SPAWN_CONNECT,          /* id -> fds: a new connection to its init */
	SPAWN_STATS,            /* id -> stats */
	SPAWN_LIMITS,           /* id, limits: memory, pids and cpu change at once; disk and nofile must be 0 */
	SPAWN_KILL,             /* id: every process of it but init.  Answers when they are gone */
	SPAWN_DESTROY,          /* id: everything.  -> last stats.  Answers when nothing is left */
	SPAWN_POOL,             /* template, limits, count: keep that many blank sandboxes ready (0 drops them) */
	SPAWN_GROUP,            /* id -> group number; fds: its cgroup directory, for one INIT_EXEC */
	SPAWN_GROUP_KILL,       /* id, group: the whole tree of that command */
	SPAWN_TERMINAL,         /* id: make terminals possible inside (mounts devpts once) */
	SPAWN_TYPE_COUNT,
};

/* Options of CREATE and POOL. */
#define SPAWN_TERMINALS        0x01     /* devpts from the start */
#define SPAWN_ALLOW_UNLIMITED  0x02     /* go on without cgroup controllers */
#define SPAWN_NO_FILTER        0x04     /* no seccomp filter; only the test build of the spawner accepts it */
#define SPAWN_OPTIONS_ALL      0x07

enum spawn_disk {
	SPAWN_DISK_MEMORY = 0,  /* tmpfs, charged to the sandbox's memory */
	SPAWN_DISK_IMAGE,       /* ext4 image on a loop device */
};

/* 0 in any field means "the default" (see SPAWN_DEFAULT_*). */
struct spawn_limits {
	uint64_t memory_bytes;
	uint32_t pids;
	uint32_t cpu_milli;             /* thousandths of one CPU */
	uint64_t disk_bytes;
	uint64_t disk_inodes;
	uint32_t nofile;                /* hard RLIMIT_NOFILE of commands */
};

#define SPAWN_DEFAULT_MEMORY   (512ull << 20)
#define SPAWN_DEFAULT_PIDS     1024u
#define SPAWN_DEFAULT_CPU      1000u
#define SPAWN_DEFAULT_DISK     (256ull << 20)
#define SPAWN_DEFAULT_NOFILE   4096u
/* Inodes default to one per 4 KiB of disk, at least 4,096. */

/* Smallest and largest values that a request may hold. */
#define SPAWN_MIN_MEMORY       (16ull << 20)
#define SPAWN_MAX_MEMORY       (1ull << 44)
#define SPAWN_MIN_PIDS         4u
#define SPAWN_MAX_PIDS         4194304u
#define SPAWN_MIN_CPU          10u
#define SPAWN_MAX_CPU          1024000u
#define SPAWN_MIN_DISK         (1ull << 20)
#define SPAWN_MAX_DISK         (1ull << 44)
#define SPAWN_MIN_INODES       64ull
#define SPAWN_MAX_INODES       (1ull << 31)
#define SPAWN_MIN_NOFILE       64u
#define SPAWN_MAX_NOFILE       1048576u

struct spawn_request {
	uint16_t type;                  /* enum spawn_type */
	uint32_t options;
	uint8_t disk;                   /* enum spawn_disk */
	uint32_t count;                 /* POOL */
	uint32_t group;                 /* GROUP_KILL */
	char id[SPAWN_ID_SIZE];
	char digest[SPAWN_DIGEST_SIZE];
	struct spawn_limits limits;
};

/* Counters since the sandbox was created.  A limit of 0 means none is enforced. */
struct spawn_stats {
	uint64_t memory_bytes, memory_peak_bytes, memory_limit_bytes;
	uint64_t oom_kills;
	uint64_t pids, pids_limit, pids_refused;        /* refused: forks that met the limit */
	uint64_t cpu_us, cpu_user_us, cpu_system_us, cpu_throttled_us;
	uint64_t cpu_milli_limit;
	uint64_t io_read_bytes, io_write_bytes;         /* block devices; v1 sees direct and read I/O only */
	uint64_t disk_used_bytes, disk_limit_bytes, inodes_used, inodes_limit;
	uint64_t create_us;                             /* what the creation took inside the spawner */
};

struct spawn_reply {
	uint16_t type;                  /* of the request */
	struct err err;                 /* code ERR_OK on success */
	char id[SPAWN_ID_SIZE];
	uint32_t init_pid;              /* in the host's pid namespace */
	uint32_t group;
	uint8_t pooled;                 /* CREATE: came from the pool */
	struct spawn_stats stats;
};

/* Encode into exactly SPAWN_REQUEST_SIZE / SPAWN_REPLY_SIZE bytes. */
void spawn_encode_request(const struct spawn_request *req, uint8_t ret[SPAWN_REQUEST_SIZE]);
void spawn_encode_reply(const struct spawn_reply *reply, uint8_t ret[SPAWN_REPLY_SIZE]);

/* Decode and check ranges, character sets and lengths; errors name the field. */
int spawn_decode_request(const uint8_t *data, size_t len, struct spawn_request *ret, struct err *err) _must_check_;
int spawn_decode_reply(const uint8_t *data, size_t len, struct spawn_reply *ret, struct err *err) _must_check_;

/* Fills every 0 of `limits` with its default, for `disk_bytes` at most half the memory. */
void spawn_default_limits(struct spawn_limits *limits);
int spawn_check_limits(const struct spawn_limits *limits, struct err *err) _must_check_;
