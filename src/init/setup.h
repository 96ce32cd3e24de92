/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * setup: what init found in place when it was started.
 *
 * The spawner leaves descriptors (wire/init.h); they are looked at once.
 */
#include "wire/init.h"

#include <sys/resource.h>

struct setup {
	int cgroup_fd;                          /* v2 directory for commands, or -1 */
	int frozen_fd;                          /* its cgroup.events, or -1 */
	int tasks_fds[INIT_FD_TASKS_MAX];       /* v1 `tasks` files */
	size_t ntasks;
	int oom_fd;                             /* init's own oom_score_adj, or -1 */
	char oom_score[8];                      /* what it said at the start */
	struct rlimit nofile;                   /* of commands; init itself takes all it can get */
	bool hide_clone3;                       /* commands must not have it, see child.c */
};

extern struct setup setup;

/*
 * Makes the process what init must be: see setup.c.  `digits` is argv[1];
 * `nofile`, argv[2], is the hard limit of open files that commands get (NULL:
 * the one that init was started with).
 */
int setup_process(const char *digits, const char *nofile, struct err *err) _must_check_;
