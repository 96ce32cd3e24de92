/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* requests: what the spawner may be asked, as a table.  Nothing else is ever done on request. */
#include "spawner/registry.h"

struct answer {
	struct spawn_reply reply;
	int fds[2];             /* sent along, then closed */
	size_t nfds;
};

/* Fills the answer, errors included. */
void request_serve(struct registry *r, const struct spawn_request *req, struct answer *ret);
