/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job.h"
#include "tap.h"

static struct err err;
static struct job_options options;
static struct arguments args;

static int parse(const struct command *cmd, size_t max_before, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	arguments_done(&args);
	job_options_done(&options);
	memset(&options, 0, sizeof options);
	return parse_arguments(cmd, argc, argv, &options, max_before, &args, &err);
}
/* The words outlive the statement, as those of a program do. */
#define PARSE_WITH(cmd, max_before, ...) ({                                     \
	static char *words[16];                                                 \
	memcpy(words, ((char *[16]) { __VA_ARGS__ }), sizeof words);            \
	parse(cmd, max_before, words);                                          \
})
#define PARSE(cmd, ...) PARSE_WITH(cmd, 0, __VA_ARGS__)
#define PARSE_PY(...) PARSE_WITH(&cmd_py, 1, __VA_ARGS__)

TEST(commands_are_in_alphabetical_order)
{
	for (size_t i = 1; i < commands_count; i++)
		CHECK(strcmp(commands[i - 1]->name, commands[i]->name) < 0);
}

TEST(options_come_in_any_order_before_the_dashes)
{
	CHECK_OK(PARSE(&cmd_run, "--mem", "1G", "--json", "--cpus=0.5", "-e", "A=1", "--env", "B=2", "--", "ls", "--mem"));
	CHECK_INT(options.memory.value, 1ll << 30);
	CHECK_INT(options.cpus.value, 500);
	CHECK(options.json);
	CHECK_INT(options.env.count, 2);
	CHECK_STR(options.env.items[1], "B=2");
	CHECK_STR(args.after[0], "ls");
	CHECK_STR(args.after[1], "--mem");
	CHECK_INT(args.before_count, 0);
}

