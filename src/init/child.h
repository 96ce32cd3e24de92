/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* child: the part of a launch that runs between clone and exec.  See child.c for its rules. */
#include "init/launch.h"

/* Clones, waits until the child is through, returns its pid, or -1 with errno when there is none. */
pid_t child_start(struct launch *l);
