/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cgroup module without a cgroup: its parsers, and its v2 half against a directory tree that
 * holds knob files as the kernel's documentation describes them.  What the kernel does with the
 * values can't be seen here; which value goes to which file, in which order, can.
 */
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "engine/cgroup-internal.h"
#include "tap.h"

/* ---- parsers ---- */

static struct cgroup_places places_of(const char *mountinfo)
{
	struct cgroup_places places;

	cgroup_find_mounts(mountinfo, strlen(mountinfo), &places);
	return places;
}

TEST(a_hybrid_host_has_v1_controllers_and_a_v2_tree)
{
	struct cgroup_places p = places_of(
		"26 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
		"31 30 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
		"32 30 0:29 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n"
		"34 30 0:31 / /sys/fs/cgroup/memory rw,relatime shared:9 master:3 - cgroup cgroup rw,memory\n"
		"39 30 0:36 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
		"40 30 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw");

	CHECK_STR(p.v2.path, "/sys/fs/cgroup/unified");
	CHECK_INT(p.v1_count, 2);
	CHECK_STR(p.v1[0].path, "/sys/fs/cgroup/cpu");
	CHECK_INT(p.v1[0].controllers, CG_CPU);
	CHECK_INT(p.v1[1].controllers, CG_MEMORY);
}

TEST(cpu_is_found_when_it_is_mounted_together_with_cpuacct)
{
	struct cgroup_places p = places_of(
		"31 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
		"32 30 0:28 / /elsewhere rw - cgroup cgroup rw,cpu,cpuacct\n");

	CHECK_INT(p.v1_count, 1);
	CHECK_INT(p.v1[0].controllers, CG_CPU);
	CHECK_STR(p.v1[0].path, "/sys/fs/cgroup/cpu,cpuacct");
}

TEST(read_only_mounts_do_not_count)
{
	CHECK_STR(places_of("9 8 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n").v2.path, "");
	CHECK_STR(places_of("9 8 0:26 / /a ro - cgroup2 x rw\n9 8 0:26 / /b rw - cgroup2 x rw\n").v2.path, "/b");
}

TEST(blanks_in_mount_points_are_unescaped)
{
	CHECK_STR(places_of("1 2 0:3 / /a\\040b\\134c rw - cgroup2 x rw\n").v2.path, "/a b\\c");
	CHECK_STR(places_of("1 2 0:3 / /a\\04 rw - cgroup2 x rw\n").v2.path, "/a\\04");
	CHECK_STR(places_of("1 2 0:3 / /a\\000b rw - cgroup2 x rw\n").v2.path, "");
}

TEST(lines_that_are_cut_short_are_skipped)
{
	CHECK_STR(places_of("1 2 0:3 / /a rw - cgroup2").v2.path, "");
	CHECK_STR(places_of("1 2 0:3 / /a rw shared:1").v2.path, "");
	CHECK_STR(places_of("").v2.path, "");
	CHECK_STR(places_of("\n\n - \n1 2 0:3 / /a rw - cgroup2 x rw").v2.path, "/a");
}

TEST(the_own_group_is_the_v2_line)
{
	static const char text[] = "8:pids:/p\n0::/system.slice/cuvette.service\n";
	struct err err = { 0 };
	char own[64];

	CHECK_OK(cgroup_find_own(text, strlen(text), own, sizeof own, &err));
	CHECK_STR(own, "system.slice/cuvette.service");
	CHECK_OK(cgroup_find_own("0::/", 4, own, sizeof own, &err));
	CHECK_STR(own, "");
	CHECK_ERR(cgroup_find_own("8:pids:/p\n", 10, own, sizeof own, &err), ERR_NOT_FOUND);
	CHECK_ERR(cgroup_find_own(text, strlen(text), own, 8, &err), ERR_INVALID);
}

TEST(controller_names_are_whole_words)
{
	CHECK_INT(cgroup_controllers_of("cpuset cpu io memory hugetlb pids rdma misc"), CG_ALL);
	CHECK_INT(cgroup_controllers_of("cpuset,cpuacct,memoryx"), 0);
	CHECK_INT(cgroup_controllers_of(""), 0);
}

