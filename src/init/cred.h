/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * cred: file access as another user.
 *
 * With the fsuid of a user other than root the kernel takes CHOWN,
 * DAC_OVERRIDE, FOWNER and FSETID out of the effective set, and gives them back
 * on return.  init has no threads, so there is nothing else to switch.
 */
#include "init/passwd.h"

/* From here on paths are judged, and files made, as the user's. */
int cred_enter(const struct user *user, struct err *err) _must_check_;

/* Back to root; must work, so it ends the process if it does not. */
void cred_leave(const struct user *user);
