/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * disk: an ext4 image on a loop device, for uppers larger than memory should hold.
 *
 * The image is an unlinked file in DATA/disks: it goes when its last user does.
 * Formatting runs mke2fs once per size; later images are sparse copies of that
 * blank one.  No journal: the content is worth nothing after a crash of the host.
 */
#include "engine/engine.h"

/* A mounted image (detached mount holding u/ and w/), ids container-relative; the loop device
 * frees itself with the mount. */
int disk_create_image(struct engine *e, uint64_t bytes, uint64_t inodes, int *ret_image_fd, int *ret_mount_fd,
                      struct err *err) _must_check_;
