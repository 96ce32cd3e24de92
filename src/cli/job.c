/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "template/template.h"

/* ---- signals ---- */

/*
 * While the command runs, signals to us are for it.  Before and after, their default action
 * is right: our end is the spawner's, and that takes the sandbox along.  What the caller
 * ignores (nohup, a job in the background) stays ignored.
 */
static int signals_open(bool tty, sigset_t *ret_before)
{
	static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
		if (sigaction(forwarded[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&set, forwarded[i]);
	if (tty)
		sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, ret_before);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- streams ---- */

static bool is_null_device(const struct stat *st)
{
	struct stat null;

	return S_ISCHR(st->st_mode) && stat("/dev/null", &null) == 0 && null.st_rdev == st->st_rdev;
}

/*
 * A pipe, a file or a socket was put there for the command.  A terminal was not: without
 * --tty a command that reads would wait for a person who does not know of it.
 */
static int pick_stdin(const struct job *job, struct init_exec *exec)
{
	struct stat st;

	if (job->options->tty)
		return STDIN_FILENO;
	if (job->stdin_mode == JOB_STDIN_NONE || fstat(STDIN_FILENO, &st) < 0 || isatty(STDIN_FILENO) ||
	    is_null_device(&st))
		return -1;
	exec->flags |= INIT_EXEC_STDIN;
	return STDIN_FILENO;
}

/* ---- files ---- */

static void warn_skipped(const char *option, const struct copy_stats *stats)
{
	if (stats->skipped)
		complain("%s: %llu special file%s left out, the first is %s", option,
		         (unsigned long long) stats->skipped, stats->skipped == 1 ? " was" : "s were",
		         stats->first_skipped);
}

static int copy_in(struct sandbox *sb, const struct job *job, const struct init_exec *exec, struct err *err)
{
	const struct text_list *list = &job->options->in;
	_cleanup_free_ struct copy_spec *spec = list->count ? xcalloc(1, sizeof *spec) : NULL;

	for (size_t i = 0; i < list->count; i++) {
		struct copy_stats stats;

		if (parse_copy_spec(list->items[i], spec, err) < 0 || complete_copy_spec(spec, err) < 0 ||
		    sandbox_put(sb, exec->user, spec->first, spec->second, &stats, err) < 0)
			return err_wrap(err, "--in");
		warn_skipped("--in", &stats);
	}
	if (job->file_path)
		return sandbox_write_file(sb, exec->user, job->file_path, 0644, job->file_data, job->file_len, err);
	return 0;
}

/*
 * An existing directory takes the copy under its own name, as cp(1) does; a link to one does
 * so only where the caller writes the slash, as an earlier copy may have brought it.
 */
static int aim_out(struct copy_spec *spec, struct err *err)
{
	size_t len = strlen(spec->second);
	struct stat st;

	if (len && spec->second[len - 1] != '/' && len + 1 < sizeof spec->second &&
	    lstat(spec->second, &st) == 0 && S_ISDIR(st.st_mode))
		memcpy(spec->second + len, "/", 2);
	return complete_copy_spec(spec, err);
}

static int copy_out(struct sandbox *sb, const struct job *job, const struct init_exec *exec, struct err *err)
{
	const struct text_list *list = &job->options->out;
	_cleanup_free_ struct copy_spec *spec = list->count ? xcalloc(1, sizeof *spec) : NULL;

	for (size_t i = 0; i < list->count; i++) {
		struct copy_stats stats;

		if (parse_copy_spec(list->items[i], spec, err) < 0 || aim_out(spec, err) < 0 ||
		    sandbox_get(sb, exec->user, spec->first, spec->second, &stats, err) < 0)
			return err_wrap(err, "--out");
		warn_skipped("--out", &stats);
	}
	return 0;
}

/* ---- the command ---- */

/* What a shell answers when a command cannot be started; init has said it as a shell would. */
static void refuse_command(struct job_report *r)
{
	r->not_started = true;
	r->status = r->err.code == ERR_NOT_FOUND ? 127 : 126;
}

static int execute(struct sandbox *sb, const struct job *job, struct job_plan *plan, struct job_report *r)
{
	static uint8_t space[INIT_PACKET_MAX];  /* costs the pages that are used */
	struct exec_options options = {
		.exec = &plan->exec, .stdin_fd = pick_stdin(job, &plan->exec),
		.tty_fd = job->options->tty ? find_terminal() : -1,
		.timeout_ms = plan->timeout_ms, .output_bytes = plan->output_bytes,
		.want_stats = job->options->json, .sink = output_sink(&r->output), .space = space,
	};
	enum init_step step = INIT_STEP_REQUEST;
	sigset_t before;
	int outcome;

	options.signal_fd = signals_open(job->options->tty, &before);
	if (job->options->tty)
		terminal_raw();
	outcome = sandbox_exec(sb, &options, &r->result, &step, &r->err);
	terminal_restore();
	close_fd(options.signal_fd);
	sigprocmask(SIG_SETMASK, &before, NULL);

	if (outcome == 0) {
		r->ran = true;
		r->status = exec_status(&r->result);
		r->has_stats = r->result.has_stats;
		r->stats = r->result.stats;
		return 0;
	}
	r->status = 125;
	if (step == INIT_STEP_EXEC)
		refuse_command(r);
	else if (step == INIT_STEP_CWD)
		err_wrap(&r->err, "--cwd");
	else if (step == INIT_STEP_USER)
		err_wrap(&r->err, "--user");
	return -1;
}

/* The last counters may know of a limit that the exit status did not hint at. */
static void finish(struct sandbox *sb, const struct job_plan *plan, struct job_report *r)
{
	struct exec_options options = { .timeout_ms = plan->timeout_ms, .output_bytes = plan->output_bytes };
	struct spawn_stats stats = { 0 };
	struct err err = { 0 };

	if (sandbox_destroy(sb, &stats, &err) < 0) {
		/* What went wrong before explains this too. */
		if (!r->err.code)
			complain("%s", err.msg);
		return;
	}
	if (!r->has_stats)
		r->stats = stats;
	r->has_stats = true;
	if (r->ran)
		exec_judge(&r->result, &options, &r->stats);
}

static int in_sandbox(struct spawner *spawner, const struct job *job, struct job_plan *plan, struct job_report *r)
{
	struct sandbox *sb;
	int outcome;

	if (sandbox_create(spawner, &plan->request, &sb, &r->err) < 0)
		return -1;
	memcpy(r->id, sb->id, sizeof r->id);
	r->limits = sb->limits;
	r->create_us = sb->create_us;
	outcome = copy_in(sb, job, &plan->exec, &r->err);
	if (outcome == 0)
		outcome = execute(sb, job, plan, r);
	if (outcome == 0)
		outcome = copy_out(sb, job, &plan->exec, &r->err);
	if (outcome < 0 && r->ran && !r->status)
		r->status = 1;
	finish(sb, plan, r);
	return outcome;
}

static int perform(const struct job *job, struct job_plan *plan, struct job_report *r)
{
	const struct job_options *o = job->options;
	const char *data = o->data ? o->data : sandbox_data_dir();
	const struct spawner_options how = {
		.data_dir = data, .ephemeral = true,
		.program = getenv("CUVETTE_SPAWNER"),      /* the escape probes' own */
	};
	struct spawner *spawner;
	int outcome = -1;

	/* First, so that it starts up while the template is looked up. */
	if (spawner_start(&how, &spawner, &r->err) < 0)
		return -1;
	if (template_find(data, o->template ? o->template : "default", plan->request.digest, &r->err) == 0) {
		memcpy(r->digest, plan->request.digest, sizeof r->digest);
		outcome = in_sandbox(spawner, job, plan, r);
	}
	spawner_close(spawner);
	return outcome;
}

/* ---- the report ---- */

static void print_report(const struct job_report *r)
{
	if (r->err.code)
		complain("%s", r->err.msg);
	if (r->ran && r->result.reason[0])
		complain("%s", r->result.reason);
	if (r->ran && r->result.sink_failed && r->output.sys != EPIPE)
		complain("cannot write the output: %s", strerror(r->output.sys));
}

int job_run(const struct job *job)
{
	uint64_t started = now_ns();
	struct job_plan plan;
	struct job_report report = { .plan = &plan, .status = 125 };
	struct err err = { 0 };
	int outcome;

	if (job_plan(job, &plan, &err) < 0)
		return job_refuse(job->cmd, &err, job->options->json);
	output_init(&report.output, job->options->json, plan.output_bytes);
	outcome = perform(job, &plan, &report);
	if (outcome == 0)
		report.err.code = ERR_OK;       /* some steps probe and go on */
	report.total_us = (now_ns() - started) / 1000;
	if (job->options->json)
		print_report_json(&report);
	else
		print_report(&report);
	output_done(&report.output);
	job_plan_done(&plan);
	return report.status;
}

int job_refuse(const struct command *cmd, const struct err *err, bool json)
{
	struct job_report report = { .status = 125, .err = *err };

	if (!json)
		return fail(cmd, err, 125);
	print_report_json(&report);
	return 125;
}

bool job_wants_json(int argc, char **argv)
{
	for (int i = 0; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--json"))
			return true;
	return false;
}
