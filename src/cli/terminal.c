/* SPDX-License-Identifier: Apache-2.0 */
#include <termios.h>

#include "cli/job.h"

static struct termios before;
static bool is_raw;

int find_terminal(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (isatty(fd))
			return fd;
	return -1;
}

void terminal_raw(void)
{
	struct termios raw;

	if (is_raw || tcgetattr(STDIN_FILENO, &before) < 0)
		return;
	raw = before;
	cfmakeraw(&raw);
	is_raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

void terminal_restore(void)
{
	if (is_raw)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
	is_raw = false;
}
