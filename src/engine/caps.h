/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * caps: what root inside a sandbox may still do, relative to its own id range.
 *
 * For children that share our memory: system calls only, -1 with errno.
 */
#include "base/base.h"

/* CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID NET_BIND_SERVICE SETFCAP */
extern const uint64_t caps_kept;

/* Drops everything else from the bounding set, for good. */
int caps_bound(void);

/* Permitted and effective become caps_kept, inheritable and ambient nothing. */
int caps_apply(void);
