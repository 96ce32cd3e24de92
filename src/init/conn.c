/* SPDX-License-Identifier: Apache-2.0 */
#include "init/conn.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include "base/fd.h"
#include "init/command.h"
#include "init/operation.h"
#include "init/scratch.h"

enum {
	INPUT_WINDOW = INIT_PAYLOAD_MAX,        /* stdin in flight per connection */
	SMALL_PAYLOAD = 512,                    /* what conn_send() is for */
};

static struct source listener;
static size_t count;

/* One connection is always allocated: with the last one freed, the allocator would give
 * its page back and fetch it again for every operation. */
static struct conn first;       /* most sandboxes have one connection at a time, and it needs no heap */
static struct conn *spare = &first;

/* Kept open so that even without a free descriptor a connection can be accepted and refused. */
static int reserve_fd = -1;

size_t conn_count(void)
{
	return count;
}

/* ---- sending ---- */

bool conn_send(int fd, uint8_t type, uint16_t flags, const void *payload, size_t len, int pass_fd)
{
	uint8_t packet[INIT_HEADER + SMALL_PAYLOAD];

	if (len > SMALL_PAYLOAD) {
		errno = EMSGSIZE;
		return false;
	}
	init_put_header(packet, type, flags, (uint32_t) len);
	if (len)
		memcpy(packet + INIT_HEADER, payload, len);
	return send_msg(fd, packet, INIT_HEADER + len, &pass_fd, pass_fd >= 0 ? 1 : 0) == 0;
}

bool conn_send_error(int fd, const struct err *err, enum init_step step)
{
	uint8_t payload[SMALL_PAYLOAD];
	struct wire_writer w = { .data = payload, .cap = sizeof payload };
	struct init_error error = { .code = (uint8_t) err->code, .sys = err->sys, .step = (uint8_t) step };

	memcpy(error.msg, err->msg, sizeof error.msg);
	init_encode_error(&w, &error);
	return conn_send(fd, INIT_ERROR, 0, payload, w.len, -1);
}

/* The socket is full, or free again: ask to be told. */
static void set_blocked(struct conn *conn, bool blocked)
{
	conn->blocked = blocked;
	/* Without a watch the connection is as good as gone: the next event closes it. */
	if (loop_watch(&conn->src, blocked ? EPOLLIN | EPOLLOUT : EPOLLIN) < 0)
		shutdown(conn->src.fd, SHUT_RDWR);
}

/* After a failed send: true when it can be tried again later. */
static bool try_later(struct conn *conn)
{
	if (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM)
		return false;
	set_blocked(conn, true);
	return true;
}

size_t conn_room(const struct conn *conn)
{
	if (conn->blocked || !ring_is_empty(&conn->backlog))
		return 0;
	return conn->credited ? MIN(conn->credit, (uint32_t) INIT_PAYLOAD_MAX) : INIT_PAYLOAD_MAX;
}

/* Sends the `len` bytes behind the header's room in scratch.packet. */
static bool send_output(struct conn *conn, uint8_t type, size_t len)
{
	ssize_t n;

	init_put_header(scratch.packet, type, 0, (uint32_t) len);
	do
		n = send(conn->src.fd, scratch.packet, INIT_HEADER + len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n >= 0 && conn->credited)
		conn->credit -= (uint32_t) len;
	return n >= 0;
}

bool conn_output(struct conn *conn, uint8_t type, size_t len)
{
	struct err err;

	if (conn_room(conn) >= len) {
		if (send_output(conn, type, len))
			return true;
		if (!try_later(conn))
			return false;
	}
	if (ring_append(&conn->backlog, type, scratch.packet + INIT_HEADER, len))
		return true;
	/* Others read on; this one would need more memory than one connection may have. */
	err_set(&err, ERR_EXHAUSTED, "the reader is more than %d bytes behind the command's output", INIT_RING_SIZE);
	conn_send_error(conn->src.fd, &err, INIT_STEP_REQUEST);
	return false;
}

/* Sends what is queued, as far as socket and credit allow.  False when the host has left. */
static bool send_backlog(struct conn *conn)
{
	while (!ring_is_empty(&conn->backlog) && !conn->blocked) {
		size_t max = conn->credited ? MIN(conn->credit, (uint32_t) INIT_PAYLOAD_MAX) : INIT_PAYLOAD_MAX;
		uint8_t type;
		size_t len = ring_peek(&conn->backlog, &type, scratch.packet + INIT_HEADER, max);

		if (!len)
			return true;    /* no credit */
		if (!send_output(conn, type, len))
			return try_later(conn);
		ring_pop(&conn->backlog, len);
	}
	return true;
}

