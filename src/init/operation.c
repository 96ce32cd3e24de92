/* SPDX-License-Identifier: Apache-2.0 */
#include "init/operation.h"

#include "init/command.h"
#include "init/file.h"
#include "init/helper.h"
#include "init/scratch.h"

/* An operation that failed after more than one packet may have been sent: see conn_end_operation(). */
static bool fail(struct conn *conn, const struct err *err, enum init_step step)
{
	conn_send_error(conn->src.fd, err, step);
	conn_end_operation(conn);
	return true;
}

/* ---- PING ---- */

static bool ping(struct conn *conn, _unused_ const struct init_header *header, _unused_ uint8_t *payload)
{
	uint8_t reply[8];
	struct wire_writer w = { .data = reply, .cap = sizeof reply };

	wire_put_u32(&w, INIT_VERSION);
	wire_put_u32(&w, (uint32_t) command_count_live());
	conn_send(conn->src.fd, INIT_PONG, 0, reply, w.len, -1);
	return false;
}

/* ---- EXEC ---- */

static void send_started(struct conn *conn, uint32_t pid, const char *program)
{
	uint8_t payload[512];
	struct wire_writer w = { .data = payload, .cap = sizeof payload };
	size_t len = strlen(program);

	wire_put_u32(&w, pid);
	wire_put_bytes(&w, program, MIN(len, sizeof payload - 8));
	/* The first packet always fits; a host that has left is noticed by its hang-up. */
	conn_send(conn->src.fd, INIT_STARTED, 0, payload, w.len, -1);
}

static bool start(struct conn *conn, uint8_t *body, size_t len)
{
	struct init_exec *exec = &scratch.exec;
	enum init_step step = INIT_STEP_REQUEST;
	struct command *cmd = NULL;
	struct err err;

	if (init_decode_exec(body, len, exec, &err) < 0)
		return fail(conn, &err, step);
	if (command_start(exec, conn->cgroup_fd, &cmd, &step, &err) == 0) {
		conn->credited = exec->flags & INIT_EXEC_CREDIT;
		send_started(conn, cmd->exit.pid, scratch.found);
		command_add_consumer(cmd, conn);
	}
	init_exec_done(exec);
	buf_done(&conn->body);
	conn->cgroup_fd = close_fd(conn->cgroup_fd);
	return cmd ? true : fail(conn, &err, step);
}

/* A request in one packet is decoded where it lies; one in several is put together first. */
static bool exec_part(struct conn *conn, const struct init_header *header, uint8_t *payload)
{
	bool last = !(header->flags & INIT_MORE);
	struct err err;

	if (last && !conn->body.len)
		return start(conn, payload, header->len);
	if (buf_append(&conn->body, payload, header->len, &err) < 0) {
		err_wrap(&err, "exec request");
		return fail(conn, &err, INIT_STEP_REQUEST);
	}
	return !last || start(conn, (uint8_t *) conn->body.data, conn->body.len);
}

/* ---- ATTACH ---- */

static bool attach(struct conn *conn, const struct init_header *header, uint8_t *payload)
{
	struct wire_reader r = { .data = payload, .len = header->len };
	uint32_t pid = wire_get_u32(&r), flags = wire_get_u32(&r);
	struct command *cmd;
	struct err err;

	if (!wire_done(&r) || flags & ~(uint32_t) INIT_EXEC_CREDIT)
		return false;
	cmd = command_find(pid);
	if (!cmd) {
		err_set(&err, ERR_NOT_FOUND, "no command with pid %u", pid);
		return fail(conn, &err, INIT_STEP_REQUEST);
	}
	conn->credited = flags & INIT_EXEC_CREDIT;
	send_started(conn, pid, "");
	command_add_consumer(cmd, conn);
	return true;
}

/* ---- LIST ---- */

struct listing {
	int fd;
	uint32_t count;
	size_t len;
};

/* Sends what is collected behind the room for header and count. */
static bool flush_listing(struct listing *list, uint16_t flags)
{
	struct wire_writer w = { .data = scratch.packet + INIT_HEADER, .cap = 4 };

	init_put_header(scratch.packet, INIT_PROCS, flags, (uint32_t) (list->len - INIT_HEADER));
	wire_put_u32(&w, list->count);
	if (!helper_send(list->fd, scratch.packet, list->len))
		return false;
	list->len = INIT_HEADER + 4;
	list->count = 0;
	return true;
}

static bool list_command(void *ctx, const struct command *cmd)
{
	struct listing *list = ctx;

	if (list->len + cmd->about_len > INIT_PACKET_MAX && !flush_listing(list, INIT_MORE))
		return false;
	memcpy(scratch.packet + list->len, cmd->about, cmd->about_len);
	list->len += cmd->about_len;
	list->count++;
	return true;
}

static void list_commands(int fd)
{
	struct listing list = { .fd = fd, .len = INIT_HEADER + 4 };

	command_each(list_command, &list);
	flush_listing(&list, 0);
}

static bool list(struct conn *conn, const struct init_header *header, _unused_ uint8_t *payload)
{
	struct err err;

	if (header->len)
		return false;
	if (helper_run(conn->src.fd, list_commands, &err) < 0)
		conn_send_error(conn->src.fd, &err, INIT_STEP_REQUEST);
	return false;
}

/* ---- FILE ---- */

static bool file(struct conn *conn, const struct init_header *header, uint8_t *payload)
{
	struct wire_reader r = { .data = payload, .len = header->len };
	struct err err;

	if (!init_decode_file(&r, &scratch.file)) {
		err_set(&err, ERR_INVALID, "malformed file request");
		conn_send_error(conn->src.fd, &err, INIT_STEP_REQUEST);
	} else {
		file_serve(conn->src.fd);
	}
	return false;
}

bool operation_begin(struct conn *conn, const struct init_header *header, uint8_t *payload)
{
	static const struct {
		uint8_t type;
		bool (*begin)(struct conn *conn, const struct init_header *header, uint8_t *payload);
	} operations[] = {
		{ INIT_PING, ping },
		{ INIT_EXEC, exec_part },
		{ INIT_ATTACH, attach },
		{ INIT_LIST, list },
		{ INIT_FILE, file },
	};

	/* Once an EXEC has begun, only the rest of it may come. */
	if (conn->begun && header->type != INIT_EXEC)
		return false;
	if (header->flags & (uint16_t) ~(header->type == INIT_EXEC ? INIT_MORE : 0))
		return false;
	conn->begun = true;
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
		if (operations[i].type == header->type)
			return operations[i].begin(conn, header, payload);
	return false;
}
