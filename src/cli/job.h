/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * job: one command in one fresh sandbox, which is what `run` and `py` are.
 *
 * job_options are what a person typed; a job adds what the command line alone does not say
 * (the command, files to write first).  Everything a job makes is gone when job_run() returns.
 */
#include "cli/cli.h"
#include "sandbox/sandbox.h"

struct job_options {
	const char *template, *data, *user, *cwd, *net, *disk_kind, *code;
	struct number memory, cpus, pids, disk, inodes, nofile, timeout, output_limit;
	struct text_list env, in, out;
	bool tty, json, allow_unlimited;
};


/* The sizes are spelled here because a static initialiser of another file cannot ask for them. */
enum { LIMIT_OPTIONS = 10, PLACE_OPTIONS = 10 };
extern const struct option limit_options[LIMIT_OPTIONS], place_options[PLACE_OPTIONS];
#define JOB_OPTION_SETS { limit_options, LIMIT_OPTIONS }, { place_options, PLACE_OPTIONS }

void job_options_done(struct job_options *o);

enum job_stdin {
	JOB_STDIN_AUTO,         /* forwarded from a pipe, a file or a socket; /dev/null otherwise */
	JOB_STDIN_NONE,
};

struct job {
	const struct command *cmd;
	const struct job_options *options;
	char **argv;            /* NULL-terminated */
	enum job_stdin stdin_mode;
	/* A file to make before the command: relative to the user's home, or absolute. */
	const char *file_path;
	const char *file_data;
	size_t file_len;
};

/* Runs it and returns the exit status for the shell.  Complains itself. */
int job_run(const struct job *job);

/* A failure before there was a job (bad arguments): the message, or the JSON object when --json was asked for. */
int job_refuse(const struct command *cmd, const struct err *err, bool json);

/* Whether --json was meant, in arguments that could not be parsed. */
bool job_wants_json(int argc, char **argv);

/* ---- what job.c, job-plan.c, output.c and result-json.c share ---- */

struct job_plan {
	struct spawn_request request;   /* without the template's digest */
	struct init_exec exec;
	char term[64];                  /* "TERM=..." */
	uint64_t timeout_ms;            /* 0: none */
	uint64_t output_bytes;          /* 0: no limit */
};

/* Turns options into requests; refuses what makes no sense, naming the option. */
int job_plan(const struct job *job, struct job_plan *ret, struct err *err) _must_check_;
void job_plan_done(struct job_plan *plan);

/* Where output goes: straight on, or collected for the JSON object. */
struct output {
	bool collect;
	bool is_file[2];                /* stream 1, 2: a file or device, where a write never waits for a reader */
	int sys;                        /* errno of the write that failed */
	struct buf collected[2];
};
void output_init(struct output *out, bool collect, uint64_t max);
void output_done(struct output *out);
struct exec_sink output_sink(struct output *out);

struct job_report {
	const struct job_plan *plan;
	struct output output;
	bool ran;                       /* result holds something */
	bool not_started;               /* 126 or 127: the message is err */
	int status;
	struct err err;                 /* code is ERR_OK unless cuvette failed */
	struct exec_result result;
	struct spawn_limits limits;
	bool has_stats;
	struct spawn_stats stats;       /* the last ones */
	char id[SPAWN_ID_SIZE];
	char digest[SPAWN_DIGEST_SIZE];
	uint64_t create_us, total_us;
};
void print_report_json(const struct job_report *report);

/* ---- spec.c ---- */

/* "HOST:BOX" or "BOX:HOST": two paths around the first colon; "\:" is a colon, "\\" a backslash. */
struct copy_spec {
	char first[4096], second[4096];
};
int parse_copy_spec(const char *text, struct copy_spec *ret, struct err *err) _must_check_;

/* Where FIRST goes when SECOND is empty or ends in a slash: below it, under FIRST's last component. */
int complete_copy_spec(struct copy_spec *spec, struct err *err) _must_check_;

/* ---- terminal.c ---- */

/* The descriptor (0, 1 or 2) that is a terminal, or -1. */
int find_terminal(void);
/* Raw mode until terminal_restore(); without a terminal on stdin neither does anything. */
void terminal_raw(void);
void terminal_restore(void);
