/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * image: the layers of an image layout, into the tree of a template.
 *
 * Every blob is read twice: once to see that it is what its digest and size say,
 * then to use it.
 */
#include "template/make.h"

/* Whether the directory looks like an image: oci-layout, index.json or manifest.json. */
bool image_is_layout(int dir_fd);

/* Applies it to m->root_fd and fills m->source. */
int image_apply(struct make *m, int layout_fd, struct err *err) _must_check_;
