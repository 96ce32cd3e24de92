/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * helper: a short-lived child that shares our memory and descriptors and runs beside us.
 *
 * Making a namespace means being in it for a moment; the spawner lets such a
 * child go there instead, on its own processor while the spawner goes on.  The
 * child's descriptors land in our table.  It must not allocate, use stdio, take
 * locks or touch errno (SYS_RAW); it reports through its argument.
 */
#include "base/err.h"
#include "engine/sys.h"

enum { HELPER_STACK = 16384 };

/* Embedded, stack included: mapping and unmapping one costs more than the helper itself on a
 * machine whose page tables are kept in software.  Must stay where it is while the child runs. */
struct helper {
	pid_t pid;              /* 0: not running */
	char stack[HELPER_STACK] __attribute__((aligned(16)));
};

/* Starts fn(arg), whose result becomes the exit status (0 is success).  `flags` are further clone
 * flags (CLONE_INTO_CGROUP takes cgroup_fd). */
int helper_start(struct helper *h, uint64_t flags, int cgroup_fd, int (*fn)(void *), void *arg,
                 struct err *err) _must_check_;

/* Waits for its end; -1 with the status in *ret_status (may be NULL) when it was not 0. */
int helper_join(struct helper *h, int *ret_status);

/* Kills and reaps one that may still run.  Safe on one that never started. */
void helper_done(struct helper *h);

/* A word that one side sets and the other waits for. */
void helper_post(int *word, int value);
/* Waits until *word is no longer `old`, at most timeout_ms; returns the new value, or `old`. */
int helper_wait(int *word, int old, int timeout_ms);
