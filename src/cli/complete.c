/* SPDX-License-Identifier: Apache-2.0 */
/* Completions for three shells, from the table of commands: nothing is listed twice. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static void each_option(const struct command *cmd, void (*print)(const struct command *, const struct option *))
{
	for (size_t s = 0; s < OPTION_SETS_MAX; s++)
		for (size_t i = 0; i < cmd->options[s].count; i++)
			print(cmd, &cmd->options[s].list[i]);
}

/* ---- bash ---- */

static void bash_word(const struct command *cmd, const struct option *o)
{
	(void) cmd;
	printf(" --%s", o->name);
	if (o->letter)
		printf(" -%c", o->letter);
}

static void bash_value(const struct command *cmd, const struct option *o)
{
	(void) cmd;
	if (o->kind == OPTION_FLAG)
		return;
	printf("\t\t--%s) ", o->name);
	if (o->choices) {
		printf("COMPREPLY=($(compgen -W '");
		for (size_t i = 0; o->choices[i]; i++)
			printf("%s%s", i ? " " : "", o->choices[i]);
		printf("' -- \"$word\"))");
	} else if (o->hint != HINT_NONE) {
		printf("COMPREPLY=($(compgen -%c -- \"$word\"))", o->hint == HINT_DIR ? 'd' : 'f');
	} else {
		printf("COMPREPLY=()");
	}
	printf("; return ;;\n");
}

static void print_bash(void)
{
	printf("# bash completion for cuvette; made by 'cuvette help --completion bash'\n"
	       "_cuvette() {\n\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} i\n"
	       "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\tCOMPREPLY=($(compgen -W '");
	for (size_t i = 0; i < commands_count; i++)
		printf("%s%s", i ? " " : "", commands[i]->name);
	printf("' -- \"$word\"))\n\t\treturn\n\tfi\n"
	       "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	       "\t\tif [ \"${COMP_WORDS[i]}\" = -- ]; then\n"
	       "\t\t\tif [ $((i + 1)) -eq \"$COMP_CWORD\" ]; then COMPREPLY=($(compgen -c -- \"$word\"))\n"
	       "\t\t\telse COMPREPLY=($(compgen -f -- \"$word\")); fi\n"
	       "\t\t\treturn\n\t\tfi\n\tdone\n"
	       "\tcase ${COMP_WORDS[1]} in\n");
	for (size_t i = 0; i < commands_count; i++) {
		const struct command *cmd = commands[i];

		printf("\t%s)\n\t\tcase $before in\n", cmd->name);
		each_option(cmd, bash_value);
		printf("\t\tesac\n\t\tCOMPREPLY=($(compgen -W '--help");
		each_option(cmd, bash_word);
		printf("' -- \"$word\"))\n");
		if (!strcmp(cmd->name, "py"))
			printf("\t\t[[ $word == -* ]] || COMPREPLY=($(compgen -f -- \"$word\"))\n");
		printf("\t\t;;\n");
	}
	printf("\tesac\n}\ncomplete -o filenames -F _cuvette cuvette\n");
}

/* ---- zsh ---- */

/* Text inside single quotes, where zsh's own brackets and colons need a backslash. */
static void zsh_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			printf("'\\''");
		else if (strchr("[]:", *text))
			printf("\\%c", *text);
		else
			putchar(*text);
	}
}

static void zsh_option(const struct command *cmd, const struct option *o)
{
	(void) cmd;
	printf("\t\t\t'%s--%s%s[", o->kind == OPTION_LIST ? "*" : "", o->name, o->kind == OPTION_FLAG ? "" : "=");
	zsh_text(o->help);
	putchar(']');
	if (o->kind != OPTION_FLAG) {
		putchar(':');
		zsh_text(o->value);
		putchar(':');
		if (o->choices) {
			putchar('(');
			for (size_t i = 0; o->choices[i]; i++)
				printf("%s%s", i ? " " : "", o->choices[i]);
			putchar(')');
		} else if (o->hint != HINT_NONE) {
			printf("%s", o->hint == HINT_DIR ? "_files -/" : "_files");
		}
	}
	printf("' \\\n");
}

static void print_zsh(void)
{
	printf("#compdef cuvette\n# made by 'cuvette help --completion zsh'\n_cuvette() {\n\tlocal -a commands=(\n");
	for (size_t i = 0; i < commands_count; i++) {
		printf("\t\t'%s:", commands[i]->name);
		zsh_text(commands[i]->summary);
		printf("'\n");
	}
	printf("\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n"
	       "\tlocal command=$words[2]\n\tshift words\n\t(( CURRENT-- ))\n\tcase $command in\n");
	for (size_t i = 0; i < commands_count; i++) {
		printf("\t%s)\n\t\t_arguments -s \\\n", commands[i]->name);
		each_option(commands[i], zsh_option);
		printf("\t\t\t'--help[explain the command]' \\\n\t\t\t'*:: :_normal'\n\t\t;;\n");
	}
	printf("\tesac\n}\n_cuvette \"$@\"\n");
}

/* ---- fish ---- */

static void fish_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
}

static void fish_option(const struct command *cmd, const struct option *o)
{
	printf("complete -c cuvette -n '__fish_seen_subcommand_from %s' -l %s", cmd->name, o->name);
	if (o->letter)
		printf(" -s %c", o->letter);
	if (o->kind != OPTION_FLAG)
		printf(o->hint == HINT_NONE ? " -x" : " -r");
	if (o->choices) {
		printf(" -a '");
		for (size_t i = 0; o->choices[i]; i++)
			printf("%s%s", i ? " " : "", o->choices[i]);
		putchar('\'');
	}
	printf(" -d '");
	fish_text(o->help);
	printf("'\n");
}

static void print_fish(void)
{
	printf("# fish completion for cuvette; made by 'cuvette help --completion fish'\n"
	       "complete -c cuvette -n __fish_use_subcommand -f\n");
	for (size_t i = 0; i < commands_count; i++) {
		printf("complete -c cuvette -n __fish_use_subcommand -f -a %s -d '", commands[i]->name);
		fish_text(commands[i]->summary);
		printf("'\n");
		each_option(commands[i], fish_option);
	}
}

int print_completion(const char *shell, struct err *err)
{
	if (!strcmp(shell, "bash"))
		print_bash();
	else if (!strcmp(shell, "zsh"))
		print_zsh();
	else if (!strcmp(shell, "fish"))
		print_fish();
	else
		return err_set(err, ERR_INVALID, "no completions for the shell '%.40s'", shell);
	return 0;
}
