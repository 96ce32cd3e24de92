/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spawner and an init that follow a script, for tests of their clients: no namespaces, no
 * privileges, the real protocols.  CUVETTE_FAKE names the script; what init was sent is
 * told back through its output or its exit code.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/fd.h"
#include "wire/init.h"
#include "wire/spawn.h"

static const char *script;
static pid_t init_pid;
static volatile sig_atomic_t killed;

static bool is_script(const char *name)
{
	return !strcmp(script, name);
}

/* ---- init ---- */

static void put(int conn, uint8_t type, const void *data, size_t len)
{
	static uint8_t packet[INIT_PACKET_MAX];

	init_put_header(packet, type, 0, (uint32_t) len);
	if (len)
		memcpy(packet + INIT_HEADER, data, len);
	if (send_msg(conn, packet, INIT_HEADER + len, NULL, 0) < 0)
		_exit(0);
}

static void put_error(int conn, enum err_code code, int sys, enum init_step step, const char *msg)
{
	struct init_error e = { .code = (uint8_t) code, .sys = sys, .step = (uint8_t) step };
	uint8_t data[512];
	struct wire_writer w = { .data = data, .cap = sizeof data };

	snprintf(e.msg, sizeof e.msg, "%s", msg);
	init_encode_error(&w, &e);
	put(conn, INIT_ERROR, data, w.len);
}

static void put_exit(int conn, struct init_exit e)
{
	uint8_t data[512];
	struct wire_writer w = { .data = data, .cap = sizeof data };

	e.pid = 3;
	init_encode_exit(&w, &e);
	put(conn, INIT_EXIT, data, w.len);
}

static uint8_t packet[INIT_PACKET_MAX];

/* The next packet's type, 0 at the end or when the sandbox was killed. */
static uint8_t get(int conn, struct init_header *h)
{
	while (!killed) {
		struct pollfd p = { .fd = conn, .events = POLLIN };

		if (poll(&p, 1, 5) <= 0)
			continue;
		ssize_t n = recv(conn, packet, sizeof packet, 0);

		return n > 0 && init_get_header(packet, (size_t) n, h) ? h->type : 0;
	}
	return 0;
}

static void put_started(int conn)
{
	put(conn, INIT_STARTED, "\3\0\0\0\7\0\0\0/bin/sh", 15);
}

/* Sums what arrives on stdin and answers with the count; grants credit as it takes it. */
static void count_stdin(int conn)
{
	unsigned long long total = 0;
	struct init_header h;
	uint8_t type, credit[4];
	char text[64];

	while ((type = get(conn, &h)) == INIT_STDIN) {
		struct wire_writer w = { .data = credit, .cap = sizeof credit };

		total += h.len;
		wire_put_u32(&w, h.len);
		put(conn, INIT_STDIN_CREDIT, credit, w.len);
	}
	put(conn, INIT_STDOUT, text, (size_t) snprintf(text, sizeof text, "%llu%s", total, type == INIT_STDIN_EOF ? " end" : ""));
	put_exit(conn, (struct init_exit) { .stdout_bytes = 1 });
}

static void flood(int conn)
{
	static char chunk[INIT_PAYLOAD_MAX];
	uint64_t sent = 0;

	memset(chunk, 'x', sizeof chunk);
	for (int i = 0; i < 64 && !killed; i++, sent += sizeof chunk)
		put(conn, INIT_STDOUT, chunk, sizeof chunk);
	put_exit(conn, (struct init_exit) { .stdout_bytes = sent, .signaled = killed != 0, .status = killed ? SIGKILL : 0 });
}

static void wait_for_end(int conn, bool obey)
{
	struct init_header h;
	uint8_t type;

	while ((type = get(conn, &h)) != 0)
		if (type == INIT_SIGNAL && obey) {
			put_exit(conn, (struct init_exit) { .signaled = 1, .status = packet[INIT_HEADER] });
			return;
		}
	put_exit(conn, (struct init_exit) { .signaled = 1, .status = SIGKILL });
}

/* ---- init's files ---- */

