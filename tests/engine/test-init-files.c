/* SPDX-License-Identifier: Apache-2.0 */
/* File operations of the real init.  Names end with the case they cover. */
#define TEST_TIMEOUT 120
#include "init-box.h"

static struct packet p;
static struct init_error e;
static struct init_stat st;
static struct result r;

static void shell(const char *script)
{
	char *argv[] = { (char *) "/bin/sh", (char *) "-c", (char *) script, NULL };
	struct init_exec exec = { .argv = argv, .user = "root" };

	run_exec(&exec, &r);
	if (r.failed || r.exit.status)
		FAIL("%s: %s%s", script, r.err.data, r.error.msg);
}

static struct init_file request(uint8_t op, uint32_t flags, const char *path)
{
	struct init_file f = { .op = op, .flags = flags, .mode = op == INIT_FILE_MKDIR ? 0755 : 0644 };

	snprintf(f.path, sizeof f.path, "%s", path);
	return f;
}

/* Asks and expects success; the descriptor of an OPEN, or -1. */
static int ok(const struct init_file *f)
{
	struct wire_reader w;

	ask_file(f, &p);
	if (p.header.type == INIT_ERROR) {
		get_error(&p, &e);
		FAIL("op %u of %s: %s", f->op, f->path, e.msg);
	}
	if (p.header.type == INIT_FILE_REPLY) {
		w = (struct wire_reader) { .data = p.payload, .len = p.header.len };
		CHECK(init_decode_stat(&w, &st) && wire_done(&w));
	}
	return p.fd;
}

static void fails(const struct init_file *f, enum err_code code, int sys)
{
	ask_file(f, &p);
	if (p.header.type != INIT_ERROR)
		FAIL("op %u of %s succeeded", f->op, f->path);
	get_error(&p, &e);
	if (e.code != code || (sys && e.sys != sys))
		FAIL("op %u of %s: code %u sys %d: %s", f->op, f->path, e.code, e.sys, e.msg);
}

static int ok_path(uint8_t op, uint32_t flags, const char *path)
{
	struct init_file f = request(op, flags, path);

	return ok(&f);
}

static void fails_path(uint8_t op, uint32_t flags, const char *path, enum err_code code, int sys)
{
	struct init_file f = request(op, flags, path);

	fails(&f, code, sys);
}

#define NEW (INIT_FILE_WRITE | INIT_FILE_CREATE | INIT_FILE_TRUNCATE)

static void write_file(const char *path, uint32_t flags, const char *text)
{
	int fd = ok_path(INIT_FILE_OPEN, NEW | flags, path);

	CHECK(write_all(fd, text, strlen(text)) == 0);
	close(fd);
}

static void check_content(const char *path, const char *text)
{
	char data[256];
	int fd = ok_path(INIT_FILE_OPEN, INIT_FILE_READ | INIT_FILE_FOLLOW, path);
	ssize_t n = read_full(fd, data, sizeof data - 1);

	CHECK(n >= 0);
	data[n] = '\0';
	CHECK_STR(data, text);
	close(fd);
}

TEST(a_file_is_created_read_and_replaced_C24)
{
	struct init_file f;

	box_start();
	write_file("hello.txt", 0, "one");
	CHECK_INT(st.uid, 1000);
	CHECK_INT(st.gid, 1000);
	CHECK_INT(st.mode, S_IFREG | 0644);
	check_content("/home/user/hello.txt", "one");
	write_file("/home/user/hello.txt", 0, "2");
	check_content("hello.txt", "2");
	/* Permission bits are given exactly, the dangerous ones never. */
	f = request(INIT_FILE_OPEN, NEW, "/tmp/modes");
	f.mode = 06777;
	close(ok(&f));
	CHECK_INT(st.mode, S_IFREG | 0777);
	fails_path(INIT_FILE_OPEN, NEW | INIT_FILE_EXCLUSIVE, "hello.txt", ERR_EXISTS, EEXIST);
	fails_path(INIT_FILE_OPEN, INIT_FILE_READ, "nothing", ERR_NOT_FOUND, ENOENT);
	fails_path(INIT_FILE_OPEN, 0, "hello.txt", ERR_INVALID, 0);
	shell("su -s /bin/sh user -c true 2>/dev/null; cat /home/user/hello.txt");
	CHECK_STR(r.out.data, "2");
}

