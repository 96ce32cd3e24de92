/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * init: messages between the host and cuvette-init, PID 1 of a sandbox.
 *
 * One connection (SOCK_SEQPACKET) carries one operation: the host's first
 * message says which, and closing the connection ends it.  Every packet is
 * header + payload, little-endian:
 *
 *      u8 version (INIT_VERSION)   u8 type   u16 flags   u32 payload length
 *
 * Encode and decode only; no I/O, no allocation.  docs/protocol/init.md has the
 * conversation of each operation.  Both sides treat the other's bytes as
 * hostile: a packet that does not decode ends the connection.
 */
#include "base/buf.h"
#include "wire/codec.h"

enum {
	INIT_VERSION = 1,
	INIT_HEADER = 8,
	INIT_PAYLOAD_MAX = 65536,
	INIT_PACKET_MAX = INIT_HEADER + INIT_PAYLOAD_MAX,
	INIT_EXEC_MAX = 1 << 20,        /* bytes of a whole EXEC request, over several packets */
	INIT_PATH_MAX = 4096,           /* with its NUL */
	INIT_NAME_MAX = 256,            /* user names, tags; with their NUL */
	INIT_CREDIT_MAX = 4 << 20,      /* most output bytes in flight before the host grants more */
	INIT_RING_SIZE = 256 << 10,     /* newest output kept per command, for a later ATTACH */
};

/*
 * What the spawner leaves in init's descriptor table.  argv[1] is two digits.
 * The first is 0 when INIT_FD_CGROUP is not there, 1 when commands are to be
 * born in it, 2 when they are in it as children of init anyway; the second says
 * how many INIT_FD_TASKS follow.  argv[2]
 * may be the hard RLIMIT_NOFILE of commands; init keeps its own.
 */
enum {
	INIT_FD_LISTEN = 3,     /* bound and listening, SEQPACKET, abstract name "cuvette" */
	INIT_FD_CGROUP = 4,     /* cgroup v2 directory of commands (born there by clone3, CLONE_INTO_CGROUP) */
	INIT_FD_TASKS = 5,      /* up to 4 open cgroup v1 `tasks` files: a new command writes "0" to each before exec */
	INIT_FD_TASKS_MAX = 4,
};

/* Packet flag: the payload goes on in the next packet of the same type (EXEC only). */
#define INIT_MORE 0x0001

enum init_type {
	/* host to init; the first five begin an operation */
	INIT_PING = 1,          /* -> PONG */
	INIT_EXEC,              /* struct init_exec -> STARTED, STDOUT/STDERR..., EXIT; or ERROR.
	                         * May carry one descriptor: the cgroup v2 directory to start in. */
	INIT_ATTACH,            /* struct init_attach -> STARTED, output from the ring on, EXIT */
	INIT_LIST,              /* -> PROCS (several packets, the last without INIT_MORE) */
	INIT_FILE,              /* struct init_file -> OK, FILE, ENTRIES, or ERROR */
	/* within EXEC and ATTACH */
	INIT_STDIN = 16,        /* raw bytes */
	INIT_STDIN_EOF,
	INIT_SIGNAL,            /* u32 number: to the process group of the command */
	INIT_RESIZE,            /* u16 rows, u16 columns */
	INIT_CREDIT,            /* u32 bytes of output that the host can take in addition */

	/* init to host */
	INIT_PONG = 64,         /* u32 INIT_VERSION, u32 live commands */
	INIT_ERROR,             /* struct init_error; ends the operation (after STARTED: answers a bad SIGNAL or
	                         * RESIZE, and the command goes on) */
	INIT_STARTED,           /* u32 pid, str shell-visible program path */
	INIT_STDOUT,            /* raw bytes; everything a PTY prints comes as STDOUT */
	INIT_STDERR,
	INIT_EXIT,              /* struct init_exit; ends the operation */
	INIT_OK,                /* ends the operation */
	INIT_FILE_REPLY,        /* struct init_stat; carries the descriptor for INIT_FILE_OPEN */
	INIT_ENTRIES,           /* u32 count, then per entry: str name, struct init_stat; INIT_MORE while more follow */
	INIT_PROCS,             /* u32 count, then per command: u32 pid, u8 pty, str tag, str cwd, u32 argc, str argv[] */
	INIT_STDIN_CREDIT,      /* u32 bytes of input that init can take in addition (it starts at INIT_PAYLOAD_MAX) */
};

struct init_header {
	uint8_t type;
	uint16_t flags;
	uint32_t len;
};

void init_put_header(uint8_t at[INIT_HEADER], uint8_t type, uint16_t flags, uint32_t len);

/* Checks version, length against the packet and the limits; false when malformed. */
bool init_get_header(const uint8_t *packet, size_t len, struct init_header *ret);

/* ---- EXEC ---- */
#define INIT_EXEC_STDIN      0x01       /* stdin is a pipe fed by STDIN; otherwise /dev/null */
#define INIT_EXEC_PTY        0x02       /* stdio is a new terminal of rows x cols */
#define INIT_EXEC_MERGE      0x04       /* stderr goes where stdout goes */
#define INIT_EXEC_ENV_ONLY   0x08       /* env is the whole environment; otherwise it is laid over the default one */
#define INIT_EXEC_CREDIT     0x10       /* output waits for CREDIT; without it init sends as fast as the socket takes */
#define INIT_EXEC_ALL        0x1f

enum { INIT_ARGS_MAX = 4096, INIT_ENV_MAX = 4096 };

