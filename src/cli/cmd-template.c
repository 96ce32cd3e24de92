/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "cli/cli.h"
#include "sandbox/sandbox.h"

/* Building templates needs libraries and privileges that this program does without. */
static int run(const struct command *cmd, int argc, char **argv)
{
	char program[PATH_MAX];
	struct err err = { 0 };
	char **args;

	if (sandbox_find_program("cuvette-template", program, sizeof program, &err) < 0)
		return fail(cmd, &err, -1);
	args = xcalloc((size_t) argc + 2, sizeof *args);
	args[0] = "cuvette-template";
	memcpy(args + 1, argv, (size_t) argc * sizeof *args);
	execv(program, args);
	err_sys(&err, errno, "run %s", program);
	free(args);
	return fail(cmd, &err, -1);
}

const struct command cmd_template = {
	.name = "template",
	.summary = "build, import, list and remove templates",
	.usage = "build|import|list|rm [ARGUMENTS]",
	.text = "A template is the root filesystem that a sandbox starts from.",
	.examples =
		"  cuvette template build default\n"
		"  cuvette template list\n"
		"  cuvette template --help",
	.passes_arguments = true,
	.run = run,
};
