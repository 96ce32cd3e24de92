/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * landlock: a second wall around what namespaces already close.
 *
 * Inside a sandbox it is no copy of the mount layout; it scopes abstract unix
 * sockets and signals to the sandbox (ABI 6), so that a mistake with a network
 * or pid namespace alone opens nothing.
 */
#include "base/err.h"

/* A rule set for landlock_restrict(), or *ret_fd -1 where the kernel's ABI is below 6. */
int landlock_scope_open(int *ret_fd, struct err *err) _must_check_;

/* Puts the calling task under it; no_new_privs must be set.  -1 with errno; fd -1 does nothing. */
int landlock_restrict(int ruleset_fd);

/* ABI number, 0 when there is no Landlock. */
int landlock_abi(void);
