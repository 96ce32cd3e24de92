/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One command, one connection, one loop.
 *
 * Everything that can make us wait is in one poll(): init's packets, the caller's input,
 * signals, the reader of the output, the time limit.  At most one packet of output and one
 * chunk of input are held, whatever the command prints or the caller sends: a slow reader
 * stops the command through the socket, and is still no reason to miss a deadline.
 */
#include "sandbox/sandbox.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <termios.h>

#include "base/clock.h"
#include "base/fd.h"

/* After a kill, how long output that is still on its way may take to reach its reader. */
enum { DRAIN_MS = 1000 };

/* How long init may take to make room for the rest of a command; it has nothing else to do. */
enum { SEND_MS = 10000 };

struct run {
	struct sandbox *sb;
	const struct exec_options *options;
	struct exec_result *result;
	struct err *err;
	int conn;
	bool started, ended, killed;
	enum init_step step;            /* of a failure before the command began */
	uint64_t started_ns, deadline_ns, grace_ns;     /* 0: none */

	uint8_t *packet;                /* INIT_PACKET_MAX bytes; output points into it */
	const char *out;                /* not yet taken by the sink */
	size_t out_len;
	int out_stream;
	uint64_t delivered[2], received[2];

	uint8_t *in;                    /* one STDIN packet */
	size_t in_len;                  /* of its payload, 0: none waits */
	uint64_t in_credit;             /* what init can take */
	bool in_open, in_eof;           /* more may come; the end is still to be told */
	int signal;                     /* to be told to init, 0: none */
	bool resize;
	bool conn_full;                 /* a send met a full socket */
	struct err complaint;           /* init's last packet was this error, if the code is set */
};

/* ---- to init ---- */

/* Sends one packet; 0 when the socket is full (try again on POLLOUT), 1 when sent or pointless. */
static int post(struct run *r, uint8_t *packet, uint8_t type, size_t len)
{
	ssize_t n;

	init_put_header(packet, type, 0, (uint32_t) len);
	do
		n = send(r->conn, packet, INIT_HEADER + len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == ENOBUFS)) {
		r->conn_full = true;
		return 0;
	}
	/* A connection that ended shows itself at the next read, with what init had to say. */
	return 1;
}

