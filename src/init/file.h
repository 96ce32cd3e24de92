/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * file: the FILE operations.
 *
 * Everything happens with the permissions of the user that the request names,
 * and every path is followed by path.h.  What takes a bounded time is done at
 * once; listings and the removal of trees go to a helper.
 */
#include "base/err.h"

#include <sys/stat.h>
#include "wire/init.h"

/* Serves scratch.file and answers on `fd`, or leaves the answer to a helper. */
void file_serve(int fd);

/* Fills what stat() knows. */
void file_set_stat(struct init_stat *ret, const struct stat *st);

/* "a FIFO", "a directory": for messages. */
const char *file_kind(mode_t mode);

/* Sends the entries of a directory as ENTRIES packets, or an ERROR; blocks (listing.c). */
void file_list(int fd, const char *path);

/* Removes the directory NAME below `parent` and all that is in it, without following links (remove.c).
 * Gives up when the peer of `fd` has gone. */
int file_remove_tree(int fd, int parent, const char *name, struct err *err) _must_check_;
