/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes in real namespaces, without a spawner or an init: a static busybox is
 * PID 1 under the limits and answers with its exit status.
 */
#define TEST_TIMEOUT 60
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "base/clock.h"
#include "engine/engine.h"
#include "tap.h"

static char root[64];

static void run(const char *command)
{
	if (system(command) != 0)
		FAIL("%s", command);
}

static void remove_root(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", root);
	(void) !system(command);
}

/* A root of directories and one busybox, removed at the end. */
static void make_root(void)
{
	char command[512];

	if (root[0])
		return;
	if (access("/bin/busybox", X_OK) != 0)
		SKIP("needs /bin/busybox (busybox-static)");
	if (geteuid() != 0)
		SKIP("needs root");
	snprintf(root, sizeof root, "/tmp/cuvette-test-XXXXXX");
	CHECK(mkdtemp(root));
	chmod(root, 0755);
	snprintf(command, sizeof command, "cd %s && mkdir -p bin dev proc sys tmp run/shm etc root home/user && "
	         "cp /bin/busybox bin/ && ln -s busybox bin/sh && chmod 1777 tmp run/shm && chown 1000:1000 home/user", root);
	run(command);
	atexit(remove_root);
}

struct fixture {
	struct engine engine;
	struct slot *slot;
	int tree, program;
	struct err err;
};

static void set_up(struct fixture *f)
{
	memset(f, 0, sizeof *f);
	f->program = open("/bin/busybox", O_PATH | O_CLOEXEC);
	f->program = fcntl(f->program, F_DUPFD_CLOEXEC, 64);
	if (engine_open(&f->engine, root, &f->err) < 0 || engine_open_tree(&f->engine, root, &f->tree, &f->err) < 0 ||
	    slot_create(&f->engine, &f->slot, &f->err) < 0)
		FAIL("%s", f->err.msg);
}

static void tear_down(struct fixture *f)
{
	slot_destroy(&f->engine, f->slot);
	engine_close(&f->engine);
}

static enum box_disk disk_kind;

static _must_check_ int create(struct fixture *f, const char *script, bool limited, struct box **ret)
{
	char *const argv[] = { "sh", "-c", (char *) script, NULL };
	char *const envp[] = { "PATH=/bin", NULL };
	struct box_spec spec = {
		.template_fd = f->tree, .hostname = "testbox", .limits = { .memory_bytes = 64 << 20, .pids = 64, .cpu_milli = 1000 },
		.disk = disk_kind, .disk_bytes = 8 << 20, .disk_inodes = 500, .limit_first = limited,
		.terminals = true, .program_fd = f->program,
		.argv = argv, .envp = envp,
	};

	return box_create(&f->engine, f->slot, &spec, ret, NULL, &f->err);
}

