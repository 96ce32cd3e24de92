/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * digest: the one name that a tree's content gives it.
 *
 * SHA-256 over a canonical listing, described in docs/protocol/template.md: the same
 * tree has the same digest on every machine and at every time.  Reads every file.
 */
#include "template/progress.h"
#include "template/template.h"

struct digest_result {
	char hex[TEMPLATE_DIGEST_SIZE];
	uint64_t files;                 /* entries of any kind, the root not counted */
	uint64_t size_bytes;            /* of regular files, each inode once */
};

int digest_tree(int root_fd, struct progress *progress, struct digest_result *ret, struct err *err) _must_check_;

/* SHA-256 of the rest of an open file, as hex; *ret_size (may be NULL) is how many bytes it had. */
int digest_fd(int fd, struct progress *progress, char ret_hex[TEMPLATE_DIGEST_SIZE], uint64_t *ret_size,
              struct err *err) _must_check_;
