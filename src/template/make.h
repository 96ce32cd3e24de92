/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * make: the common frame of build and import.
 *
 * begin: lock, a directory to fill.  Then a source fills make.root_fd.  finish: make
 * it fit for a sandbox, give it its digest, put it in place and name it.
 */
#include "template/extract.h"
#include "template/store.h"

struct make {
	struct store store;
	struct progress progress;
	char tmp[STORE_TMP_SIZE];
	int root_fd;
	struct extract extract;
	json_t *source;                 /* owned: "source" of meta.json */
};

int make_begin(struct make *m, const char *data_dir, uint64_t max_bytes, struct err *err) _must_check_;
int make_finish(struct make *m, const char *name, json_t **ret, struct err *err) _must_check_;

/* Removes what is unfinished; always called. */
void make_done(struct make *m);
