/* SPDX-License-Identifier: Apache-2.0 */
/* Every command and every option of the table has its entry in a man page. */
#include <fcntl.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "tap.h"

static struct buf page_of(const char *name)
{
	struct buf text = BUF_INIT(1 << 20);
	char path[4096];
	struct err err = { 0 };
	int fd;

	snprintf(path, sizeof path, "%s/man/%s.1.scd", getenv("CUVETTE_SOURCE"), name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		FAIL("%s is missing", path);
	CHECK_OK(read_to_buf(fd, &text, &err));
	close(fd);
	return text;
}

static void check_option(const struct command *cmd, const struct option *o, const char *page)
{
	char entry[64];

	snprintf(entry, sizeof entry, "*--%s*", o->name);
	if (!strstr(page, entry))
		FAIL("man/cuvette-%s.1.scd has no entry for --%s", cmd->name, o->name);
}

TEST(every_command_is_in_the_overview_page)
{
	struct buf page = page_of("cuvette");

	for (size_t i = 0; i < commands_count; i++) {
		char entry[64];

		snprintf(entry, sizeof entry, "*%s*", commands[i]->name);
		if (!strstr(page.data, entry))
			FAIL("man/cuvette.1.scd does not mention %s", commands[i]->name);
	}
	buf_done(&page);
}

TEST(every_option_is_in_the_page_of_its_command)
{
	for (size_t i = 0; i < commands_count; i++) {
		const struct command *cmd = commands[i];
		char name[64];
		struct buf page;

		if (cmd->passes_arguments)
			continue;
		snprintf(name, sizeof name, "cuvette-%s", cmd->name);
		/* The two smallest commands live in the overview. */
		page = page_of(!strcmp(cmd->name, "help") || !strcmp(cmd->name, "version") ? "cuvette" : name);
		for (size_t s = 0; s < OPTION_SETS_MAX; s++)
			for (size_t k = 0; k < cmd->options[s].count; k++)
				check_option(cmd, &cmd->options[s].list[k], page.data);
		buf_done(&page);
	}
}