struct init_exec {
	uint32_t flags;
	uint16_t rows, cols;            /* 1..4096 with PTY, else 0 */
	char user[INIT_NAME_MAX];       /* name or number; "" means uid 1000 */
	char cwd[INIT_PATH_MAX];        /* absolute; "" means the user's home */
	char tag[INIT_NAME_MAX];        /* the caller's own name for it; may be "" */
	/* NULL-terminated arrays.  When decoded, the strings point into the request body. */
	char **argv;                    /* at least one */
	char **env;                     /* NAME=VALUE */
};

/* Encodes the body (without headers; the sender cuts it into packets). */
int init_encode_exec(const struct init_exec *exec, struct buf *ret, struct err *err) _must_check_;

/*
 * Decodes a body.  `body` is changed: strings are terminated in place (each is
 * followed by one spare byte on the wire).  ret->argv and ret->env are one
 * allocation each, freed by init_exec_done().
 */
int init_decode_exec(uint8_t *body, size_t len, struct init_exec *ret, struct err *err) _must_check_;
void init_exec_done(struct init_exec *exec);

struct init_attach {
	uint32_t pid;
	uint32_t flags;                 /* INIT_EXEC_CREDIT */
};

/* ---- EXIT ---- */
#define INIT_EXIT_INCOMPLETE 0x01       /* somebody still held the output open; it was cut after the drain window */
#define INIT_EXIT_KILLED     0x02       /* killed_* names a process of the sandbox that died by SIGKILL meanwhile */

struct init_exit {
	uint32_t pid;
	uint8_t signaled;               /* status is a signal number, else an exit code */
	uint8_t status;
	uint8_t core;
	uint8_t flags;
	uint64_t stdout_bytes, stderr_bytes;    /* produced, whether delivered or not */
	uint64_t user_us, system_us;            /* of the command and the children it waited for */
	uint64_t max_rss_bytes;
	uint64_t wall_us;
	uint32_t killed_pid;
	char killed_name[32];
};

void init_encode_exit(struct wire_writer *w, const struct init_exit *exit);
bool init_decode_exit(struct wire_reader *r, struct init_exit *ret);

/* ---- ERROR ---- */
struct init_error {
	uint8_t code;                   /* enum err_code */
	int32_t sys;                    /* errno, or 0 */
	uint8_t step;                   /* enum init_step: what init was doing */
	char msg[240];
};

enum init_step {
	INIT_STEP_REQUEST,              /* decoding or looking things up */
	INIT_STEP_USER,
	INIT_STEP_CWD,
	INIT_STEP_PIPES,                /* pipes or PTY */
	INIT_STEP_FORK,
	INIT_STEP_CGROUP,
	INIT_STEP_EXEC,                 /* exec itself: 126 or 127 to a shell user */
	INIT_STEP_FILE,
};

void init_encode_error(struct wire_writer *w, const struct init_error *error);
bool init_decode_error(struct wire_reader *r, struct init_error *ret);

/* ---- FILE ---- */
enum init_file_op {
	INIT_FILE_OPEN = 1,     /* -> FILE_REPLY with a descriptor; regular files and directories only */
	INIT_FILE_STAT,         /* -> FILE_REPLY; INIT_FILE_FOLLOW decides about a last link */
	INIT_FILE_LIST,         /* -> ENTRIES of a directory, without . and .. */
	INIT_FILE_MKDIR,        /* existing directory: already_exists; with PARENTS: fine */
	INIT_FILE_REMOVE,       /* file or, with RECURSIVE, tree; never follows the last link */
	INIT_FILE_RENAME,       /* path -> target */
	INIT_FILE_SYMLINK,      /* path becomes a link to target */
};

#define INIT_FILE_READ      0x001       /* OPEN */
#define INIT_FILE_WRITE     0x002       /* OPEN */
#define INIT_FILE_CREATE    0x004       /* OPEN: with mode; missing parents need PARENTS */
#define INIT_FILE_TRUNCATE  0x008       /* OPEN */
#define INIT_FILE_EXCLUSIVE 0x010       /* OPEN: fail when it exists */
#define INIT_FILE_PARENTS   0x020       /* create missing parents, owned by the user, mode 0755 */
#define INIT_FILE_RECURSIVE 0x040       /* REMOVE */
#define INIT_FILE_FOLLOW    0x080       /* STAT, OPEN: follow a last link (inside the sandbox) */
#define INIT_FILE_DIRECTORY 0x100       /* OPEN: a directory or nothing */
#define INIT_FILE_ALL       0x1ff

struct init_file {
	uint8_t op;
	uint32_t flags;
	uint32_t mode;                  /* permission bits for CREATE and MKDIR; setuid, setgid and sticky are dropped */
	char user[INIT_NAME_MAX];       /* whose permissions apply; "" means uid 1000 */
	char path[INIT_PATH_MAX];       /* absolute, or relative to the user's home */
	char target[INIT_PATH_MAX];     /* RENAME, SYMLINK */
};

void init_encode_file(struct wire_writer *w, const struct init_file *file);
bool init_decode_file(struct wire_reader *r, struct init_file *ret);

struct init_stat {
	uint32_t mode;                  /* with the type bits */
	uint32_t uid, gid;              /* as seen inside */
	uint64_t size;
	uint64_t blocks;                /* of 512 bytes */
	uint64_t inode;
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t links;
	char target[INIT_PATH_MAX];     /* of a symbolic link, else "" */
	int32_t sys;                    /* errno of this entry alone (a listing goes on), or 0 */
};

void init_encode_stat(struct wire_writer *w, const struct init_stat *st);
bool init_decode_stat(struct wire_reader *r, struct init_stat *ret);
