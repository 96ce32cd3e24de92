/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * helper: a short-lived fork of init for work without a known end.
 *
 * Walking a directory of a million files, or waiting for a slow host between
 * packets, must not hold up other connections.  The helper owns its connection,
 * may block, and is a snapshot of init: it sees its tables and changes nothing.
 */
#include "base/err.h"

/* Forks; the child runs work(fd) and exits.  The caller then closes its copy of fd. */
int helper_run(int fd, void (*work)(int fd), struct err *err) _must_check_;

/* For use inside a helper: sends one packet, waiting as long as it takes. */
bool helper_send(int fd, const void *packet, size_t len);

/* Tells that a process was reaped; true when it was a helper. */
bool helper_reaped(pid_t pid);
