/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <string.h>

/* In alphabetical order; a test checks that. */
const struct command *const commands[] = {
	&cmd_doctor,
	&cmd_help,
	&cmd_py,
	&cmd_run,
	&cmd_template,
	&cmd_version,
};
const size_t commands_count = ARRAY_SIZE(commands);

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < commands_count; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}
