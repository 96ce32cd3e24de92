/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/cli.h"

struct help_options {
	const char *completion;
};

static const char *const shells[] = { "bash", "fish", "zsh", NULL };

static const struct option options[] = {
	{ "completion", 0, OPTION_TEXT, offsetof(struct help_options, completion), "bash|fish|zsh",
	  "print the completions for a shell", .choices = shells },
};

static int help_about(const struct command *self, const char *name)
{
	const struct command *cmd = command_find(name);
	char *template_help[] = { "--help", NULL };
	struct err err = { 0 };

	if (!cmd) {
		err_set(&err, ERR_INVALID, "no command is named '%.60s': 'cuvette help' lists them", name);
		return fail(NULL, &err, -1);
	}
	(void) self;
	if (cmd->passes_arguments)
		return cmd->run(cmd, 1, template_help);
	print_help(cmd);
	return 0;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct help_options o = { 0 };
	struct arguments args;
	struct err err = { 0 };
	int r = 0;

	if (parse_arguments(cmd, argc, argv, &o, 0, &args, &err) < 0)
		return fail(cmd, &err, -1);
	if (args.help) {
		print_help(cmd);
	} else if (o.completion) {
		if (print_completion(o.completion, &err) < 0)
			r = fail(cmd, &err, -1);
	} else if (args.before_count > 1) {
		err_set(&err, ERR_INVALID, "help is about one command at a time");
		r = fail(cmd, &err, -1);
	} else if (args.before_count) {
		r = help_about(cmd, args.before[0]);
	} else {
		print_overview(false);
	}
	arguments_done(&args);
	return r;
}

const struct command cmd_help = {
	.name = "help",
	.summary = "explain a command",
	.usage = "[COMMAND]",
	.examples = "  cuvette help run",
	.options = { OPTION_SET(options) },
	.run = run,
};
