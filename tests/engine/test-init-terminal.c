/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals of the real init.  Names end with the case they cover. */
#define TEST_TIMEOUT 60
#include "init-box.h"

static struct result r;

/* Reads until the output holds `text`; the operation must go on. */
static void read_until(int fd, const char *text)
{
	static struct packet p;

	while (!r.out.data || !strstr(r.out.data, text)) {
		CHECK(recv_packet(fd, &p));
		if (take_packet(&p, &r))
			FAIL("ended before \"%s\": %s %s", text, r.out.data ? r.out.data : "", r.error.msg);
	}
}

static void resize(int fd, uint16_t rows, uint16_t cols)
{
	uint8_t payload[4] = { (uint8_t) rows, (uint8_t) (rows >> 8), (uint8_t) cols, (uint8_t) (cols >> 8) };

	send_packet(fd, INIT_RESIZE, 0, payload, sizeof payload);
}

static void type(int fd, const char *text)
{
	send_packet(fd, INIT_STDIN, 0, text, strlen(text));
}

TEST(a_terminal_is_born_with_its_size_J01)
{
	int fd;

	box_start();
	fd = begin_shell("stty size; tty; ls -l $(tty) | cut -c1-10; test -O $(tty) && echo own; echo $TERM",
	                 INIT_EXEC_PTY);
	result_init(&r);
	finish_exec(fd, &r);
	CHECK_STR(r.out.data, "24 80\r\n/dev/pts/0\r\ncrw--w----\r\nown\r\nxterm-256color\r\n");
	CHECK_INT(r.exit.status, 0);
	CHECK_INT(r.err.len, 0);
	CHECK_INT(r.exit.flags, 0);
}

TEST(a_resize_reaches_the_program_J01)
{
	int fd;

	box_start();
	fd = begin_shell("trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done", INIT_EXEC_PTY);
	result_init(&r);
	read_until(fd, "ready");
	resize(fd, 40, 132);
	finish_exec(fd, &r);
	CHECK_CONTAINS(r.out.data, "40 132\r\n");
}

TEST(an_impossible_size_is_an_error_and_the_session_lives_J03)
{
	static const uint16_t sizes[][2] = { { 0, 0 }, { 0, 80 }, { 24, 0 }, { 65535, 80 }, { 24, 4097 } };
	static struct packet p;
	struct init_error e;
	int fd;

	box_start();
	fd = begin_shell("read x; stty size; echo got $x", INIT_EXEC_PTY);
	wait_started(fd);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		resize(fd, sizes[i][0], sizes[i][1]);
		CHECK(recv_packet(fd, &p));
		get_error(&p, &e);
		CHECK_INT(e.code, ERR_INVALID);
	}
	type(fd, "on\n");
	result_init(&r);
	finish_exec(fd, &r);
	CHECK_CONTAINS(r.out.data, "24 80\r\ngot on\r\n");
}

TEST(a_terminal_without_a_size_is_refused_J03)
{
	char *argv[] = { (char *) "/bin/true", NULL };
	struct init_exec exec = { .argv = argv, .flags = INIT_EXEC_PTY };

	box_start();
	run_exec(&exec, &r);
	CHECK_INT(r.error.code, ERR_INVALID);
}

TEST(utf8_is_the_locale_and_the_line_discipline_knows_J04)
{
	int fd;

	box_start();
	fd = begin_shell("echo $LANG; printf '\\342\\224\\214\\n'; stty -a | grep -o iutf8", INIT_EXEC_PTY);
	result_init(&r);
	finish_exec(fd, &r);
	CHECK_STR(r.out.data, "C.UTF-8\r\n\342\224\214\r\niutf8\r\n");
}

TEST(the_end_of_a_terminal_is_a_clean_end_J06)
{
	int fd;

	box_start();
	for (int i = 0; i < 50; i++) {
		char *argv[] = { (char *) "/bin/bash", (char *) "-i", NULL };
		struct init_exec exec = { .argv = argv, .flags = INIT_EXEC_PTY, .rows = 24, .cols = 80 };

		fd = connect_init();
		send_exec(fd, &exec);
		wait_started(fd);
		type(fd, "echo la''st; exit 5\n");
		result_init(&r);
		finish_exec(fd, &r);
		CHECK(!r.failed);
		CHECK_INT(r.exit.status, 5);
		CHECK_CONTAINS(r.out.data, "last\r\n");
	}
}

TEST(a_child_that_keeps_the_terminal_does_not_hold_the_command)
{
	int fd;

	box_start();
	fd = begin_shell("setsid sleep 5 & sleep 0.1; echo bye", INIT_EXEC_PTY);
	result_init(&r);
	finish_exec(fd, &r);
	CHECK_STR(r.out.data, "bye\r\n");
	CHECK(r.exit.wall_us < 2000000);
}

TEST(typing_keeps_its_order_J07)
{
	int fd;

	box_start();
	fd = begin_shell("stty -echo -icanon; echo ready; head -c 10000 | od -An -v -tu1 -w1 | tr -d ' ' | md5sum; "
	                 "perl -e 'print 33 + $_ % 90, \"\\n\" for 0..9999' | md5sum", INIT_EXEC_PTY);
	wait_started(fd);
	result_init(&r);
	read_until(fd, "ready");
	for (int i = 0; i < 10000; i++) {
		char key[2] = { (char) (33 + i % 90), '\0' };

		type(fd, key);
	}
	finish_exec(fd, &r);
	{
		char *first = strchr(r.out.data, '\n') + 1, *second = strchr(first, '\n') + 1;

		if (strlen(second) < 32 || strncmp(first, second, 32) != 0)
			FAIL("%s", r.out.data);
	}
}

TEST(control_keys_and_the_end_of_input_work)
{
	int fd;

	box_start();
	fd = begin_shell("trap 'echo interrupted' INT; echo ready; cat; cat; echo done", INIT_EXEC_PTY);
	result_init(&r);
	read_until(fd, "ready");
	usleep(200000);         /* it is for cat, not for the shell before it */
	type(fd, "\003");
	read_until(fd, "interrupted");
	send_packet(fd, INIT_STDIN_EOF, 0, NULL, 0);
	finish_exec(fd, &r);
	CHECK_CONTAINS(r.out.data, "done\r\n");
	CHECK_INT(r.exit.status, 0);
}

TEST(a_flood_and_many_resizes_are_survived_E09)
{
	int fd;

	box_start();
	fd = begin_shell("yes | head -n 200000; read x; echo end", INIT_EXEC_PTY);
	wait_started(fd);
	result_init(&r);
	for (int i = 0; i < 2000; i++)
		resize(fd, (uint16_t) (1 + i % 100), 80);
	read_until(fd, "y\r\ny\r\n");
	type(fd, "\n");
	finish_exec(fd, &r);
	CHECK_INT(r.exit.status, 0);
	CHECK_CONTAINS(r.out.data, "end\r\n");
	CHECK(r.out.len > 600000);
}

TEST(terminals_are_bounded_by_the_sandbox_E09)
{
	int fds[80], started = 0;
	static struct packet p;

	box_start();
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = begin_shell("read x", INIT_EXEC_PTY);
		CHECK(recv_packet(fds[i], &p));
		started += p.header.type == INIT_STARTED;
	}
	CHECK(started >= 64);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	fds[0] = begin_shell("echo alive", 0);
	result_init(&r);
	finish_exec(fds[0], &r);
	CHECK_STR(r.out.data, "alive\n");
}
