/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-pool DIGEST: commands in new sandboxes that a spawner keeps ready.
 *
 *      run PROGRAM ARG...   claims one, runs the command and waits for its end
 *
 * Answers are nanoseconds, without the removal of the sandbox.
 */
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "sandbox/sandbox.h"
#include "worker.h"

enum { READY = 2 };

static struct spawner *spawner;
static struct spawn_request kind = { .type = SPAWN_CREATE };

static ssize_t swallow(_unused_ void *ctx, _unused_ int stream, _unused_ const char *data, size_t len)
{
	return (ssize_t) len;
}

static int run_in(struct sandbox *sb, char **argv, struct err *err)
{
	struct init_exec exec = { .cwd = "/", .argv = argv };
	struct exec_options options = {
		.exec = &exec, .stdin_fd = -1, .tty_fd = -1, .signal_fd = -1,
		.sink = { .write = swallow, .poll_fd = { -1, -1 } },
	};
	struct exec_result result;
	enum init_step step;

	if (sandbox_exec(sb, &options, &result, &step, err) < 0)
		return -1;
	if (exec_status(&result))
		return err_set(err, ERR_INTERNAL, "%s ended with status %d", argv[0], exec_status(&result));
	return 0;
}

static int run(int argc, char **argv, uint64_t *ret, struct err *err)
{
	uint64_t began = now_ns();
	struct sandbox *sb;
	int r;

	if (argc < 2)
		return err_set(err, ERR_INVALID, "run needs a program");
	if (sandbox_create(spawner, &kind, &sb, err) < 0)
		return -1;
	r = run_in(sb, argv + 1, err);
	*ret = now_ns() - began;
	if (sandbox_destroy(sb, NULL, r < 0 ? NULL : err) < 0)
		return -1;
	return r;
}

static const struct worker_command table[] = {
	{ "run", run },
	{ NULL, NULL },
};

static int prepare(int argc, char **argv, struct err *err)
{
	struct spawner_options options = { .ephemeral = true };
	struct spawn_request pool = { .type = SPAWN_POOL, .count = READY };
	struct spawn_reply reply;

	if (argc != 2)
		return err_set(err, ERR_INVALID, "usage: bench-pool DIGEST");
	snprintf(kind.digest, sizeof kind.digest, "%s", argv[1]);
	snprintf(pool.digest, sizeof pool.digest, "%s", argv[1]);
	if (spawner_start(&options, &spawner, err) < 0)
		return -1;
	return spawner_call(spawner, &pool, &reply, NULL, NULL, err);
}

int main(int argc, char **argv)
{
	struct err err = { 0 };
	int r;

	if (worker_start(&err) < 0)
		return err_exit(&err);
	r = prepare(argc, argv, &err);
	worker_ready(r, 0, &err);
	if (r == 0)
		worker_serve(table);
	spawner_close(spawner);
	return r < 0 ? err_exit(&err) : 0;
}