/* Grants input that was consumed; in portions, not byte by byte. */
static bool send_grant(struct conn *conn)
{
	uint8_t payload[4];
	struct wire_writer w = { .data = payload, .cap = sizeof payload };

	if (conn->input_grant < INPUT_WINDOW / 2 || conn->blocked)
		return true;
	wire_put_u32(&w, conn->input_grant);
	if (!conn_send(conn->src.fd, INIT_STDIN_CREDIT, 0, payload, w.len, -1))
		return try_later(conn);
	conn->input_credit += conn->input_grant;
	conn->input_grant = 0;
	return true;
}

/* The operation has its answer.  The connection stays until the host hangs up: closing
 * it with a packet of the host's unread would turn the answer into ECONNRESET. */
void conn_end_operation(struct conn *conn)
{
	conn->over = true;
	buf_done(&conn->body);
	buf_done(&conn->input);
	conn->cgroup_fd = close_fd(conn->cgroup_fd);
	set_blocked(conn, false);
}

/* May free the command. */
static bool send_exit(struct conn *conn)
{
	uint8_t payload[SMALL_PAYLOAD];
	struct wire_writer w = { .data = payload, .cap = sizeof payload };
	struct command *cmd = conn->command;

	if (!cmd || !cmd->done || conn->blocked || !ring_is_empty(&conn->backlog))
		return true;
	init_encode_exit(&w, &cmd->exit);
	if (!conn_send(conn->src.fd, INIT_EXIT, 0, payload, w.len, -1))
		return try_later(conn);
	cmd->told = true;
	conn_end_operation(conn);
	command_remove_consumer(cmd, conn);
	return true;
}

/* Sends whatever waits; then the command may go on.  May close the connection. */
static void pump(struct conn *conn)
{
	if (conn->over)
		return;
	if (!send_backlog(conn) || !send_grant(conn) || !send_exit(conn))
		conn_close(conn);
	else if (conn->command && conn_room(conn))
		command_resume(conn->command);
}

void conn_finish(struct conn *conn)
{
	/* A host that left is noticed by its hang-up; here the command must stay. */
	(void) send_exit(conn);
}

/* ---- input ---- */

static void consumed(struct conn *conn, size_t len)
{
	conn->input_grant += (uint32_t) len;
	(void) send_grant(conn);
}

void conn_feed(struct conn *conn)
{
	if (conn->input.len) {
		size_t n = command_write(conn->command, conn->input.data, conn->input.len);

		buf_consume(&conn->input, n);
		consumed(conn, n);
	}
	if (conn->input.len)
		return;
	buf_done(&conn->input);
	if (conn->input_eof)
		command_end_input(conn->command);
	conn->input_eof = false;
}

static bool on_stdin(struct conn *conn, const uint8_t *data, size_t len)
{
	size_t n = 0;

	if (len > conn->input_credit)
		return false;
	conn->input_credit -= (uint32_t) len;
	if (!conn->input.len)
		n = command_write(conn->command, data, len);
	if (n < len && buf_append(&conn->input, data + n, len - n, NULL) < 0)
		return false;
	consumed(conn, n);
	return true;
}

/* ---- packets ---- */

/* An answer to one message; the operation goes on. */
static void complain(struct conn *conn, const struct err *err)
{
	conn_send_error(conn->src.fd, err, INIT_STEP_REQUEST);
}

static bool on_credit(struct conn *conn, uint32_t more)
{
	if (!conn->credited)
		return true;
	if (more > INIT_CREDIT_MAX || conn->credit + more > INIT_CREDIT_MAX)
		return false;
	conn->credit += more;
	return true;
}

/* A message within EXEC or ATTACH; false when it is malformed. */
static bool on_message(struct conn *conn, const struct init_header *header, const uint8_t *payload)
{
	struct wire_reader r = { .data = payload, .len = header->len };
	struct err err;
	uint16_t rows, cols;

	switch (header->type) {
	case INIT_STDIN:
		return on_stdin(conn, payload, header->len);
	case INIT_STDIN_EOF:
		conn->input_eof = true;
		conn_feed(conn);
		return true;
	case INIT_SIGNAL:
		if (command_signal(conn->command, wire_get_u32(&r), &err) < 0)
			complain(conn, &err);
		return wire_done(&r);
	case INIT_RESIZE:
		rows = wire_get_u16(&r);
		cols = wire_get_u16(&r);
		if (wire_done(&r) && command_resize(conn->command, rows, cols, &err) < 0)
			complain(conn, &err);
		return wire_done(&r);
	case INIT_CREDIT:
		return on_credit(conn, wire_get_u32(&r)) && wire_done(&r);
	default:
		return false;
	}
}

