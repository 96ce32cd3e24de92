/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * features: what this kernel and this host can give, found out once.
 *
 * Each layer of the isolation is tried for real (a namespace is made, a filter is
 * loaded in a child, an overlay is mounted), never guessed from a version.  The
 * engine reads the booleans; `cuvette doctor` prints the list.  Not thread-safe
 * (it forks).
 */
#include "base/err.h"

enum layer_state {
	LAYER_PRESENT,
	LAYER_DEGRADED,         /* works, but something finer is missing; `text` says the consequence */
	LAYER_MISSING,
};

struct layer {
	const char *name;       /* "user namespaces" */
	bool required;          /* without it a sandbox is refused */
	enum layer_state state;
	char text[160];         /* what is there: "Landlock ABI 7" */
	char fix[200];          /* the way out when it is missing or degraded, else "" */
};

enum { LAYERS_MAX = 48 };

struct layers {
	size_t count;
	struct layer list[LAYERS_MAX];
};

/* Fills the list in the order in which a person should read it.  Never fails: what cannot
 * be tried is missing, with the reason.  `data_dir` is checked for space and file system. */
void features_probe(const char *data_dir, struct layers *ret);