static int post_resize(struct run *r)
{
	uint8_t packet[INIT_HEADER + 4];
	struct wire_writer w = { .data = packet + INIT_HEADER, .cap = 4 };
	struct winsize size;

	if (ioctl(r->options->tty_fd, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
		return 1;
	wire_put_u16(&w, MIN(size.ws_row, (unsigned short) 4096));
	wire_put_u16(&w, MIN(size.ws_col, (unsigned short) 4096));
	return post(r, packet, INIT_RESIZE, w.len);
}

static int post_signal(struct run *r)
{
	uint8_t packet[INIT_HEADER + 4];
	struct wire_writer w = { .data = packet + INIT_HEADER, .cap = 4 };

	wire_put_u32(&w, (uint32_t) r->signal);
	return post(r, packet, INIT_SIGNAL, w.len);
}

/* Sends what waits, signals before input: an interrupt must not queue behind a paste. */
static void flush_to_init(struct run *r)
{
	uint8_t eof[INIT_HEADER];

	r->conn_full = false;
	if (!r->started)
		return;
	if (r->signal && post_signal(r))
		r->signal = 0;
	if (!r->conn_full && r->resize && post_resize(r))
		r->resize = false;
	if (!r->conn_full && r->in_len && post(r, r->in, INIT_STDIN, r->in_len))
		r->in_len = 0;
	if (!r->conn_full && !r->in_len && r->in_eof && post(r, eof, INIT_STDIN_EOF, 0))
		r->in_eof = false;
}

static void read_stdin(struct run *r)
{
	size_t want = MIN(r->in_credit, (uint64_t) INIT_PAYLOAD_MAX);
	ssize_t n = read(r->options->stdin_fd, r->in + INIT_HEADER, want);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		/* A read error, such as EIO of a terminal that hung up, is the end of input too. */
		r->in_open = false;
		r->in_eof = true;
		return;
	}
	r->in_len = (size_t) n;
	r->in_credit -= (uint64_t) n;
}

/* A long command needs a reader; an init that is none must not hold us for good. */
static int wait_for_room(struct run *r)
{
	uint64_t limit = r->options->timeout_ms;
	struct pollfd p[] = {
		{ .fd = r->conn, .events = POLLOUT },
		{ .fd = r->options->signal_fd, .events = POLLIN },
	};
	int n = poll(p, ARRAY_SIZE(p), (int) (limit && limit < SEND_MS ? limit : SEND_MS));

	if (n < 0 && errno != EINTR)
		return err_sys(r->err, errno, "send the command to the sandbox");
	if (n == 0 || p[1].revents)
		return err_set(r->err, ERR_UNAVAILABLE, "the sandbox's init does not take the command");
	return 0;
}

/* 1 when sent, 0 when init has closed the connection: why is to be read from it. */
static int send_part(struct run *r, size_t len)
{
	while (send(r->conn, r->packet, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		if (errno == EPIPE || errno == ECONNRESET)
			return 0;
		if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR)
			return err_sys(r->err, errno, "send the command to the sandbox");
		if (errno != EINTR && wait_for_room(r) < 0)
			return -1;
	}
	return 1;
}

static int send_exec(struct run *r)
{
	_cleanup_buf_ struct buf body = BUF_INIT(INIT_EXEC_MAX);
	size_t at = 0;
	int sent;

	if (init_encode_exec(r->options->exec, &body, r->err) < 0)
		return err_wrap(r->err, "arguments and environment");
	do {
		size_t len = MIN(body.len - at, (size_t) INIT_PAYLOAD_MAX);
		bool more = at + len < body.len;

		init_put_header(r->packet, INIT_EXEC, more ? INIT_MORE : 0, (uint32_t) len);
		memcpy(r->packet + INIT_HEADER, body.data + at, len);
		sent = send_part(r, INIT_HEADER + len);
		at += len;
	} while (sent > 0 && at < body.len);
	return sent < 0 ? -1 : 0;
}

/* ---- killing ---- */

static uint64_t after_ms(uint64_t ms)
{
	return now_ns() + ms * 1000000;
}

/* Everything inside but init dies; what it had printed may still arrive for a moment. */
static void kill_all(struct run *r)
{
	struct err ignored = { 0 };

	if (!r->killed && sandbox_kill(r->sb, &ignored) < 0) {
		/* Without the spawner there is nobody left to ask: its end takes the sandbox along. */
	}
	r->killed = true;
	r->grace_ns = 0;
	r->in_open = r->in_eof = false;
	r->in_len = 0;
	r->deadline_ns = after_ms(DRAIN_MS);
}

/* The exit that init could not report in time. */
static void give_up(struct run *r)
{
	struct init_exit *e = &r->result->exit;

	e->signaled = 1;
	e->status = SIGKILL;
	e->flags |= INIT_EXIT_INCOMPLETE;
	e->stdout_bytes = r->received[0];
	e->stderr_bytes = r->received[1];
	e->wall_us = (now_ns() - r->started_ns) / 1000;
	r->ended = true;
}

static void meet_deadline(struct run *r)
{
	r->deadline_ns = 0;
	if (!r->killed) {
		/* A command that has ended is in time, however slow the reader of its output is. */
		if (r->ended)
			return;
		r->result->timed_out = true;
		kill_all(r);
		return;
	}
	if (!r->ended)
		give_up(r);
	if (r->out_len)
		r->result->truncated = true;
	r->out_len = 0;
}

/* ---- from init ---- */

static void deliver(struct run *r)
{
	const struct exec_sink *sink = &r->options->sink;
	int i = r->out_stream - 1;

	while (r->out_len) {
		uint64_t left = r->options->output_bytes ? r->options->output_bytes - r->delivered[i] : UINT64_MAX;
		ssize_t n;

		if (!left || r->result->sink_failed) {
			r->result->truncated = true;
			r->out_len = 0;
			return;
		}
		n = sink->write(sink->ctx, r->out_stream, r->out, MIN((uint64_t) r->out_len, left));
		if (n < 0) {
			r->result->sink_failed = r->result->canceled = true;
			kill_all(r);
			continue;
		}
		if (n == 0)
			return;
		r->out += n;
		r->out_len -= (size_t) n;
		r->delivered[i] += (uint64_t) n;
	}
}

/* Once the command runs, an error answers one message to it; only if nothing follows is it the end. */
static int take_error(struct run *r, struct wire_reader *in)
{
	struct init_error e;

	if (!init_decode_error(in, &e))
		return err_set(r->err, ERR_INTERNAL, "malformed error of the sandbox's init");
	r->complaint.code = e.code;
	r->complaint.sys = e.sys;
	memcpy(r->complaint.msg, e.msg, sizeof r->complaint.msg);
	if (r->started)
		return 0;
	r->step = e.step;
	if (r->err)
		*r->err = r->complaint;
	return -1;
}

static int take_packet(struct run *r, size_t len)
{
	struct wire_reader in = { .data = r->packet + INIT_HEADER };
	struct init_header h;

	if (!init_get_header(r->packet, len, &h))
		return err_set(r->err, ERR_INTERNAL, "malformed packet of the sandbox's init");
	in.len = h.len;
	/* STARTED comes first and once, unless there is nothing but an error. */
	if ((h.type == INIT_STARTED) == r->started && h.type != INIT_ERROR)
		return err_set(r->err, ERR_INTERNAL, "packet %u of the sandbox's init is out of order", h.type);
	r->complaint.code = ERR_OK;
	switch (h.type) {
	case INIT_STARTED:
		r->started = true;
		return 0;
	case INIT_STDOUT:
	case INIT_STDERR:
		r->out_stream = h.type == INIT_STDOUT ? 1 : 2;
		r->out = (const char *) in.data;
		r->out_len = in.len;
		r->received[r->out_stream - 1] += in.len;
		deliver(r);
		return 0;
	case INIT_STDIN_CREDIT:
		r->in_credit = MIN(r->in_credit + wire_get_u32(&in), (uint64_t) INIT_CREDIT_MAX);
		return 0;
	case INIT_EXIT:
		if (!init_decode_exit(&in, &r->result->exit))
			return err_set(r->err, ERR_INTERNAL, "malformed exit report of the sandbox's init");
		r->ended = true;
		return 0;
	case INIT_ERROR:
		return take_error(r, &in);
	default:
		return err_set(r->err, ERR_INTERNAL, "unexpected packet %u of the sandbox's init", h.type);
	}
}

/* The connection ended without an exit report (a result must never be made up from that). */
static int lost(struct run *r)
{
	struct spawn_stats stats;
	struct err ignored = { 0 };

	if (r->killed) {
		give_up(r);
		return 0;
	}
	if (r->complaint.code) {
		if (r->err)
			*r->err = r->complaint;
		return -1;
	}
	if (sandbox_stats(r->sb, &stats, &ignored) == 0 && stats.oom_kills)
		return err_set(r->err, ERR_EXHAUSTED, "the sandbox's init ended: its memory limit was reached");
	return err_set(r->err, ERR_UNAVAILABLE, "the sandbox ended %s",
	               r->started ? "while the command ran" : "before the command began");
}

/* Reads what is there, a few packets at a time, so that signals keep their turn. */
static int read_conn(struct run *r)
{
	for (int i = 0; i < 16 && !r->ended && !r->out_len; i++) {
		ssize_t n = recv(r->conn, r->packet, INIT_PACKET_MAX, MSG_DONTWAIT);

		/* A reset is told once, before the packets that still wait. */
		if (n < 0 && (errno == EINTR || errno == ECONNRESET))
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0)
			return lost(r);
		if (take_packet(r, (size_t) n) < 0)
			return -1;
	}
	return 0;
}

