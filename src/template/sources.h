/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * sources: where this machine gets Debian from, for building a template of it.
 *
 * apt itself reads its configuration (both file formats, all drop-ins); this
 * takes from its answer the Debian archive and leaves third parties out.
 */
#include "base/buf.h"

/* Appends one "deb URI SUITE main" line per archive, with `suite` in the place of the machine's own. */
int sources_of_machine(const char *suite, struct buf *ret, struct err *err) _must_check_;

/* The same from a mirror that the user named. */
int sources_of_mirror(const char *mirror, const char *suite, struct buf *ret, struct err *err) _must_check_;

/* The parser: `targets` has one line "URI RELEASE COMPONENT ORIGIN" per index of apt. */
int sources_parse(const char *targets, const char *suite, struct buf *ret, struct err *err) _must_check_;

/* [a-z0-9.-], as in "bookworm". */
bool sources_suite_is_valid(const char *suite);
