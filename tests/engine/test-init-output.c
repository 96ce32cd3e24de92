/* SPDX-License-Identifier: Apache-2.0 */
/* Output, input, and the connections that want them, of the real init.  Names end with the case they cover. */
#define TEST_TIMEOUT 60
#include <limits.h>
#include "init-box.h"

static struct result r;

TEST(a_character_split_over_two_writes_arrives_as_its_bytes_A01)
{
	box_start();
	run_shell("printf '\\360\\237'; sleep 0.2; printf '\\230\\200'", &r);
	CHECK_STR(r.out.data, "\360\237\230\200");
}

TEST(a_command_returns_though_its_background_child_holds_stdout_A10)
{
	box_start();
	run_shell("sleep 3 & echo hi", &r);
	CHECK_STR(r.out.data, "hi\n");
	CHECK_INT(r.exit.status, 0);
	CHECK(r.took_us < 500000);
	CHECK_INT(r.exit.flags, INIT_EXIT_INCOMPLETE);
	run_shell("ls /proc | grep -c '^[0-9]'; for p in /proc/[0-9]*; do cat $p/comm; done", &r);
	CHECK_CONTAINS(r.out.data, "sleep\n");
}

TEST(a_grandchild_in_its_own_session_does_not_hold_the_command_B24)
{
	box_start();
	run_shell("(setsid sleep 5 &) ; exit 0", &r);
	CHECK_INT(r.exit.status, 0);
	CHECK(r.took_us < 500000);
	CHECK_INT(r.exit.flags, INIT_EXIT_INCOMPLETE);
}

TEST(fast_output_is_never_lost_A11)
{
	box_start();
	for (int i = 0; i < 2000; i++) {
		run_shell("echo done", &r);
		CHECK_STR(r.out.data, "done\n");
		CHECK_INT(r.exit.flags, 0);
	}
}

TEST(bytes_are_not_touched_A13)
{
	box_start();
	run_shell("i=0; while [ $i -lt 256 ]; do printf \"\\\\$(printf %o $i)\"; i=$((i+1)); done", &r);
	CHECK_INT(r.out.len, 256);
	for (int i = 0; i < 256; i++)
		CHECK_INT((uint8_t) r.out.data[i], i);
}

TEST(all_lines_and_the_code_arrive_A18)
{
	static struct packet p;
	int fd;

	box_start();
	run_shell("seq 1 100000; exit 7", &r);
	CHECK_INT(r.out.len, 588895);
	CHECK_INT(r.exit.status, 7);
	CHECK(!strcmp(r.out.data + r.out.len - 7, "100000\n"));

	/* A reader that is slow at first gets as much. */
	fd = begin_shell("seq 1 100000; exit 7", 0);
	result_init(&r);
	usleep(300000);
	while (recv_packet(fd, &p) && !take_packet(&p, &r))
		usleep(1000);
	CHECK_INT(r.out.len, 588895);
	CHECK_INT(r.exit.status, 7);
}

TEST(output_waits_for_credit)
{
	static struct packet p;
	size_t granted = 1000;
	int fd;

	box_start();
	fd = begin_shell("seq 1 20000", INIT_EXEC_CREDIT);
	wait_started(fd);
	result_init(&r);
	send_u32(fd, INIT_CREDIT, 1000);
	while (recv_packet(fd, &p) && !take_packet(&p, &r)) {
		CHECK(r.out.len <= granted);
		if (r.out.len == granted) {
			send_u32(fd, INIT_CREDIT, 7777);
			granted += 7777;
		}
	}
	CHECK_INT(r.out.len, 108894);
	CHECK_INT(r.exit.status, 0);
}

