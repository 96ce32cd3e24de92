/* SPDX-License-Identifier: Apache-2.0 */
/* command_start(): from a request to a running command with its pipes or its terminal. */
#include "init/command.h"

#include <fcntl.h>
#include <string.h>
#include "base/clock.h"
#include "init/launch.h"
#include "init/pty.h"
#include "init/scratch.h"
#include "init/setup.h"

/* Descriptors on both sides of a command. */
struct plumbing {
	int ours[3];
	int theirs[3];
};

static void plumbing_done(struct plumbing *p)
{
	for (size_t i = 0; i < 3; i++) {
		if (p->theirs[i] != -1 && (i != 2 || p->theirs[2] != p->theirs[1]))
			close(p->theirs[i]);
		close_fd(p->ours[i]);
	}
}

/* A pipe whose end on our side does not block. */
static int make_pipe(int *ours, int *theirs, bool to_command, struct err *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, errno, "make a pipe");
	*ours = ends[to_command ? 1 : 0];
	*theirs = ends[to_command ? 0 : 1];
	if (fcntl(*ours, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, errno, "make a pipe");
	return 0;
}

static int make_pipes(const struct init_exec *exec, struct plumbing *p, struct err *err)
{
	if (exec->flags & INIT_EXEC_STDIN && make_pipe(&p->ours[0], &p->theirs[0], true, err) < 0)
		return -1;
	if (make_pipe(&p->ours[1], &p->theirs[1], false, err) < 0)
		return -1;
	if (exec->flags & INIT_EXEC_MERGE) {
		p->theirs[2] = p->theirs[1];
		return 0;
	}
	return make_pipe(&p->ours[2], &p->theirs[2], false, err);
}

/* The terminal is read through one descriptor and written through another, so that each
 * has a place of its own in the loop. */
static int make_terminal(const struct init_exec *exec, const struct user *user, struct plumbing *p, struct err *err)
{
	if (pty_open(exec->rows, exec->cols, user->uid, &p->ours[1], &p->theirs[1], err) < 0)
		return -1;
	p->theirs[2] = p->theirs[1];
	p->theirs[0] = fcntl(p->theirs[1], F_DUPFD_CLOEXEC, 3);
	p->ours[0] = fcntl(p->ours[1], F_DUPFD_CLOEXEC, 3);
	if (p->theirs[0] < 0 || p->ours[0] < 0)
		return err_sys(err, errno, "duplicate the terminal");
	return 0;
}

/* A child born into a frozen group would stop before its exec, and init with it (case C19 of the probes). */
static int check_frozen(struct err *err)
{
	char text[128];
	ssize_t n;

	if (setup.frozen_fd < 0)
		return 0;
	n = pread(setup.frozen_fd, text, sizeof text - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	if (strstr(text, "frozen 1"))
		return err_set(err, ERR_PRECONDITION, "the sandbox is frozen");
	return 0;
}

/*
 * The record of PROCS, kept encoded.  A long command line is cut at the end of
 * an argument, so that thousands of commands stay cheap to remember.
 */
static void set_about(struct command *cmd, const struct init_exec *exec, const char *cwd)
{
	struct wire_writer w = { .data = (uint8_t *) scratch.path, .cap = sizeof scratch.path };
	size_t count_at;
	uint32_t argc = 0;

	wire_put_u32(&w, cmd->exit.pid);
	wire_put_u8(&w, cmd->terminal);
	wire_put_str(&w, exec->tag);
	wire_put_str(&w, cwd);
	count_at = w.len;
	wire_put_u32(&w, 0);
	for (char **arg = exec->argv; *arg && strlen(*arg) + 4 <= w.cap - w.len; arg++, argc++)
		wire_put_str(&w, *arg);
	for (size_t i = 0; i < 4; i++)
		w.data[count_at + i] = (uint8_t) (argc >> (8 * i));
	cmd->about = xcalloc(1, w.len);
	cmd->about_len = (uint32_t) w.len;
	memcpy(cmd->about, w.data, w.len);
}

static void take_plumbing(struct command *cmd, struct plumbing *p)
{
	static const uint8_t types[2] = { INIT_STDOUT, INIT_STDERR };

	for (size_t i = 0; i < 2; i++)
		cmd->streams[i] = (struct stream) {
			.src = { .fd = TAKE_FD(p->ours[i + 1]), .ready = command_stream_ready },
			.command = cmd, .type = types[i],
		};
	cmd->input = (struct source) { .fd = TAKE_FD(p->ours[0]), .ready = command_input_ready };
}

static int make_plumbing(const struct init_exec *exec, const struct user *user, struct plumbing *p, struct err *err)
{
	return exec->flags & INIT_EXEC_PTY ? make_terminal(exec, user, p, err) : make_pipes(exec, p, err);
}

int command_start(const struct init_exec *exec, int cgroup_fd, struct command **ret, enum init_step *ret_step,
                  struct err *err)
{
	_cleanup_(plumbing_done) struct plumbing p = { { -1, -1, -1 }, { -1, -1, -1 } };
	_cleanup_free_ char **env = NULL;
	struct launch plan = {
		.argv = exec->argv,
		.terminal = exec->flags & INIT_EXEC_PTY,
		.cgroup_fd = cgroup_fd >= 0 ? cgroup_fd : setup.cgroup_fd,
	};
	uint64_t started_ns = now_ns();
	struct command *cmd;
	pid_t pid;

	*ret_step = INIT_STEP_REQUEST;
	if (command_count_all() >= COMMANDS_MAX)
		return err_set(err, ERR_EXHAUSTED, "more than %d commands", COMMANDS_MAX);
	if (check_frozen(err) < 0)
		return -1;
	*ret_step = INIT_STEP_USER;
	if (user_find(exec->user, &plan.user, err) < 0)
		return -1;
	*ret_step = INIT_STEP_CWD;
	plan.cwd = exec->cwd[0] ? exec->cwd : plan.user->home;
	plan.cwd_optional = !exec->cwd[0];
	if (plan.cwd[0] != '/')
		return err_set(err, ERR_INVALID, "working directory %.160s must be an absolute path", plan.cwd);
	*ret_step = INIT_STEP_REQUEST;
	if (environment_make(exec, plan.user, &env, &plan.search, err) < 0)
		return -1;
	plan.env = env;
	*ret_step = INIT_STEP_PIPES;
	if (make_plumbing(exec, plan.user, &p, err) < 0)
		return -1;
	memcpy(plan.stdio, p.theirs, sizeof plan.stdio);
	pid = launch(&plan, ret_step, err);
	if (pid < 0)
		return -1;

	cmd = xcalloc(1, sizeof *cmd);
	cmd->exit.pid = (uint32_t) pid;
	cmd->started_ns = started_ns;
	cmd->terminal = plan.terminal;
	take_plumbing(cmd, &p);
	set_about(cmd, exec, plan.cwd);
	command_add(cmd);
	*ret = cmd;
	return 0;
}