TEST(numbers_without_sense_are_refused_with_the_name_of_the_option)  /* I07, B28 */
{
	static char *const bad[][2] = {
		{ "--mem", "0" }, { "--mem", "1" }, { "--mem", "-1" }, { "--mem", "x" }, { "--mem", "99999999T" },
		{ "--cpus", "0" }, { "--cpus", "-1" }, { "--cpus", "1.2345" }, { "--pids", "0" }, { "--pids", "1.5" },
		{ "--disk", "0" }, { "--inodes", "0" }, { "--nofile", "0" }, { "--timeout", "-1" }, { "--timeout", "1y" },
		{ "--output-limit", "0" }, { "--disk-kind", "tape" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CHECK_ERR(PARSE(&cmd_run, bad[i][0], bad[i][1], "--", "true"), ERR_INVALID);
		CHECK(!strncmp(err.msg, bad[i][0], strlen(bad[i][0])));
	}
}

TEST(a_timeout_of_zero_is_allowed_and_known_to_be_given)  /* B28 */
{
	CHECK_OK(PARSE(&cmd_run, "--timeout", "0", "--", "true"));
	CHECK(options.timeout.given);
	CHECK_INT(options.timeout.value, 0);
	CHECK_OK(PARSE(&cmd_run, "--timeout", "1.5s", "--", "true"));
	CHECK_INT(options.timeout.value, 1500);
}

TEST(an_unknown_option_suggests_the_nearest)
{
	CHECK_ERR(PARSE(&cmd_run, "--memm", "1G"), ERR_INVALID);
	CHECK_STR(err.msg, "unknown option --memm: did you mean --mem?");
	CHECK_ERR(PARSE(&cmd_run, "--xyzzy"), ERR_INVALID);
	CHECK_STR(err.msg, "unknown option --xyzzy");
	CHECK_ERR(PARSE(&cmd_run, "-q"), ERR_INVALID);
	CHECK_ERR(PARSE(&cmd_run, "--mem"), ERR_INVALID);
	CHECK_ERR(PARSE(&cmd_run, "--mem", "--", "true"), ERR_INVALID);
	CHECK_ERR(PARSE(&cmd_run, "--json=yes", "--", "true"), ERR_INVALID);
}

TEST(the_program_of_py_ends_where_its_arguments_begin)
{
	CHECK_OK(PARSE_PY("x.py", "--mem", "1G", "a", "--mem", "2G"));
	CHECK_STR(args.before[0], "x.py");
	CHECK_STR(args.after[0], "a");
	CHECK_STR(args.after[1], "--mem");
	CHECK_INT(options.memory.value, 1ll << 30);
	CHECK_OK(PARSE_PY("-c", "code", "a", "b"));
	CHECK_INT(args.before_count, 0);
	CHECK_STR(options.code, "code");
	CHECK_STR(args.after[0], "a");
	CHECK_OK(PARSE_PY("-", "--", "--flag"));
	CHECK_STR(args.before[0], "-");
	CHECK_STR(args.after[0], "--flag");
}

TEST(nearest_finds_slips_and_beginnings_only)
{
	static const char *const names[] = { "doctor", "run", "template" };

	CHECK_STR(nearest("docter", names, 3), "doctor");
	CHECK_STR(nearest("rnu", names, 3), "run");
	CHECK_STR(nearest("temp", names, 3), "template");
	CHECK(!nearest("launch", names, 3));
	CHECK(!nearest("", names, 3));
}

TEST(copies_are_two_paths_around_the_first_colon)
{
	struct copy_spec s;

	CHECK_OK(parse_copy_spec("a\\:b:c:d", &s, &err));
	CHECK_STR(s.first, "a:b");
	CHECK_STR(s.second, "c:d");
	CHECK_OK(parse_copy_spec("a\nb:", &s, &err));
	CHECK_OK(complete_copy_spec(&s, &err));
	CHECK_STR(s.second, "a\nb");
	CHECK_OK(parse_copy_spec("x/dir//:/work/", &s, &err));
	CHECK_OK(complete_copy_spec(&s, &err));
	CHECK_STR(s.second, "/work/dir");
	CHECK_ERR(parse_copy_spec("nothing", &s, &err), ERR_INVALID);
	CHECK_ERR(parse_copy_spec(":x", &s, &err), ERR_INVALID);
	CHECK_OK(parse_copy_spec("..:", &s, &err));
	CHECK_ERR(complete_copy_spec(&s, &err), ERR_INVALID);
}

static struct job_plan plan;

static int planned(struct job_options o)
{
	static char *argv[] = { "true", NULL };
	struct job job = { .cmd = &cmd_run, .options = &o, .argv = argv };

	job_plan_done(&plan);
	return job_plan(&job, &plan, &err);
}

TEST(a_large_disk_is_an_image_unless_memory_is_asked_for)
{
	CHECK_OK(planned((struct job_options) { 0 }));
	CHECK_INT(plan.request.disk, SPAWN_DISK_MEMORY);
	CHECK_INT(plan.timeout_ms, 60000);
	CHECK_OK(planned((struct job_options) { .disk.value = 256 << 20 }));
	CHECK_INT(plan.request.disk, SPAWN_DISK_MEMORY);
	CHECK_OK(planned((struct job_options) { .disk.value = 1 << 30 }));
	CHECK_INT(plan.request.disk, SPAWN_DISK_IMAGE);
	CHECK_OK(planned((struct job_options) { .disk.value = 1 << 30, .disk_kind = "memory" }));
	CHECK_INT(plan.request.disk, SPAWN_DISK_MEMORY);
}

TEST(a_plan_refuses_what_makes_no_sense)
{
	static const char *bad_env[] = { "1A=x" }, *no_value[] = { "PATH" }, *no_colon[] = { "x" };

	CHECK_ERR(planned((struct job_options) { .net = "allow" }), ERR_UNIMPLEMENTED);
	CHECK_CONTAINS(err.msg, "--net");
	CHECK_ERR(planned((struct job_options) { .cwd = "rel" }), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "--cwd");
	CHECK_ERR(planned((struct job_options) { .user = "" }), ERR_INVALID);
	CHECK_ERR(planned((struct job_options) { .json = true, .tty = true }), ERR_INVALID);
	CHECK_ERR(planned((struct job_options) { .env = { bad_env, 1 } }), ERR_INVALID);
	CHECK_ERR(planned((struct job_options) { .env = { no_value, 1 } }), ERR_INVALID);
	CHECK_ERR(planned((struct job_options) { .out = { no_colon, 1 } }), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "--out");
}

TEST(a_later_variable_replaces_an_earlier_one_of_its_name)
{
	static const char *env[] = { "A=1", "AB=2", "A=3" };

	CHECK_OK(planned((struct job_options) { .env = { env, 3 } }));
	CHECK_STR(plan.exec.env[0], "A=3");
	CHECK_STR(plan.exec.env[1], "AB=2");
	CHECK(!plan.exec.env[2]);
}