TEST(missing_parents_are_made_by_many_at_once_C01)
{
	int conns[50];

	box_start();
	for (int i = 0; i < 50; i++) {
		struct init_file f = request(INIT_FILE_OPEN, NEW | INIT_FILE_PARENTS, "");
		uint8_t payload[INIT_PAYLOAD_MAX];
		struct wire_writer w = { .data = payload, .cap = sizeof payload };

		snprintf(f.path, sizeof f.path, "a/b/c/d/%d.txt", i);
		init_encode_file(&w, &f);
		conns[i] = connect_init();
		send_packet(conns[i], INIT_FILE, 0, payload, w.len);
	}
	for (int i = 0; i < 50; i++) {
		CHECK(recv_packet(conns[i], &p));
		CHECK_INT(p.header.type, INIT_FILE_REPLY);
		close(p.fd);
		close(conns[i]);
	}
	shell("cd /home/user; ls a/b/c/d | wc -l; stat -c '%U %a' a a/b a/b/c a/b/c/d | sort -u");
	CHECK_STR(r.out.data, "50\nuser 755\n");
	fails_path(INIT_FILE_OPEN, NEW, "x/y/z", ERR_NOT_FOUND, ENOENT);
	fails_path(INIT_FILE_OPEN, NEW | INIT_FILE_PARENTS, "/root/y/z", ERR_PERMISSION, EACCES);
	fails_path(INIT_FILE_OPEN, NEW | INIT_FILE_PARENTS, "/etc/passwd/z", ERR_INVALID, ENOTDIR);
}

TEST(making_a_directory_that_exists_leaves_it_alone_C04)
{
	box_start();
	ok_path(INIT_FILE_MKDIR, INIT_FILE_PARENTS, "/tmp");
	ok_path(INIT_FILE_MKDIR, INIT_FILE_PARENTS, "/");
	fails_path(INIT_FILE_MKDIR, 0, "/tmp", ERR_EXISTS, EEXIST);
	ok_path(INIT_FILE_MKDIR, INIT_FILE_PARENTS, "/tmp/p/q/r/");
	write_file("/tmp/file", 0, "");
	fails_path(INIT_FILE_MKDIR, INIT_FILE_PARENTS, "/tmp/file", ERR_EXISTS, EEXIST);
	shell("stat -c '%U %a' /tmp /tmp/p/q/r");
	CHECK_STR(r.out.data, "root 1777\nuser 755\n");
}

TEST(permissions_are_the_users_and_told_apart_from_absence_C13)
{
	struct init_file f;

	box_start();
	shell("cd /tmp; mkdir shut; echo x > shut/in; echo x > secret; chmod 000 shut secret; "
	      "mkdir group; echo g > group/f; chgrp -R extra group; chmod 750 group; chmod 640 group/f");
	fails_path(INIT_FILE_OPEN, INIT_FILE_READ, "/tmp/secret", ERR_PERMISSION, EACCES);
	fails_path(INIT_FILE_OPEN, INIT_FILE_READ, "/tmp/shut/in", ERR_PERMISSION, EACCES);
	fails_path(INIT_FILE_STAT, 0, "/tmp/shut/in", ERR_PERMISSION, EACCES);
	fails_path(INIT_FILE_LIST, 0, "/tmp/shut", ERR_PERMISSION, EACCES);
	fails_path(INIT_FILE_LIST, 0, "/tmp/secret", ERR_INVALID, ENOTDIR);
	fails_path(INIT_FILE_LIST, 0, "/tmp/none", ERR_NOT_FOUND, ENOENT);
	fails_path(INIT_FILE_REMOVE, 0, "/tmp/secret", ERR_PERMISSION, EPERM);
	fails_path(INIT_FILE_OPEN, NEW, "/etc/new", ERR_PERMISSION, EACCES);
	fails_path(INIT_FILE_OPEN, NEW, "/usr/new", ERR_PERMISSION, 0);
	/* A supplementary group counts. */
	check_content("/tmp/group/f", "g\n");
	f = request(INIT_FILE_OPEN, INIT_FILE_READ, "/tmp/group/f");
	strcpy(f.user, "4000");
	fails(&f, ERR_PERMISSION, EACCES);
	/* And init is root again afterwards. */
	f = request(INIT_FILE_OPEN, INIT_FILE_READ, "/tmp/secret");
	strcpy(f.user, "root");
	close(ok(&f));
	strcpy(f.user, "nobody-here");
	fails(&f, ERR_NOT_FOUND, 0);
}

