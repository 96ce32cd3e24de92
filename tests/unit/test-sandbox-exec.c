/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "sandbox/sandbox.h"
#include "tap.h"

static struct spawner *spawner;
static struct sandbox *sb;
static struct err err;

static struct kept {
	char text[2][64];
	size_t len[2], total;
	bool is_stuck, is_closed;
} kept;

static ssize_t keep(void *ctx, int stream, const char *data, size_t len)
{
	size_t room = sizeof kept.text[0] - 1 - kept.len[stream - 1], n = len < room ? len : room;

	(void) ctx;
	if (kept.is_closed)
		return -1;
	if (kept.is_stuck)
		return 0;
	memcpy(kept.text[stream - 1] + kept.len[stream - 1], data, n);
	kept.len[stream - 1] += n;
	kept.total += len;
	return (ssize_t) len;
}

static char *argv_true[] = { "true", NULL };
static struct init_exec plain = { .argv = argv_true };

static struct exec_options options_of(struct init_exec *exec)
{
	return (struct exec_options) { .exec = exec, .stdin_fd = -1, .tty_fd = -1, .signal_fd = -1,
	                               .sink = { .write = keep, .poll_fd = { -1, -1 } } };
}

/* A sandbox whose spawner and init follow `script`. */
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
}

static void end(void)
{
	CHECK_OK(sandbox_destroy(sb, NULL, &err));
	spawner_close(spawner);
}

TEST(streams_arrive_in_order_and_byte_for_byte_with_the_status)  /* A01, A11, A18 */
{
	struct exec_options o = options_of(&plain);
	struct exec_result r;

	begin("plain");
	CHECK_STR(sb->id, "fake0000000000000001");
	CHECK_INT(sb->limits.memory_bytes, SPAWN_DEFAULT_MEMORY);
	CHECK_OK(sandbox_exec(sb, &o, &r, NULL, &err));
	CHECK_STR(kept.text[0], "\360\237\230\200");
	CHECK_STR(kept.text[1], "e\n");
	CHECK_INT(exec_status(&r), 7);
	CHECK_STR(r.reason, "");
	end();
}

TEST(a_second_command_gets_a_connection_of_its_own)
{
	struct exec_options o = options_of(&plain);
	struct exec_result r;

	begin("plain");
	CHECK_OK(sandbox_exec(sb, &o, &r, NULL, &err));
	CHECK_INT(sb->first_conn, -1);
	CHECK_OK(sandbox_exec(sb, &o, &r, NULL, &err));
	CHECK_INT(exec_status(&r), 7);
	end();
}

TEST(a_lost_connection_is_an_error_never_a_status)  /* A07 */
{
	struct exec_options o = options_of(&plain);
	struct exec_result r = { .exit.status = 99 };

	begin("lost");
	CHECK_ERR(sandbox_exec(sb, &o, &r, NULL, &err), ERR_UNAVAILABLE);
	CHECK_INT(r.exit.status, 99);
	CHECK_STR(kept.text[0], "some");
	end();
}

TEST(a_malformed_packet_ends_the_command_with_an_error)
{
	struct exec_options o = options_of(&plain);
	struct exec_result r;

	begin("malformed");
	CHECK_ERR(sandbox_exec(sb, &o, &r, NULL, &err), ERR_INTERNAL);
	end();
}

TEST(packets_out_of_order_end_the_command_with_an_error)  /* C13 of the probes */
{
	struct exec_options o = options_of(&plain);
	static const char *const scripts[] = { "early-exit", "twice", "bad-signal" };
	struct exec_result r;

	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		begin(scripts[i]);
		CHECK_ERR(sandbox_exec(sb, &o, &r, NULL, &err), ERR_INTERNAL);
		end();
	}
}

TEST(an_error_while_the_command_runs_is_its_end_only_when_nothing_follows)
{
	struct exec_options o = options_of(&plain);
	struct exec_result r;

	begin("complains");
	CHECK_OK(sandbox_exec(sb, &o, &r, NULL, &err));
	CHECK_INT(exec_status(&r), 7);
	end();
	begin("complains-last");
	CHECK_ERR(sandbox_exec(sb, &o, &r, NULL, &err), ERR_EXHAUSTED);
	CHECK_STR(err.msg, "a complaint");
	end();
}

TEST(a_refused_connection_says_why)
{
	struct exec_options o = options_of(&plain);
	struct exec_result r;

	begin("refused");
	usleep(100000);         /* the connection is closed by now: sending fails */
	CHECK_ERR(sandbox_exec(sb, &o, &r, NULL, &err), ERR_EXHAUSTED);
	CHECK_STR(err.msg, "no free connection");
	end();
	begin("refused-unread");
	CHECK_ERR(sandbox_exec(sb, &o, &r, NULL, &err), ERR_EXHAUSTED);
	CHECK_STR(err.msg, "no free connection");
	end();
}

