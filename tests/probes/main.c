/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuvette-probe: runs the tables of escape probes and prints one line for each.
 *
 *      cuvette-probe [--bare] [--only PREFIX] [--host-path P] [--host-pid N]
 *                    [--host-abstract NAME] [--host-port N] [--host-address A]
 *      cuvette-probe list
 *      cuvette-probe act ACTION [ARG...]
 *
 * Meant to be started inside a sandbox.  It refuses to run as root of the
 * initial user namespace, where some of the attempts would succeed.
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROBE_SECONDS = 20, WORD_MAX = 240 };

struct surroundings around = { .first_leaked_fd = -1, .directory_fd = -1 };

static const struct probe_group *const groups[] = {
	&probes_calls, &probes_sockets, &probes_files, &probes_mounts, &probes_processes, &probes_network,
	&probes_resources,
};

/* ---- one probe ---- */

/* Where the child leaves its answer, shared with the parent. */
static char *answer;

int observe(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(answer, WORD_MAX, fmt, ap);
	va_end(ap);
	return 0;
}

static _Noreturn void try_and_exit(const struct probe *p)
{
	long r;

	setpgid(0, 0);
	alarm(PROBE_SECONDS);
	errno = 0;
	r = p->try ? p->try(p) : call_it(p);
	if (!answer[0])
		snprintf(answer, WORD_MAX, "%s", r < 0 ? errno_word(errno) : "ok");
	_exit(0);
}

/* Fills `answer`. */
static void run_probe(const struct probe *p)
{
	pid_t child;
	int status;

	answer[0] = '\0';
	fflush(stdout);
	child = fork();
	if (child < 0) {
		snprintf(answer, WORD_MAX, "fork: %s", errno_word(errno));
		return;
	}
	if (child == 0)
		try_and_exit(p);
	setpgid(child, child);          /* by both sides: whoever comes first */
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	kill(-child, SIGKILL);          /* whatever it left behind */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	if (WIFSIGNALED(status))
		snprintf(answer, WORD_MAX, "%s", WTERMSIG(status) == SIGALRM ? "hung" : signal_word(WTERMSIG(status)));
	else if (!answer[0])
		snprintf(answer, WORD_MAX, "exit %d without an answer", WEXITSTATUS(status));
}

static bool is_errno(const char *word)
{
	return word[0] == 'E' && !strpbrk(word, " :");
}

/* Is `word` one of the wanted ones? */
static bool is_wanted(const char *word, const char *want)
{
	size_t len = strlen(word);

	for (const char *at = want; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");

		if (n == len && !strncmp(at, word, n))
			return true;
		if (n == strlen("refused") && !strncmp(at, "refused", n) && is_errno(word))
			return true;
	}
	return false;
}

static const char *want_of(const struct probe *p)
{
	if (around.bare)
		return geteuid() ? p->bare_user : p->bare_root;
	return geteuid() ? p->user : p->root;
}

static int run_all(const char *only)
{
	unsigned total = 0, bad = 0;

	for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++)
		for (size_t i = 0; i < groups[g]->count; i++) {
			const struct probe *p = &groups[g]->list[i];
			const char *want = want_of(p);

			if (only && strncmp(p->name, only, strlen(only)))
				continue;
			if (!want) {
				printf("skip %s\n", p->name);
				continue;
			}
			run_probe(p);
			total++;
			if (is_wanted(answer, want)) {
				printf("ok %s\n", p->name);
			} else {
				bad++;
				printf("NOT ok %s: got %s, want %s\n", p->name, answer, want);
			}
		}
	printf("%u probes, %u ok, %u not ok\n", total, total - bad, bad);
	return bad ? 1 : 0;
}

static int list_all(void)
{
	for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++)
		for (size_t i = 0; i < groups[g]->count; i++) {
			const struct probe *p = &groups[g]->list[i];

			printf("%s: user %s, root %s; without filter user %s, root %s\n", p->name,
			       p->user ? p->user : "-", p->root ? p->root : "-",
			       p->bare_user ? p->bare_user : "-", p->bare_root ? p->bare_root : "-");
		}
	return 0;
}

/* ---- the surroundings ---- */

/* C08, before anything here has opened a descriptor. */
static void look_at_descriptors(void)
{
	struct stat st;

	for (int fd = 0; fd < 65536; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		if (fd > 2 && around.first_leaked_fd < 0)
			around.first_leaked_fd = fd;
		if (around.directory_fd < 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
			around.directory_fd = fd;
	}
}

/* The initial user namespace maps everything to itself. */
static bool is_bare_host(void)
{
	char map[256];
	unsigned long inside, outside, count;

	if (read_text("/proc/self/uid_map", map, sizeof map) < 0)
		return false;
	return sscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3 && !inside && !outside && count > 65536;
}

static int usage(void)
{
	fprintf(stderr, "usage: cuvette-probe [--bare] [--only PREFIX] [--host-path P] [--host-pid N] "
	                "[--host-abstract NAME] [--host-port N] [--host-address A]\n"
	                "       cuvette-probe list\n");
	act_usage();
	return 2;
}

static bool take_option(const char *name, const char *value, const char **only)
{
	if (!strcmp(name, "--only"))
		*only = value;
	else if (!strcmp(name, "--host-path") && around.host_path_count < 16)
		around.host_paths[around.host_path_count++] = value;
	else if (!strcmp(name, "--host-pid") && around.host_pid_count < 16)
		around.host_pids[around.host_pid_count++] = (pid_t) strtol(value, NULL, 10);
	else if (!strcmp(name, "--host-abstract"))
		around.host_abstract = value;
	else if (!strcmp(name, "--host-port"))
		around.host_port = (unsigned) strtoul(value, NULL, 10);
	else if (!strcmp(name, "--host-address") && around.host_address_count < 16)
		around.host_addresses[around.host_address_count++] = value;
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	const char *only = NULL;

	look_at_descriptors();
	around.program = argv[0];
	if (argc > 1 && !strcmp(argv[1], "list"))
		return list_all();
	if (argc > 2 && !strcmp(argv[1], "act"))
		return act(argc - 2, argv + 2);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--bare")) {
			around.bare = true;
			continue;
		}
		if (i + 1 == argc || !take_option(argv[i], argv[i + 1], &only))
			return usage();
		i++;
	}
	if (is_bare_host() && geteuid() == 0) {
		fprintf(stderr, "cuvette-probe: this is root of the host; probes run inside a sandbox only\n");
		return 2;
	}
	answer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (answer == MAP_FAILED) {
		perror("cuvette-probe: mmap");
		return 2;
	}
	return run_all(only);
}