/* Receives and handles one packet, if there is one.  False when the connection is closed and freed. */
static bool receive(struct conn *conn)
{
	struct init_header header;
	int fds[FD_PASS_MAX];
	size_t nfds = 0;
	ssize_t n = recv_msg(conn->src.fd, scratch.packet, sizeof scratch.packet, fds, &nfds);
	bool ok;

	if (n < 0 && errno == EAGAIN)
		return true;
	if (n > 0 && nfds == 1 && !conn->begun && conn->cgroup_fd < 0)
		conn->cgroup_fd = fds[--nfds];
	ok = n > 0 && nfds == 0 && init_get_header(scratch.packet, (size_t) n, &header);
	while (nfds)
		close(fds[--nfds]);
	if (ok && !conn->over)
		ok = conn->command ? on_message(conn, &header, scratch.packet + INIT_HEADER)
		                   : operation_begin(conn, &header, scratch.packet + INIT_HEADER);
	if (!ok) {
		conn_close(conn);
		return false;
	}
	return true;
}

static void conn_ready(struct source *src, uint32_t events)
{
	struct conn *conn = CONTAINER_OF(src, struct conn, src);

	if (events & EPOLLOUT)
		set_blocked(conn, false);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !receive(conn))
		return;
	pump(conn);
}

/* ---- coming and going ---- */

void conn_close(struct conn *conn)
{
	if (conn->command)
		command_remove_consumer(conn->command, conn);
	loop_drop(&conn->src);
	close_fd(conn->cgroup_fd);
	buf_done(&conn->body);
	buf_done(&conn->input);
	ring_done(&conn->backlog);
	count--;
	if (spare && conn != &first) {
		free(conn);
		return;
	}
	if (spare)
		free(spare);
	spare = conn;
}

static bool is_outside_peer(int fd)
{
	struct ucred peer = { .pid = -1 };
	socklen_t len = sizeof peer;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid == 0;
}

static void refuse(int fd, const char *what)
{
	struct err err;

	err_set(&err, ERR_EXHAUSTED, "the sandbox's init has no free %s", what);
	conn_send_error(fd, &err, INIT_STEP_REQUEST);
	/* Closing with a request unread would reach the host as ECONNRESET before the answer. */
	while (recv(fd, scratch.packet, sizeof scratch.packet, MSG_DONTWAIT) > 0)
		;
}

static void serve(int fd)
{
	struct conn *conn = spare ? TAKE_PTR(spare) : xcalloc(1, sizeof *conn);

	*conn = (struct conn) {
		.src = { .fd = fd, .ready = conn_ready },
		.cgroup_fd = -1,
		.body = BUF_INIT(INIT_EXEC_MAX),
		.input = BUF_INIT(INPUT_WINDOW),
		.input_credit = INPUT_WINDOW,
	};
	count++;
	/* The request is usually there already: it saves a turn of the loop to look at once. */
	if (!receive(conn))
		return;
	if (loop_watch(&conn->src, conn->blocked ? EPOLLIN | EPOLLOUT : EPOLLIN) < 0)
		conn_close(conn);
	else
		pump(conn);
}

static void accept_one(int fd)
{
	if (!is_outside_peer(fd)) {
		close(fd);
	} else if (count >= CONNS_MAX) {
		refuse(fd, "connection");
		close(fd);
	} else {
		serve(fd);
	}
}

/* No descriptor is free: gives up the spare one for as long as it takes to say so. */
static void accept_without_descriptors(void)
{
	int fd;

	reserve_fd = close_fd(reserve_fd);
	fd = accept4(listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0 && is_outside_peer(fd))
		refuse(fd, "descriptor");
	close_fd(fd);
	reserve_fd = open("/", O_PATH | O_CLOEXEC);
}

static void listener_ready(struct source *src, _unused_ uint32_t events)
{
	int fd = accept4(src->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		accept_one(fd);
	else if (errno == EMFILE || errno == ENFILE)
		accept_without_descriptors();
}

int conn_listen(int fd, struct err *err)
{
	listener = (struct source) { .fd = fd, .ready = listener_ready };
	reserve_fd = open("/", O_PATH | O_CLOEXEC);
	if (loop_watch(&listener, EPOLLIN) < 0)
		return err_sys(err, errno, "watch the listening socket");
	return 0;
}
