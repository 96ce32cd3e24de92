/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job.h"

static int check_command(const struct arguments *args, struct err *err)
{
	if (args->before_count)
		return err_set(err, ERR_INVALID, "put '--' in front of the command: cuvette run -- %.100s ...", args->before[0]);
	if (!args->after || !args->after[0])
		return err_set(err, ERR_INVALID, "no command: expected cuvette run [OPTIONS] -- COMMAND [ARGUMENTS]");
	if (!args->after[0][0])
		return err_set(err, ERR_INVALID, "the command is an empty word");
	return 0;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct job_options options = { 0 };
	struct job job = { .cmd = cmd, .options = &options };
	struct arguments args;
	struct err err = { 0 };
	int status;

	if (parse_arguments(cmd, argc, argv, &options, 0, &args, &err) < 0) {
		job_options_done(&options);
		return job_refuse(cmd, &err, job_wants_json(argc, argv));
	}
	if (args.help) {
		print_help(cmd);
		status = 0;
	} else if (check_command(&args, &err) < 0) {
		status = job_refuse(cmd, &err, options.json);
	} else {
		job.argv = args.after;
		status = job_run(&job);
	}
	arguments_done(&args);
	job_options_done(&options);
	return status;
}

const struct command cmd_run = {
	.name = "run",
	.summary = "run a command in a fresh sandbox",
	.usage = "[OPTIONS] -- COMMAND [ARGUMENTS]",
	.text =
		"The sandbox is made for this command and gone after it, with everything in it. Its\n"
		"streams are passed on as they are, and its exit status becomes that of cuvette; 124 is\n"
		"a timeout, 126 and 127 a command that cannot be run or found, 128+N the end by signal N,\n"
		"125 a failure of cuvette before the command began. Standard input is passed on from a\n"
		"pipe or a file, and from a terminal with --tty.",
	.examples =
		"  cuvette run -- echo hello\n"
		"  cuvette run --mem 1G --cpus 2 --timeout 5m --in src:/work --cwd /work -- make test\n"
		"  cuvette run --out result.csv:. -- python3 -c 'open(\"result.csv\", \"w\").write(\"a,b\\n\")'\n"
		"  cuvette run --json -- sh -c 'exit 3'\n"
		"  cuvette run -t -- bash",
	.options = { JOB_OPTION_SETS },
	.run = run,
};