static void put_stat(int conn, uint32_t mode, int fd)
{
	static uint8_t data[INIT_PACKET_MAX];
	struct wire_writer w = { .data = data + INIT_HEADER, .cap = INIT_PAYLOAD_MAX };
	struct init_stat st = { .mode = mode };

	init_encode_stat(&w, &st);
	init_put_header(data, INIT_FILE_REPLY, 0, (uint32_t) w.len);
	if (send_msg(conn, data, INIT_HEADER + w.len, &fd, fd >= 0) < 0)
		_exit(1);
}

static void put_entries(int conn, uint32_t count, const char *name, uint32_t mode, bool more)
{
	static uint8_t data[INIT_PACKET_MAX];
	struct wire_writer w = { .data = data + INIT_HEADER, .cap = INIT_PAYLOAD_MAX };
	struct init_stat st = { .mode = mode };

	wire_put_u32(&w, count);
	for (uint32_t i = 0; i < count; i++) {
		wire_put_str(&w, name);
		init_encode_stat(&w, &st);
	}
	init_put_header(data, INIT_ENTRIES, more ? INIT_MORE : 0, (uint32_t) w.len);
	if (send_msg(conn, data, INIT_HEADER + w.len, NULL, 0) < 0)
		_exit(1);
}

/* A hostile init's idea of a directory. */
static void list(int conn)
{
	char name[240];

	memset(name, 'n', sizeof name);
	name[sizeof name - 1] = '\0';
	while (is_script("list-nothing"))
		put_entries(conn, 0, "", 0, true);
	if (is_script("list-up"))
		put_entries(conn, 1, "../x", S_IFREG, false);
	if (is_script("list-wide"))
		for (int i = 0; i < 160; i++)
			put_entries(conn, 200, name, S_IFIFO, true);
	put_entries(conn, 1, is_script("list-file") ? "f" : "d", is_script("list-file") ? S_IFREG : S_IFDIR | 0755, false);
}

static int open_oddity(void)
{
	int ends[2];

	if (is_script("open-device"))
		return open("/dev/zero", O_RDWR);
	if (is_script("open-proc") || is_script("list-file"))
		return open("/proc/self/oom_score_adj", O_RDWR);
	return pipe(ends) == 0 ? ends[0] : -1;
}

static void act_file(int conn, size_t len)
{
	struct wire_reader r = { .data = packet + INIT_HEADER, .len = len };
	static struct init_file f;

	if (!init_decode_file(&r, &f))
		return;
	if (is_script("mute"))
		pause();
	else if (f.op == INIT_FILE_STAT)
		put_stat(conn, !strncmp(script, "list", 4) ? S_IFDIR : S_IFREG, -1);
	else if (f.op == INIT_FILE_LIST)
		list(conn);
	else
		put_stat(conn, S_IFREG, open_oddity());
}

/* The answer of an init that has no room, at once or when a request is there, and never read. */
static void refuse(int conn, bool at_once)
{
	struct pollfd p = { .fd = conn, .events = POLLIN };

	if (!at_once)
		poll(&p, 1, 5000);
	put_error(conn, ERR_EXHAUSTED, 0, INIT_STEP_REQUEST, "no free connection");
}

