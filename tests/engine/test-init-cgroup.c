/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands and their control groups, with the real init in a real cgroup v2 tree:
 *
 *      cuvette-test-PID/       given to the box's root
 *              init/           init
 *              box/            commands
 *              box/g1/         one command, on request
 */
#define TEST_TIMEOUT 60
#include <sys/vfs.h>
#include <linux/magic.h>
#include "init-box.h"

enum { BOX_ROOT = 400000 };

static struct result r;
static char top[128];

static void write_to(const char *dir, const char *name, const char *text)
{
	char path[256];
	struct err err;

	snprintf(path, sizeof path, "%s%s/%s", top, dir, name);
	CHECK_OK(write_file_at(AT_FDCWD, path, text, &err));
}

static void read_from(const char *dir, const char *name, char *ret, size_t size)
{
	char path[256];
	struct err err;

	snprintf(path, sizeof path, "%s%s/%s", top, dir, name);
	CHECK_OK(read_file_at(AT_FDCWD, path, ret, size, &err));
}

static int make_group(const char *dir)
{
	static const char *const owned[] = { "", "/cgroup.procs" };
	char path[256];

	snprintf(path, sizeof path, "%s%s", top, dir);
	if (mkdir(path, 0755) < 0)
		SKIP("mkdir %s: %s", path, strerror(errno));
	for (size_t i = 0; i < ARRAY_SIZE(owned); i++) {
		snprintf(path, sizeof path, "%s%s%s", top, dir, owned[i]);
		CHECK(chown(path, BOX_ROOT, BOX_ROOT) == 0);
	}
	snprintf(path, sizeof path, "%s%s", top, dir);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void remove_groups(void)
{
	static const char *const dirs[] = { "/box/g1", "/box", "/init", "" };
	char path[256];

	snprintf(path, sizeof path, "%s/cgroup.kill", top);
	(void) !write_file_at(AT_FDCWD, path, "1", NULL);
	for (int tries = 0; tries < 100; tries++) {
		for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
			snprintf(path, sizeof path, "%s%s", top, dirs[i]);
			rmdir(path);
		}
		if (access(top, F_OK) < 0)
			return;
		usleep(20000);
	}
}

static void start_in_groups(void)
{
	static const char *const mounts[] = { "/sys/fs/cgroup/unified", "/sys/fs/cgroup" };
	char pid[16];
	struct statfs fs;

	if (geteuid() != 0)
		SKIP("needs root");
	for (size_t i = 0; i < ARRAY_SIZE(mounts) && !top[0]; i++)
		if (statfs(mounts[i], &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
			snprintf(top, sizeof top, "%s/cuvette-test-%d", mounts[i], getpid());
	if (!top[0])
		SKIP("no cgroup v2 tree is mounted");
	atexit(remove_groups);
	close(make_group(""));
	close(make_group("/init"));
	box.cgroup_fd = make_group("/box");
	CHECK(box.cgroup_fd >= 0);
	box_start();
	snprintf(pid, sizeof pid, "%d", box.pid);
	write_to("/init", "cgroup.procs", pid);
}

TEST(a_command_is_born_into_its_group)
{
	char text[64];
	int fd;

	start_in_groups();
	fd = begin_shell("cat /proc/self/cgroup; sleep 0.3; echo", 0);
	wait_started(fd);
	read_from("/box", "cgroup.procs", text, sizeof text);
	CHECK(text[0]);
	result_init(&r);
	finish_exec(fd, &r);
	CHECK_CONTAINS(r.out.data, "/box\n");
	read_from("/init", "cgroup.procs", text, sizeof text);
	CHECK_INT(strtol(text, NULL, 10), box.pid);
}

TEST(a_request_brings_a_group_of_its_own)
{
	char *argv[] = { (char *) "/bin/cat", (char *) "/proc/self/cgroup", NULL };
	struct init_exec exec = { .argv = argv };
	struct buf body = BUF_INIT(INIT_EXEC_MAX);
	struct err err;
	int fd, group;

	start_in_groups();
	group = make_group("/box/g1");
	CHECK(group >= 0);
	CHECK_OK(init_encode_exec(&exec, &body, &err));
	fd = connect_init();
	send_packet_fd(fd, INIT_EXEC, 0, body.data, body.len, group);
	buf_done(&body);
	result_init(&r);
	finish_exec(fd, &r);
	CHECK_CONTAINS(r.out.data, "/box/g1\n");
	/* Any other descriptor is no group, and says so. */
	CHECK_OK(init_encode_exec(&exec, &body, &err));
	fd = connect_init();
	send_packet_fd(fd, INIT_EXEC, 0, body.data, body.len, 0);
	buf_done(&body);
	result_init(&r);
	finish_exec(fd, &r);
	CHECK(r.failed);
}

TEST(nothing_starts_in_a_frozen_group_C19)
{
	char text[128];

	start_in_groups();
	write_to("/box", "cgroup.freeze", "1");
	do
		read_from("/box", "cgroup.events", text, sizeof text);
	while (!strstr(text, "frozen 1"));
	run_shell("true", &r);
	CHECK_INT(r.error.code, ERR_PRECONDITION);
	CHECK_STR(r.error.msg, "the sandbox is frozen");
	write_to("/box", "cgroup.freeze", "0");
	do
		read_from("/box", "cgroup.events", text, sizeof text);
	while (!strstr(text, "frozen 0"));
	run_shell("echo thawed", &r);
	CHECK_STR(r.out.data, "thawed\n");
}

TEST(a_killed_group_ends_its_commands_and_not_init_C14)
{
	int fd;

	start_in_groups();
	fd = begin_shell("trap '' TERM HUP INT; setsid sleep 50 & sleep 60", 0);
	wait_started(fd);
	usleep(100000);
	write_to("/box", "cgroup.kill", "1");
	result_init(&r);
	finish_exec(fd, &r);
	CHECK_INT(r.exit.signaled, 1);
	CHECK_INT(r.exit.status, SIGKILL);
	CHECK(r.exit.flags & INIT_EXIT_KILLED);
	run_shell("cat /proc/[0-9]*/comm", &r);
	CHECK(!strstr(r.out.data, "sleep"));
}
