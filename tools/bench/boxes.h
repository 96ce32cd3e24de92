/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* boxes: what the files of bench-engine share. */
#include "engine/engine.h"

extern struct engine bench_engine;
extern int bench_init_fd;       /* cuvette-init, or -1 */

/* A specification of a sandbox with the default limits. */
struct box_spec bench_spec(void);

/* One with an init as PID 1, that answers. */
int bench_create_with_init(struct slot *s, struct box **ret, struct err *err) _must_check_;

/* ---- talk.c: with an init ---- */

int talk_ping(int conn, struct err *err) _must_check_;
/* Runs PROGRAM and waits for its end; a status that is not 0 is an error. */
int talk_exec(int conn, const char *program, struct err *err) _must_check_;
/* Copies an open program to PATH inside. */
int talk_put_program(int conn, const char *path, int program_fd, struct err *err) _must_check_;

/* ---- live.c: many at once ---- */

/* live own|shared N: makes N more sandboxes with an init, each in its own slot or all in one. */
int live_make(int argc, char **argv, uint64_t *ret, struct err *err);
/* pid K: the K-th one's init. */
int live_pid(int argc, char **argv, uint64_t *ret, struct err *err);
/* drop: ends all of them. */
int live_drop(int argc, char **argv, uint64_t *ret, struct err *err);
