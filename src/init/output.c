/* SPDX-License-Identifier: Apache-2.0 */
/* The output half of command.h: from the pipes of a command to its consumers, or to nobody. */
#include "init/command.h"

#include <poll.h>
#include <sys/ioctl.h>
#include "init/conn.h"
#include "init/scratch.h"

enum {
	TERMINAL_DUE = 256 << 10,       /* most that is read from a terminal after its command has exited */
	/* 100 MB/s for all output that nobody listens to: some percent of one CPU. */
	UNHEARD_BYTES = 1 << 20,
	UNHEARD_MS = 10,
};

/* How many bytes may be read now: what every consumer that is not behind has room for. */
static size_t room_for_output(const struct command *cmd)
{
	size_t least = 0;

	if (!cmd->consumers || cmd->done)
		return INIT_PAYLOAD_MAX;
	for (const struct conn *conn = cmd->consumers; conn; conn = conn->next) {
		size_t room = conn_room(conn);

		if (room && (!least || room < least))
			least = room;
	}
	return least;
}

/* ---- output that nobody listens to ---- */

static struct stream *resting;
static uint64_t unheard;

static void stop_resting(struct stream *s)
{
	struct stream **at = &resting;

	if (!s->resting)
		return;
	while (*at != s)
		at = &(*at)->next_resting;
	*at = s->next_resting;
	s->resting = false;
}

static void end_stream(struct stream *s)
{
	stop_resting(s);
	loop_drop(&s->src);
	s->drained = true;
}

static void watch_stream(struct stream *s, uint32_t events)
{
	if (loop_watch(&s->src, events) < 0)
		end_stream(s);  /* the kernel has no room for a watch: the output ends here, as incomplete */
}

/* The budget starts anew; may find a stream at its end. */
static void refill_budget(void)
{
	unheard = 0;
	while (resting) {
		struct stream *s = resting;

		stop_resting(s);
		watch_stream(s, EPOLLIN);
	}
}

/* True when there is no budget left: the stream is read again later. */
static bool rest(struct stream *s)
{
	struct command *cmd = s->command;

	/* What an exited command has left is bounded, and its end waits for it. */
	if (unheard < UNHEARD_BYTES || (cmd->consumers && !cmd->done) || (cmd->exited && !cmd->done))
		return false;
	if (!s->resting) {
		s->resting = true;
		s->next_resting = resting;
		resting = s;
	}
	watch_stream(s, 0);
	return true;
}

static void spend(const struct command *cmd, size_t len)
{
	if (cmd->consumers && !cmd->done)
		return;
	unheard += len;
	loop_call_after(UNHEARD_MS, refill_budget);
}

/* ---- reading ---- */

/* Hands on what was read into scratch.packet. */
static void deliver(struct command *cmd, uint8_t type, size_t len)
{
	if (cmd->done)
		return;
	for (struct conn *conn = cmd->consumers, *next; conn; conn = next) {
		next = conn->next;
		if (!conn_output(conn, type, len))
			conn_close(conn);
	}
	if (!cmd->consumers)
		ring_push(&cmd->unread, type, scratch.packet + INIT_HEADER, len);
}

/*
 * Every consumer is behind.  Of a command that has exited and whose bytes are
 * all read, only one thing is left to learn: whether the pipe has come to its end.
 */
static void wait_for_room(struct stream *s)
{
	struct pollfd poll_fd = { .fd = s->src.fd, .events = POLLIN };

	watch_stream(s, 0);
	if (!s->drained && s->command->exited && s->read_since >= s->due) {
		if (poll(&poll_fd, 1, 0) == 1 && poll_fd.revents == POLLHUP)
			end_stream(s);
		s->drained = true;
	}
}

/*
 * Reads once.  False when there is nothing more to read for now.  EIO is how a
 * terminal says that its last user has gone (J06).
 */
static bool read_stream(struct stream *s)
{
	struct command *cmd = s->command;
	size_t room = room_for_output(cmd);
	ssize_t n;

	if (!room) {
		wait_for_room(s);
		return false;
	}
	if (rest(s))
		return false;
	n = read(s->src.fd, scratch.packet + INIT_HEADER, room);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		s->drained = cmd->exited;
		return false;
	}
	if (n <= 0) {
		end_stream(s);
		return false;
	}
	if (!cmd->done)
		s->bytes += (uint64_t) n;
	if (cmd->exited)
		s->read_since += (uint64_t) n;
	spend(cmd, (size_t) n);
	deliver(cmd, s->type, (size_t) n);
	return true;
}

/*
 * Reads what a command left behind when it exited, at most what was there at
 * that moment.  A slow consumer may stop this; the loop then goes on with it.
 * One read after the last byte tells whether somebody else holds the pipe.
 */
static void drain_stream(struct stream *s)
{
	while (read_stream(s))
		if (s->read_since > s->due) {
			s->drained = true;
			return;
		}
}

void command_stream_ready(struct source *src, _unused_ uint32_t events)
{
	struct stream *s = CONTAINER_OF(src, struct stream, src);
	struct command *cmd = s->command;

	if (cmd->exited && !cmd->done)
		drain_stream(s);
	else
		read_stream(s);
	command_check(cmd);
}

void command_resume(struct command *cmd)
{
	for (size_t i = 0; i < 2; i++) {
		struct stream *s = &cmd->streams[i];

		if (s->src.fd < 0)
			continue;
		stop_resting(s);
		watch_stream(s, EPOLLIN);
	}
}

void command_drain(struct command *cmd)
{
	for (size_t i = 0; i < 2; i++) {
		struct stream *s = &cmd->streams[i];
		int pending = 0;

		if (s->src.fd < 0) {
			s->drained = true;
			continue;
		}
		/* A terminal does not say how much is on its way through the line discipline. */
		if (cmd->terminal)
			s->due = TERMINAL_DUE;
		else if (ioctl(s->src.fd, FIONREAD, &pending) == 0)
			s->due = (uint64_t) pending;
		drain_stream(s);
	}
}
