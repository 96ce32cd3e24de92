/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * spawn: running the machine's own tools (apt-get, mmdebstrap) at arm's length.
 *
 * They get a short list of environment variables, no input and no descriptor of
 * ours.  A build runs as the tree of its own PID and mount namespace: whatever it
 * starts or mounts is gone when it ends, or when this process is killed.
 */
#include <sys/types.h>

#include "base/buf.h"

/* Runs argv and appends what it writes to stdout; a status other than 0 is an error. */
int spawn_read(const char *const *argv, struct buf *ret, struct err *err) _must_check_;

/* Where a program is in PATH; NULL when it is nowhere. */
char *spawn_find(const char *program);

struct spawn_box {
	const char *const *argv;
	const char *tmp_dir;            /* becomes /tmp inside */
	int stdout_fd, stderr_fd;       /* borrowed */
};

/* Starts argv in namespaces of its own; *ret_pid is its init's.  Killing that kills all. */
int spawn_box(const struct spawn_box *box, pid_t *ret_pid, struct err *err) _must_check_;
