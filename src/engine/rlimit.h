/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* rlimit: per-process limits that every sandbox starts with.  For children: system calls only. */
#include "base/base.h"

/* CORE 1 (which dumps nothing, by pipe neither), MEMLOCK 8 MiB, MSGQUEUE 800 KiB, SIGPENDING 4096 (bounds timers too), NICE 0, RTPRIO 0.
 * Open files are init's affair: it keeps more for itself than commands get. */
int rlimit_apply(void);
