/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "cli/job.h"

enum {
	CODE_MAX = 64 << 20,
	/* The kernel takes one argument of up to 128 KiB; past half of that, code travels as a file. */
	INLINE_MAX = 64 << 10,
};

/*
 * What `python3 -c` does, for code that is too large for an argument: argv[0] stays "-c",
 * names and tracebacks are those of -c, and the file's path is taken out of argv.
 */
static const char loader[] = "exec(compile(open(__import__('sys').argv.pop(1),'rb').read(),'<string>','exec'))";

struct source {
	struct buf text;        /* of a file */
	char *name;             /* of a file inside */
	char **argv;
};

static void source_done(struct source *s)
{
	buf_done(&s->text);
	free(s->name);
	free(s->argv);
}

/* "python3", then up to three words of ours, then the arguments of the program. */
static void build_argv(struct source *s, const char *a, const char *b, const char *c, char **rest)
{
	const char *own[] = { "python3", a, b, c };
	size_t n = 0, count = 0;

	while (rest && rest[count])
		count++;
	s->argv = xcalloc(count + ARRAY_SIZE(own) + 1, sizeof *s->argv);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (own[i])
			s->argv[n++] = (char *) (uintptr_t) own[i];
	if (count)
		memcpy(s->argv + n, rest, count * sizeof *rest);
}

static int from_code(const char *code, char **rest, struct source *s, struct job *job)
{
	if (strlen(code) <= INLINE_MAX) {
		build_argv(s, "-c", code, NULL, rest);
		return 0;
	}
	job->file_path = "/tmp/.cuvette-code.py";
	job->file_data = code;
	job->file_len = strlen(code);
	build_argv(s, "-c", loader, job->file_path, rest);
	return 0;
}

/* Any readable file will do: a pipe of the shell's <(...) as well. */
static int from_file(const char *path, char **rest, struct source *s, struct job *job, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *base = strrchr(path, '/');

	if (fd < 0)
		return err_sys(err, errno, "open %s", path);
	s->text = BUF_INIT(CODE_MAX);
	if (read_to_buf(fd, &s->text, err) < 0)
		return err_wrap(err, "%s", path);
	base = base ? base + 1 : path;
	/* Python takes a name that begins with a dash for an option. */
	s->name = xasprintf("%s%s", *base == '-' ? "./" : "", base);
	job->file_path = s->name;
	job->file_data = s->text.data ? s->text.data : "";
	job->file_len = s->text.len;
	build_argv(s, s->name, NULL, NULL, rest);
	return 0;
}

/* FILE is relative to where python3 starts: the user's home, or --cwd. */
static int place_file(struct source *s, struct job *job, const char *cwd)
{
	char *placed;

	if (!cwd || !s->name)
		return 0;
	placed = xasprintf("%s/%s", cwd, s->name);
	free(s->name);
	s->name = placed;
	job->file_path = placed;
	s->argv[1] = placed;
	return 0;
}

static int choose(struct job_options *o, const struct arguments *args, struct source *s, struct job *job,
                  struct err *err)
{
	const char *file = args->before_count ? args->before[0] : NULL;

	if (o->code && file)
		return err_set(err, ERR_INVALID, "-c and a file exclude each other: put '--' in front of arguments");
	if (o->code)
		return from_code(o->code, args->after, s, job);
	if (file && strcmp(file, "-")) {
		if (from_file(file, args->after, s, job, err) < 0)
			return -1;
		return place_file(s, job, o->cwd);
	}
	/* As python itself: a person at a terminal gets a prompt, anything else is the program. */
	if (!file && isatty(STDIN_FILENO) && !o->json)
		o->tty = true;
	build_argv(s, file || (args->after && args->after[0]) ? "-" : NULL, NULL, NULL, args->after);
	return 0;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct job_options options = { 0 };
	struct job job = { .cmd = cmd, .options = &options };
	struct source source = { 0 };
	struct arguments args;
	struct err err = { 0 };
	int status;

	if (parse_arguments(cmd, argc, argv, &options, 1, &args, &err) < 0) {
		job_options_done(&options);
		return job_refuse(cmd, &err, job_wants_json(argc, argv));
	}
	if (args.help) {
		print_help(cmd);
		status = 0;
	} else if (choose(&options, &args, &source, &job, &err) < 0) {
		status = job_refuse(cmd, &err, options.json);
	} else {
		job.argv = source.argv;
		status = job_run(&job);
	}
	source_done(&source);
	arguments_done(&args);
	job_options_done(&options);
	return status;
}

static const struct option py_options[] = {
	{ "code", 'c', OPTION_TEXT, offsetof(struct job_options, code), "CODE", "the program itself",
	  .is_word = true },
};

const struct command cmd_py = {
	.name = "py",
	.summary = "run Python in a fresh sandbox",
	.usage = "[OPTIONS] [-c CODE | FILE | -] [ARGUMENTS]",
	.text =
		"Runs python3 of the template on CODE, on a FILE of yours (copied in under its own name),\n"
		"or on standard input. Options of cuvette may follow CODE or FILE; the first word after\n"
		"that, or '--', begins the program's own arguments. Without a program on a terminal,\n"
		"Python's prompt.",
	.examples =
		"  cuvette py -c 'print(6 * 7)'\n"
		"  cuvette py --mem 2G analysis.py data.csv --in data.csv:\n"
		"  echo 'print(1)' | cuvette py -\n"
		"  cuvette py report.py -- --verbose",
	.options = { OPTION_SET(py_options), JOB_OPTION_SETS },
	.run = run,
};
