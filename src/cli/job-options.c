/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job.h"

#define AT(field) offsetof(struct job_options, field)

static const char *const disk_kinds[] = { "memory", "image", NULL };

const struct option limit_options[LIMIT_OPTIONS] = {
	{ "cpus", 0, OPTION_MILLI, AT(cpus), "N", "CPUs, such as 0.5 or 2 (default 1)",
	  .min = SPAWN_MIN_CPU, .max = SPAWN_MAX_CPU },
	{ "disk", 0, OPTION_SIZE, AT(disk), "SIZE", "space for files (default half of --mem, at most 256M)",
	  .min = SPAWN_MIN_DISK, .max = SPAWN_MAX_DISK },
	{ "disk-kind", 0, OPTION_TEXT, AT(disk_kind), "memory|image",
	  "where files live (default memory; image for a --disk above half of --mem)", .choices = disk_kinds },
	{ "inodes", 0, OPTION_COUNT, AT(inodes), "N", "number of files and directories (default one per 4K of --disk)",
	  .min = SPAWN_MIN_INODES, .max = SPAWN_MAX_INODES },
	{ "mem", 0, OPTION_SIZE, AT(memory), "SIZE", "memory, files in memory included (default 512M)",
	  .min = SPAWN_MIN_MEMORY, .max = SPAWN_MAX_MEMORY },
	{ "nofile", 0, OPTION_COUNT, AT(nofile), "N", "open files per process (default 4096)",
	  .min = SPAWN_MIN_NOFILE, .max = SPAWN_MAX_NOFILE },
	{ "output-limit", 0, OPTION_SIZE, AT(output_limit), "SIZE",
	  "bytes of stdout and of stderr passed on; the rest is dropped (default: all; 1M each with --json)",
	  .min = 1, .max = 1ull << 40 },
	{ "pids", 0, OPTION_COUNT, AT(pids), "N", "processes and threads (default 1024)",
	  .min = SPAWN_MIN_PIDS, .max = SPAWN_MAX_PIDS },
	{ "timeout", 0, OPTION_DURATION, AT(timeout), "TIME",
	  "such as 60s, 500ms or 2m; 0 means none (default 60s; none for a terminal)",
	  .min = 1, .max = 366ull * 86400 * 1000, .zero_is_none = true },
	{ "allow-unlimited", 0, OPTION_FLAG, AT(allow_unlimited), NULL,
	  "go on where the machine cannot enforce memory, process or CPU limits" },
};

const struct option place_options[PLACE_OPTIONS] = {
	{ "cwd", 0, OPTION_TEXT, AT(cwd), "DIR", "directory to start in (default the user's home)" },
	{ "data", 0, OPTION_TEXT, AT(data), "DIR", "where templates are (default $CUVETTE_DATA or /var/lib/cuvette)",
	  .hint = HINT_DIR },
	{ "env", 'e', OPTION_LIST, AT(env), "NAME=VALUE", "set a variable; nothing else of yours is passed on" },
	{ "in", 0, OPTION_LIST, AT(in), "HOST:BOX", "copy a file or directory in before the command", .hint = HINT_FILE },
	{ "json", 0, OPTION_FLAG, AT(json), NULL, "print one JSON object at the end instead of the streams" },
	{ "net", 0, OPTION_TEXT, AT(net), "none", "network access (default none)" },
	{ "out", 0, OPTION_LIST, AT(out), "BOX:HOST", "copy a file or directory out after the command" },
	{ "template", 0, OPTION_TEXT, AT(template), "NAME", "root filesystem to start from (default 'default')" },
	{ "tty", 't', OPTION_FLAG, AT(tty), NULL, "give the command a terminal" },
	{ "user", 0, OPTION_TEXT, AT(user), "USER", "name or number of the user inside (default 1000)" },
};

void job_options_done(struct job_options *o)
{
	free(o->env.items);
	free(o->in.items);
	free(o->out.items);
}
