/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * netns: network namespaces, the dearest kind: made beside the caller, recycled.
 *
 * They belong to the initial user namespace, so nothing inside a sandbox has
 * any capability over its own network.  `lo` is up and nothing else exists:
 * every connect out answers ENETUNREACH.  Single-threaded callers.
 */
#include "engine/helper.h"

struct netns_maker {
	struct helper helper;
	int proc_fd;            /* borrowed */
	int fd;                 /* the new namespace, once joined */
	int step, error;        /* what failed in the child */
};

/* Begins to make one beside the caller.  proc_fd is a proc mount (or its directory). */
int netns_start(struct netns_maker *m, int proc_fd, struct err *err) _must_check_;

/* Waits for it; the descriptor is the caller's. */
int netns_finish(struct netns_maker *m, int *ret_fd, struct err *err) _must_check_;
void netns_cancel(struct netns_maker *m);

/* True when no socket of any kind is left in it, TIME_WAIT included; false also when that
 * cannot be told.  Enters it and comes back to own_fd. */
bool netns_is_clean(int fd, int own_fd, int proc_fd);