TEST(a_command_whose_host_left_runs_on_and_costs_little_A04)
{
	uint32_t pid;
	unsigned long before;
	int fd;

	box_start();
	run_shell("true", &r);
	before = init_memory_kib();
	fd = begin_shell("i=0; while [ $i -lt 400000 ]; do echo line $i; i=$((i+1)); done; sleep 30", 0);
	pid = wait_started(fd);
	close(fd);
	usleep(1500000);
	/* (The sanitizers never give memory back.) */
	CHECK(getenv("CUVETTE_INIT") || init_memory_kib() < before + 600);
	/* It was not held up: the newest lines are there, and follow one another without a gap. */
	fd = attach(pid, 0);
	CHECK_INT(wait_started(fd), pid);
	result_init(&r);
	while (!r.out.len || !strstr(r.out.data, "line 399999\n")) {
		static struct packet p;

		CHECK(recv_packet(fd, &p));
		CHECK(!take_packet(&p, &r));
	}
	{
		char *line = strchr(r.out.data, '\n') + 1, *end;
		long expected = -1, n = 0;

		for (; (end = strchr(line, '\n')); line = end + 1) {
			n = strtol(line + 5, NULL, 10);
			CHECK(expected < 0 || n == expected);
			expected = n + 1;
		}
		CHECK_INT(n, 399999);
	}
	send_u32(fd, INIT_SIGNAL, SIGTERM);
	finish_exec(fd, &r);
	CHECK_INT(r.exit.signaled, 1);
}

TEST(the_end_of_a_detached_command_is_kept_for_who_asks)
{
	uint32_t pid;
	int fd;

	box_start();
	fd = begin_shell("sleep 0.2; echo late; exit 3", 0);
	pid = wait_started(fd);
	close(fd);
	usleep(500000);
	fd = attach(pid, 0);
	result_init(&r);
	finish_exec(fd, &r);
	CHECK_STR(r.out.data, "late\n");
	CHECK_INT(r.exit.status, 3);
	fd = attach(pid, 0);
	result_init(&r);
	finish_exec(fd, &r);
	CHECK_INT(r.error.code, ERR_NOT_FOUND);
}

TEST(a_slow_consumer_does_not_stop_another_A08)
{
	uint32_t pid;
	int slow, fast;

	box_start();
	slow = begin_shell("read x; seq 1 300000; read x", INIT_EXEC_STDIN);
	pid = wait_started(slow);
	fast = attach(pid, 0);
	wait_started(fast);
	send_packet(fast, INIT_STDIN, 0, "go\n", 3);
	result_init(&r);
	while (r.out.len < 1988895) {
		static struct packet p;

		CHECK(recv_packet(fast, &p));
		CHECK(!take_packet(&p, &r));
	}
	send_packet(fast, INIT_STDIN, 0, "end\n", 4);
	finish_exec(fast, &r);
	CHECK_INT(r.out.len, 1988895);
	close(slow);
}

TEST(without_input_stdin_is_the_null_device_B06)
{
	box_start();
	run_shell("cat; readlink /proc/self/fd/0; cat > f.py; wc -c < f.py", &r);
	CHECK_STR(r.out.data, "/dev/null\n0\n");
}

TEST(input_reaches_the_command_and_can_be_closed_B06)
{
	int fd;

	box_start();
	fd = begin_shell("read x; echo got $x", INIT_EXEC_STDIN);
	send_packet(fd, INIT_STDIN, 0, "50\n", 3);
	result_init(&r);
	finish_exec(fd, &r);
	CHECK_STR(r.out.data, "got 50\n");

	fd = begin_shell("cat", INIT_EXEC_STDIN);
	wait_started(fd);
	send_packet(fd, INIT_STDIN, 0, "abc", 3);
	send_packet(fd, INIT_STDIN_EOF, 0, NULL, 0);
	result_init(&r);
	finish_exec(fd, &r);
	CHECK_STR(r.out.data, "abc");
	CHECK_INT(r.exit.status, 0);
}

