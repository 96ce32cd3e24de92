/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between the host and a real sandbox of the default template. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "sandbox/sandbox.h"
#include "template/template.h"
#include "tap.h"

static struct spawner *spawner;
static struct sandbox *sb;
static struct err err;
static char dir[] = "/tmp/test-copy-XXXXXX";
static struct copy_stats stats;

static void begin(void)
{
	struct spawner_options options = { .ephemeral = true };
	struct spawn_request spec = { 0 };

	if (geteuid() != 0)
		SKIP("not root");
	if (template_find(sandbox_data_dir(), "default", spec.digest, &err) < 0)
		SKIP("%s", err.msg);
	if (getenv("CUVETTE_BUILD"))
		setenv("CUVETTE_LIBEXEC", getenv("CUVETTE_BUILD"), 0);
	CHECK_OK(spawner_start(&options, &spawner, &err));
	CHECK_OK(sandbox_create(spawner, &spec, &sb, &err));
	CHECK(mkdtemp(dir));
	CHECK(chdir(dir) == 0);
	umask(022);
}

static void end(void)
{
	char remove[64];

	CHECK_OK(sandbox_destroy(sb, NULL, &err));
	spawner_close(spawner);
	snprintf(remove, sizeof remove, "rm -rf %s", dir);
	CHECK(chdir("/") == 0 && system(remove) == 0);
}

static ssize_t ignore(void *ctx, int stream, const char *data, size_t len)
{
	(void) ctx;
	(void) !write(stream, data, len);
	return (ssize_t) len;
}

/* The status of a shell line inside. */
static int inside(const char *line)
{
	char *argv[] = { "sh", "-c", (char *) (uintptr_t) line, NULL };
	struct init_exec exec = { .argv = argv };
	struct exec_options o = { .exec = &exec, .stdin_fd = -1, .tty_fd = -1, .signal_fd = -1, .timeout_ms = 10000,
	                          .sink = { .write = ignore, .poll_fd = { -1, -1 } } };
	struct exec_result r;

	CHECK_OK(sandbox_exec(sb, &o, &r, NULL, &err));
	return exec_status(&r);
}

static bool holds(const char *path, const char *text)
{
	char have[64];

	return read_file_at(AT_FDCWD, path, have, sizeof have, &err) == 0 && !strcmp(have, text);
}

static bool is_link_to(const char *path, const char *target)
{
	char have[256];
	ssize_t n = readlink(path, have, sizeof have - 1);

	return n > 0 && (have[n] = '\0', !strcmp(have, target));
}

TEST(a_tree_goes_in_and_comes_out_the_same)  /* C29, C06 */
{
	begin();
	CHECK(system("mkdir -p t/sub/.git t/ro; echo x > t/sub/.git/x; echo e > t/.env; echo n > 't/new\nline \"q\" \303\257'; "
	             "echo r > t/ro/f; chmod 555 t/ro; : > t/empty; mkdir t/none; mkfifo t/fifo; "
	             "cp /bin/true t/su; chmod 6755 t/su") == 0);
	CHECK_OK(sandbox_put(sb, "", "t", "a/b/t", &stats, &err));
	CHECK_INT(stats.files, 6);
	CHECK_INT(stats.skipped, 1);
	CHECK_STR(stats.first_skipped, "fifo");
	CHECK_INT(inside("cd a/b/t && test -O sub/.git/x -a -O .env -a ! -u su -a ! -g su -a -x su && echo more >> .env"), 0);
	CHECK_OK(sandbox_get(sb, "", "a/b/t", "back", &stats, &err));
	CHECK_INT(stats.files, 6);
	CHECK_INT(stats.dirs, 5);
	CHECK_INT(system("chmod -s t/su; echo more >> t/.env; rm t/fifo; diff -r t back && "
	                 "test \"$(stat -c %a back/ro back/su | tr '\\n' ' ')\" = '555 755 '"), 0);
	end();
}

