/* SPDX-License-Identifier: Apache-2.0 */
/* Commands through the real init: see init-box.h for where it runs.  Names end with the case they cover. */
#define TEST_TIMEOUT 60
#include "init-box.h"

static struct result r;

static void exec_as(const char *user, const char *cwd, const char *script)
{
	char *argv[] = { (char *) "/bin/sh", (char *) "-c", (char *) script, NULL };
	struct init_exec exec = { .argv = argv };

	snprintf(exec.user, sizeof exec.user, "%s", user);
	snprintf(exec.cwd, sizeof exec.cwd, "%s", cwd);
	run_exec(&exec, &r);
}

static void exec_program(const char *program)
{
	char *argv[] = { (char *) program, NULL };
	struct init_exec exec = { .argv = argv };

	run_exec(&exec, &r);
}

TEST(a_ping_is_answered)
{
	static struct packet p;
	int fd;

	box_start();
	fd = connect_init();
	send_packet(fd, INIT_PING, 0, NULL, 0);
	CHECK(recv_packet(fd, &p));
	CHECK_INT(p.header.type, INIT_PONG);
	CHECK(!recv_packet(fd, &p));
}

TEST(output_and_exit_code_arrive)
{
	box_start();
	run_shell("echo out; echo err >&2; exit 7", &r);
	CHECK_STR(r.out.data, "out\n");
	CHECK_STR(r.err.data, "err\n");
	CHECK_INT(r.exit.status, 7);
	CHECK_INT(r.exit.signaled, 0);
	CHECK_INT(r.exit.flags, 0);
	CHECK_INT(r.exit.stdout_bytes, 4);
	CHECK_INT(r.exit.stderr_bytes, 4);
	CHECK(r.exit.max_rss_bytes > 100000 && r.exit.wall_us > 0);
}

TEST(a_missing_command_and_one_that_is_not_executable_say_so_B11)
{
	box_start();
	exec_program("nosuchcmd_x");
	CHECK_INT(r.error.code, ERR_NOT_FOUND);
	CHECK_INT(r.error.step, INIT_STEP_EXEC);
	CHECK_STR(r.error.msg, "nosuchcmd_x: command not found");
	exec_program("/etc/passwd");
	CHECK_INT(r.error.code, ERR_PERMISSION);
	CHECK_INT(r.error.sys, EACCES);
	CHECK_STR(r.error.msg, "/etc/passwd: Permission denied");
	exec_program("/no/such");
	CHECK_INT(r.error.code, ERR_NOT_FOUND);
	CHECK_STR(r.error.msg, "/no/such: No such file or directory");
	exec_program("/tmp");
	CHECK_INT(r.error.code, ERR_PERMISSION);
	CHECK_INT(r.error.sys, EISDIR);
	CHECK_STR(r.error.msg, "/tmp: Is a directory");
	exec_program("");
	CHECK_INT(r.error.code, ERR_NOT_FOUND);
}

TEST(scripts_run_as_execvp_runs_them_B11)
{
	box_start();
	run_shell(
		"cd /tmp; echo 'echo script $1 $#' > plain; printf '#!/no/interp -x\\necho' > lost; "
		"chmod 755 plain lost; "
		"head -c 300 /dev/zero > zeros; chmod 755 zeros",
		&r);
	CHECK_INT(r.exit.status, 0);
	exec_program("/tmp/plain");
	CHECK_STR(r.out.data, "script 0\n");
	exec_program("/tmp/lost");
	CHECK_INT(r.error.code, ERR_NOT_FOUND);
	CHECK_STR(r.error.msg, "/tmp/lost: its interpreter /no/interp is missing");
	exec_program("/tmp/zeros");
	CHECK_INT(r.error.code, ERR_PERMISSION);
	CHECK_INT(r.error.sys, ENOEXEC);
}

TEST(the_search_path_is_the_environments)
{
	char *argv[] = { (char *) "prog", (char *) "a", NULL };
	char *env[] = { (char *) "PATH=/nowhere:/tmp/one:/tmp/two", NULL };
	struct init_exec exec = { .argv = argv, .env = env };

	box_start();
	run_shell("mkdir /tmp/one /tmp/two; echo x > /tmp/one/prog; printf '#!/bin/sh\\necho two' > /tmp/two/prog; "
	          "chmod 755 /tmp/two/prog", &r);
	run_exec(&exec, &r);
	CHECK_STR(r.out.data, "two\n");
	run_shell("rm /tmp/two/prog", &r);
	run_exec(&exec, &r);
	CHECK_INT(r.error.code, ERR_PERMISSION);
	CHECK_STR(r.error.msg, "/tmp/one/prog: Permission denied");
}

