/* SPDX-License-Identifier: Apache-2.0 */
/* Files through an init that is replaced by a hostile one (C13 of the probes). */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "sandbox/sandbox.h"
#include "tap.h"

static struct spawner *spawner;
static struct sandbox *sb;
static struct err err;
static char dir[] = "/tmp/test-sandbox-files-XXXXXX";
static struct copy_stats stats;

static void begin(const char *script)
{
	struct spawn_request spec = { 0 };
	struct spawner_options options = { .program = getenv("FAKE_SPAWNER"), .data_dir = "/nowhere", .ephemeral = true };

	if (geteuid() != 0)
		SKIP("not root");
	CHECK(options.program);
	setenv("CUVETTE_FAKE", script, 1);
	CHECK_OK(spawner_start(&options, &spawner, &err));
	CHECK_OK(sandbox_create(spawner, &spec, &sb, &err));
	CHECK(mkdtemp(dir));
	CHECK(chdir(dir) == 0);
}

static void end(void)
{
	char remove[64];

	CHECK_OK(sandbox_destroy(sb, NULL, &err));
	spawner_close(spawner);
	snprintf(remove, sizeof remove, "rm -rf %s", dir);
	CHECK(chdir("/") == 0 && system(remove) == 0);
}

TEST(descriptors_of_anything_but_files_are_refused_in_both_directions)  /* F02 */
{
	static const char *const scripts[] = { "open-device", "open-pipe" };

	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		begin(scripts[i]);
		CHECK_ERR(sandbox_get(sb, "", "/f", "f", &stats, &err), ERR_INTERNAL);
		CHECK_ERR(sandbox_write_file(sb, "", "/f", 0644, "x", 1, &err), ERR_INTERNAL);
		CHECK(access("f", F_OK) < 0);
		end();
		strcpy(dir, "/tmp/test-sandbox-files-XXXXXX");
	}
}

TEST(a_file_of_procfs_is_neither_read_nor_written)
{
	begin("open-proc");
	CHECK_ERR(sandbox_write_file(sb, "", "/f", 0644, "-1000", 5, &err), ERR_PRECONDITION);
	CHECK_CONTAINS(err.msg, "/proc");
	CHECK_ERR(sandbox_put(sb, "", "/etc/passwd", "/f", &stats, &err), ERR_PRECONDITION);
	CHECK_ERR(sandbox_get(sb, "", "/f", "f", &stats, &err), ERR_PRECONDITION);
	CHECK(access("f", F_OK) < 0);
	end();
}

TEST(a_file_of_procfs_in_a_tree_is_left_out_and_counted)
{
	begin("list-file");
	CHECK_OK(sandbox_get(sb, "", "/d", "d", &stats, &err));
	CHECK_INT(stats.skipped, 1);
	CHECK_STR(stats.first_skipped, "/d/f");
	CHECK(access("d/f", F_OK) < 0);
	end();
}

TEST(a_refused_request_says_why)
{
	begin("refused");
	usleep(100000);         /* the connection is closed by now: sending fails */
	CHECK_ERR(sandbox_write_file(sb, "", "/f", 0644, "x", 1, &err), ERR_EXHAUSTED);
	CHECK_CONTAINS(err.msg, "no free connection");
	end();
	strcpy(dir, "/tmp/test-sandbox-files-XXXXXX");
	begin("refused-unread");
	CHECK_ERR(sandbox_write_file(sb, "", "/f", 0644, "x", 1, &err), ERR_EXHAUSTED);
	CHECK_CONTAINS(err.msg, "no free connection");
	end();
}

TEST(an_init_that_does_not_answer_holds_nobody)
{
	uint64_t start;

	begin("mute");
	sb->answer_ms = 200;
	start = now_ns();
	CHECK_ERR(sandbox_get(sb, "", "/f", "f", &stats, &err), ERR_DEADLINE);
	CHECK((now_ns() - start) / 1000000 < 2000);
	end();
}

TEST(listings_without_an_end_are_refused)
{
	begin("list-nothing");
	CHECK_ERR(sandbox_get(sb, "", "/d", "d", &stats, &err), ERR_INTERNAL);
	end();
}

TEST(a_listed_name_that_leads_elsewhere_is_refused)  /* C19 */
{
	begin("list-up");
	CHECK_ERR(sandbox_get(sb, "", "/d", "d", &stats, &err), ERR_INTERNAL);
	CHECK_CONTAINS(err.msg, "impossible name");
	CHECK(access("x", F_OK) < 0);
	end();
}

/* Ten levels of one listing each would be more than is held; a path has room for two thousand. */
TEST(listings_of_a_deep_tree_are_bounded_together)
{
	begin("list-wide");
	CHECK_ERR(sandbox_get(sb, "", "/d", "d", &stats, &err), ERR_EXHAUSTED);
	CHECK(access("d/d", F_OK) == 0);
	CHECK(access("d/d/d/d/d/d/d/d", F_OK) < 0);
	end();
}