TEST(holes_stay_holes_in_both_directions)
{
	struct stat st;

	begin();
	CHECK(system("truncate -s 8G big; printf end | dd of=big bs=1 seek=5G conv=notrunc status=none") == 0);
	CHECK_OK(sandbox_put(sb, "", "big", "big", &stats, &err));
	CHECK_INT(stats.bytes, 8ll << 30);
	CHECK_INT(inside("test $(stat -c %s big) = 8589934592 && test $(du -k big | cut -f1) -lt 1000"), 0);
	CHECK_OK(sandbox_get(sb, "", "big", "back", &stats, &err));
	CHECK(stat("back", &st) == 0);
	CHECK_INT(st.st_size, 8ll << 30);
	CHECK(st.st_blocks < 2000);
	CHECK_INT(system("test $(dd if=back bs=1 skip=5G count=3 status=none) = end"), 0);
	end();
}

TEST(links_come_out_as_links_and_are_never_walked_through)  /* C19 */
{
	begin();
	CHECK(system("mkdir host; echo safe > host/f") == 0);
	CHECK_INT(inside("mkdir t && ln -s /etc t/d && ln -s /etc/passwd t/l && ln -s ../../../../etc t/e"), 0);
	CHECK_OK(sandbox_get(sb, "", "t", "t", &stats, &err));
	CHECK_INT(stats.links, 3);
	CHECK(is_link_to("t/d", "/etc") && is_link_to("t/l", "/etc/passwd") && is_link_to("t/e", "../../../../etc"));
	/* What was a link in the first copy is a directory in the second. */
	CHECK(unlink("t/d") == 0 && symlink("../host", "t/d") == 0);
	CHECK_INT(inside("rm t/d && mkdir t/d && echo pwn > t/d/f"), 0);
	CHECK_ERR(sandbox_get(sb, "", "t", "t", &stats, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "t/d is a symbolic link");
	CHECK(holds("host/f", "safe"));
	end();
}

TEST(a_file_replaces_a_link_and_a_hard_link_instead_of_writing_into_them)  /* C19 */
{
	begin();
	CHECK(system("mkdir host; echo safe > host/f; ln -s host/f l; ln host/f h") == 0);
	CHECK_INT(inside("echo new > f"), 0);
	CHECK_OK(sandbox_get(sb, "", "f", "l", &stats, &err));
	CHECK_OK(sandbox_get(sb, "", "f", "h", &stats, &err));
	CHECK(holds("l", "new") && holds("h", "new") && holds("host/f", "safe"));
	CHECK_INT(system("test $(ls -A | wc -l) = 3"), 0);
	end();
}

TEST(host_links_go_in_as_links_but_the_named_one_is_followed)  /* C19 */
{
	begin();
	CHECK(system("mkdir t; ln -s /etc/shadow t/l; ln -s /etc t/d; ln -s t named") == 0);
	CHECK_OK(sandbox_put(sb, "", "named", "t", &stats, &err));
	CHECK_INT(stats.links, 2);
	CHECK_INT(inside("test $(readlink t/l) = /etc/shadow && test -L t/d"), 0);
	end();
}

TEST(links_inside_lead_nowhere_but_inside)  /* C19 */
{
	begin();
	CHECK_INT(inside("ln -s /etc d && ln -s /etc/hostname l && ln -s ../../../../tmp e"), 0);
	CHECK_OK(sandbox_write_file(sb, "", "e/new", 0644, "x", 1, &err));
	CHECK_INT(inside("test $(cat /tmp/new) = x"), 0);
	CHECK(access("/tmp/new", F_OK) != 0);
	/* Its own /etc belongs to its root, and the command's user may not write there. */
	CHECK_ERR(sandbox_write_file(sb, "", "d/new", 0644, "x", 1, &err), ERR_PERMISSION);
	CHECK(access("/etc/new", F_OK) != 0);
	CHECK_OK(sandbox_get(sb, "", "l", "l", &stats, &err));
	CHECK(is_link_to("l", "/etc/hostname"));
	end();
}

TEST(a_full_disk_inside_is_exhaustion_and_missing_is_missing)  /* C33 */
{
	begin();
	CHECK(system("head -c 300M /dev/zero > big") == 0);
	CHECK_ERR(sandbox_put(sb, "", "big", "big", &stats, &err), ERR_EXHAUSTED);
	CHECK_ERR(sandbox_get(sb, "", "nothing", "x", &stats, &err), ERR_NOT_FOUND);
	CHECK_ERR(sandbox_put(sb, "", "nothing", "x", &stats, &err), ERR_NOT_FOUND);
	CHECK_ERR(sandbox_get(sb, "", "/etc/shadow", "x", &stats, &err), ERR_PERMISSION);
	CHECK_ERR(sandbox_get(sb, "", "/etc/passwd", "no/such/dir/x", &stats, &err), ERR_NOT_FOUND);
	end();
}

TEST(a_deep_tree_needs_no_descriptor_per_level)
{
	begin();
	CHECK_INT(system("ulimit -n 64; p=t; for i in $(seq 300); do p=$p/d; done; mkdir -p $p; echo x > $p/f"), 0);
	CHECK_OK(sandbox_put(sb, "", "t", "t", &stats, &err));
	CHECK_INT(stats.dirs, 301);
	CHECK_OK(sandbox_get(sb, "", "t", "back", &stats, &err));
	CHECK_INT(system("diff -r t back"), 0);
	end();
}

TEST(hard_links_do_not_multiply_on_the_host_without_bound)
{
	begin();
	CHECK_INT(inside("mkdir d && head -c 600000 /dev/zero | tr '\\0' x >d/1 && ln d/1 d/2 && truncate -s 1G d/hole"), 0);
	sb->out_bytes = 1 << 20;
	CHECK_ERR(sandbox_get(sb, "", "d", "d", &stats, &err), ERR_EXHAUSTED);
	sb->out_bytes = 2 << 20;
	CHECK_OK(sandbox_get(sb, "", "d", "d", &stats, &err));
	CHECK_INT(stats.files, 3);
	end();
}

TEST(a_file_of_procfs_is_refused_both_ways_and_left_out_of_trees)
{
	begin();
	CHECK(close(open("f", O_CREAT | O_WRONLY, 0644)) == 0);
	CHECK_INT(inside("sleep 60 >/dev/null 2>&1 & ln -s /proc/$!/oom_score_adj link"), 0);
	CHECK_ERR(sandbox_put(sb, "", "f", "link", &stats, &err), ERR_PRECONDITION);
	CHECK_CONTAINS(err.msg, "file of /proc");
	CHECK_ERR(sandbox_get(sb, "root", "/proc/version", "version", &stats, &err), ERR_PRECONDITION);
	CHECK(access("version", F_OK) < 0);
	CHECK_OK(sandbox_get(sb, "root", "/proc/sys/kernel/random", "random", &stats, &err));
	CHECK(stats.files == 0 && stats.skipped > 0);
	end();
}

/* The spawner has others to serve while the queue of an init that accepts nothing is full. */
TEST(an_init_that_accepts_nothing_does_not_hold_the_spawner)
{
	int conns[256], n = 0, fd = -1;
	struct spawn_stats counters;

	begin();
	CHECK(syscall(SYS_pidfd_send_signal, sb->pidfd, SIGSTOP, NULL, 0) == 0);
	while (n < 256 && sandbox_connect(sb, &fd, &err) == 0)
		conns[n++] = fd;
	CHECK(n < 256);
	CHECK_INT(err.code, ERR_EXHAUSTED);
	CHECK_OK(sandbox_stats(sb, &counters, &err));
	CHECK(syscall(SYS_pidfd_send_signal, sb->pidfd, SIGCONT, NULL, 0) == 0);
	while (n)
		close(conns[--n]);
	CHECK_INT(inside("true"), 0);
	end();
}
