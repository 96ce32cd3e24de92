/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * worker: a benchmark's side that does the work, one sample per request.
 *
 * A request is a line of words separated by tabs, an answer "ok NUMBER" or "error WHY".
 * When requests end, so does the program, which first removes what it made: an interrupted
 * script only has to close the pipe.
 */
#include "base/err.h"

struct worker_command {
	const char *name;
	int (*run)(int argc, char **argv, uint64_t *ret, struct err *err);
};

/* Moves the conversation away from descriptors 0 and 1, which become the null device: sandboxes
 * and peers inherit those, and the engine arranges low numbers. */
int worker_start(struct err *err) _must_check_;

/* Tells that the preparations are done, or why they failed. */
void worker_ready(int result, uint64_t number, const struct err *err);

/* Until the requests end.  The table ends with a NULL name. */
void worker_serve(const struct worker_command *table);