TEST(every_command_has_the_same_oom_score_and_niceness_B17)
{
	box_start();
	for (int i = 0; i < 100; i++) {
		run_shell("cat /proc/self/oom_score_adj; sh -c 'cat /proc/self/oom_score_adj'; nice", &r);
		CHECK_STR(r.out.data, "500\n500\n0\n");
	}
	run_shell("cat /proc/1/oom_score_adj", &r);
	CHECK_STR(r.out.data, "0\n");
}

TEST(a_missing_directory_is_named_B27)
{
	box_start();
	exec_as("", "/no/such", "pwd");
	CHECK_INT(r.error.code, ERR_NOT_FOUND);
	CHECK_INT(r.error.step, INIT_STEP_CWD);
	CHECK_STR(r.error.msg, "working directory /no/such: No such file or directory");
	exec_as("", "/etc/passwd", "pwd");
	CHECK_INT(r.error.step, INIT_STEP_CWD);
	exec_as("", "relative", "pwd");
	CHECK_INT(r.error.code, ERR_INVALID);
	/* Without a home of its own the default is the root. */
	exec_as("other", "", "pwd");
	CHECK_STR(r.out.data, "/\n");
	exec_as("", "/tmp", "pwd");
	CHECK_STR(r.out.data, "/tmp\n");
}

TEST(a_directory_that_is_a_magic_link_is_refused_C09)
{
	box_start();
	for (int fd = 0; fd < 20; fd++) {
		char cwd[64];

		snprintf(cwd, sizeof cwd, "/proc/self/fd/%d", fd);
		exec_as("root", cwd, "pwd");
		CHECK(r.failed);
		CHECK_INT(r.error.step, INIT_STEP_CWD);
	}
	exec_as("root", "/proc/self/root", "pwd");
	CHECK(r.failed);
}

TEST(text_of_a_request_is_never_interpreted_C11)
{
	char *argv[] = { (char *) "/bin/echo", (char *) "$(touch /tmp/pwn)", (char *) "a';touch /tmp/pwn;'", NULL };
	char *env[] = { (char *) "X=it's $(touch /tmp/pwn)", NULL };
	struct init_exec exec = { .argv = argv, .env = env };

	box_start();
	run_exec(&exec, &r);
	CHECK_STR(r.out.data, "$(touch /tmp/pwn) a';touch /tmp/pwn;'\n");
	exec_as("", "/$(touch /tmp/pwn)", "pwd");
	CHECK_INT(r.error.code, ERR_NOT_FOUND);
	run_shell("ls /tmp", &r);
	CHECK_STR(r.out.data, "");
}

TEST(users_are_the_sandboxes_own)
{
	box_start();
	exec_as("", "", "id; pwd; echo $HOME $USER $LOGNAME $SHELL $LANG; umask");
	CHECK_STR(r.out.data, "uid=1000(user) gid=1000(user) groups=1000(user),2000(extra),2001(more)\n/home/user\n"
	                      "/home/user user user /bin/bash C.UTF-8\n0022\n");
	exec_as("root", "", "id; pwd; grep Cap /proc/self/status");
	CHECK_CONTAINS(r.out.data, "uid=0(root) gid=0(root) groups=0(root)\n/root\n");
	CHECK_CONTAINS(r.out.data, "CapEff:\t00000000800004fb\n");
	exec_as("1000", "", "grep Cap /proc/self/status");
	CHECK_STR(r.out.data, "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
	                      "CapBnd:\t00000000800004fb\nCapAmb:\t0000000000000000\n");
	exec_as("4321", "", "id -u; id -g; id -G; pwd");
	CHECK_STR(r.out.data, "4321\n4321\n4321\n/\n");
	exec_as("nobody-here", "", "id");
	CHECK_INT(r.error.code, ERR_NOT_FOUND);
	CHECK_INT(r.error.step, INIT_STEP_USER);
	exec_as("big", "", "id");
	CHECK_INT(r.error.code, ERR_INVALID);
	exec_as("65536", "", "id");
	CHECK_INT(r.error.code, ERR_INVALID);
	/* A file that changes is read again. */
	exec_as("root", "", "echo 'new:x:1500:1500::/tmp:/bin/sh' >> /etc/passwd; "
	                    "sed -i s/more:x:2001:user/more:x:2001:/ /etc/group");
	exec_as("new", "", "id -u; pwd");
	CHECK_STR(r.out.data, "1500\n/tmp\n");
	exec_as("", "", "id -G");
	CHECK_STR(r.out.data, "1000 2000\n");
}