/* Collects the listing of a directory, names with their errors, one per line. */
static void list(const char *path, struct buf *ret)
{
	struct init_file f = request(INIT_FILE_LIST, 0, path);
	uint8_t payload[INIT_PAYLOAD_MAX];
	struct wire_writer w = { .data = payload, .cap = sizeof payload };
	int fd = connect_init();
	char name[256];

	init_encode_file(&w, &f);
	send_packet(fd, INIT_FILE, 0, payload, w.len);
	do {
		struct wire_reader in;
		uint32_t n;

		CHECK(recv_packet(fd, &p));
		CHECK_INT(p.header.type, INIT_ENTRIES);
		in = (struct wire_reader) { .data = p.payload, .len = p.header.len };
		n = wire_get_u32(&in);
		while (n--) {
			wire_get_str(&in, name, sizeof name);
			CHECK(init_decode_stat(&in, &st));
			CHECK(buf_printf(ret, NULL, "%s %d\n", name, st.sys) == 0);
		}
		CHECK(wire_done(&in));
	} while (p.header.flags & INIT_MORE);
	close(fd);
}

TEST(a_loop_of_links_does_not_fail_a_listing_C14)
{
	_cleanup_buf_ struct buf names = BUF_INIT(1 << 20);

	box_start();
	shell("cd /tmp; ln -s a b; ln -s b a; ln -s /etc/passwd fine; echo > plain");
	list("/tmp", &names);
	CHECK_CONTAINS(names.data, "a 40\n");
	CHECK_CONTAINS(names.data, "b 40\n");
	CHECK_CONTAINS(names.data, "fine 0\n");
	CHECK_CONTAINS(names.data, "plain 0\n");
	fails_path(INIT_FILE_OPEN, INIT_FILE_READ | INIT_FILE_FOLLOW, "/tmp/a", ERR_INVALID, ELOOP);
	fails_path(INIT_FILE_STAT, INIT_FILE_FOLLOW, "/tmp/a", ERR_INVALID, ELOOP);
	ok_path(INIT_FILE_STAT, 0, "/tmp/a");
	CHECK(S_ISLNK(st.mode));
	CHECK_STR(st.target, "b");
}

TEST(a_large_directory_is_listed_in_packets)
{
	_cleanup_buf_ struct buf names = BUF_INIT(4 << 20);
	size_t lines = 0;

	box_start();
	shell("mkdir /tmp/many; cd /tmp/many; seq 1 20000 | xargs touch");
	list("/tmp/many", &names);
	for (char *c = names.data; *c; c++)
		lines += *c == '\n';
	CHECK_INT(lines, 20000);
}

TEST(names_are_bytes_F04)
{
	static const char *const names[] = { "na\303\257ve \"q\" \346\226\207.txt", "new\nline", "\377\376",
		                             "a';touch pwn;'.txt" };
	_cleanup_buf_ struct buf listed = BUF_INIT(1 << 20);
	struct init_file f;

	box_start();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		write_file(names[i], 0, names[i]);
		check_content(names[i], names[i]);
	}
	list("/home/user", &listed);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		CHECK_CONTAINS(listed.data, names[i]);
	/* A component of 256 bytes, and a path that is too long with the home in front. */
	f = request(INIT_FILE_OPEN, NEW, "");
	memset(f.path, 'x', 256);
	fails(&f, ERR_INVALID, ENAMETOOLONG);
	memset(f.path, 'x', sizeof f.path - 1);
	fails(&f, ERR_INVALID, ENAMETOOLONG);
	fails_path(INIT_FILE_OPEN, NEW | INIT_FILE_PARENTS, "../../../../../etc/up", ERR_PERMISSION, EACCES);
	fails_path(INIT_FILE_REMOVE, INIT_FILE_RECURSIVE, "/tmp/..", ERR_INVALID, EINVAL);
	fails_path(INIT_FILE_REMOVE, INIT_FILE_RECURSIVE, "/", ERR_INVALID, EINVAL);
}

