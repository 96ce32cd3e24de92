/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "base/fd.h"

enum { OWN_FDS_FROM = 40, WORDS_MAX = 64 };

static FILE *requests;
static int answers = -1;

int worker_start(struct err *err)
{
	int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, OWN_FDS_FROM);
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, OWN_FDS_FROM);
	if (in < 0 || answers < 0 || null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0)
		return err_sys(err, errno, "move the descriptors of the conversation");
	close_fd(null_fd);
	requests = fdopen(in, "r");
	return requests ? 0 : err_sys(err, errno, "read requests");
}

void worker_ready(int result, uint64_t number, const struct err *err)
{
	if (result < 0)
		dprintf(answers, "error %s\n", err->msg);
	else
		dprintf(answers, "ok %llu\n", (unsigned long long) number);
}

static int run(const struct worker_command *table, int argc, char **argv, uint64_t *ret, struct err *err)
{
	for (; table->name; table++)
		if (!strcmp(table->name, argv[0]))
			return table->run(argc, argv, ret, err);
	return err_set(err, ERR_INVALID, "no request %s", argv[0]);
}

void worker_serve(const struct worker_command *table)
{
	char line[8192], *argv[WORDS_MAX + 1];

	while (fgets(line, sizeof line, requests)) {
		struct err err = { 0 };
		uint64_t number = 0;
		int argc = 0, r;

		for (char *at = line, *word; argc < WORDS_MAX && (word = strsep(&at, "\t\n")) && at;)
			argv[argc++] = word;
		argv[argc] = NULL;
		if (!argc)
			continue;
		r = run(table, argc, argv, &number, &err);
		worker_ready(r, number, &err);
	}
}