TEST(account_files_that_are_no_files_do_not_hang)
{
	box_start();
	exec_as("root", "", "rm /etc/passwd /etc/group; mkfifo /etc/passwd; ln -s /proc/self/fd/3 /etc/group");
	exec_as("1000", "", "id -u");
	CHECK_STR(r.out.data, "1000\n");
	exec_as("user", "", "id -u");
	CHECK_INT(r.error.code, ERR_NOT_FOUND);
}

TEST(nothing_of_inits_is_inherited_C08)
{
	box_start();
	run_shell("ls /proc/self/fd; ls -l /proc/1/fd 2>&1 | head -n 1; grep -E 'Sig(Blk|Ign)' /proc/self/status; "
	          "ulimit -n; ulimit -Hn; env | sort", &r);
	CHECK_CONTAINS(r.out.data, "0\n1\n2\n3\n");     /* 3 is ls's own */
	CHECK(!strstr(r.out.data, "\n4\n"));
	CHECK_CONTAINS(r.out.data, "Permission denied");
	CHECK_CONTAINS(r.out.data, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n1024\n4096\n");
	CHECK_CONTAINS(r.out.data, "\nHOME=/home/user\nLANG=C.UTF-8\nLOGNAME=user\n");
	CHECK(!strstr(r.out.data, "ASAN"));
}

TEST(the_environment_is_laid_over_or_replaced)
{
	char *argv[] = { (char *) "/usr/bin/env", NULL };
	char *env[] = { (char *) "HOME=/tmp", (char *) "A=1", NULL };
	struct init_exec exec = { .argv = argv, .env = env, .flags = INIT_EXEC_ENV_ONLY };

	box_start();
	run_exec(&exec, &r);
	CHECK_STR(r.out.data, "HOME=/tmp\nA=1\n");
	exec.flags = 0;
	run_exec(&exec, &r);
	CHECK_CONTAINS(r.out.data, "HOME=/tmp\n");
	CHECK_CONTAINS(r.out.data, "USER=user\n");
	CHECK(!strstr(r.out.data, "HOME=/home/user"));
	env[1] = (char *) "novalue";
	run_exec(&exec, &r);
	CHECK_INT(r.error.code, ERR_INVALID);
}

TEST(a_killed_process_is_named_B19)
{
	box_start();
	run_shell("sleep 100 & kill -9 $!; wait $!; kill -9 $$", &r);
	CHECK_INT(r.exit.signaled, 1);
	CHECK_INT(r.exit.status, SIGKILL);
	CHECK(r.exit.flags & INIT_EXIT_KILLED);
	CHECK_STR(r.exit.killed_name, "sh");
	CHECK_INT(r.exit.killed_pid, r.pid);
	run_shell("(sh -c 'echo $$ > /tmp/p; kill -9 $$' &); sleep 0.3", &r);
	CHECK_INT(r.exit.signaled, 0);
	CHECK(r.exit.flags & INIT_EXIT_KILLED);
	CHECK_STR(r.exit.killed_name, "sh");
	run_shell("true", &r);
	CHECK_INT(r.exit.flags, 0);
}

TEST(signals_reach_the_whole_group)
{
	int fd;

	box_start();
	fd = begin_shell("sleep 31 & sleep 32", 0);
	wait_started(fd);
	usleep(100000);
	send_u32(fd, INIT_SIGNAL, SIGTERM);
	result_init(&r);
	finish_exec(fd, &r);
	CHECK_INT(r.exit.signaled, 1);
	CHECK_INT(r.exit.status, SIGTERM);
	run_shell("cat /proc/[0-9]*/comm", &r);
	CHECK(!strstr(r.out.data, "sleep"));
}

TEST(a_request_may_take_several_packets_B12)
{
	static char big[130000], bigger[130000];
	char *argv[] = { (char *) "/bin/sh", (char *) "-c", (char *) "echo ${#1} ${#2} ${#X}", (char *) "x", big,
	                 bigger, NULL };
	char *env[] = { bigger, NULL };
	struct init_exec exec = { .argv = argv, .env = env };

	memset(big, 'a', sizeof big - 1);
	memset(bigger, 'b', sizeof bigger - 1);
	memcpy(bigger, "X=", 2);
	box_start();
	run_exec(&exec, &r);
	CHECK_STR(r.out.data, "129999 129999 129997\n");
}

TEST(the_inside_is_not_served_C11)
{
	char script[512];

	box_start();
	snprintf(script, sizeof script, "import socket\ns=socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
	         "s.connect('\\0%s')\ntry:\n s.send(b'\\1\\1\\0\\0\\0\\0\\0\\0')\nexcept OSError: pass\n"
	         "try:\n print(s.recv(100))\nexcept OSError as e: print(b'')\n", box.name);
	{
		char *argv[] = { (char *) "/usr/bin/python3", (char *) "-c", script, NULL };
		struct init_exec exec = { .argv = argv };

		snprintf(exec.user, sizeof exec.user, "root");
		run_exec(&exec, &r);
	}
	if (r.failed)
		SKIP("needs python3");
	CHECK_STR(r.out.data, "b''\n");
}

TEST(init_survives_what_the_inside_can_do_to_it_C05)
{
	box_start();
	exec_as("root", "", "kill -9 1; kill -STOP 1; kill -TERM 1; cat /proc/1/environ /proc/1/maps > /dev/null; "
	        "echo -1000 > /proc/1/oom_score_adj; : > /proc/1/exe; ls /proc/1/root/; "
	        "echo -1000 > /proc/self/oom_score_adj");
	CHECK(strstr(r.err.data, "ermission denied"));
	run_shell("echo alive", &r);
	CHECK_STR(r.out.data, "alive\n");
}

TEST(a_frame_that_is_garbage_ends_its_connection_only)
{
	static struct packet p;
	static const char *const frames[] = { "", "x", "\1\2\0\0\377\377\377\377", "\2\1\0\0\0\0\0\0",
	                                      "\1\143\0\0\0\0\0\0" };
	static const size_t lens[] = { 0, 1, 8, 8, 8 };

	box_start();
	for (size_t i = 1; i < ARRAY_SIZE(frames); i++) {
		int fd = connect_init();

		CHECK(send(fd, frames[i], lens[i], 0) == (ssize_t) lens[i]);
		CHECK(!recv_packet(fd, &p));
		close(fd);
	}
	run_shell("echo fine", &r);
	CHECK_STR(r.out.data, "fine\n");
}

TEST(commands_are_listed_with_tag_and_arguments)
{
	static struct packet p;
	char *argv[] = { (char *) "/bin/sleep", (char *) "33", NULL };
	struct init_exec exec = { .argv = argv, .tag = "my tag" };
	struct wire_reader w;
	char text[64];
	int fd, list;
	uint32_t pid;

	box_start();
	fd = connect_init();
	send_exec(fd, &exec);
	pid = wait_started(fd);
	list = connect_init();
	send_packet(list, INIT_LIST, 0, NULL, 0);
	CHECK(recv_packet(list, &p));
	CHECK_INT(p.header.type, INIT_PROCS);
	w = (struct wire_reader) { .data = p.payload, .len = p.header.len };
	CHECK_INT(wire_get_u32(&w), 1);
	CHECK_INT(wire_get_u32(&w), pid);
	CHECK_INT(wire_get_u8(&w), 0);
	wire_get_str(&w, text, sizeof text);
	CHECK_STR(text, "my tag");
	wire_get_str(&w, text, sizeof text);
	CHECK_STR(text, "/home/user");
	CHECK_INT(wire_get_u32(&w), 2);
	wire_get_str(&w, text, sizeof text);
	CHECK_STR(text, "/bin/sleep");
	wire_get_str(&w, text, sizeof text);
	CHECK_STR(text, "33");
	CHECK(wire_done(&w));
}

TEST(a_command_writes_itself_into_the_groups_it_is_given)
{
	char text[64];

	box.tasks_fd = memfd_create("tasks", 0);
	box_start();
	run_shell("true", &r);
	CHECK_INT(r.exit.status, 0);
	CHECK_INT(pread(box.tasks_fd, text, sizeof text, 0), 1);
	CHECK_INT(text[0], '0');
}

TEST(connections_are_bounded)
{
	static struct packet p;
	struct init_error e;
	int fds[600], refused = 0;

	box_start();
	for (size_t i = 0; i < 600; i++)
		fds[i] = connect_init();
	for (size_t i = 512; i < 600; i++) {
		CHECK(recv_packet(fds[i], &p));
		get_error(&p, &e);
		CHECK_INT(e.code, ERR_EXHAUSTED);
		refused++;
	}
	CHECK_INT(refused, 88);
	for (size_t i = 0; i < 600; i++)
		close(fds[i]);
	usleep(200000);
	run_shell("echo fine", &r);
	CHECK_STR(r.out.data, "fine\n");
}

TEST(commands_do_not_have_clone3_where_init_has_it_A08)
{
	static const char script[] = "print syscall(435, 0, 0) < 0 ? $!{ENOSYS} ? 'hidden' : 'there' : 'worked'";
	char *argv[] = { (char *) "/usr/bin/perl", (char *) "-e", (char *) script, NULL };
	struct init_exec exec = { .argv = argv };

	box.filtered = true;
	box_start();
	run_exec(&exec, &r);
	if (r.failed && r.error.code == ERR_NOT_FOUND)
		SKIP("needs perl");
	CHECK_STR(r.out.data, "hidden");
	snprintf(exec.user, sizeof exec.user, "root");
	run_exec(&exec, &r);
	CHECK_STR(r.out.data, "hidden");
	/* Threads and processes work as ever. */
	run_shell("seq 3 | sort -rn | head -n 1; (echo sub)", &r);
	CHECK_STR(r.out.data, "3\nsub\n");
}

TEST(without_descriptors_init_says_so_and_recovers)
{
	static struct packet p;
	int fds[100], started = 0, refused = 0;
	struct init_error e;

	box.nofile = 64;
	box_start();
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = begin_shell("exec sleep 20", 0);
		CHECK(recv_packet(fds[i], &p));
		if (p.header.type == INIT_STARTED) {
			started++;
			continue;
		}
		get_error(&p, &e);
		CHECK_INT(e.code, ERR_EXHAUSTED);
		refused++;
	}
	CHECK(started > 10 && refused > 50);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		if (i < 5)
			send_u32(fds[i], INIT_SIGNAL, SIGKILL);
		else
			close(fds[i]);
	}
	result_init(&r);
	finish_exec(fds[0], &r);
	usleep(200000);
	run_shell("echo fine", &r);
	CHECK_STR(r.out.data, "fine\n");
}

