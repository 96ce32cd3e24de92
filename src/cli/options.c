/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"

/* ---- finding ---- */

static const struct option *find_name(const struct command *cmd, const char *name, size_t len)
{
	for (size_t s = 0; s < OPTION_SETS_MAX; s++)
		for (size_t i = 0; i < cmd->options[s].count; i++) {
			const struct option *o = &cmd->options[s].list[i];

			if (!strncmp(o->name, name, len) && !o->name[len])
				return o;
		}
	return NULL;
}

static const struct option *find_letter(const struct command *cmd, char letter)
{
	for (size_t s = 0; s < OPTION_SETS_MAX; s++)
		for (size_t i = 0; i < cmd->options[s].count; i++)
			if (cmd->options[s].list[i].letter == letter)
				return &cmd->options[s].list[i];
	return NULL;
}

static int unknown(const struct command *cmd, const char *word, struct err *err)
{
	const char *names[64], *near;
	size_t count = 0;
	char name[40];

	for (size_t s = 0; s < OPTION_SETS_MAX; s++)
		for (size_t i = 0; i < cmd->options[s].count && count < ARRAY_SIZE(names); i++)
			names[count++] = cmd->options[s].list[i].name;
	if (count < ARRAY_SIZE(names))
		names[count++] = "help";
	while (*word == '-')
		word++;
	memcpy(name, word, MIN(strlen(word) + 1, sizeof name));
	name[sizeof name - 1] = '\0';
	name[strcspn(name, "=")] = '\0';
	near = nearest(name, names, count);
	if (near)
		return err_set(err, ERR_INVALID, "unknown option --%s: did you mean --%s?", name, near);
	return err_set(err, ERR_INVALID, "unknown option %s%s", strlen(name) == 1 ? "-" : "--", name);
}

/* ---- values ---- */

static int check_size(const struct option *o, const char *text, uint64_t v, struct err *err)
{
	char limit[16];

	if (v < o->min)
		return err_set(err, ERR_INVALID, "'%.40s' is too small: at least %s", text, size_text(o->min, limit));
	if (v > o->max)
		return err_set(err, ERR_INVALID, "'%.40s' is too large: at most %s", text, size_text(o->max, limit));
	return 0;
}

static int parse_number(const struct option *o, const char *text, uint64_t *ret, struct err *err)
{
	switch (o->kind) {
	case OPTION_SIZE:
		if (parse_size(text, 0, UINT64_MAX, ret, err) < 0)
			return -1;
		return check_size(o, text, *ret, err);
	case OPTION_COUNT:
		return parse_u64(text, o->min, o->max, ret, err);
	case OPTION_MILLI:
		return parse_milli(text, o->min, o->max, ret, err);
	default:
		if (o->zero_is_none && parse_duration_ms(text, 0, 0, ret, NULL) == 0)
			return 0;
		return parse_duration_ms(text, o->min, o->max, ret, err);
	}
}

static int set_text(const struct option *o, const char *text, const char **field, struct err *err)
{
	if (o->choices) {
		size_t i = 0;

		while (o->choices[i] && strcmp(o->choices[i], text))
			i++;
		if (!o->choices[i])
			return err_set(err, ERR_INVALID, "'%.40s' is not one of %s", text, o->value);
	}
	*field = text;
	return 0;
}

static void add_text(struct text_list *list, const char *text)
{
	list->items = xrealloc(list->items, list->count + 1, sizeof *list->items);
	list->items[list->count++] = text;
}

static int set_value(const struct option *o, const char *text, void *target, struct err *err)
{
	void *field = (char *) target + o->offset;
	struct number *number;
	int r = 0;

	switch (o->kind) {
	case OPTION_FLAG:
		*(bool *) field = true;
		return 0;
	case OPTION_TEXT:
		r = set_text(o, text, field, err);
		break;
	case OPTION_LIST:
		add_text(field, text);
		return 0;
	default:
		number = field;
		r = parse_number(o, text, &number->value, err);
		number->given = r == 0;
	}
	return r < 0 ? err_wrap(err, "--%s", o->name) : 0;
}

/* ---- parsing ---- */

struct parser {
	const struct command *cmd;
	int argc, at;
	size_t words;           /* that count against max_before */
	char **argv;
	void *target;
	struct err *err;
};

/* The value after the option, or the rest of the same word. */
static int take(struct parser *p, const struct option *o, const char *attached)
{
	if (o->kind == OPTION_FLAG) {
		if (attached)
			return err_set(p->err, ERR_INVALID, "--%s takes no value", o->name);
		return set_value(o, NULL, p->target, p->err);
	}
	p->words += o->is_word;
	if (!attached) {
		if (p->at >= p->argc || !strcmp(p->argv[p->at], "--"))
			return err_set(p->err, ERR_INVALID, "--%s needs a value: --%s %s", o->name, o->name, o->value);
		attached = p->argv[p->at++];
	}
	return set_value(o, attached, p->target, p->err);
}

static int take_long(struct parser *p, const char *word)
{
	size_t len = strcspn(word + 2, "=");
	const struct option *o = find_name(p->cmd, word + 2, len);

	if (!o)
		return unknown(p->cmd, word, p->err);
	return take(p, o, word[2 + len] ? word + 2 + len + 1 : NULL);
}

static int take_short(struct parser *p, const char *word)
{
	const struct option *o = find_letter(p->cmd, word[1]);

	if (!o)
		return unknown(p->cmd, word, p->err);
	return take(p, o, word[2] ? word + 2 : NULL);
}

int parse_arguments(const struct command *cmd, int argc, char **argv, void *target, size_t max_before,
                    struct arguments *ret, struct err *err)
{
	struct parser p = { .cmd = cmd, .argc = argc, .argv = argv, .target = target, .err = err };
	struct arguments args = { .before = xcalloc((size_t) argc + 1, sizeof *args.before) };
	int r = 0;

	while (r == 0 && p.at < argc && !args.after) {
		char *word = argv[p.at++];

		if (!strcmp(word, "--")) {
			args.after = argv + p.at;
		} else if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
			args.help = true;
		} else if (word[0] != '-' || !word[1]) {
			if (max_before && p.words == max_before) {
				args.after = argv + p.at - 1;
			} else {
				args.before[args.before_count++] = word;
				p.words++;
			}
		} else {
			r = word[1] == '-' ? take_long(&p, word) : take_short(&p, word);
		}
	}
	if (r < 0 && !args.help) {
		arguments_done(&args);
		return -1;
	}
	*ret = args;
	return 0;
}

void arguments_done(struct arguments *args)
{
	free(args->before);
	args->before = NULL;
}

int no_words(const struct arguments *args, struct err *err)
{
	if (args->before_count)
		return err_set(err, ERR_INVALID, "unexpected argument '%s'", args->before[0]);
	if (args->after && args->after[0])
		return err_set(err, ERR_INVALID, "unexpected argument '%s'", args->after[0]);
	return 0;
}
