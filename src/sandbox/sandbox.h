/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * sandbox: the caller's side of the spawner and of a sandbox's init.
 *
 * A spawner is a process that this module starts (or, later, finds) and asks
 * for sandboxes; a sandbox is an id, a pidfd and a way to get connections to its
 * init.  Commands and files are operations on such connections.  Knows nothing
 * of command lines, HTTP or JSON.
 *
 * Thread rule: a spawner connection serves one call at a time (its own lock);
 * an exec or a file transfer belongs to the thread that runs it.
 */
#include "wire/init.h"
#include "wire/spawn.h"

/* ---- the spawner (client.c) ---- */

struct spawner;

struct spawner_options {
	const char *program;            /* path of cuvette-spawner; NULL finds it beside our own binary */
	const char *data_dir;           /* where templates are; NULL: see sandbox_data_dir() */
	bool ephemeral;                 /* everything dies with this connection */
};

/* Starts a spawner process that ends, with all its sandboxes, when the handle is closed
 * or this process dies.  Only root may; the error says what is missing. */
int spawner_start(const struct spawner_options *options, struct spawner **ret, struct err *err) _must_check_;

/* Sends one request and waits for its reply.  Up to FD_PASS_MAX descriptors arrive in ret_fds
 * (may be NULL: then they are closed).  A reply that carries an error fails with it. */
int spawner_call(struct spawner *s, const struct spawn_request *req, struct spawn_reply *ret,
                 int *ret_fds, size_t *ret_nfds, struct err *err) _must_check_;

/* Ends it: sandboxes are destroyed, the process has exited when this returns. */
void spawner_close(struct spawner *s);
DEFINE_CLEANUP(struct spawner *, spawner_close)

/*
 * Finds one of our other programs: in $CUVETTE_LIBEXEC when that is set, else beside our own
 * binary, else in /usr/local/libexec/cuvette or /usr/libexec/cuvette.
 */
int sandbox_find_program(const char *name, char *ret, size_t size, struct err *err) _must_check_;

/* CUVETTE_DATA, else /var/lib/cuvette. */
const char *sandbox_data_dir(void);

/* ---- a sandbox (sandbox.c) ---- */

struct sandbox {
	struct spawner *spawner;        /* borrowed */
	char id[SPAWN_ID_SIZE];
	int pidfd;                      /* of its init */
	int first_conn;                 /* the connection that came with the creation, or -1 once used */
	struct spawn_limits limits;     /* with defaults filled in */
	uint64_t create_us;             /* what the creation took inside the spawner */
	uint64_t out_bytes;             /* most data that one copy out may write on the host; 0: see copy-out.c */
	uint32_t answer_ms;             /* how long its init may leave a file request unanswered; 0: a minute */
};

int sandbox_create(struct spawner *s, const struct spawn_request *spec, struct sandbox **ret, struct err *err) _must_check_;

/* A connection to its init; the caller closes it. */
int sandbox_connect(struct sandbox *sb, int *ret_fd, struct err *err) _must_check_;
int sandbox_stats(struct sandbox *sb, struct spawn_stats *ret, struct err *err) _must_check_;

/* Kills every process inside but init. */
int sandbox_kill(struct sandbox *sb, struct err *err) _must_check_;

/* Destroys it and frees the handle, whether that works or not; last counters in ret (may be NULL). */
int sandbox_destroy(struct sandbox *sb, struct spawn_stats *ret, struct err *err);

/* ---- one command (exec.c) ---- */

/*
 * Where output goes.  write() takes what it can at once and says how much; 0 means "not
 * now" and has poll_fd[stream - 1] waited for; -1 ends the command (the reader left).
 * A sink that never blocks needs no poll_fd.
 */
struct exec_sink {
	ssize_t (*write)(void *ctx, int stream, const char *data, size_t len);  /* stream 1 or 2 */
	void *ctx;
	int poll_fd[2];
};

struct exec_options {
	const struct init_exec *exec;
	int stdin_fd;                   /* copied to the command when exec has INIT_EXEC_STDIN or a PTY; else -1 */
	int tty_fd;                     /* terminal whose size is passed on at each SIGWINCH of signal_fd, else -1 */
	int signal_fd;                  /* signalfd whose signals are forwarded to the command, or -1 */
	uint64_t timeout_ms;            /* 0: none */
	uint64_t output_bytes;          /* most bytes of each stream delivered to the sink; more is counted and
	                                 * dropped; 0: no limit */
	bool want_stats;                /* read the counters even when nothing suggests that a limit was met */
	struct exec_sink sink;
	uint8_t *space;                 /* INIT_PACKET_MAX bytes for packets, or NULL to have them allocated */
};

