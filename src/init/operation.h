/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* operation: what the first packet of a connection asks for. */
#include "init/conn.h"

/* Handles a packet of a connection that has no command yet.  False when the connection is
 * to be closed: it has its whole answer, or the packet was malformed. */
bool operation_begin(struct conn *conn, const struct init_header *header, uint8_t *payload) _must_check_;
