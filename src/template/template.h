/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * template: where root filesystem templates are, and how they are named.
 *
 * A template is DATA/templates/DIGEST/ with `rootfs` and `meta.json`; a name is a
 * link DATA/templates/names/NAME to "../DIGEST".  docs/protocol/template.md has
 * the layout.  This half only looks things up and needs nothing but base, so that
 * `cuvette run` stays small; making and removing is the work of cuvette-template.
 *
 * No state, safe from any thread.
 */
#include "base/err.h"

enum {
	TEMPLATE_DIGEST_SIZE = 65,      /* 64 hex digits and NUL */
	TEMPLATE_NAME_SIZE = 65,
	TEMPLATE_PREFIX_MIN = 6,        /* digits of a digest that may stand for it */
};

/* CUVETTE_DATA, else /var/lib/cuvette. */
const char *template_data_dir(void);

/* [a-z0-9][a-z0-9._-]{0,63}, and not 64 hex digits. */
bool template_name_is_valid(const char *name);

/*
 * The digest of the template with that name, digest, or digest prefix of at least
 * TEMPLATE_PREFIX_MIN digits; a name wins over a prefix.  not_found names what
 * is missing and how to make it.
 */
int template_find(const char *data_dir, const char *name, char ret_digest[TEMPLATE_DIGEST_SIZE],
                  struct err *err) _must_check_;
