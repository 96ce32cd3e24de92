/* SPDX-License-Identifier: Apache-2.0 */
#include "init/launch.h"

#include <string.h>
#include <sys/stat.h>
#include "init/child.h"
#include "init/scratch.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* ---- environment ---- */

/* Is NAME= among them? */
static const char *find_variable(char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; *env; env++)
		if (!strncmp(*env, name, len) && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

/* Appends NAME=VALUE to the text unless the request has its own. */
static void add_default(char **env, size_t *n, char *const *own, char **at, const char *name, const char *value)
{
	size_t name_len = strlen(name), len = name_len + strlen(value) + 2;

	if (find_variable(own, name) || len > (size_t) (scratch.text + sizeof scratch.text - *at))
		return;
	memcpy(*at, name, name_len);
	(*at)[name_len] = '=';
	memcpy(*at + name_len + 1, value, len - name_len - 1);
	env[(*n)++] = *at;
	*at += len;
}

static int check_variables(char *const *env, struct err *err)
{
	for (; *env; env++)
		if (!strchr(*env, '=') || (*env)[0] == '=')
			return err_set(err, ERR_INVALID, "environment entry '%.80s' is not NAME=VALUE", *env);
	return 0;
}

int environment_make(const struct init_exec *exec, const struct user *user, char ***ret, const char **ret_search,
                     struct err *err)
{
	size_t n = 0, own = 0;
	char *at = scratch.text, **env;
	const char *search;

	if (check_variables(exec->env, err) < 0)
		return -1;
	while (exec->env[own])
		own++;
	env = xcalloc(own + 8, sizeof *env);
	if (!(exec->flags & INIT_EXEC_ENV_ONLY)) {
		add_default(env, &n, exec->env, &at, "PATH", DEFAULT_PATH);
		add_default(env, &n, exec->env, &at, "HOME", user->home);
		add_default(env, &n, exec->env, &at, "USER", user->name);
		add_default(env, &n, exec->env, &at, "LOGNAME", user->name);
		add_default(env, &n, exec->env, &at, "SHELL", user->shell);
		add_default(env, &n, exec->env, &at, "LANG", "C.UTF-8");
		if (exec->flags & INIT_EXEC_PTY)
			add_default(env, &n, exec->env, &at, "TERM", "xterm-256color");
	}
	memcpy(env + n, exec->env, own * sizeof *env);
	search = find_variable(env, "PATH");
	*ret_search = search ? search : DEFAULT_PATH;
	*ret = env;
	return 0;
}

/* ---- what went wrong ---- */

/* The interpreter that a script names in its first line, terminated in place; NULL when it is none. */
static char *interpreter_of(char *head, size_t len)
{
	char *start, *end;

	if (len < 3 || head[0] != '#' || head[1] != '!')
		return NULL;
	head[len] = '\0';         /* the child leaves a byte for it */
	start = head + 2 + strspn(head + 2, " \t");
	end = start + strcspn(start, " \t\r\n");
	*end = '\0';
	return *start ? start : NULL;
}

/* A text that /bin/sh may be asked to run; shells refuse the rest for good reasons. */
static bool is_text(const char *head, size_t len)
{
	const char *end = len ? memchr(head, '\n', len) : NULL;

	return !len || !memchr(head, '\0', end ? (size_t) (end - head) : len);
}

static int program_missing(const struct launch *l, struct err *err)
{
	const char *name = l->argv[0], *interpreter;

	if (!l->found && !strchr(name, '/'))
		return err_set(err, ERR_NOT_FOUND, "%.160s: command not found", name);
	if (!l->found)
		return err_set(err, ERR_NOT_FOUND, "%.160s: No such file or directory", name);
	interpreter = interpreter_of(scratch.head, l->head_len);
	return err_set(err, ERR_NOT_FOUND, "%.120s: its interpreter %.80s is missing", scratch.found,
	               interpreter ? interpreter : "(the dynamic loader)");
}

static int exec_failed(const struct launch *l, struct err *err)
{
	if (l->sys == ENOENT) {
		program_missing(l, err);
	} else if (l->sys == EACCES && l->is_directory) {
		err_set(err, ERR_PERMISSION, "%.160s: Is a directory", l->argv[0]);
	} else if (l->sys == ENOEXEC) {
		err_set(err, ERR_PERMISSION, "%.160s: cannot execute binary file: Exec format error", scratch.found);
	} else {
		err_sys(err, l->sys, "%.160s", strchr(l->argv[0], '/') ? l->argv[0] : scratch.found);
		/* A shell says 126 to all of these; a lack of memory or processes is another matter. */
		if (err->code != ERR_EXHAUSTED && l->sys != E2BIG)
			err->code = ERR_PERMISSION;
	}
	err->sys = l->is_directory ? EISDIR : l->sys;
	return -1;
}

static int launch_failed(const struct launch *l, struct err *err)
{
	switch (l->step) {
	case INIT_STEP_EXEC:
		return exec_failed(l, err);
	case INIT_STEP_CWD:
		return err_sys(err, l->sys, "working directory %.160s", l->cwd);
	case INIT_STEP_USER:
		return err_sys(err, l->sys, "become user %.80s", l->user->name);
	case INIT_STEP_CGROUP:
		return err_sys(err, l->sys, "enter the sandbox's control groups");
	default:
		return err_sys(err, l->sys, "set up the command");
	}
}

/* ---- start ---- */

static pid_t start(struct launch *l, enum init_step *ret_step, struct err *err)
{
	pid_t pid = child_start(l);

	if (pid < 0) {
		*ret_step = INIT_STEP_FORK;
		return err_sys(err, errno, "start a process");
	}
	if (!l->sys)
		return pid;
	*ret_step = l->step;
	return launch_failed(l, err);
}

/* The same plan with /bin/sh as the program and the file as its first argument. */
static pid_t start_with_shell(struct launch *l, enum init_step *ret_step, struct err *err)
{
	_cleanup_free_ char *script = xstrdup(scratch.found);
	_cleanup_free_ char **argv = NULL;
	struct launch with_shell = *l;
	size_t n = 0;

	while (l->argv[n])
		n++;
	argv = xcalloc(n + 2, sizeof *argv);
	argv[0] = (char *) "/bin/sh";
	argv[1] = script;
	memcpy(argv + 2, l->argv + 1, (n - 1) * sizeof *argv);
	with_shell.argv = argv;
	with_shell.found = with_shell.is_directory = false;
	with_shell.head_len = 0;
	return start(&with_shell, ret_step, err);
}

pid_t launch(struct launch *l, enum init_step *ret_step, struct err *err)
{
	pid_t pid = start(l, ret_step, err);

	if (pid < 0 && l->sys == ENOEXEC && l->step == INIT_STEP_EXEC && is_text(scratch.head, l->head_len))
		pid = start_with_shell(l, ret_step, err);
	return pid;
}