TEST(counters_are_found_by_whole_key)
{
	static const char text[] = "low 0\noom 9\noom_kill 3\noom_group_kill 7";

	CHECK_INT(knob_key(text, "oom_kill"), 3);
	CHECK_INT(knob_key(text, "oom"), 9);
	CHECK_INT(knob_key(text, "low"), 0);
	CHECK_INT(knob_key(text, "none"), 0);
	CHECK_INT(knob_key("max 5\n", "max"), 5);
}

TEST(device_bytes_are_summed)
{
	uint64_t r, w;

	knob_io_v1("8:0 Read 100\n8:0 Write 7\n8:0 Sync 9\n9:1 Read 11\n9:1 Write 1\nTotal 119\n", &r, &w);
	CHECK_INT(r, 111);
	CHECK_INT(w, 8);
	knob_io_v2("8:0 rbytes=100 wbytes=5 rios=1 wios=1 dbytes=4 dios=0\n9:0 rbytes=1 wbytes=2\n", &r, &w);
	CHECK_INT(r, 101);
	CHECK_INT(w, 7);
}

/* ---- a v2 tree made of ordinary files ---- */

static char root[64];
static int root_fd = -1;

static void put(int dir_fd, const char *path, const char *file, const char *text)
{
	char name[256];
	int fd;

	snprintf(name, sizeof name, "%s/%s", path, file);
	fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text));
	close(fd);
}

/* What the kernel would put into a new group, whatever the parent has switched on. */
static void made(int dir_fd, const char *path)
{
	put(dir_fd, path, "cgroup.controllers", "cpuset cpu io memory pids\n");
	put(dir_fd, path, "cgroup.subtree_control", "cpu io memory pids\n");
	put(dir_fd, path, "cgroup.procs", "");
	put(dir_fd, path, "cgroup.events", "populated 0\nfrozen 0\n");
	put(dir_fd, path, "cgroup.kill", "");
	put(dir_fd, path, "cpu.stat", "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n"
	                              "nr_periods 4\nnr_throttled 2\nthrottled_usec 77\n");
	put(dir_fd, path, "io.stat", "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n");
	put(dir_fd, path, "cpu.max", "max 100000\n");
	put(dir_fd, path, "memory.max", "max\n");
	put(dir_fd, path, "memory.swap.max", "max\n");
	put(dir_fd, path, "memory.oom.group", "0\n");
	put(dir_fd, path, "memory.current", "1048576\n");
	put(dir_fd, path, "memory.peak", "4194304\n");
	put(dir_fd, path, "memory.reclaim", "");
	put(dir_fd, path, "memory.events", "low 0\nhigh 0\nmax 4\noom 2\noom_kill 1\noom_group_kill 1\n");
	put(dir_fd, path, "pids.max", "max\n");
	put(dir_fd, path, "pids.current", "3\n");
	put(dir_fd, path, "pids.events", "max 6\n");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void) st; (void) type; (void) ftw;
	return remove(path);
}