TEST(an_init_that_does_not_read_holds_nobody)  /* C13 of the probes */
{
	static char big[900000];
	char *argv[] = { "true", big, NULL };
	struct init_exec exec = { .argv = argv };
	struct exec_options o = options_of(&exec);
	struct exec_result r;

	memset(big, 'x', sizeof big - 1);
	begin("deaf");
	o.timeout_ms = 200;
	CHECK_ERR(sandbox_exec(sb, &o, &r, NULL, &err), ERR_UNAVAILABLE);
	end();
}

TEST(a_command_that_cannot_start_says_at_which_step)  /* B11, B27 */
{
	struct exec_options o = options_of(&plain);
	struct exec_result r;
	enum init_step step;

	begin("missing");
	CHECK_ERR(sandbox_exec(sb, &o, &r, &step, &err), ERR_NOT_FOUND);
	CHECK_INT(step, INIT_STEP_EXEC);
	CHECK_INT(err.sys, ENOENT);
	end();
	begin("no-cwd");
	CHECK_ERR(sandbox_exec(sb, &o, &r, &step, &err), ERR_NOT_FOUND);
	CHECK_INT(step, INIT_STEP_CWD);
	CHECK_CONTAINS(err.msg, "/no/such");
	end();
}

TEST(a_timeout_kills_in_time_and_is_no_error)  /* A21, B13 */
{
	struct exec_options o = options_of(&plain);
	struct exec_result r;
	uint64_t start;

	begin("hang");
	o.timeout_ms = 200;
	start = now_ns();
	CHECK_OK(sandbox_exec(sb, &o, &r, NULL, &err));
	CHECK((now_ns() - start) / 1000000 < 300);
	CHECK(r.timed_out);
	CHECK_INT(exec_status(&r), 124);
	CHECK_INT(r.limit, EXEC_LIMIT_WALL);
	CHECK_CONTAINS(r.reason, "time limit of 0.2s reached");
	end();
}

TEST(a_reader_that_stopped_reading_does_not_hide_the_deadline)
{
	struct exec_options o = options_of(&plain);
	struct exec_result r;
	uint64_t start;
	int full[2];

	begin("flood");
	CHECK(pipe(full) == 0);
	fcntl(full[1], F_SETFL, O_NONBLOCK);
	while (write(full[1], &err, sizeof err) > 0)
		;
	o.timeout_ms = 200;
	o.sink.poll_fd[0] = full[1];
	kept.is_stuck = true;
	start = now_ns();
	CHECK_OK(sandbox_exec(sb, &o, &r, NULL, &err));
	CHECK((now_ns() - start) / 1000000 < 1500);
	CHECK(r.timed_out && r.truncated);
	end();
}

TEST(output_past_the_limit_is_counted_and_dropped)  /* A03 */
{
	struct exec_options o = options_of(&plain);
	struct exec_result r;

	begin("flood");
	o.output_bytes = 100000;
	CHECK_OK(sandbox_exec(sb, &o, &r, NULL, &err));
	CHECK_INT(kept.total, 100000);
	CHECK(r.truncated);
	CHECK_INT(r.exit.stdout_bytes, 64 * INIT_PAYLOAD_MAX);
	CHECK_INT(exec_status(&r), 0);
	CHECK_INT(r.limit, EXEC_LIMIT_OUTPUT);
	CHECK_CONTAINS(r.reason, "4M of stdout were produced");
	end();
}

TEST(a_reader_that_left_ends_the_command)
{
	struct exec_options o = options_of(&plain);
	struct exec_result r;

	begin("flood");
	kept.is_closed = true;
	CHECK_OK(sandbox_exec(sb, &o, &r, NULL, &err));
	CHECK_INT(exec_status(&r), 141);
	CHECK_STR(r.reason, "");
	end();
}

TEST(stdin_of_any_length_arrives_within_its_credit)  /* B06 */
{
	struct init_exec exec = { .argv = argv_true, .flags = INIT_EXEC_STDIN };
	struct exec_options o = options_of(&exec);
	char name[] = "/tmp/test-sandbox-exec-XXXXXX";
	struct exec_result r;

	begin("stdin");
	o.stdin_fd = mkstemp(name);
	CHECK(o.stdin_fd >= 0);
	unlink(name);
	CHECK(ftruncate(o.stdin_fd, 10 << 20) == 0);
	CHECK_OK(sandbox_exec(sb, &o, &r, NULL, &err));
	CHECK_STR(kept.text[0], "10485760 end");
	end();
}

