/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * userns: the user namespace of a slot, with its own 65,536 ids, and the cgroup
 * namespace rooted at the slot's groups.
 *
 * Both are made once per slot and live as descriptors; sandboxes only enter
 * them.  The namespace allows no user, network or (beyond its own) time
 * namespaces inside: written once, nothing inside can raise it again (K14).
 */
#include "engine/helper.h"

enum { USERNS_RANGE = 65536 };

struct userns_spec {
	int proc_fd;            /* a proc mount */
	uint32_t uid_base;      /* first host id of the range */
	int cgroup_fd;          /* v2 directory to root the cgroup namespace at */
	const int *tasks_fds;   /* v1 `tasks` files for the same */
	size_t ntasks;
};

int userns_create(const struct userns_spec *spec, int *ret_user_fd, int *ret_cgroup_fd, struct err *err) _must_check_;
