/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * store: the templates directory, its lock, its names.
 *
 * A tree is made in DATA/templates/.tmp-XXXXXX and renamed to its digest only when
 * it is whole; a name is a link that one rename replaces.  So kill -9 at any moment
 * leaves the old state and at most a .tmp- directory, which whoever takes the lock
 * next removes.  The lock is held while anything is made or removed; looking
 * (template_find(), store_list()) needs none.
 *
 * A process that uses a template holds a shared flock(2) on its digest directory;
 * removal takes an exclusive one and is refused while somebody does.
 */
#include <jansson.h>

#include "template/template.h"

enum { STORE_TMP_SIZE = 16 };

struct store {
	char *path;                     /* DATA/templates */
	int fd;
	int lock_fd;                    /* -1 until store_lock() */
};

/* Opens the directory; `create` makes what is missing, else absence is not_found. */
int store_open(const char *data_dir, bool create, struct store *ret, struct err *err) _must_check_;
void store_done(struct store *s);
#define _cleanup_store_ _cleanup_(store_done)

/* Takes the lock, waiting for whoever has it and saying so on stderr; then removes
 * what interrupted runs left behind. */
int store_lock(struct store *s, struct err *err) _must_check_;

/* A new directory to build in, with an empty `rootfs`.  store_discard() removes it; an
 * empty name is fine. */
int store_begin(struct store *s, char ret_tmp[STORE_TMP_SIZE], int *ret_root_fd, struct err *err) _must_check_;
void store_discard(struct store *s, const char *tmp);

/* Writes meta.json, makes it all durable and gives it its digest for a name.  *ret_existed: the
 * same tree was there already; then the new copy stays in `tmp`, to be discarded. */
int store_commit(struct store *s, const char *tmp, const char *digest, const json_t *meta, bool *ret_existed,
                 struct err *err) _must_check_;

/* NAME -> DIGEST, atomically, replacing what NAME was. */
int store_set_name(struct store *s, const char *name, const char *digest, struct err *err) _must_check_;

/* Removes the name; the tree goes with its last name.  A digest or prefix removes the tree and all names. */
int store_remove(struct store *s, const char *data_dir, const char *name, json_t **ret, struct err *err) _must_check_;

/* meta.json of one template with "names" added; or an array of all, the oldest first. */
int store_meta(struct store *s, const char *digest, json_t **ret, struct err *err) _must_check_;
int store_list(struct store *s, json_t **ret, struct err *err) _must_check_;