TEST(links_lead_inside_only_C19_F01)
{
	box_start();
	shell("cd /tmp; ln -s /etc d; ln -s /etc/passwd l; ln -s ../../../../../etc/passwd e; "
	      "ln -s /proc/self/root/etc/passwd m; "
	      "ln -s /proc/1/fd/3 f; ln -s /tmp/later dangling; ln -s /proc/self/cwd/etc c; chown -h user d");
	ok_path(INIT_FILE_OPEN, INIT_FILE_READ | INIT_FILE_FOLLOW, "/tmp/l");
	check_content("/tmp/e", "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n"
	              "other:x:1001:1001::/home/none:/bin/sh\nbig:x:70000:70000::/:/bin/sh\n");
	/* Without FOLLOW the last link is refused by name. */
	fails_path(INIT_FILE_OPEN, INIT_FILE_READ, "/tmp/l", ERR_PRECONDITION, ELOOP);
	CHECK_STR(e.msg, "/tmp/l is a symbolic link, not a regular file");
	fails_path(INIT_FILE_OPEN, NEW, "/tmp/d/new", ERR_PERMISSION, EACCES);
	fails_path(INIT_FILE_OPEN, INIT_FILE_READ | INIT_FILE_FOLLOW, "/tmp/m", ERR_INVALID, ELOOP);
	fails_path(INIT_FILE_OPEN, INIT_FILE_READ | INIT_FILE_FOLLOW, "/tmp/f", ERR_INVALID, ELOOP);
	fails_path(INIT_FILE_OPEN, NEW | INIT_FILE_PARENTS, "/tmp/c/x", ERR_INVALID, ELOOP);
	for (int fd = 0; fd < 12; fd++) {
		char path[64];
		struct init_file f;

		snprintf(path, sizeof path, "/proc/self/fd/%d/x", fd);
		f = request(INIT_FILE_MKDIR, 0, path);
		strcpy(f.user, "root");
		ask_file(&f, &p);
		get_error(&p, &e);
		/* Init's own descriptors are the host's to look at, where its program can't be read. */
		CHECK(e.code == ERR_INVALID || e.code == ERR_PERMISSION || (fd > 8 && e.code == ERR_NOT_FOUND));
	}
	/* Writing through a dangling link makes its target, inside. */
	write_file("/tmp/dangling", INIT_FILE_FOLLOW, "made");
	check_content("/tmp/later", "made");
	ok_path(INIT_FILE_REMOVE, INIT_FILE_RECURSIVE, "/tmp/d");
	ok_path(INIT_FILE_STAT, 0, "/etc/passwd");
}

TEST(what_is_no_file_is_refused_by_name_and_never_hangs_F02)
{
	struct init_file f;

	box_start();
	shell("cd /tmp; mkfifo pipe; chmod 666 pipe; perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); "
	      "bind(S, sockaddr_un(\"sock\"))'; truncate -s 1T sparse; chmod 644 sparse");
	fails_path(INIT_FILE_OPEN, INIT_FILE_READ, "/tmp/pipe", ERR_PRECONDITION, EINVAL);
	CHECK_STR(e.msg, "/tmp/pipe is a FIFO, not a regular file");
	fails_path(INIT_FILE_OPEN, INIT_FILE_WRITE, "/tmp/pipe", ERR_PRECONDITION, EINVAL);
	fails_path(INIT_FILE_OPEN, INIT_FILE_READ, "/tmp/sock", ERR_PRECONDITION, EINVAL);
	CHECK_STR(e.msg, "/tmp/sock is a socket, not a regular file");
	fails_path(INIT_FILE_OPEN, INIT_FILE_READ, "/dev/zero", ERR_PRECONDITION, EINVAL);
	CHECK_STR(e.msg, "/dev/zero is a character device, not a regular file");
	fails_path(INIT_FILE_OPEN, INIT_FILE_READ, "/dev/ptmx", ERR_PRECONDITION, 0);
	close(ok_path(INIT_FILE_OPEN, INIT_FILE_READ, "/tmp"));
	close(ok_path(INIT_FILE_OPEN, INIT_FILE_READ | INIT_FILE_DIRECTORY, "/tmp"));
	fails_path(INIT_FILE_OPEN, INIT_FILE_WRITE, "/tmp", ERR_INVALID, EISDIR);
	close(ok_path(INIT_FILE_OPEN, INIT_FILE_READ, "/tmp/sparse"));
	CHECK_INT(st.size, 1ll << 40);
	f = request(INIT_FILE_OPEN, INIT_FILE_READ, "/proc/kmsg");
	strcpy(f.user, "root");
	fails(&f, ERR_PERMISSION, 0);
}

TEST(init_does_not_hand_out_itself_F02)
{
	static const char *const own[] = { "/proc/self/mem", "/proc/1/mem", "/proc/1/environ", "/proc/1/maps",
	                                   "/proc/self/environ" };
	char data[64];
	int fd;

	box_start();
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		struct init_file f = request(INIT_FILE_OPEN, INIT_FILE_READ, own[i]);

		strcpy(f.user, "root");
		ask_file(&f, &p);
		/* "self" is a helper of init, which has nothing to tell. */
		if (strstr(own[i], "/1/") && p.header.type == INIT_FILE_REPLY) {
			CHECK(read(p.fd, data, sizeof data) <= 0);
		}
		close_fd(p.fd);
	}
	fd = ok_path(INIT_FILE_OPEN, INIT_FILE_READ, "/proc/meminfo");
	CHECK(read(fd, data, sizeof data) > 10);
	CHECK(!strncmp(data, "MemTotal:", 9));
}