static void remove_root(void)
{
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static struct cgroup_tree *fake_tree(const char *own_path)
{
	struct cgroup_tree *tree;
	struct err err = { 0 };

	strcpy(root, "/tmp/cuvette-cgroup-XXXXXX");
	CHECK(mkdtemp(root));
	atexit(remove_root);
	root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	made(root_fd, ".");
	unsetenv("CUVETTE_CGROUP");
	CHECK_OK(cgroup_tree_open_root(root_fd, made, own_path, &tree, &err));
	return tree;
}

/* The first bytes of a file: a shorter write leaves the tail of the old text, as on any disk. */
static void has_written(const char *path, const char *text)
{
	struct err err = { 0 };
	char got[256];

	CHECK_OK(read_file_at(root_fd, path, got, sizeof got, &err));
	if (strncmp(got, text, strlen(text)) != 0)
		FAIL("%s holds \"%s\", expected \"%s\"", path, got, text);
}

TEST(slots_of_a_v2_host_are_below_cuvette)
{
	struct cgroup_tree *tree = fake_tree("user.slice/session-1.scope");

	CHECK_INT(cgroup_tree_mode(tree), CGROUP_V2);
	CHECK_STR(cgroup_tree_missing(tree), "");
	CHECK(faccessat(root_fd, "cuvette/cgroup.procs", F_OK, 0) == 0);
	cgroup_tree_close(tree);
}

TEST(the_environment_chooses_another_place)
{
	struct cgroup_tree *tree = fake_tree("");
	struct err err = { 0 };

	cgroup_tree_close(tree);
	setenv("CUVETTE_CGROUP", "/a/b", 1);
	CHECK_OK(cgroup_tree_open_root(root_fd, made, "", &tree, &err));
	CHECK(faccessat(root_fd, "a/b/cgroup.procs", F_OK, 0) == 0);
	cgroup_tree_close(tree);
	setenv("CUVETTE_CGROUP", "../x", 1);
	CHECK_ERR(cgroup_tree_open_root(root_fd, made, "", &tree, &err), ERR_INVALID);
}

/* A delegated group holds processes: they go to the leaf before controllers can be switched on. */
TEST(a_delegated_group_is_used_itself)
{
	struct cgroup_tree *tree = fake_tree("none");
	struct err err = { 0 };

	cgroup_tree_close(tree);
	if (geteuid() != 0)
		SKIP("needs root to give a directory away");
	CHECK(mkdirat(root_fd, "service", 0755) == 0);
	made(root_fd, "service");
	CHECK(fchownat(root_fd, "service", 1234, 1234, 0) == 0);
	CHECK(fchmod(root_fd, 0755) == 0 && seteuid(1234) == 0);
	CHECK_OK(cgroup_tree_open_root(root_fd, NULL, "service", &tree, &err));
	CHECK(faccessat(tree->v2_fd, "../service", F_OK, 0) == 0);
	CHECK(faccessat(root_fd, "service/cuvette", F_OK, 0) < 0);
	CHECK(seteuid(0) == 0);
	cgroup_tree_close(tree);
}

TEST(missing_controllers_are_named)
{
	struct cgroup_tree *tree = fake_tree("none");
	struct err err = { 0 };

	cgroup_tree_close(tree);
	put(root_fd, "cuvette", "cgroup.controllers", "cpuset memory\n");
	CHECK_OK(cgroup_tree_open_root(root_fd, NULL, "", &tree, &err));
	CHECK_STR(cgroup_tree_missing(tree), "pids cpu");
	CHECK_INT(tree->controllers, CG_MEMORY);
	cgroup_tree_close(tree);
	put(root_fd, ".", "cgroup.controllers", "cpuset\n");
	CHECK_OK(cgroup_tree_open_root(root_fd, NULL, "", &tree, &err));
	CHECK_INT(cgroup_tree_mode(tree), CGROUP_NONE);
	CHECK_STR(cgroup_tree_missing(tree), "memory pids cpu");
	cgroup_tree_close(tree);
}

static struct cgroup *fake_slot(struct cgroup_tree *tree)
{
	struct cgroup *cg;
	struct err err = { 0 };

	CHECK_OK(cgroup_create(tree, "s1", getuid(), &cg, &err));
	return cg;
}

TEST(a_v2_slot_has_init_beside_the_box_and_no_swap)
{
	struct cgroup_tree *tree = fake_tree("none");
	struct cgroup *cg = fake_slot(tree);
	int tasks[CGROUP_TASKS_MAX];

	has_written("cuvette/s1/cgroup.subtree_control", "+memory +pids +cpu +io");
	has_written("cuvette/s1/box/memory.oom.group", "1");
	has_written("cuvette/s1/box/memory.swap.max", "0");
	CHECK(faccessat(root_fd, "cuvette/s1/init/cgroup.procs", F_OK, 0) == 0);
	CHECK(cgroup_init_fd(cg) >= 0 && cgroup_box_fd(cg) >= 0);
	CHECK_INT(cgroup_tasks_fds(cg, tasks), 0);
	cgroup_forget(cg);
	cgroup_tree_close(tree);
}

TEST(v2_limits_go_to_the_box_and_only_when_they_differ)
{
	struct cgroup_tree *tree = fake_tree("none");
	struct cgroup *cg = fake_slot(tree);
	struct cgroup_limits limits = { 64 << 20, 100, 1500 };
	struct err err = { 0 };

	CHECK_OK(cgroup_set_limits(cg, &limits, &err));
	has_written("cuvette/s1/box/memory.max", "67108864");
	has_written("cuvette/s1/box/pids.max", "100");
	has_written("cuvette/s1/box/cpu.max", "150000 100000");

	put(root_fd, "cuvette/s1/box", "cpu.max", "untouched\n");
	limits.pids = 7;
	CHECK_OK(cgroup_set_limits(cg, &limits, &err));
	has_written("cuvette/s1/box/cpu.max", "untouched");
	has_written("cuvette/s1/box/pids.max", "7");

	limits = (struct cgroup_limits) { 0 };
	CHECK_OK(cgroup_set_limits(cg, &limits, &err));
	has_written("cuvette/s1/box/cpu.max", "max 100000");
	has_written("cuvette/s1/box/memory.max", "max");
	cgroup_forget(cg);

	/* Another process's limits are unknown, so all are written. */
	CHECK_OK(cgroup_open(tree, "s1", &cg, &err));
	put(root_fd, "cuvette/s1/box", "cpu.max", "\n");
	CHECK_OK(cgroup_set_limits(cg, &limits, &err));
	has_written("cuvette/s1/box/cpu.max", "max 100000");
	cgroup_forget(cg);
	cgroup_tree_close(tree);
}

TEST(a_limit_that_can_not_be_written_is_an_error_that_names_the_knob)
{
	struct cgroup_tree *tree = fake_tree("none");
	struct cgroup *cg = fake_slot(tree);
	struct cgroup_limits limits = { .pids = 5 };
	struct err err = { 0 };

	CHECK(unlinkat(root_fd, "cuvette/s1/box/pids.max", 0) == 0);
	CHECK_ERR(cgroup_set_limits(cg, &limits, &err), ERR_NOT_FOUND);
	CHECK_CONTAINS(err.msg, "pids.max");
	made(root_fd, "cuvette/s1/box");
	CHECK_OK(cgroup_set_limits(cg, &limits, &err));     /* not taken for done */
	has_written("cuvette/s1/box/pids.max", "5");
	cgroup_forget(cg);
	cgroup_tree_close(tree);
}

TEST(v2_counters_are_read_and_start_at_the_baseline)
{
	struct cgroup_tree *tree = fake_tree("none");
	struct cgroup *cg = fake_slot(tree);
	struct cgroup_stats now;
	struct err err = { 0 };

	CHECK_OK(cgroup_stats(cg, &now, &err));
	CHECK_INT(now.memory_bytes, 1048576);
	CHECK_INT(now.memory_peak_bytes, 4194304);
	CHECK_INT(now.oom_kills, 1);
	CHECK_INT(now.pids, 3);
	CHECK_INT(now.pids_refused, 6);
	CHECK_INT(now.cpu_us, 1500);
	CHECK_INT(now.cpu_user_us, 1000);
	CHECK_INT(now.cpu_system_us, 500);
	CHECK_INT(now.cpu_throttled_us, 77);
	CHECK_INT(now.io_read_bytes, 4096);
	CHECK_INT(now.io_write_bytes, 8192);
	CHECK_OK(cgroup_baseline(cg, &err));
	put(root_fd, "cuvette/s1/box", "pids.events", "max 9\n");
	CHECK_OK(cgroup_stats(cg, &now, &err));
	CHECK_INT(now.pids_refused, 3);
	CHECK_INT(now.oom_kills, 0);
	CHECK_INT(now.cpu_us, 0);
	CHECK_INT(now.io_write_bytes, 0);
	CHECK_INT(now.pids, 3);         /* a level, not a counter */
	cgroup_forget(cg);
	cgroup_tree_close(tree);
}

TEST(recycling_asks_the_kernel_to_reclaim)
{
	struct cgroup_tree *tree = fake_tree("none");
	struct cgroup *cg = fake_slot(tree);
	struct err err = { 0 };

	CHECK_OK(cgroup_recycle(cg, &err));
	has_written("cuvette/s1/box/memory.reclaim", "1048576");
	has_written("cuvette/s1/box/memory.peak", "reset");
	cgroup_forget(cg);
	cgroup_tree_close(tree);
}

/* Before 6.12 memory.peak can't be reset: an old peak must not be told of the next lease. */
TEST(an_old_peak_that_stays_is_not_reported)
{
	struct cgroup_tree *tree = fake_tree("none");
	struct cgroup *cg = fake_slot(tree);
	struct cgroup_limits limits = { .memory_bytes = 8 << 20 };
	struct cgroup_stats now;
	struct err err = { 0 };

	CHECK_OK(cgroup_set_limits(cg, &limits, &err));
	cg->peak_before = 4194304;
	CHECK_OK(cgroup_stats(cg, &now, &err));
	CHECK_INT(now.memory_peak_bytes, 8 << 20);      /* killed since: so the limit was met */
	cg->base.oom_kills = 1;
	CHECK_OK(cgroup_stats(cg, &now, &err));
	CHECK_INT(now.memory_peak_bytes, 1048576);      /* at least what is in use */
	put(root_fd, "cuvette/s1/box", "memory.peak", "6000000\n");
	CHECK_OK(cgroup_stats(cg, &now, &err));
	CHECK_INT(now.memory_peak_bytes, 6000000);
	cgroup_forget(cg);
	cgroup_tree_close(tree);
}

/* A group that never becomes empty: the wait ends, and says what it waited for. */
TEST(a_kill_that_does_not_end_is_bounded)
{
	struct cgroup_tree *tree = fake_tree("none");
	struct cgroup *cg = fake_slot(tree);
	struct err err = { 0 };

	put(root_fd, "cuvette/s1/box", "cgroup.events", "populated 1\nfrozen 0\n");
	CHECK_ERR(cgroup_kill_box(cg, 0, 50, &err), ERR_DEADLINE);
	CHECK_CONTAINS(err.msg, "s1/box");
	cgroup_forget(cg);
	cgroup_tree_close(tree);
}

/* A box is used again after a kill, so cgroup.kill is not for it; a group goes. */
TEST(only_what_is_removed_is_killed_with_cgroup_kill)
{
	struct cgroup_tree *tree = fake_tree("none");
	struct cgroup *cg = fake_slot(tree);
	struct err err = { 0 };
	int group;
	struct stat st;

	CHECK_OK(cgroup_group_create(cg, 2, &group, &err));
	put(root_fd, "cuvette/s1/box/g2", "cgroup.events", "populated 1\n");
	CHECK_ERR(cgroup_group_kill(cg, 2, 20, &err), ERR_DEADLINE);
	has_written("cuvette/s1/box/g2/cgroup.kill", "1");
	put(root_fd, "cuvette/s1/box", "cgroup.events", "populated 1\n");
	CHECK_ERR(cgroup_kill_box(cg, 0, 20, &err), ERR_DEADLINE);
	CHECK(fstatat(root_fd, "cuvette/s1/box/cgroup.kill", &st, 0) == 0 && st.st_size == 0);
	close(group);
	cgroup_forget(cg);
	cgroup_tree_close(tree);
}

TEST(the_listed_processes_are_killed_one_by_one)
{
	struct cgroup_tree *tree = fake_tree("none");
	struct cgroup *cg = fake_slot(tree);
	struct err err = { 0 };
	char pid_text[24];
	int status, group;
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	CHECK_OK(cgroup_group_create(cg, 2, &group, &err));
	put(root_fd, "cuvette/s1/box", "cgroup.events", "populated 1\n");
	put(root_fd, "cuvette/s1/box", "cgroup.freeze", "0\n");
	snprintf(pid_text, sizeof pid_text, "0\n1\n%d\n", pid);
	put(root_fd, "cuvette/s1/box/g2", "cgroup.procs", pid_text);
	CHECK_ERR(cgroup_kill_box(cg, 0, 50, &err), ERR_DEADLINE);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	has_written("cuvette/s1/box/cgroup.freeze", "0");
	close(group);
	cgroup_forget(cg);
	cgroup_tree_close(tree);
}

TEST(a_creation_that_fails_leaves_no_directory)
{
	struct cgroup_tree *tree = fake_tree("none");
	struct cgroup *cg;
	struct err err = { 0 };

	tree->made = NULL;      /* directories without knobs: the first write fails */
	CHECK_ERR(cgroup_create(tree, "s2", getuid(), &cg, &err), ERR_NOT_FOUND);
	CHECK_CONTAINS(err.msg, "cgroup s2");
	CHECK(faccessat(root_fd, "cuvette/s2", F_OK, 0) < 0);
	cgroup_tree_close(tree);
}
