/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * seccomp: the one system call filter of every sandbox.
 *
 * Compiled once by the parent into a binary search over number ranges; a child
 * only loads it.  Knows the policy (docs/security.md) and nothing else.
 */
#include "base/err.h"

enum { SECCOMP_PROGRAM_MAX = 512 };

struct seccomp_filter {
	size_t count;
	uint64_t insns[SECCOMP_PROGRAM_MAX];    /* struct sock_filter; opaque here */
};

/*
 * Compiles the policy.  Cannot fail but by a mistake of ours (asserted).  leave_clone3 is for init
 * where commands are born into a cgroup; it hides the call from them by a filter of its own.
 */
void seccomp_compile(struct seccomp_filter *ret, bool leave_clone3);

/* Loads it into the calling task; no_new_privs or CAP_SYS_ADMIN must hold.  -1 with errno. */
int seccomp_load(const struct seccomp_filter *filter);

/* What the policy answers for a call: 0 allow, -errno, or -1000 for kill.  For tests. */
int seccomp_verdict(const struct seccomp_filter *filter, uint32_t arch, int nr, const uint64_t args[6]);
