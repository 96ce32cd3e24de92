/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * progress: one line on a terminal that rewrites itself, nothing in a pipe.
 *
 * Also carries the wish to stop: SIGINT and SIGTERM set a flag which every long
 * loop asks for at its ticks, so that an interrupted import removes its files.
 */
#include "base/err.h"

struct progress {
	bool on;                        /* stderr is a terminal */
	bool shown;
	char phase[64];
	uint64_t bytes;
	uint64_t files;
	uint64_t drawn_ns;
	uint64_t started_ns;
};

void progress_init(struct progress *p);
void progress_phase(struct progress *p, const char *phase);     /* resets the counts */

/* Adds to the counts and redraws if it is time.  Fails with canceled after a signal. */
int progress_add(struct progress *p, uint64_t bytes, uint64_t files, struct err *err) _must_check_;

/* Takes the line away. */
void progress_clear(struct progress *p);

double progress_seconds(const struct progress *p);

/* Installs the handlers of SIGINT and SIGTERM. */
void progress_catch_signals(void);
bool progress_interrupted(void);