TEST(input_has_credit_and_keeps_its_order_J07)
{
	static struct packet p;
	size_t credit = INIT_PAYLOAD_MAX, sent = 0;
	uint8_t byte;
	int fd;

	box_start();
	fd = begin_shell("sleep 0.2; cat", INIT_EXEC_STDIN);
	wait_started(fd);
	result_init(&r);
	while (sent < 200000) {
		size_t chunk = sent < 10000 ? 1 : MIN((size_t) 5000, credit);
		uint8_t data[5000];

		if (!credit) {
			CHECK(recv_packet(fd, &p));
			if (p.header.type == INIT_STDIN_CREDIT) {
				struct wire_reader w = { .data = p.payload, .len = p.header.len };

				credit += wire_get_u32(&w);
			} else {
				take_packet(&p, &r);
			}
			continue;
		}
		for (size_t i = 0; i < chunk; i++)
			data[i] = (uint8_t) ((sent + i) % 251);
		send_packet(fd, INIT_STDIN, 0, data, chunk);
		sent += chunk;
		credit -= chunk;
	}
	send_packet(fd, INIT_STDIN_EOF, 0, NULL, 0);
	finish_exec(fd, &r);
	CHECK_INT(r.out.len, sent);
	for (size_t i = 0; i < sent; i++) {
		byte = (uint8_t) r.out.data[i];
		CHECK_INT(byte, i % 251);
	}
}

TEST(more_input_than_granted_ends_the_connection)
{
	static struct packet p;
	static uint8_t data[INIT_PAYLOAD_MAX];
	int fd;

	box_start();
	fd = begin_shell("sleep 30", INIT_EXEC_STDIN);
	wait_started(fd);
	send_packet(fd, INIT_STDIN, 0, data, sizeof data);
	send_packet(fd, INIT_STDIN, 0, data, sizeof data);
	send_packet(fd, INIT_STDIN, 0, data, sizeof data);
	/* The first went into the pipe and is granted again; the second waits; the third is too much. */
	CHECK(recv_packet(fd, &p));
	CHECK_INT(p.header.type, INIT_STDIN_CREDIT);
	CHECK(!recv_packet(fd, &p));
}

TEST(stderr_can_be_merged_and_keeps_its_place)
{
	char *argv[] = { (char *) "/bin/sh", (char *) "-c", (char *) "echo 1; echo 2 >&2; echo 3", NULL };
	struct init_exec exec = { .argv = argv, .flags = INIT_EXEC_MERGE };

	box_start();
	run_exec(&exec, &r);
	CHECK_STR(r.out.data, "1\n2\n3\n");
	CHECK_INT(r.err.len, 0);
}

/* Processor time of init in milliseconds. */
static long init_cpu_ms(void)
{
	char path[64], text[1024], *at;
	unsigned long user, system;
	struct err err;

	snprintf(path, sizeof path, "/proc/%d/stat", box.pid);
	CHECK_OK(read_file_at(AT_FDCWD, path, text, sizeof text, &err));
	at = strrchr(text, ')');
	CHECK(at && sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) == 2);
	return (long) (user + system) * 1000 / sysconf(_SC_CLK_TCK);
}

TEST(a_flood_that_nobody_hears_goes_on_and_costs_init_little_A04)
{
	/* Under a sanitizer only what it does is looked at, not what it costs. */
	bool is_measured = !getenv("CUVETTE_INIT");
	long best = LONG_MAX;
	int fd;

	box_start();
	/* One whose host left, and one that outlives its command. */
	fd = begin_shell("yes", 0);
	wait_started(fd);
	close(fd);
	run_shell("yes & sleep 0.1", &r);
	CHECK_INT(r.exit.flags, INIT_EXIT_INCOMPLETE);
	usleep(200000);
	/* A busy host makes every page dearer: the best of a few seconds counts. */
	for (int i = 0; is_measured && i < 5 && best > 350; i++) {
		long before = init_cpu_ms();

		usleep(1000000);
		best = MIN(best, init_cpu_ms() - before);
	}
	CHECK(!is_measured || best <= 350);
	CHECK(!is_measured || init_memory_kib() < 1000);
	/* Both are still writing. */
	run_shell("count() { for p in /proc/[0-9]*; do\n"
	          "case $(cat $p/comm) in yes) set -- $(grep wchar $p/io); echo $2;; esac; done; }; "
	          "count; sleep 0.3; count", &r);
	{
		unsigned long long before[2], after[2];

		CHECK_INT(sscanf(r.out.data, "%llu %llu %llu %llu", &before[0], &before[1], &after[0], &after[1]), 4);
		CHECK(after[0] > before[0] + 1000000 && after[1] > before[1] + 1000000);
	}
}
