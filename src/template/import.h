/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * import: a template from a file or directory that somebody else made.
 *
 * Takes a tar of a root filesystem, an OCI image layout (a directory or a tar of
 * one), or what `docker save` writes; compressed with gzip, xz or zstd or not.
 */
#include <jansson.h>

#include "base/err.h"

int import_template(const char *data_dir, const char *path, const char *name, uint64_t max_bytes, json_t **ret,
                    struct err *err) _must_check_;