/* ---- signals ---- */

static void take_signal(struct run *r)
{
	struct signalfd_siginfo si;

	if (read(r->options->signal_fd, &si, sizeof si) != sizeof si)
		return;
	if (si.ssi_signo == SIGWINCH) {
		r->resize = r->options->tty_fd >= 0;
		return;
	}
	if (r->result->canceled || r->ended) {
		kill_all(r);
		return;
	}
	r->result->canceled = true;
	r->result->signal = r->signal = (int) si.ssi_signo;
	if (si.ssi_signo == SIGTERM || si.ssi_signo == SIGHUP)
		r->grace_ns = after_ms(EXEC_GRACE_MS);
}

/* ---- the loop ---- */

enum { POLL_CONN, POLL_SINK, POLL_SIGNAL, POLL_STDIN, POLL_COUNT };

static int next_timeout(const struct run *r)
{
	uint64_t at = r->deadline_ns;

	if (r->grace_ns && (!at || r->grace_ns < at))
		at = r->grace_ns;
	return at ? ms_until(at) : -1;
}

static int step(struct run *r)
{
	bool want_stdin = r->in_open && r->started && !r->in_len && r->in_credit;
	struct pollfd p[POLL_COUNT] = {
		[POLL_CONN] = { .fd = r->conn, .events = (short) ((r->out_len ? 0 : POLLIN) |
		                                                  (r->conn_full ? POLLOUT : 0)) },
		[POLL_SINK] = { .fd = r->out_len ? r->options->sink.poll_fd[r->out_stream - 1] : -1, .events = POLLOUT },
		[POLL_SIGNAL] = { .fd = r->options->signal_fd, .events = POLLIN },
		[POLL_STDIN] = { .fd = want_stdin ? r->options->stdin_fd : -1, .events = POLLIN },
	};

	/* Nothing to ask of the connection: an error on it alone must not make the loop spin. */
	if (!p[POLL_CONN].events)
		p[POLL_CONN].fd = -1;
	if (poll(p, POLL_COUNT, next_timeout(r)) < 0)
		return errno == EINTR ? 0 : err_sys(r->err, errno, "wait for the command");
	if (p[POLL_SIGNAL].revents)
		take_signal(r);
	if (p[POLL_SINK].revents)
		deliver(r);
	if (p[POLL_STDIN].revents)
		read_stdin(r);
	if ((p[POLL_CONN].revents & ~POLLOUT) && read_conn(r) < 0)
		return -1;
	flush_to_init(r);
	if (!r->ended && r->grace_ns && now_ns() >= r->grace_ns)
		kill_all(r);
	if (r->deadline_ns && now_ns() >= r->deadline_ns)
		meet_deadline(r);
	return 0;
}

