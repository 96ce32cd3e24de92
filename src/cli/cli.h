/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * cli: the command table and the one option parser.
 *
 * A command is a line in commands.c and a file cmd-NAME.c.  Its options are tables; the
 * parser, the help text, the completions and the test of the man pages all read the same
 * ones.  Single-threaded.
 */
#include "base/err.h"

enum option_kind {
	OPTION_FLAG,            /* bool */
	OPTION_TEXT,            /* const char * */
	OPTION_LIST,            /* struct text_list: may be given again */
	OPTION_SIZE,            /* struct number, from here on */
	OPTION_COUNT,
	OPTION_MILLI,
	OPTION_DURATION,        /* milliseconds */
};

/* What a shell may offer as the value. */
enum option_hint { HINT_NONE, HINT_FILE, HINT_DIR };

struct number {
	uint64_t value;
	bool given;
};

struct text_list {
	const char **items;     /* borrowed texts */
	size_t count;
};

struct option {
	const char *name;       /* without dashes */
	char letter;            /* 0: none */
	enum option_kind kind;
	size_t offset;          /* of its field in the target */
	const char *value;      /* how help names the value: "SIZE" */
	const char *help;
	uint64_t min, max;      /* of a number */
	bool zero_is_none;      /* 0 is allowed below min */
	const char *const *choices;     /* of a text: NULL-terminated */
	enum option_hint hint;
	bool is_word;           /* takes the place of the first word that is no option */
};

struct option_set {
	const struct option *list;
	size_t count;
};
#define OPTION_SET(list_) { list_, ARRAY_SIZE(list_) }

enum { OPTION_SETS_MAX = 3 };

struct command {
	const char *name;
	const char *summary;    /* one line */
	const char *usage;      /* what follows "cuvette NAME" */
	const char *text;       /* paragraphs of help, or NULL */
	const char *examples;   /* lines, or NULL */
	struct option_set options[OPTION_SETS_MAX];
	bool passes_arguments;  /* its arguments, --help included, are another program's */
	int (*run)(const struct command *cmd, int argc, char **argv);   /* argv[0] is the first argument */
};

extern const struct command *const commands[];
extern const size_t commands_count;
const struct command *command_find(const char *name);

extern const struct command cmd_doctor, cmd_help, cmd_py, cmd_run, cmd_template, cmd_version;

/* ---- options.c ---- */

struct arguments {
	char **before;          /* words that are no options, before "--" */
	size_t before_count;
	char **after;           /* what follows "--", NULL-terminated; NULL when there was no "--" */
	bool help;              /* --help or -h was among them */
};

/*
 * Reads options into the fields of `target`.  With `max_before`, the first word past that
 * many ends the options as "--" does (it and the rest are `after`).  Errors name the option.  The caller frees
 * with arguments_done(); lists in the target belong to the target.
 */
int parse_arguments(const struct command *cmd, int argc, char **argv, void *target, size_t max_before,
                    struct arguments *ret, struct err *err) _must_check_;
void arguments_done(struct arguments *args);

/* Refuses words that a command has no use for. */
int no_words(const struct arguments *args, struct err *err) _must_check_;

/* ---- help.c ---- */
void print_help(const struct command *cmd);
void print_overview(bool to_stderr);

/* ---- complete.c ---- */
int print_completion(const char *shell, struct err *err);

/* ---- text.c ---- */

/* The nearest of the names, or NULL when none is near: for "did you mean". */
const char *nearest(const char *word, const char *const *names, size_t count);

/* One line on stderr, "cuvette: ...", with whatever could drive a terminal escaped. */
void complain(const char *fmt, ...) _printf_(1, 2);

/* Complains about err, adds where help is, and returns its exit status (`status` when >= 0). */
int fail(const struct command *cmd, const struct err *err, int status);
