/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * conn: one connection of the host, which is one operation.
 *
 * Only a peer that SO_PEERCRED calls pid 0 is served: no process of the
 * sandbox can have that number, and every process outside of it has.
 */
#include "init/loop.h"
#include "init/ring.h"
#include "wire/init.h"

struct command;

struct conn {
	struct source src;
	struct conn *next;              /* among the consumers of its command */
	struct command *command;
	struct buf body;                /* of an EXEC that comes in several packets */
	int cgroup_fd;                  /* came with it, or -1 */
	bool begun;                     /* the operation is known */
	bool over;                      /* answered; what still comes is ignored until the host hangs up */
	bool blocked;                   /* the socket is full */
	bool credited;                  /* output needs credit */
	uint32_t credit;
	struct ring backlog;            /* output that waits for the socket or for credit */
	uint32_t input_credit;          /* what the host may still send as STDIN */
	uint32_t input_grant;           /* consumed, and not yet granted again */
	bool input_eof;
	struct buf input;               /* waits for the command to read */
};

enum { CONNS_MAX = 512 };

/* Starts to serve the listening socket. */
int conn_listen(int fd, struct err *err) _must_check_;

size_t conn_count(void);

/* How many bytes of output it takes right now; 0 while it is behind. */
size_t conn_room(const struct conn *conn);

/* Sends or queues the `len` bytes behind the header's room in scratch.packet.
 * False when the connection is to be closed: the host has left, or is too far behind. */
bool conn_output(struct conn *conn, uint8_t type, size_t len);

/* The command is done: sends EXIT, at once or after what is queued. */
void conn_finish(struct conn *conn);

/* Hands queued input on, since the command reads again. */
void conn_feed(struct conn *conn);

/* The operation has its answer; nothing that still comes matters. */
void conn_end_operation(struct conn *conn);

void conn_close(struct conn *conn);

/* One packet with a small payload; false with errno when it cannot be sent now. */
bool conn_send(int fd, uint8_t type, uint16_t flags, const void *payload, size_t len, int pass_fd);
bool conn_send_error(int fd, const struct err *err, enum init_step step);
