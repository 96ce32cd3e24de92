/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * launch: from a finished plan to a running program.
 *
 * The child shares init's memory and init sleeps until the child has exec'd or
 * given up (see child.c): nothing is copied, and a failure is
 * reported by writing it into the plan.  All strings and arrays of the plan are
 * borrowed.
 */
#include "init/passwd.h"

struct launch {
	const struct user *user;
	char **argv;                    /* argv[0] as the user wrote it */
	char **env;
	const char *search;             /* directories for a bare name, PATH syntax */
	const char *cwd;
	bool cwd_optional;              /* "/" will do when it is not there */
	int stdio[3];                   /* -1: the null device; stdio[1] == stdio[2] is fine */
	bool terminal;                  /* stdio is a terminal to take over */
	int cgroup_fd;                  /* v2 directory to be born in, or -1 */
	bool move_to_cgroup;            /* set by child_start(): it cannot be born there */

	/* The child's report. */
	enum init_step step;
	int sys;                        /* 0: the program runs */
	bool found;                     /* EXEC: scratch.found exists, whatever is wrong with it */
	bool is_directory;
	size_t head_len;                /* how much of its beginning is in scratch.head */
};

/* Starts it; the pid or -1.  A file without a known format is given to /bin/sh, as execvp() does. */
pid_t launch(struct launch *l, enum init_step *ret_step, struct err *err) _must_check_;

/*
 * Puts the environment together: the request's, laid over the default one
 * unless it is the whole.  One allocation, the caller's; strings are borrowed
 * from the request and from scratch.text.  *ret_search is its PATH.
 */
int environment_make(const struct init_exec *exec, const struct user *user, char ***ret, const char **ret_search,
                     struct err *err) _must_check_;

