/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * pty: a terminal for one command.
 *
 * Needs only /dev/ptmx; the slave is taken from the master and never looked up
 * by its path, which the sandbox could have put something else at.
 */
#include "base/err.h"

#include <sys/types.h>

/* Sizes a terminal may have, in rows and in columns. */
enum { PTY_SIZE_MAX = 4096 };

/* Makes a terminal of that size for the user (J01: the size is there before the
 * program is).  The master is non-blocking. */
int pty_open(uint16_t rows, uint16_t cols, uid_t uid, int *ret_master, int *ret_slave, struct err *err) _must_check_;

/* Changes the size; the kernel tells the program by SIGWINCH. */
int pty_resize(int master, uint16_t rows, uint16_t cols, struct err *err) _must_check_;
