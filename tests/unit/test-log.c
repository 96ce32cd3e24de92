/* SPDX-License-Identifier: Apache-2.0 */
/* One event is one line, and nothing from a sandbox can forge one. */
#include "tap.h"

#include <fcntl.h>
#include "base/log.h"

static int captured = -1;

static void capture(void)
{
	int p[2];

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	captured = p[0];
	dup2(p[1], STDERR_FILENO);
	close(p[1]);
}

static void check_logged(const char *expected)
{
	char text[4096];
	ssize_t n;

	close(STDERR_FILENO);
	n = read(captured, text, sizeof text - 1);
	CHECK(n >= 0);
	text[n] = '\0';
	CHECK_STR(text, expected);
}

TEST(a_line_has_its_program_level_and_pairs)
{
	log_set_name("cuvette-x");
	capture();
	log_warn("sandbox started", "sandbox", "sb1", "path", "/a/b");
	check_logged("cuvette-x: warning: sandbox started sandbox=sb1 path=/a/b\n");
}

TEST(values_that_are_not_plain_are_quoted_and_escaped)
{
	capture();
	log_error("died", "why", "a \"b\"\\", "text", "x\ny\x1b[31m\x7f\xc3", "empty", "", "none", (char *) NULL);
	check_logged("cuvette: error: died why=\"a \\\"b\\\"\\\\\" text=\"x\\x0ay\\x1b[31m\\x7f\\xc3\" "
	             "empty=\"\" none=\"\"\n");
}

TEST(lines_above_the_level_are_dropped)
{
	capture();
	log_info("hidden");
	log_set_level(LOG_LEVEL_DEBUG);
	log_debug("shown");
	log_set_level(LOG_LEVEL_ERROR);
	log_warn("hidden");
	check_logged("cuvette: debug: shown\n");
}

TEST(a_long_line_is_cut_but_stays_one_line)
{
	char value[3000], text[4096];
	ssize_t n;

	memset(value, '\n', sizeof value - 1);
	value[sizeof value - 1] = '\0';
	capture();
	log_error("event", "a", value, "b", value);
	close(STDERR_FILENO);
	n = read(captured, text, sizeof text);
	CHECK(n > 0 && n <= 1024);
	CHECK(memchr(text, '\n', (size_t) n) == text + n - 1);
}

TEST(logging_keeps_errno)
{
	capture();
	close(STDERR_FILENO);
	errno = ENOENT;
	log_error("nobody reads this");
	CHECK_INT(errno, ENOENT);
}
