/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * build: a Debian template made by mmdebstrap, streamed as a tar into the extractor.
 */
#include <jansson.h>

#include "base/err.h"

struct build_options {
	const char *data_dir;
	const char *name;               /* of the template */
	const char *suite;
	const char *mirror;             /* NULL: this machine's own archive */
	const char *packages;           /* to add, "a,b"; may be NULL */
	uint64_t max_bytes;
	bool force;                     /* even if the name exists */
};

/* With `force` unset an existing template of that name is the answer, "existed": true. */
int build_template(const struct build_options *o, json_t **ret, struct err *err) _must_check_;

/* "a,b+c": names that apt takes as packages and as nothing else. */
bool build_packages_are_valid(const char *packages);
