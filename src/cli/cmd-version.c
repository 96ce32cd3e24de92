/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/cli.h"
#include "wire/init.h"
#include "wire/spawn.h"

struct version_options {
	bool json;
};

static const struct option options[] = {
	{ "json", 0, OPTION_FLAG, offsetof(struct version_options, json), NULL, "print a JSON object" },
};

static int run(const struct command *cmd, int argc, char **argv)
{
	struct version_options o = { 0 };
	struct arguments args;
	struct err err = { 0 };
	int r;

	if (parse_arguments(cmd, argc, argv, &o, 0, &args, &err) < 0)
		return fail(cmd, &err, -1);
	r = args.help ? 0 : no_words(&args, &err);
	if (r < 0)
		r = fail(cmd, &err, -1);
	else if (args.help)
		print_help(cmd);
	else if (o.json)
		printf("{\"version\":\"%s\",\"spawner_protocol\":%d,\"init_protocol\":%d}\n", CUVETTE_VERSION,
		       SPAWN_VERSION, INIT_VERSION);
	else
		printf("cuvette %s\n", CUVETTE_VERSION);
	arguments_done(&args);
	return r;
}

const struct command cmd_version = {
	.name = "version",
	.summary = "print the version",
	.usage = "[--json]",
	.examples = "  cuvette version",
	.options = { OPTION_SET(options) },
	.run = run,
};
