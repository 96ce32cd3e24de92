/* SPDX-License-Identifier: Apache-2.0 */
#include "init/command.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include "base/clock.h"
#include "init/conn.h"
#include "init/pty.h"

enum {
	BUCKETS = 64,
	FINISHED_MAX = 32,              /* finished commands kept until somebody asks */
};

static struct command *buckets[BUCKETS];
static struct command *finished;
static size_t live, existing;

static struct {
	pid_t pid;
	uint64_t at_ns;
	char name[sizeof ((struct init_exit *) NULL)->killed_name];
} last_killed;

/* ---- the table ---- */

static struct command **bucket_of(uint32_t pid)
{
	return &buckets[pid % BUCKETS];
}

void command_add(struct command *cmd)
{
	struct command **at = bucket_of(cmd->exit.pid);

	cmd->next = *at;
	*at = cmd;
	live++;
	existing++;
}

static void table_remove(struct command *cmd)
{
	struct command **at = bucket_of(cmd->exit.pid);

	while (*at != cmd)
		at = &(*at)->next;
	*at = cmd->next;
	live--;
}

static struct command *find_running(uint32_t pid)
{
	struct command *cmd = *bucket_of(pid);

	while (cmd && cmd->exit.pid != pid)
		cmd = cmd->next;
	return cmd;
}

struct command *command_find(uint32_t pid)
{
	struct command *cmd = find_running(pid);

	for (cmd = cmd ? cmd : finished; cmd && cmd->exit.pid != pid; cmd = cmd->older)
		;
	return cmd;
}

size_t command_count_live(void)
{
	return live;
}

size_t command_count_all(void)
{
	return existing;
}

void command_each(bool (*each)(void *ctx, const struct command *cmd), void *ctx)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct command *cmd = buckets[i]; cmd; cmd = cmd->next)
			if (!each(ctx, cmd))
				return;
}

/* ---- the end ---- */

static void finished_remove(struct command *cmd)
{
	for (struct command **at = &finished; *at; at = &(*at)->older) {
		if (*at == cmd) {
			*at = cmd->older;
			cmd->older = NULL;
			return;
		}
	}
}

/* Frees it once nobody and nothing needs it: no consumer, no pipe, and its end was told. */
static void release(struct command *cmd)
{
	bool has_pipes = cmd->streams[0].src.fd >= 0 || cmd->streams[1].src.fd >= 0;

	if (!cmd->done || !cmd->told || cmd->pinned || cmd->consumers || has_pipes)
		return;
	finished_remove(cmd);
	loop_drop(&cmd->input);
	ring_done(&cmd->unread);
	free(cmd->about);
	free(cmd);
	existing--;
}

/* Nobody has heard of its end: keeps it for an ATTACH to come, and forgets the oldest such command. */
static void keep(struct command *cmd)
{
	struct command *last = cmd;
	size_t n = 0;

	cmd->older = finished;
	finished = cmd;
	for (struct command *at = finished; at; at = at->older, n++)
		last = at;
	if (n <= FINISHED_MAX)
		return;
	finished_remove(last);
	ring_done(&last->unread);
	last->told = true;
	release(last);
}

static void finish(struct command *cmd)
{
	cmd->done = cmd->pinned = true;
	for (size_t i = 0; i < 2; i++)
		if (cmd->streams[i].src.fd >= 0)
			cmd->exit.flags |= INIT_EXIT_INCOMPLETE;
	cmd->exit.stdout_bytes = cmd->streams[0].bytes;
	cmd->exit.stderr_bytes = cmd->streams[1].bytes;
	if (!cmd->consumers)
		keep(cmd);
	for (struct conn *conn = cmd->consumers, *next; conn; conn = next) {
		next = conn->next;
		conn_finish(conn);
	}
	/* Pipes that somebody still holds go on being emptied. */
	command_resume(cmd);
	cmd->pinned = false;
	release(cmd);
}

void command_check(struct command *cmd)
{
	if (cmd->done)
		release(cmd);
	else if (cmd->exited && cmd->streams[0].drained && cmd->streams[1].drained)
		finish(cmd);
}

/* ---- reaping ---- */

void command_note_killed(pid_t pid, const char *name)
{
	last_killed.pid = pid;
	last_killed.at_ns = now_ns();
	memset(last_killed.name, 0, sizeof last_killed.name);
	memcpy(last_killed.name, name, MIN(strlen(name), sizeof last_killed.name - 1));
}