TEST(files_are_renamed_linked_and_removed)
{
	struct init_file f;

	box_start();
	write_file("one", 0, "1");
	f = request(INIT_FILE_RENAME, INIT_FILE_PARENTS, "one");
	strcpy(f.target, "deep/er/two");
	ok(&f);
	check_content("/home/user/deep/er/two", "1");
	fails(&f, ERR_NOT_FOUND, ENOENT);
	f = request(INIT_FILE_SYMLINK, 0, "/tmp/link");
	strcpy(f.target, "../home/user/deep/er/two");
	ok(&f);
	check_content("/tmp/link", "1");
	fails(&f, ERR_EXISTS, EEXIST);
	ok_path(INIT_FILE_STAT, INIT_FILE_FOLLOW, "/tmp/link");
	CHECK(S_ISREG(st.mode));
	ok_path(INIT_FILE_REMOVE, 0, "/tmp/link");
	fails_path(INIT_FILE_REMOVE, 0, "/tmp/link", ERR_NOT_FOUND, ENOENT);
	fails_path(INIT_FILE_REMOVE, 0, "deep", ERR_EXISTS, ENOTEMPTY);
	ok_path(INIT_FILE_REMOVE, 0, "deep/er/two");
	ok_path(INIT_FILE_REMOVE, 0, "deep/er/");
	ok_path(INIT_FILE_REMOVE, INIT_FILE_RECURSIVE, "deep");
}

TEST(a_tree_is_removed_without_following_its_links)
{
	box_start();
	shell("cd /home/user; mkdir -p t/a/b t/c keep; echo x > keep/file; ln -s ../../keep t/a/link; "
	      "ln -s /etc t/etc; "
	      "seq -f t/c/%.0f 1 3000 | xargs touch; seq -f t/d%.0f 1 300 | xargs mkdir; "
	      "for i in t/d*; do echo > $i/f; done; "
	      "chown -R user t; mkdir guard; mkdir guard/in; echo > guard/in/f; chown user guard");
	ok_path(INIT_FILE_REMOVE, INIT_FILE_RECURSIVE, "t");
	shell("ls /home/user; cat /home/user/keep/file; ls /etc/passwd");
	CHECK_STR(r.out.data, "guard\nkeep\nx\n/etc/passwd\n");
	fails_path(INIT_FILE_REMOVE, INIT_FILE_RECURSIVE, "guard", ERR_PERMISSION, EACCES);
	CHECK_CONTAINS(e.msg, "'f': Permission denied");
}

TEST(a_tree_of_any_depth_is_removed)
{
	static const char script[] = "$d = shift; chdir '/tmp' or die; for (1..$d) "
	                             "{ mkdir 'd' or die; chdir 'd' or die } "
	                             "open(F, '>', 'leaf'); mkdir 'e';";
	const char *depth = getenv("CUVETTE_INIT") ? "3000" : "20000";
	char *argv[] = { (char *) "/usr/bin/perl", (char *) "-e", (char *) script, (char *) depth, NULL };
	struct init_exec exec = { .argv = argv };

	box_start();
	run_exec(&exec, &r);
	if (r.failed)
		SKIP("needs perl");
	CHECK_INT(r.exit.status, 0);
	ok_path(INIT_FILE_REMOVE, INIT_FILE_RECURSIVE, "/tmp/d");
	fails_path(INIT_FILE_STAT, 0, "/tmp/d", ERR_NOT_FOUND, ENOENT);
}

TEST(a_long_removal_holds_up_nobody_and_ends_with_its_connection)
{
	struct init_file f = request(INIT_FILE_REMOVE, INIT_FILE_RECURSIVE, "/tmp/wide");
	uint8_t payload[INIT_PAYLOAD_MAX];
	struct wire_writer w = { .data = payload, .cap = sizeof payload };
	uint64_t start;
	int fd;

	box_start();
	shell("mkdir /tmp/wide; cd /tmp/wide; seq 1 100000 | xargs touch; chown user .");
	init_encode_file(&w, &f);
	fd = connect_init();
	send_packet(fd, INIT_FILE, 0, payload, w.len);
	start = now_ns();
	ok_path(INIT_FILE_STAT, 0, "/etc/passwd");
	CHECK(now_ns() - start < 500000000);
	CHECK(recv_packet(fd, &p));
	CHECK_INT(p.header.type, INIT_OK);
}
