/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * inodes: a table keyed by two numbers, with a small value.
 *
 * Used for "was this hard-linked file read already" (device, inode) and for "did
 * this layer bring that name" (directory's inode, hash of the name).  Grows as
 * needed; its users bound the number of entries.
 */
#include "base/base.h"

enum { INODE_VALUE_SIZE = 32 };

struct inode_set;

struct inode_set *inode_set_new(void);
void inode_set_free(struct inode_set *s);
DEFINE_CLEANUP(struct inode_set *, inode_set_free)

/* Adds it if it is new; answers its value (zeroed when new), valid until the next add. */
uint8_t *inode_set_add(struct inode_set *s, uint64_t a, uint64_t b, bool *ret_new);
bool inode_set_has(const struct inode_set *s, uint64_t a, uint64_t b);