static int converse(struct run *r)
{
	const struct exec_options *o = r->options;

	if (send_exec(r) < 0)
		return -1;
	r->started_ns = now_ns();
	if (o->timeout_ms)
		r->deadline_ns = r->started_ns + o->timeout_ms * 1000000;
	r->in_open = o->stdin_fd >= 0 && (o->exec->flags & (INIT_EXEC_STDIN | INIT_EXEC_PTY));
	r->in_credit = INIT_PAYLOAD_MAX;
	while (!r->ended || (r->out_len && !r->result->sink_failed))
		if (step(r) < 0)
			return -1;
	return 0;
}

/* Whether the counters could hold the reason of what happened. */
static bool is_suspicious(const struct exec_result *res)
{
	return res->timed_out || res->exit.signaled || res->exit.status || (res->exit.flags & INIT_EXIT_KILLED);
}

static void judge(struct run *r)
{
	struct exec_result *res = r->result;
	struct err ignored = { 0 };

	if ((r->options->want_stats || is_suspicious(res)) && sandbox_stats(r->sb, &res->stats, &ignored) == 0)
		res->has_stats = true;
	exec_judge(res, r->options, res->has_stats ? &res->stats : NULL);
}

int sandbox_exec(struct sandbox *sb, const struct exec_options *options, struct exec_result *ret,
                 enum init_step *ret_step, struct err *err)
{
	struct exec_result result = { 0 };
	struct run r = { .sb = sb, .options = options, .result = &result, .err = err, .conn = -1 };
	int outcome;

	if (ret_step)
		*ret_step = INIT_STEP_REQUEST;
	if (sandbox_connect(sb, &r.conn, err) < 0)
		return -1;
	r.packet = options->space ? options->space : xcalloc(1, INIT_PACKET_MAX);
	r.in = options->stdin_fd >= 0 ? xcalloc(1, INIT_PACKET_MAX) : NULL;
	outcome = converse(&r);
	if (outcome == 0) {
		judge(&r);
		*ret = result;
	} else if (ret_step) {
		*ret_step = r.step;
	}
	close(r.conn);
	if (!options->space)
		free(r.packet);
	free(r.in);
	return outcome;
}

int exec_status(const struct exec_result *result)
{
	if (result->timed_out)
		return 124;
	if (result->sink_failed)
		return 128 + SIGPIPE;
	return result->exit.signaled ? 128 + result->exit.status : result->exit.status;
}
