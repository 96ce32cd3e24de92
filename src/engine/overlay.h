/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * overlay: a sandbox's root, a private upper over a shared read-only template.
 *
 * Layers travel as descriptors (Linux 6.13), by /proc/self/fd paths before.
 * Always `volatile`: without it the unmount syncs the whole file system that
 * holds the upper, and another tenant's dirty pages become our latency (K9).
 */
#include "base/err.h"

struct overlay_spec {
	int lower_fd;           /* detached read-only clone of the template */
	int upper_fd;           /* mount or directory that holds u/ and w/ */
	uint32_t owner;         /* host id of the sandbox's root */
	bool idmapped_upper;    /* upper_fd shifts ids by that owner's namespace */
};

/* Makes u/ and w/ below upper_fd. */
int overlay_prepare_upper(int upper_fd, uint32_t owner, bool idmapped, int *ret_u_fd, struct err *err) _must_check_;

/* A detached overlay mount, nosuid and nodev. */
int overlay_mount(const struct overlay_spec *spec, int *ret_fd, struct err *err) _must_check_;
