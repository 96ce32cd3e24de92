/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * command: the programs that init was asked to run.
 *
 * A command has output streams that init reads, perhaps an input that it
 * writes, and consumers: the connections that want its output.  Its life:
 *
 *      running   reads as fast as the fastest consumer takes; without any
 *                consumer it is never held up and the newest output is kept
 *      exited    reaped; what it left in its pipes is still being delivered
 *      done      everything it wrote is delivered, EXIT may be sent
 *
 * What ends a command is its own end, never the end of its output: a process
 * that it left behind may hold the pipes for days.  Such pipes go on being
 * emptied, and what comes out is dropped.
 *
 * Emptying pipes that nobody listens to is work that a sandbox can make for
 * init, which no cpu limit covers; so it has a budget per time.
 */
#include <sys/resource.h>
#include "init/loop.h"
#include "init/ring.h"
#include "wire/init.h"

struct command;
struct conn;

struct stream {
	struct source src;
	struct command *command;
	uint8_t type;           /* INIT_STDOUT or INIT_STDERR */
	bool drained;           /* everything of the command itself was read */
	uint64_t bytes;         /* read until it was done */
	uint64_t due;           /* what was in it when the command was reaped */
	uint64_t read_since;    /* and how much of that is read */
	struct stream *next_resting;    /* see rest() */
	bool resting;
};

struct command {
	struct command *next;           /* in its hash bucket */
	struct command *older;          /* finished and nobody was told: newest first */
	struct conn *consumers;
	struct stream streams[2];       /* stdout, stderr; fd -1 where there is none */
	struct source input;            /* write end of stdin, or the terminal */
	struct ring unread;             /* output while there is no consumer */
	uint64_t started_ns;
	struct init_exit exit;
	bool terminal, exited, done, told;
	bool pinned;                    /* finish() is at work on it */
	char *about;                    /* its record in PROCS, encoded */
	uint32_t about_len;
};

enum { COMMANDS_MAX = 4096 };

/* Starts what the request describes (the strings are changed and borrowed during the call only). */
int command_start(const struct init_exec *exec, int cgroup_fd, struct command **ret, enum init_step *ret_step,
                  struct err *err) _must_check_;

/* A running command by its pid, else the newest finished one that nobody was told about, else NULL. */
struct command *command_find(uint32_t pid);

size_t command_count_live(void);

/* Running ones, and finished ones whose pipes are still held or whose end nobody asked for. */
size_t command_count_all(void);

/* Calls each() for every running command until it returns false. */
void command_each(bool (*each)(void *ctx, const struct command *cmd), void *ctx);

/* A process was reaped; nothing happens when it is no command's. */
void command_reaped(pid_t pid, int status, const struct rusage *usage);

/* Remembers a process that died by SIGKILL, for the commands that run meanwhile. */
void command_note_killed(pid_t pid, const char *name);

/* The consumer gets everything that is unread, then what comes. */
void command_add_consumer(struct command *cmd, struct conn *conn);
/* May free the command. */
void command_remove_consumer(struct command *cmd, struct conn *conn);

/* A consumer can take output again. */
void command_resume(struct command *cmd);

/* Input.  write() takes what fits now and returns how much (all of it when nobody reads it);
 * if that is less, conn_feed() is called for every consumer when there is room. */
size_t command_write(struct command *cmd, const void *data, size_t len);
void command_end_input(struct command *cmd);

int command_signal(struct command *cmd, uint32_t sig, struct err *err) _must_check_;
int command_resize(struct command *cmd, uint16_t rows, uint16_t cols, struct err *err) _must_check_;

/* ---- between command.c, output.c and start.c ---- */

/* Reads what a command that has just exited left behind. */
void command_drain(struct command *cmd);

/* Looks whether it is done, or not needed any more.  May free it. */
void command_check(struct command *cmd);

/* It enters the table; callbacks of its sources. */
void command_add(struct command *cmd);
void command_stream_ready(struct source *src, uint32_t events);
void command_input_ready(struct source *src, uint32_t events);
