/* SPDX-License-Identifier: Apache-2.0 */
#include "boxes.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "wire/init.h"

/* A short packet is enough for everything that is asked here. */
enum { PACKET_SIZE = 8192 };

static int send_packet(int conn, uint8_t type, const void *body, size_t len, struct err *err)
{
	uint8_t packet[PACKET_SIZE];

	init_put_header(packet, type, 0, (uint32_t) len);
	if (len)
		memcpy(packet + INIT_HEADER, body, len);
	if (send(conn, packet, INIT_HEADER + len, MSG_NOSIGNAL) < 0)
		return err_sys(err, errno, "ask init");
	return 0;
}

/* The next packet of that type; others are passed over, ERROR fails. */
static int await(int conn, uint8_t type, struct wire_reader *ret, uint8_t packet[PACKET_SIZE], int *ret_fd, struct err *err)
{
	struct init_header header;
	struct init_error error;
	size_t nfds;
	ssize_t n;

	for (;;) {
		int fds[FD_PASS_MAX];

		nfds = 0;
		n = recv_msg(conn, packet, PACKET_SIZE, fds, &nfds);
		if (n <= 0)
			return err_set(err, ERR_UNAVAILABLE, "init closed the connection");
		for (size_t i = 0; i < nfds; i++) {
			if (ret_fd && i == 0)
				*ret_fd = fds[i];
			else
				close_fd(fds[i]);
		}
		if (!init_get_header(packet, (size_t) n, &header))
			return err_set(err, ERR_INTERNAL, "init sent a malformed packet");
		*ret = (struct wire_reader) { .data = packet + INIT_HEADER, .len = header.len };
		if (header.type == type)
			return 0;
		if (header.type == INIT_ERROR)
			return err_set(err, ERR_INTERNAL, "init: %s", init_decode_error(ret, &error) ? error.msg : "?");
	}
}

int talk_ping(int conn, struct err *err)
{
	uint8_t packet[PACKET_SIZE];
	struct wire_reader r;

	if (send_packet(conn, INIT_PING, NULL, 0, err) < 0)
		return -1;
	return await(conn, INIT_PONG, &r, packet, NULL, err);
}

int talk_exec(int conn, const char *program, struct err *err)
{
	char *argv[] = { (char *) (uintptr_t) program, NULL };
	struct init_exec exec = { .cwd = "/", .argv = argv };
	_cleanup_buf_ struct buf body = BUF_INIT(PACKET_SIZE - INIT_HEADER);
	uint8_t packet[PACKET_SIZE];
	struct wire_reader r;
	struct init_exit end;

	if (init_encode_exec(&exec, &body, err) < 0 || send_packet(conn, INIT_EXEC, body.data, body.len, err) < 0 ||
	    await(conn, INIT_EXIT, &r, packet, NULL, err) < 0)
		return -1;
	if (!init_decode_exit(&r, &end) || end.signaled || end.status)
		return err_set(err, ERR_INTERNAL, "%s did not end well", program);
	return 0;
}

int talk_put_program(int conn, const char *path, int program_fd, struct err *err)
{
	static struct init_file file;
	uint8_t packet[PACKET_SIZE], body[PACKET_SIZE - INIT_HEADER];
	struct wire_writer w = { .data = body, .cap = sizeof body };
	_cleanup_close_ int to = -1;
	struct wire_reader r;
	ssize_t n;

	file = (struct init_file) {
		.op = INIT_FILE_OPEN, .mode = 0755, .user = "0",
		.flags = INIT_FILE_WRITE | INIT_FILE_CREATE | INIT_FILE_TRUNCATE | INIT_FILE_PARENTS,
	};
	snprintf(file.path, sizeof file.path, "%s", path);
	init_encode_file(&w, &file);
	if (send_packet(conn, INIT_FILE, body, w.len, err) < 0 ||
	    await(conn, INIT_FILE_REPLY, &r, packet, &to, err) < 0)
		return -1;
	for (off_t at = 0; (n = pread(program_fd, packet, sizeof packet, at)) > 0; at += n)
		if (write_all(to, packet, (size_t) n) < 0)
			return err_sys(err, errno, "write %s", path);
	return n < 0 ? err_sys(err, errno, "read the program") : 0;
}