/* Exit status of a shell script run as PID 1 of a box. */
static int status_of(struct fixture *f, const char *script)
{
	siginfo_t info;
	struct box *b;
	int status;

	if (create(f, script, true, &b) < 0)
		FAIL("%s", f->err.msg);
	/* Waits for its own end; box_destroy() would kill it. */
	waitid(P_PID, (id_t) b->pid, &info, WEXITED | WNOWAIT | __WALL);
	box_destroy(b, &status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* An engine leaves the host's root for good; the test itself stays there to clean up. */
static void in_child(void (*fn)(struct fixture *f, const char *arg), const char *arg)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		struct fixture f;

		set_up(&f);
		fn(&f, arg);
		tear_down(&f);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static int expected_status;

static void check_status(struct fixture *f, const char *script)
{
	CHECK_INT(status_of(f, script), expected_status);
}

/* The script's exit status in a fresh box. */
static void expect_status(const char *script, int status)
{
	make_root();
	expected_status = status;
	in_child(check_status, script);
}

TEST(a_program_runs_and_its_status_comes_back)
{
	expect_status("exit 7", 7);
}

TEST(it_is_root_of_its_own_range_with_nine_capabilities)
{
	expect_status("[ $(busybox id -u) = 0 ] && read a b c < /proc/self/uid_map && [ $b -ge 268435456 ] && "
	                     "[ $c = 65536 ] && busybox grep -q 'CapBnd:.*00000000800004fb' /proc/self/status && "
	                     "busybox grep -q 'CapEff:.*00000000800004fb' /proc/self/status && "
	                     "busybox grep -q 'NoNewPrivs:.*1' /proc/self/status && busybox grep -q 'Seccomp:.*2' /proc/self/status", 0);
}

TEST(it_sees_one_root_mount_its_own_proc_and_no_host_path)
{
	expect_status("[ $$ = 1 ] && [ $(busybox hostname) = testbox ] && [ ! -e /work ] && [ ! -e /data ] && "
	                     "[ -z \"$(busybox cat /proc/keys)\" ] && ! echo 1 > /proc/sys/vm/drop_caches 2>/dev/null && "
	                     "[ -c /dev/null ] && [ ! -e /dev/loop0 ] && ! busybox touch /dev/x 2>/dev/null", 0);
}

TEST(every_cgroup_line_is_the_root)                     /* B16 */
{
	expect_status("! busybox grep -v ':/$' /proc/self/cgroup", 0);
}

static void check_identity(struct fixture *f, const char *arg)
{
	(void) arg;

	CHECK_INT(status_of(f, "read id < /etc/machine-id; [ ${#id} = 32 ] && read h < /etc/hostname && [ $h = testbox ] && "
	                        "busybox grep -q testbox /etc/hosts && echo gone > /root/left && [ $(busybox cat /root/left) = gone ]"), 0);
	CHECK_INT(status_of(f, "[ ! -e /root/left ]"), 0);
}

TEST(identity_is_fresh_each_time)
{
	make_root();
	in_child(check_identity, NULL);
}

TEST(disk_bytes_and_inodes_are_limited)
{
	expect_status("! busybox dd if=/dev/zero of=/root/big bs=1M count=9 2>/dev/null && "
	                     "busybox rm /root/big && i=0 && while busybox touch /tmp/f$i; do i=$((i+1)); [ $i -gt 600 ] && exit 3; done 2>/dev/null; "
	                     "[ $i -gt 400 ] && [ $i -le 500 ]", 0);
}

TEST(a_disk_image_limits_the_same_and_shows_container_ids)
{
	disk_kind = BOX_DISK_IMAGE;
	expect_status("! busybox dd if=/dev/zero of=/root/big bs=1M count=9 2>/dev/null && busybox rm /root/big && "
	              "busybox touch /root/f && busybox chown 1000:1000 /root/f && "
	              "[ \"$(busybox stat -c %u /root/f)\" = 1000 ] && busybox touch /bin/new && "
	              "i=0 && while busybox touch /tmp/f$i; do i=$((i+1)); [ $i -gt 600 ] && exit 3; done 2>/dev/null; "
	              "[ $i -gt 400 ] && [ $i -le 520 ]", 0);
	/* The blank one is kept for the next, the image itself went with its sandbox. */
	expect_status("exit 0", 0);
}

TEST(terminals_have_their_own_devpts)
{
	expect_status("[ -c /dev/pts/ptmx ] && [ ! -e /dev/pts/0 ]", 0);
}

TEST(loopback_works_and_low_ports_are_free)
{
	expect_status("busybox nc -l -p 80 -w 3 < /dev/null & busybox sleep 0.3; busybox nc -w 1 127.0.0.1 80 < /dev/null && "
	                     "! busybox nc -w 1 1.1.1.1 80 < /dev/null 2>/dev/null", 0);
}

static void check_oom(struct fixture *f, const char *arg)
{
	(void) arg;
	struct cgroup_stats stats;

	CHECK_INT(status_of(f, "exec busybox tail /dev/zero"), 137);
	if (cgroup_stats(f->slot->cgroup, &stats, &f->err) < 0)
		FAIL("%s", f->err.msg);
	CHECK(stats.oom_kills >= 1);
	CHECK(stats.memory_peak_bytes > 48 << 20);
}

TEST(an_out_of_memory_kill_is_counted)
{
	make_root();
	in_child(check_oom, NULL);
}

static void expect_refusal(struct fixture *f, const char *name)
{
	struct box *b;

	CHECK_INT(create(f, "exit 0", true, &b), -1);
	CHECK_CONTAINS(f->err.msg, name);
}

TEST(a_linked_proc_dev_or_sys_in_the_template_is_refused)      /* F07, F13 */
{
	static const char *const names[] = { "proc", "dev", "sys" };
	char command[160];

	make_root();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(command, sizeof command, "cd %s && rmdir %s && ln -s /tmp %s", root, names[i], names[i]);
		run(command);
		in_child(expect_refusal, names[i]);
		snprintf(command, sizeof command, "cd %s && rm %s && mkdir %s", root, names[i], names[i]);
		run(command);
	}
}

static void check_bad_program(struct fixture *f, const char *arg)
{
	(void) arg;
	char *const argv[] = { "x", NULL };
	struct box *b;

	struct box_spec spec = {
		.template_fd = f->tree, .hostname = "x", .disk_bytes = 1 << 20, .disk_inodes = 100,
		.program_fd = f->tree, .argv = argv, .envp = argv + 1,
	};
	CHECK_INT(box_create(&f->engine, f->slot, &spec, &b, NULL, &f->err), -1);
	CHECK_CONTAINS(f->err.msg, "execute the sandbox's first program");
	CHECK_INT(status_of(f, "exit 0"), 0);
}

TEST(a_program_that_cannot_be_executed_leaves_nothing)
{
	make_root();
	in_child(check_bad_program, NULL);
}

static unsigned held_slot;

static void expect_another_slot(struct fixture *f, const char *arg)
{
	(void) arg;
	CHECK(f->slot->number != held_slot);
}

static void reap(struct fixture *f, const char *arg)
{
	unsigned reaped = 0;
	char name[32];
	struct cgroup *cg;

	(void) arg;
	if (engine_reap_leftovers(&f->engine, &reaped, &f->err) < 0)
		FAIL("%s", f->err.msg);
	if (f->slot->number == held_slot)
		return;         /* the lease itself reaped it */
	CHECK(reaped >= 1);
	snprintf(name, sizeof name, "cuvette.%u", held_slot);
	if (cgroup_create(f->engine.cgroups, name, 0, &cg, &f->err) < 0)
		FAIL("%s", f->err.msg);
	cgroup_destroy(cg);
}

TEST(two_engines_never_lease_the_same_slot_and_a_killed_ones_is_reaped)
{
	int pipe_fds[2];
	pid_t pid;

	make_root();
	CHECK(pipe(pipe_fds) == 0);
	pid = fork();
	if (pid == 0) {
		struct fixture f;
		struct box *b;

		set_up(&f);
		if (create(&f, "exec busybox sleep 1000", true, &b) < 0)
			FAIL("%s", f.err.msg);
		(void) !write(pipe_fds[1], &f.slot->number, sizeof f.slot->number);
		pause();
	}
	CHECK(read(pipe_fds[0], &held_slot, sizeof held_slot) == sizeof held_slot);
	in_child(expect_another_slot, NULL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	in_child(reap, NULL);
}

static void check_recycling(struct fixture *f, const char *arg)
{
	(void) arg;
	int own, sock;

	CHECK_INT(status_of(f, "exit 0"), 0);
	CHECK(slot_recycle(&f->engine, f->slot));
	own = f->engine.own_netns_fd;
	CHECK(setns(f->slot->netns_fd, CLONE_NEWNET) == 0);
	sock = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(setns(own, CLONE_NEWNET) == 0);
	CHECK(!slot_recycle(&f->engine, f->slot));
	close(sock);
}

TEST(a_recycled_slot_is_clean_and_one_with_sockets_left_is_not)
{
	make_root();
	in_child(check_recycling, NULL);
}
