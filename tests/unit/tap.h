/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * tap: a test harness.  One test program is one .c file that includes this.
 *
 * Each TEST() runs in its own forked child with its own process group and a
 * time limit, so a crash, a hang, a leak (under ASan) and a failed check land on
 * the test that caused them, and a test may unshare, chdir or install a filter.
 * A check that fails in a process forked by the test fails the test as well.
 * TAP goes to stdout; whatever the test itself prints goes to stderr.
 *
 *     TEST(a_name_that_is_a_sentence) { CHECK_INT(1 + 1, 2); }
 *
 * Arguments of the program choose tests whose names contain one of them.  Define
 * TEST_TIMEOUT before the include, or set it in the environment, to change the
 * limit of 20 seconds.  SKIP("why") ends a test that this machine can't run; with
 * CUVETTE_TESTS_MUST_RUN=1 that is a failure.
 */
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "base/err.h"

#ifndef TEST_TIMEOUT
#define TEST_TIMEOUT 20
#endif

struct tap_test {
	const char *name;
	void (*fn)(void);
	struct tap_test *next;
};
static struct tap_test *tap_first, **tap_last = &tap_first;

/* Shared with the children: what the current test has to say. */
static struct tap_note {
	volatile bool failed, skipped;
	char text[2048];
} *tap_note;

#define TEST(name_)                                                             \
	static void name_(void);                                                \
	__attribute__((constructor)) static void tap_register_##name_(void)     \
	{                                                                       \
		static struct tap_test test = { #name_, name_, NULL };          \
		*tap_last = &test;                                              \
		tap_last = &test.next;                                          \
	}                                                                       \
	static void name_(void)

/* Ends the calling process at once; the first failure's text is the one shown. */
static _noreturn_ _unused_ _printf_(3, 4) void tap_fail(const char *file, int line, const char *fmt, ...)
{
	if (!tap_note->failed) {
		int n = snprintf(tap_note->text, sizeof tap_note->text, "%s:%d: ", file, line);
		va_list args;

		va_start(args, fmt);
		vsnprintf(tap_note->text + n, sizeof tap_note->text - (size_t) n, fmt, args);
		va_end(args);
		tap_note->failed = true;
	}
	_exit(1);
}

static _noreturn_ _unused_ _printf_(1, 2) void SKIP(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(tap_note->text, sizeof tap_note->text, fmt, args);
	va_end(args);
	tap_note->skipped = true;
	_exit(0);
}

#define FAIL(...) tap_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(x) do { if (!(x)) FAIL("CHECK(%s)", #x); } while (0)
#define CHECK_INT(a, b) do {                                                            \
	long long a_ = (long long) (a), b_ = (long long) (b);                           \
	if (a_ != b_)                                                                   \
		FAIL("CHECK_INT(%s, %s): %lld, expected %lld", #a, #b, a_, b_);         \
} while (0)
#define CHECK_STR(a, b) do {                                                            \
	const char *a_ = (a), *b_ = (b);                                                \
	if (!a_ || !b_ || strcmp(a_, b_) != 0)                                          \
		FAIL("CHECK_STR(%s): \"%s\", expected \"%s\"", #a, a_ ? a_ : "(null)", b_ ? b_ : "(null)"); \
} while (0)
#define CHECK_CONTAINS(a, part) do {                                                    \
	const char *a_ = (a), *p_ = (part);                                             \
	if (!a_ || !strstr(a_, p_))                                                     \
		FAIL("CHECK_CONTAINS(%s): \"%s\" lacks \"%s\"", #a, a_ ? a_ : "(null)", p_); \
} while (0)
/* These two look at the `struct err err` of the test. */
#define CHECK_OK(x) do { if ((x) < 0) FAIL("CHECK_OK(%s): %s", #x, err.msg); } while (0)
#define CHECK_ERR(x, code_) do {                                                        \
	if ((x) >= 0)                                                                   \
		FAIL("CHECK_ERR(%s): succeeded", #x);                                   \
	if (err.code != (code_))                                                        \
		FAIL("CHECK_ERR(%s): %s (%s), expected %s", #x, err_name(&err), err.msg, #code_); \
} while (0)

static _noreturn_ void tap_child(const struct tap_test *test)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	test->fn();
	exit(0);        /* not _exit(): LeakSanitizer looks when the process exits */
}

/* Waits for the child and then ends what it left running.  A pidfd rather than
 * alarm(), because tests block signals. */
static void tap_wait(pid_t pid, int limit_s)
{
	struct pollfd pfd = { .fd = (int) syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	bool late = poll(&pfd, 1, limit_s * 1000) == 0;
	int status = 0;

	close(pfd.fd);
	if (late)
		kill(pid, SIGKILL);
	kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (late || (status != 0 && !tap_note->failed)) {
		size_t n = strnlen(tap_note->text, sizeof tap_note->text - 1);

		snprintf(tap_note->text + n, sizeof tap_note->text - n, late ? "%stimed out after %d s" :
		         WIFSIGNALED(status) ? "%sdied of signal %d" : "%sexited with %d", n ? "; " : "",
		         late ? limit_s : WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		tap_note->failed = true;
	}
}

static bool tap_run(const struct tap_test *test, int number, int limit_s, bool must_run)
{
	pid_t pid;
	bool ok;

	memset(tap_note, 0, sizeof *tap_note);
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		tap_child(test);
	if (pid > 0)
		tap_wait(pid, limit_s);
	ok = pid > 0 && !tap_note->failed && !(tap_note->skipped && must_run);
	for (char *p = tap_note->text; *p; p++)
		if (*p == '\n')
			*p = ' ';       /* one TAP line is one line */
	if (ok && tap_note->skipped)
		printf("ok %d - %s # SKIP %s\n", number, test->name, tap_note->text);
	else
		printf("%s %d - %s\n", ok ? "ok" : "not ok", number, test->name);
	if (!ok)
		printf("# %s%s\n", pid < 0 ? "fork failed" : tap_note->skipped ? "must run, but: " : "", tap_note->text);
	return ok;
}

static bool tap_chosen(const struct tap_test *test, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(test->name, argv[i]))
			return true;
	return argc < 2;
}

int main(int argc, char **argv)
{
	const char *must = getenv("CUVETTE_TESTS_MUST_RUN"), *limit = getenv("TEST_TIMEOUT");
	int number = 0, failed = 0, limit_s = limit && atoi(limit) > 0 ? atoi(limit) : TEST_TIMEOUT;

	tap_note = mmap(NULL, sizeof *tap_note, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tap_note == MAP_FAILED)
		return 1;
	for (struct tap_test *t = tap_first; t; t = t->next)
		if (tap_chosen(t, argc, argv) && !tap_run(t, ++number, limit_s, must && strcmp(must, "1") == 0))
			failed++;
	printf("1..%d\n", number);
	return failed ? 1 : 0;
}
