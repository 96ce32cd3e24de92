/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

/* Where the explanations of options begin. */
enum { COLUMN = 30 };

static void print_option(const struct option *o)
{
	char left[80];
	int n = snprintf(left, sizeof left, "  %c%c%c --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
	                 o->letter ? ',' : ' ', o->name, o->value ? " " : "", o->value ? o->value : "");

	if (n > COLUMN - 2)
		printf("%s\n%*s%s\n", left, COLUMN, "", o->help);
	else
		printf("%-*s%s\n", COLUMN, left, o->help);
}

void print_help(const struct command *cmd)
{
	bool any = false;

	printf("%s\n\nUsage: cuvette %s%s%s\n", cmd->summary, cmd->name, *cmd->usage ? " " : "", cmd->usage);
	if (cmd->text)
		printf("\n%s\n", cmd->text);
	for (size_t s = 0; s < OPTION_SETS_MAX; s++)
		for (size_t i = 0; i < cmd->options[s].count; i++) {
			if (!any)
				printf("\nOptions:\n");
			any = true;
			print_option(&cmd->options[s].list[i]);
		}
	if (cmd->examples)
		printf("\nExamples:\n%s\n", cmd->examples);
}

void print_overview(bool to_stderr)
{
	FILE *out = to_stderr ? stderr : stdout;

	fprintf(out, "cuvette: sandboxes for code that you did not write\n\n"
	        "Usage: cuvette COMMAND [ARGUMENTS]\n\nCommands:\n");
	for (size_t i = 0; i < commands_count; i++)
		fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	fprintf(out, "\nExamples:\n"
	        "  cuvette run -- echo hello\n"
	        "  cuvette py -c 'print(6 * 7)'\n"
	        "  cuvette doctor\n"
	        "\n'cuvette help COMMAND' tells more about each.\n");
}
