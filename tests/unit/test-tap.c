/* SPDX-License-Identifier: Apache-2.0 */
/* The harness itself: every way a test can end lands on that test. */
#include "tap.h"

#include "base/fd.h"

static void run_sample(const char *arguments, char *ret, size_t size)
{
	_cleanup_free_ char *command = xasprintf("%s %s 2>/dev/null", getenv("TAP_SAMPLE"), arguments);
	FILE *out = popen(command, "r");
	size_t n;

	CHECK(out);
	n = fread(ret, 1, size - 1, out);
	ret[n] = '\0';
	pclose(out);
}

TEST(each_ending_lands_on_its_test)
{
	char out[8192];

	unsetenv("CUVETTE_TESTS_MUST_RUN");
	unsetenv("TEST_TIMEOUT");
	run_sample("", out, sizeof out);
	CHECK_CONTAINS(out, "ok 1 - passes\nnot ok 2 - fails\n");
	CHECK_CONTAINS(out, "CHECK_INT(1 + 1, 3): 2, expected 3\n");
	CHECK_CONTAINS(out, "not ok 3 - crashes\n# died of signal 9\n");
	CHECK_CONTAINS(out, "not ok 4 - hangs\n# timed out after 1 s\n");
	CHECK_CONTAINS(out, "\nok 5 - skips # SKIP no moon here\n");
	CHECK_CONTAINS(out, "not ok 6 - exits\n# exited with 7\n");
	CHECK_CONTAINS(out, "not ok 7 - fails_in_a_grandchild\n");
	CHECK_CONTAINS(out, "CHECK_STR(\"a\"): \"a\", expected \"b\"\n");
	CHECK_CONTAINS(out, "bad thing\n1..8\n");
	CHECK(!strstr(out, "noise"));
}

TEST(a_skip_is_a_failure_when_tests_must_run)
{
	char out[1024];

	setenv("CUVETTE_TESTS_MUST_RUN", "1", 1);
	run_sample("skips", out, sizeof out);
	CHECK_STR(out, "not ok 1 - skips\n# must run, but: no moon here\n1..1\n");
}

TEST(arguments_choose_tests)
{
	char out[1024];

	run_sample("passes exi", out, sizeof out);
	CHECK_STR(out, "ok 1 - passes\nnot ok 2 - exits\n# exited with 7\n1..2\n");
}
