/* SPDX-License-Identifier: Apache-2.0 */
/* A test program with one of everything, for test-tap.c to look at. */
#define TEST_TIMEOUT 1
#include "tap.h"

TEST(passes) { printf("noise on stdout\n"); CHECK_INT(1, 1); }
TEST(fails) { CHECK_INT(1 + 1, 3); }
TEST(crashes) { signal(SIGKILL, SIG_DFL); raise(SIGKILL); }
TEST(hangs) { for (;;) pause(); }
TEST(skips) { SKIP("no %s here", "moon"); }
TEST(exits) { _exit(7); }

TEST(fails_in_a_grandchild)
{
	if (fork() == 0)
		CHECK_STR("a", "b");
	wait(NULL);
}

TEST(shows_the_error)
{
	struct err err = { 0 };

	CHECK_ERR(err_set(&err, ERR_INVALID, "x"), ERR_INVALID);
	CHECK_OK(err_set(&err, ERR_INVALID, "bad\nthing"));
}