static void act(int conn)
{
	struct init_header h;
	uint8_t type;

	if (is_script("refused") || is_script("refused-unread")) {
		refuse(conn, is_script("refused"));
		return;
	}
	if (is_script("deaf"))
		pause();
	do {
		type = get(conn, &h);
		if (type == INIT_FILE)
			act_file(conn, h.len);
		if (type != INIT_EXEC)
			return;
	} while (h.flags & INIT_MORE);
	if (is_script("early-exit")) {
		put_exit(conn, (struct init_exit) { 0 });
		return;
	}
	if (is_script("missing")) {
		put_error(conn, ERR_NOT_FOUND, ENOENT, INIT_STEP_EXEC, "nosuchcmd_x: No such file or directory");
		return;
	}
	if (is_script("no-cwd")) {
		put_error(conn, ERR_NOT_FOUND, ENOENT, INIT_STEP_CWD, "open /no/such: No such file or directory");
		return;
	}
	put_started(conn);
	if (is_script("lost")) {
		put(conn, INIT_STDOUT, "some", 4);
	} else if (is_script("malformed")) {
		(void) !send(conn, "\1\101\0\0\377", 5, 0);
	} else if (is_script("twice")) {
		put_started(conn);
		put_exit(conn, (struct init_exit) { 0 });
	} else if (is_script("bad-signal")) {
		put_exit(conn, (struct init_exit) { .signaled = 1, .status = 128 });
	} else if (is_script("complains") || is_script("complains-last")) {
		put_error(conn, ERR_EXHAUSTED, 0, INIT_STEP_REQUEST, "a complaint");
		if (is_script("complains"))
			put_exit(conn, (struct init_exit) { .status = 7 });
	} else if (is_script("stdin")) {
		count_stdin(conn);
	} else if (is_script("flood")) {
		flood(conn);
	} else if (is_script("hang")) {
		wait_for_end(conn, false);
	} else if (is_script("obey")) {
		wait_for_end(conn, true);
	} else if (is_script("oom")) {
		put_exit(conn, (struct init_exit) { .signaled = 1, .status = SIGKILL, .flags = INIT_EXIT_KILLED,
		                                    .killed_pid = 4, .killed_name = "py\033[31m" });
	} else {
		put(conn, INIT_STDOUT, "\360\237", 2);
		put(conn, INIT_STDERR, "e\n", 2);
		put(conn, INIT_STDOUT, "\230\200", 2);
		put_exit(conn, (struct init_exit) { .status = 7, .stdout_bytes = 4, .stderr_bytes = 2 });
	}
}

static void on_kill(int sig)
{
	(void) sig;
	killed = 1;
}

/* A new process at the other end of a new connection. */
static int start_init(int *ret_pidfd)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		_exit(1);
	init_pid = fork();
	if (init_pid == 0) {
		struct sigaction action = { .sa_handler = on_kill };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigaction(SIGUSR1, &action, NULL);
		close(pair[0]);
		close(3);
		act(pair[1]);
		_exit(0);
	}
	close(pair[1]);
	*ret_pidfd = (int) syscall(SYS_pidfd_open, init_pid, 0);
	return pair[0];
}

/* ---- the spawner ---- */

static void fill_stats(struct spawn_stats *s)
{
	s->memory_limit_bytes = s->memory_peak_bytes = 64 << 20;
	s->oom_kills = is_script("oom");
}

int main(void)
{
	uint8_t data[SPAWN_REQUEST_SIZE], out[SPAWN_REPLY_SIZE];
	struct err err = { 0 };
	ssize_t n;

	script = getenv("CUVETTE_FAKE");
	if (!script)
		return 1;
	if (is_script("dead"))
		return 1;
	while ((n = recv(3, data, sizeof data, 0)) > 0) {
		struct spawn_reply reply = { 0 };
		struct spawn_request req;
		int fds[2] = { -1, -1 };
		size_t nfds = 0;

		if (spawn_decode_request(data, (size_t) n, &req, &err) < 0)
			return 1;
		reply.type = req.type;
		memcpy(reply.id, "fake0000000000000001", SPAWN_ID_SIZE);
		if (is_script("refuse"))
			err_set(&reply.err, ERR_EXHAUSTED, "no slot is free");
		else if (req.type == SPAWN_CREATE) {
			fds[1] = start_init(&fds[0]);
			nfds = 2;
		} else if (req.type == SPAWN_CONNECT) {
			int pidfd;

			fds[0] = start_init(&pidfd);
			close(pidfd);
			nfds = 1;
		} else if (req.type == SPAWN_KILL || req.type == SPAWN_DESTROY) {
			kill(init_pid, req.type == SPAWN_KILL ? SIGUSR1 : SIGKILL);
		}
		fill_stats(&reply.stats);
		spawn_encode_reply(&reply, out);
		if (send_msg(3, out, sizeof out, fds, nfds) < 0)
			return 1;
		for (size_t i = 0; i < nfds; i++)
			close(fds[i]);
	}
	return 0;
}
