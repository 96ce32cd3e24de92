/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "cli/job.h"

enum {
	DEFAULT_TIMEOUT_MS = 60000,
	JSON_OUTPUT_DEFAULT = 1 << 20,
	JSON_OUTPUT_MAX = 256 << 20,    /* held in memory, and again as text */
};

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

static int plan_limits(const struct job_options *o, struct spawn_request *ret)
{
	struct spawn_limits *l = &ret->limits;
	bool want_image;

	*l = (struct spawn_limits) {
		.memory_bytes = o->memory.value, .pids = (uint32_t) o->pids.value, .cpu_milli = (uint32_t) o->cpus.value,
		.disk_bytes = o->disk.value, .disk_inodes = o->inodes.value, .nofile = (uint32_t) o->nofile.value,
	};
	if (o->disk_kind) {
		want_image = !strcmp(o->disk_kind, "image");
	} else {
		/* Files in memory count against the memory limit: past half of it they could
		 * take what the command itself needs. */
		uint64_t memory = l->memory_bytes ? l->memory_bytes : SPAWN_DEFAULT_MEMORY;

		want_image = l->disk_bytes > memory / 2;
	}
	ret->disk = want_image ? SPAWN_DISK_IMAGE : SPAWN_DISK_MEMORY;
	if (o->allow_unlimited)
		ret->options |= SPAWN_ALLOW_UNLIMITED;
	if (o->tty)
		ret->options |= SPAWN_TERMINALS;
	/* For the escape probes; only the spawner of the test build obeys. */
	if (getenv("CUVETTE_TEST_NO_FILTER"))
		ret->options |= SPAWN_NO_FILTER;
	return 0;
}

/* ---- environment ---- */

static int check_env(const char *text, struct err *err)
{
	size_t name = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

	if (!name || text[name] != '=' || !strchr(letters, text[0])) {
		if (!strchr(text, '='))
			return err_set(err, ERR_INVALID, "--env: '%.60s' has no value: expected NAME=VALUE "
			               "(nothing is taken from your own environment)", text);
		return err_set(err, ERR_INVALID, "--env: '%.60s' does not start with a variable's name", text);
	}
	return 0;
}

/* Puts one NAME=VALUE in, in the place of an earlier one of that name. */
static void put_env(char **env, size_t *count, const char *text)
{
	size_t name = strcspn(text, "=") + 1;

	for (size_t i = 0; i < *count; i++)
		if (!strncmp(env[i], text, name)) {
			env[i] = (char *) (uintptr_t) text;
			return;
		}
	env[(*count)++] = (char *) (uintptr_t) text;
}

static int plan_env(const struct job_options *o, struct job_plan *ret, struct err *err)
{
	size_t count = 0;

	if (o->env.count >= INIT_ENV_MAX)
		return err_set(err, ERR_INVALID, "--env: more than %d variables", INIT_ENV_MAX - 1);
	ret->exec.env = xcalloc(o->env.count + 2, sizeof *ret->exec.env);
	if (o->tty) {
		/* The one thing about the caller that a program on its terminal must know. */
		const char *term = getenv("TERM");
		bool plain = term && *term && strlen(term) < 50 &&
		             !term[strspn(term, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+._")];

		snprintf(ret->term, sizeof ret->term, "TERM=%s", plain ? term : "xterm");
		put_env(ret->exec.env, &count, ret->term);
	}
	for (size_t i = 0; i < o->env.count; i++) {
		if (check_env(o->env.items[i], err) < 0)
			return -1;
		put_env(ret->exec.env, &count, o->env.items[i]);
	}
	return 0;
}

/* ---- the command ---- */

static int copy_text(const char *name, const char *text, char *ret, size_t size, struct err *err)
{
	if (!text)
		return 0;
	if (!*text)
		return err_set(err, ERR_INVALID, "%s: must not be empty", name);
	if (strlen(text) >= size)
		return err_set(err, ERR_INVALID, "%s: '%.40s...' is too long", name, text);
	memcpy(ret, text, strlen(text) + 1);
	return 0;
}

static void plan_terminal(struct init_exec *exec)
{
	struct winsize size = { 0 };
	int fd = find_terminal();

	exec->flags |= INIT_EXEC_PTY;
	exec->rows = 24;
	exec->cols = 80;
	if (fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col) {
		exec->rows = MIN(size.ws_row, (unsigned short) 4096);
		exec->cols = MIN(size.ws_col, (unsigned short) 4096);
	}
}

static int plan_exec(const struct job *job, struct job_plan *ret, struct err *err)
{
	const struct job_options *o = job->options;
	struct init_exec *exec = &ret->exec;

	exec->argv = job->argv;
	if (o->cwd && o->cwd[0] != '/')
		return err_set(err, ERR_INVALID, "--cwd: '%.100s' is not an absolute path", o->cwd);
	if (copy_text("--cwd", o->cwd, exec->cwd, sizeof exec->cwd, err) < 0 ||
	    copy_text("--user", o->user, exec->user, sizeof exec->user, err) < 0)
		return -1;
	if (o->tty)
		plan_terminal(exec);
	return plan_env(o, ret, err);
}

static int check_copies(const struct text_list *list, const char *name, struct err *err)
{
	_cleanup_free_ struct copy_spec *spec = xcalloc(1, sizeof *spec);

	for (size_t i = 0; i < list->count; i++)
		if (parse_copy_spec(list->items[i], spec, err) < 0 || complete_copy_spec(spec, err) < 0)
			return err_wrap(err, "%s", name);
	return 0;
}

static int plan_output(const struct job_options *o, struct job_plan *ret, struct err *err)
{
	ret->output_bytes = o->output_limit.value;
	if (o->json && o->tty)
		return err_set(err, ERR_INVALID, "--json and --tty exclude each other");
	if (o->json && ret->output_bytes > JSON_OUTPUT_MAX)
		return err_set(err, ERR_INVALID, "--output-limit: at most 256M together with --json");
	if (o->json && !ret->output_bytes)
		ret->output_bytes = JSON_OUTPUT_DEFAULT;
	return 0;
}

int job_plan(const struct job *job, struct job_plan *ret, struct err *err)
{
	const struct job_options *o = job->options;

	memset(ret, 0, sizeof *ret);
	if (o->net && strcmp(o->net, "none"))
		return err_set(err, ERR_UNIMPLEMENTED, "--net: only 'none' is possible in this version, not '%.40s'", o->net);
	if (plan_limits(o, &ret->request) < 0 || plan_output(o, ret, err) < 0 ||
	    check_copies(&o->in, "--in", err) < 0 || check_copies(&o->out, "--out", err) < 0 ||
	    plan_exec(job, ret, err) < 0) {
		job_plan_done(ret);
		return -1;
	}
	ret->timeout_ms = o->timeout.given ? o->timeout.value : o->tty ? 0 : DEFAULT_TIMEOUT_MS;
	return 0;
}

void job_plan_done(struct job_plan *plan)
{
	free(plan->exec.env);
	plan->exec.env = NULL;
}