static uint64_t microseconds(const struct timeval *t)
{
	return (uint64_t) t->tv_sec * 1000000 + (uint64_t) t->tv_usec;
}

static void fill_exit(struct command *cmd, int status, const struct rusage *usage)
{
	struct init_exit *e = &cmd->exit;

	e->signaled = WIFSIGNALED(status);
	e->status = (uint8_t) (e->signaled ? WTERMSIG(status) : WEXITSTATUS(status));
	e->core = e->signaled && WCOREDUMP(status);
	e->user_us = microseconds(&usage->ru_utime);
	e->system_us = microseconds(&usage->ru_stime);
	e->max_rss_bytes = (uint64_t) usage->ru_maxrss * 1024;
	e->wall_us = (now_ns() - cmd->started_ns) / 1000;
	if (last_killed.pid && last_killed.at_ns >= cmd->started_ns) {
		e->flags |= INIT_EXIT_KILLED;
		e->killed_pid = (uint32_t) last_killed.pid;
		memcpy(e->killed_name, last_killed.name, sizeof e->killed_name);
	}
}

void command_reaped(pid_t pid, int status, const struct rusage *usage)
{
	struct command *cmd = find_running((uint32_t) pid);

	if (!cmd)
		return;
	table_remove(cmd);
	cmd->exited = true;
	fill_exit(cmd, status, usage);
	loop_drop(&cmd->input);
	command_drain(cmd);
	command_check(cmd);
}

/* ---- consumers ---- */

void command_add_consumer(struct command *cmd, struct conn *conn)
{
	finished_remove(cmd);
	conn->next = cmd->consumers;
	cmd->consumers = conn;
	conn->command = cmd;
	conn->backlog = cmd->unread;
	cmd->unread = (struct ring) { 0 };
}

void command_remove_consumer(struct command *cmd, struct conn *conn)
{
	struct conn **at = &cmd->consumers;

	while (*at != conn)
		at = &(*at)->next;
	*at = conn->next;
	conn->command = NULL;
	if (!cmd->consumers && !cmd->told) {
		cmd->unread = conn->backlog;
		conn->backlog = (struct ring) { 0 };
		if (cmd->done)
			keep(cmd);
	}
	if (!cmd->done)
		command_resume(cmd);
	else
		release(cmd);
}

/* ---- input ---- */

void command_input_ready(struct source *src, uint32_t events)
{
	struct command *cmd = CONTAINER_OF(src, struct command, input);

	if (events & (EPOLLERR | EPOLLHUP) || loop_watch(src, 0) < 0)
		loop_drop(src);
	for (struct conn *conn = cmd->consumers, *next; conn; conn = next) {
		next = conn->next;
		conn_feed(conn);
	}
}

size_t command_write(struct command *cmd, const void *data, size_t len)
{
	ssize_t n;

	/* Input that nobody will ever read is as good as read: the host must not wait for it. */
	if (cmd->input.fd < 0)
		return len;
	n = write(cmd->input.fd, data, len);
	if (n == (ssize_t) len)
		return len;
	if (loop_watch(&cmd->input, EPOLLOUT) < 0) {
		loop_drop(&cmd->input);
		return len;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return len;             /* the reader has gone; the loop will say so and drop it */
	return n < 0 ? 0 : (size_t) n;
}

void command_end_input(struct command *cmd)
{
	struct termios t;

	if (cmd->input.fd < 0)
		return;
	if (!cmd->terminal)
		loop_drop(&cmd->input);
	else if (tcgetattr(cmd->input.fd, &t) == 0)
		(void) !write(cmd->input.fd, &t.c_cc[VEOF], 1);
}

int command_signal(struct command *cmd, uint32_t sig, struct err *err)
{
	if (sig < 1 || sig > 64)
		return err_set(err, ERR_INVALID, "signal must be 1 to 64, not %u", sig);
	/* A group without a member left has nobody to be told. */
	if (!cmd->exited && kill(-(pid_t) cmd->exit.pid, (int) sig) < 0 && errno != ESRCH)
		return err_sys(err, errno, "signal process group %u", cmd->exit.pid);
	return 0;
}

int command_resize(struct command *cmd, uint16_t rows, uint16_t cols, struct err *err)
{
	if (!cmd->terminal)
		return err_set(err, ERR_PRECONDITION, "the command has no terminal");
	if (cmd->exited || cmd->streams[0].src.fd < 0)
		return 0;
	return pty_resize(cmd->streams[0].src.fd, rows, cols, err);
}