enum exec_limit { EXEC_LIMIT_NONE, EXEC_LIMIT_WALL, EXEC_LIMIT_MEMORY, EXEC_LIMIT_PIDS, EXEC_LIMIT_DISK,
                  EXEC_LIMIT_OUTPUT, EXEC_LIMIT_INODES };

struct exec_result {
	struct init_exit exit;          /* as init reported it */
	bool timed_out;
	bool truncated;                 /* output was dropped */
	bool sink_failed;               /* the reader of the output left: everything was killed */
	int signal;                     /* the forwarded signal, or 0 */
	bool canceled;                  /* a forwarded SIGINT/SIGTERM/SIGHUP ended it, or the sink failed */
	enum exec_limit limit;          /* the limit that ended or refused something, judged from stats */
	bool has_stats;
	struct spawn_stats stats;       /* after the end of the command, when has_stats */
	char reason[240];               /* one sentence for a person: which limit, its value, the peak, which process; "" if none */
};

/*
 * What a signal from outside does: the first is forwarded to the command's process group,
 * the second kills everything.  SIGTERM and SIGHUP give the command this long before they
 * do that on their own; SIGINT and SIGQUIT do not, as a program may live on after them.
 */
enum { EXEC_GRACE_MS = 10000 };

/*
 * Runs a command and copies its streams until it has exited.  A command that could not be
 * started fails with the init's error: err->code not_found or permission_denied and
 * *ret_step INIT_STEP_EXEC is "126 or 127".  On timeout everything inside is killed and
 * timed_out is set; this is not an error.
 */
int sandbox_exec(struct sandbox *sb, const struct exec_options *options, struct exec_result *ret,
                 enum init_step *ret_step, struct err *err) _must_check_;

/* 0..255 as a shell would report it: the exit code, 128 + signal, 124 after a timeout, 141 when
 * the reader of the output left. */
int exec_status(const struct exec_result *result);

/*
 * Judges which limit ended or refused something (cause.c) and fills limit and reason.
 * sandbox_exec() has done it; again after the final counters of sandbox_destroy() it also
 * finds the death of a process whose parent, not init, saw it.
 */
void exec_judge(struct exec_result *result, const struct exec_options *options, const struct spawn_stats *stats);

/* ---- files (files.c, copy-in.c, copy-out.c) ---- */

/*
 * Copies a host file or tree into the sandbox, or a sandbox file or tree out, keeping holes,
 * permission bits (never setuid, setgid, sticky) and links as links.  Inside, init opens
 * everything as `user`; on the host everything new is created beneath the parent of
 * `host_path` with no link followed.  Special files are skipped and counted.
 */
struct copy_stats {
	uint64_t files, dirs, links, skipped, bytes;
	char first_skipped[256];        /* path of the first skipped one, escaped */
};

int sandbox_put(struct sandbox *sb, const char *user, const char *host_path, const char *box_path,
                struct copy_stats *ret, struct err *err) _must_check_;
int sandbox_get(struct sandbox *sb, const char *user, const char *box_path, const char *host_path,
                struct copy_stats *ret, struct err *err) _must_check_;

/* Writes `len` bytes to a file inside, creating it and its parents. */
int sandbox_write_file(struct sandbox *sb, const char *user, const char *box_path, uint32_t mode,
                       const void *data, size_t len, struct err *err) _must_check_;

/* The entries of a directory, one call each; a call that fails (-1, with err set) ends the listing. */
int sandbox_list(struct sandbox *sb, const char *user, const char *box_path,
                 int (*entry)(void *ctx, const char *name, const struct init_stat *st, struct err *err),
                 void *ctx, struct err *err) _must_check_;

/* One init file request; *ret_fd (may be NULL) receives the descriptor of an OPEN. */
int sandbox_file(struct sandbox *sb, const struct init_file *file, struct init_stat *ret, int *ret_fd,
                 struct err *err) _must_check_;