TEST(a_long_list_of_commands_comes_in_packets)
{
	static char argument[3000];
	static struct packet p;
	char *argv[] = { (char *) "/bin/sh", (char *) "-c", (char *) "sleep 20", argument, argument, NULL };
	struct init_exec exec = { .argv = argv };
	int fds[40], list;
	uint32_t count = 0, packets = 0;

	memset(argument, 'a', sizeof argument - 1);
	memset(exec.tag, 't', 200);
	box_start();
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = connect_init();
		send_exec(fds[i], &exec);
		wait_started(fds[i]);
	}
	list = connect_init();
	send_packet(list, INIT_LIST, 0, NULL, 0);
	do {
		struct wire_reader w;

		CHECK(recv_packet(list, &p));
		CHECK_INT(p.header.type, INIT_PROCS);
		w = (struct wire_reader) { .data = p.payload, .len = p.header.len };
		count += wire_get_u32(&w);
		packets++;
	} while (p.header.flags & INIT_MORE);
	CHECK_INT(count, ARRAY_SIZE(fds));
	CHECK(packets > 1);
}

/* A command stopped between its birth and its program must not stop init with it. */
TEST(a_program_that_stops_everybody_does_not_stop_init)
{
	char *argv[] = { (char *) "/bin/true", NULL };
	struct init_exec exec = { .argv = argv };

	box_start();
	wait_started(begin_shell("while :; do kill -s STOP -- -1; done 2>/dev/null", 0));
	for (int i = 0; i < 100; i++) {
		int fd = connect_init();

		send_exec(fd, &exec);
		wait_started(fd);
		close(fd);
	}
}