static int signal_source(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

TEST(a_signal_is_forwarded_to_the_command)
{
	struct exec_options o = options_of(&plain);
	struct exec_result r;

	begin("obey");
	o.signal_fd = signal_source(SIGTERM);
	kill(getpid(), SIGTERM);
	CHECK_OK(sandbox_exec(sb, &o, &r, NULL, &err));
	CHECK(r.canceled);
	CHECK_INT(r.signal, SIGTERM);
	CHECK_INT(exec_status(&r), 128 + SIGTERM);
	end();
}

TEST(a_second_signal_kills_what_ignores_the_first)
{
	struct exec_options o = options_of(&plain);
	struct exec_result r;
	pid_t helper, self = getpid();

	begin("hang");
	o.signal_fd = signal_source(SIGINT);
	helper = fork();
	if (helper == 0) {
		for (int i = 0; i < 2; i++) {
			usleep(50000);
			kill(self, SIGINT);
		}
		_exit(0);
	}
	CHECK_OK(sandbox_exec(sb, &o, &r, NULL, &err));
	CHECK_INT(exec_status(&r), 128 + SIGKILL);
	CHECK(r.canceled && !r.timed_out);
	waitpid(helper, NULL, 0);
	end();
}

TEST(a_memory_kill_names_limit_peak_and_process_in_plain_characters)  /* B19 */
{
	struct exec_options o = options_of(&plain);
	struct exec_result r;

	begin("oom");
	CHECK_OK(sandbox_exec(sb, &o, &r, NULL, &err));
	CHECK_INT(r.limit, EXEC_LIMIT_MEMORY);
	CHECK_STR(r.reason, "memory limit of 64M reached: py\\x1b[31m (pid 4) was killed; peak 64M");
	end();
}

TEST(refusals_of_the_spawner_and_its_death_are_errors)
{
	struct spawner_options options = { .program = getenv("FAKE_SPAWNER"), .data_dir = "/nowhere" };
	struct spawn_request spec = { 0 };

	if (geteuid() != 0)
		SKIP("not root");
	setenv("CUVETTE_FAKE", "refuse", 1);
	CHECK_OK(spawner_start(&options, &spawner, &err));
	CHECK_ERR(sandbox_create(spawner, &spec, &sb, &err), ERR_EXHAUSTED);
	CHECK_STR(err.msg, "no slot is free");
	spawner_close(spawner);
	setenv("CUVETTE_FAKE", "dead", 1);
	CHECK_OK(spawner_start(&options, &spawner, &err));
	CHECK_ERR(sandbox_create(spawner, &spec, &sb, &err), ERR_UNAVAILABLE);
	spawner_close(spawner);
	options.program = "/nonexistent/cuvette-spawner";
	CHECK_ERR(spawner_start(&options, &spawner, &err), ERR_NOT_FOUND);
}

static struct exec_result judged(struct init_exit exit, struct spawn_stats stats)
{
	struct exec_result r = { .exit = exit };
	struct exec_options o = options_of(&plain);

	exec_judge(&r, &o, &stats);
	return r;
}

TEST(refused_forks_explain_a_failure_but_not_a_success)  /* B21 */
{
	struct spawn_stats s = { .pids_limit = 64, .pids_refused = 12 };
	struct exec_result r = judged((struct init_exit) { .status = 1 }, s);

	CHECK_INT(r.limit, EXEC_LIMIT_PIDS);
	CHECK_STR(r.reason, "process limit of 64 reached: 12 forks were refused");
	r = judged((struct init_exit) { 0 }, s);
	CHECK_INT(r.limit, EXEC_LIMIT_NONE);
}

TEST(a_full_disk_explains_a_failure_by_bytes_or_by_files)
{
	struct spawn_stats bytes = { .disk_used_bytes = (64 << 20) - 4096, .disk_limit_bytes = 64 << 20 };
	struct spawn_stats files = { .disk_limit_bytes = 64 << 20, .inodes_used = 4096, .inodes_limit = 4096 };
	struct exec_result r = judged((struct init_exit) { .status = 1 }, bytes);

	CHECK_INT(r.limit, EXEC_LIMIT_DISK);
	CHECK_CONTAINS(r.reason, "disk limit of 64M reached");
	r = judged((struct init_exit) { .status = 1 }, files);
	CHECK_INT(r.limit, EXEC_LIMIT_INODES);
	CHECK_STR(r.reason, "file limit of 4096 reached: 4096 inodes are in use");
}
