/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

/* A closed stdin, stdout or stderr would let the next file or socket take its number. */
static int ensure_stdio(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_WRONLY : O_RDONLY) != fd)
			return -1;
	return 0;
}

static int unknown_command(const char *name)
{
	const char *names[32], *near;
	size_t count = MIN(commands_count, ARRAY_SIZE(names));

	for (size_t i = 0; i < count; i++)
		names[i] = commands[i]->name;
	near = nearest(name, names, count);
	if (near)
		complain("unknown command '%.60s': did you mean 'cuvette %s'?", name, near);
	else
		complain("unknown command '%.60s': 'cuvette help' lists them", name);
	return 2;
}

/* A full disk or a reader that left is no success: what was to be printed is lost. */
static int check_output(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	complain("cannot write to standard output");
	return status ? status : 1;
}

int main(int argc, char **argv)
{
	const struct command *cmd;

	if (ensure_stdio() < 0)
		return 125;
	if (argc < 2) {
		print_overview(true);
		return 2;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_overview(false);
		return check_output(0);
	}
	cmd = !strcmp(argv[1], "--version") ? &cmd_version : command_find(argv[1]);
	if (!cmd)
		return unknown_command(argv[1]);
	return check_output(cmd->run(cmd, argc - 2, argv + 2));
}
