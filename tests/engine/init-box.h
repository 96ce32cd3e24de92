/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * init-box: the real cuvette-init as PID 1 of namespaces of its own, without a
 * spawner, and a small client of its protocol.
 *
 * The box has a user namespace with a range of ids that are nobody's outside,
 * init's capabilities and no more, a root of read-only binds, and own /etc,
 * /home, /tmp, /dev and /proc.  The network namespace is the test's, so that the
 * test can connect; for init the test is pid 0 all the same, as the host is.
 */
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include "base/clock.h"
#include "base/fd.h"
#include "tap.h"
#include "wire/init.h"

static struct {
	pid_t pid;              /* of init, seen from here */
	char name[64];          /* abstract name of its socket, without the NUL in front */
	int tasks_fd;           /* given to init as its one `tasks` file, or -1 */
	int cgroup_fd;          /* given to init as the group of its commands, or -1 */
	unsigned nofile;        /* hard limit of init's descriptors; 0: as it is */
	bool filtered;          /* a seccomp filter that allows everything is on */
} box = { .tasks_fd = -1, .cgroup_fd = -1 };

/* ---- the box ---- */

static void put(const char *path, const char *text)
{
	struct err err;

	CHECK(close(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) == 0);
	CHECK_OK(write_file_at(AT_FDCWD, path, text, &err));
}

static void bind_into(const char *root, const char *path)
{
	char target[256];

	snprintf(target, sizeof target, "%s%s", root, path);
	if (mount(path, target, NULL, MS_BIND | MS_REC, NULL) < 0)
		SKIP("bind %s: %s", path, strerror(errno));
}

static void make_dev(const char *root)
{
	static const char *const nodes[] = { "/dev/null", "/dev/zero", "/dev/urandom", "/dev/tty" };
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		snprintf(path, sizeof path, "%s%s", root, nodes[i]);
		put(path, "");
		bind_into(root, nodes[i]);
	}
	snprintf(path, sizeof path, "%s/dev/pts", root);
	CHECK(mkdir(path, 0755) == 0);
	if (mount("devpts", path, "devpts", 0, "newinstance,ptmxmode=0666,mode=620") < 0)
		SKIP("mount devpts: %s", strerror(errno));
	snprintf(path, sizeof path, "%s/dev/ptmx", root);
	CHECK(symlink("pts/ptmx", path) == 0);
}

static void make_root(const char *root)
{
	static const char *const dirs[] = { "usr", "etc", "home", "home/user", "tmp", "dev", "proc", "root" };
	static const char *const merged[] = { "bin", "sbin", "lib", "lib64" };
	char path[256], target[64];

	if (mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") < 0)
		SKIP("mount a tmpfs: %s", strerror(errno));
	CHECK(chdir(root) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		CHECK(mkdir(dirs[i], 0755) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(merged); i++) {
		snprintf(target, sizeof target, "usr/%s", merged[i]);
		CHECK(symlink(target, merged[i]) == 0);
	}
	CHECK(chmod("tmp", 01777) == 0 && chown("home/user", 1000, 1000) == 0);
	put("etc/passwd", "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n"
	                  "other:x:1001:1001::/home/none:/bin/sh\nbig:x:70000:70000::/:/bin/sh\n");
	put("etc/group", "root:x:0:\nuser:x:1000:\nextra:x:2000:user,other\nmore:x:2001:user\n");
	bind_into(root, "/usr");
	make_dev(root);
	snprintf(path, sizeof path, "%s/proc", root);
	if (mount("proc", path, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		SKIP("mount proc: %s", strerror(errno));
	CHECK(chroot(".") == 0 && chdir("/") == 0);
}

static void keep_capabilities(void)
{
	static const int kept[] = { CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL, CAP_SETGID,
	                            CAP_SETUID, CAP_NET_BIND_SERVICE, CAP_SETFCAP };
	uint64_t mask = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		mask |= 1ull << kept[i];
	for (int cap = 0; cap < 64; cap++)
		if (!(mask >> cap & 1))
			prctl(PR_CAPBSET_DROP, cap);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

static void load_filter(void)
{
	struct sock_filter allow[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { 1, allow };

	CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
}

static const char *init_program(void)
{
	static char path[512];
	const char *given = getenv("CUVETTE_INIT"), *build = getenv("CUVETTE_BUILD");

	snprintf(path, sizeof path, "%s/src/init/cuvette-init", build ? build : ".");
	return given && *given ? given : path;
}

static _noreturn_ void become_init(int program, int listener)
{
	char digits[3] = { box.cgroup_fd >= 0 ? '1' : '0', box.tasks_fd >= 0 ? '1' : '0', '\0' };
	char *argv[] = { (char *) "cuvette-init", digits, (char *) "4096", NULL };
	char *env[] = { (char *) "ASAN_OPTIONS=detect_leaks=0", NULL };
	/* Out of the way of the numbers that they get. */
	int tasks = box.tasks_fd >= 0 ? fcntl(box.tasks_fd, F_DUPFD_CLOEXEC, 100) : -1;
	int cgroup = box.cgroup_fd >= 0 ? fcntl(box.cgroup_fd, F_DUPFD_CLOEXEC, 100) : -1;

	program = fcntl(program, F_DUPFD_CLOEXEC, 110);
	CHECK(dup2(listener, INIT_FD_LISTEN) >= 0);
	close(0);
	syscall(SYS_close_range, INIT_FD_LISTEN + 1, 99, 0);
	CHECK(tasks < 0 || dup2(tasks, INIT_FD_TASKS) >= 0);
	CHECK(cgroup < 0 || dup2(cgroup, INIT_FD_CGROUP) >= 0);
	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	if (box.nofile) {
		CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit) { box.nofile, box.nofile }) == 0);
	}
	syscall(SYS_execveat, program, "", argv, env, AT_EMPTY_PATH);
	FAIL("exec %s: %s", init_program(), strerror(errno));
}

static void write_map(pid_t pid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	if (write(fd, "0 400000 65536", 14) != 14)
		SKIP("write %s: %s", path, strerror(errno));
	close(fd);
}

static socklen_t address_len(const char *name)
{
	return (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

static int listen_at(const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(at.sun_path + 1, name, strlen(name));
	CHECK(fd >= 0);
	CHECK(bind(fd, (struct sockaddr *) &at, address_len(name)) == 0);
	CHECK(listen(fd, 256) == 0);
	return fd;
}

static void box_start(void)
{
	int program = open(init_program(), O_RDONLY | O_CLOEXEC), ready[2], go[2], listener;
	char root[] = "/tmp/cuvette-init-XXXXXX", byte = 0;

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK(program >= 0);
	CHECK(mkdtemp(root) && pipe2(ready, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0);
	chmod(root, 0755);
	snprintf(box.name, sizeof box.name, "cuvette-test-%d", getpid());
	listener = listen_at(box.name);
	/* The first child makes the namespaces, and the second one is PID 1 in them. */
	box.pid = (pid_t) syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS |
	                          SIGCHLD, NULL, NULL, NULL, NULL);
	if (box.pid < 0) {
		rmdir(root);
		SKIP("clone with namespaces: %s", strerror(errno));
	}
	if (box.pid == 0) {
		CHECK(read(go[0], &byte, 1) == 1);
		CHECK(setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0 && setgroups(0, NULL) == 0);
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
		make_root(root);
		keep_capabilities();
		if (box.filtered)
			load_filter();
		CHECK(write(ready[1], "r", 1) == 1);
		become_init(program, listener);
	}
	write_map(box.pid, "uid_map");
	write_map(box.pid, "gid_map");
	CHECK(write(go[1], "g", 1) == 1);
	close(ready[1]);
	byte = 0;
	(void) !read(ready[0], &byte, 1);
	close(listener);
	/* The mount lives in the box's namespace; the directory is ours again. */
	rmdir(root);
	if (byte != 'r')
		exit(0);        /* it has said why */
}

/* ---- the client ---- */

static int connect_init(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(at.sun_path + 1, box.name, strlen(box.name));
	CHECK(fd >= 0);
	CHECK(connect(fd, (struct sockaddr *) &at, address_len(box.name)) == 0);
	return fd;
}

struct packet {
	uint8_t data[INIT_PACKET_MAX];
	struct init_header header;
	const uint8_t *payload;
	int fd;                 /* that came with it, or -1 */
};

/* With a descriptor, or -1. */
static void send_packet_fd(int fd, uint8_t type, uint16_t flags, const void *payload, size_t len, int pass_fd)
{
	static uint8_t data[INIT_PACKET_MAX];

	init_put_header(data, type, flags, (uint32_t) len);
	if (len)
		memcpy(data + INIT_HEADER, payload, len);
	/* A connection that was refused has the reason waiting to be read. */
	if (send_msg(fd, data, INIT_HEADER + len, &pass_fd, pass_fd >= 0) < 0 && errno != EPIPE)
		FAIL("send packet %u: %s", type, strerror(errno));
}

static void send_packet(int fd, uint8_t type, uint16_t flags, const void *payload, size_t len)
{
	send_packet_fd(fd, type, flags, payload, len, -1);
}

/* False at the end of the connection. */
static bool recv_packet(int fd, struct packet *ret)
{
	int fds[FD_PASS_MAX];
	size_t nfds = 0;
	ssize_t n = recv_msg(fd, ret->data, sizeof ret->data, fds, &nfds);

	if (n < 0 && errno == ECONNRESET)
		n = 0;
	if (n < 0)
		FAIL("receive: %s", strerror(errno));
	if (n == 0)
		return false;
	ret->fd = nfds ? fds[0] : -1;
	CHECK(init_get_header(ret->data, (size_t) n, &ret->header));
	ret->payload = ret->data + INIT_HEADER;
	return true;
}

/* The packet must be an error; its parts. */
static void get_error(const struct packet *p, struct init_error *ret)
{
	struct wire_reader r = { .data = p->payload, .len = p->header.len };

	if (p->header.type != INIT_ERROR)
		FAIL("packet %u instead of an error", p->header.type);
	CHECK(init_decode_error(&r, ret));
}

struct result {
	uint32_t pid;
	struct buf out, err;
	bool failed;            /* with `error`, before or instead of `exit` */
	struct init_error error;
	struct init_exit exit;
	uint64_t took_us;
};

static void send_exec(int fd, const struct init_exec *exec)
{
	struct buf body = BUF_INIT(INIT_EXEC_MAX);
	struct err err;

	CHECK_OK(init_encode_exec(exec, &body, &err));
	for (size_t at = 0; at < body.len; at += INIT_PAYLOAD_MAX) {
		size_t len = MIN(body.len - at, (size_t) INIT_PAYLOAD_MAX);

		send_packet(fd, INIT_EXEC, at + len < body.len ? INIT_MORE : 0, body.data + at, len);
	}
	buf_done(&body);
}

/* Takes one packet of a command into the result; true once the operation is over. */
static bool take_packet(const struct packet *p, struct result *ret)
{
	struct wire_reader r = { .data = p->payload, .len = p->header.len };
	struct err err;

	switch (p->header.type) {
	case INIT_STARTED:
		ret->pid = wire_get_u32(&r);
		return false;
	case INIT_STDOUT:
		CHECK_OK(buf_append(&ret->out, p->payload, p->header.len, &err));
		return false;
	case INIT_STDERR:
		CHECK_OK(buf_append(&ret->err, p->payload, p->header.len, &err));
		return false;
	case INIT_STDIN_CREDIT:
		return false;
	case INIT_EXIT:
		CHECK(init_decode_exit(&r, &ret->exit));
		return true;
	default:
		get_error(p, &ret->error);
		ret->failed = true;
		return true;
	}
}

static void result_done(struct result *r)
{
	buf_done(&r->out);
	buf_done(&r->err);
}

/* The result may be used again and again, so it starts as zeros (static). */
static void result_init(struct result *ret)
{
	result_done(ret);
	memset(ret, 0, sizeof *ret);
	ret->out.max = ret->err.max = 256 << 20;
}

static void finish_exec(int fd, struct result *ret)
{
	static struct packet p;

	do
		if (!recv_packet(fd, &p))
			FAIL("init hung up");
	while (!take_packet(&p, ret));
	close(fd);
	if (!ret->out.data)
		(void) !buf_append(&ret->out, "", 0, NULL);
	if (!ret->err.data)
		(void) !buf_append(&ret->err, "", 0, NULL);
}

static _unused_ void run_exec(const struct init_exec *exec, struct result *ret)
{
	uint64_t start = now_ns();
	int fd = connect_init();

	result_init(ret);
	send_exec(fd, exec);
	finish_exec(fd, ret);
	ret->took_us = (now_ns() - start) / 1000;
}

/* Connects and sends a command of /bin/sh; the caller goes on with the connection. */
static _unused_ int begin_shell(const char *script, uint32_t flags)
{
	char *argv[] = { (char *) "/bin/sh", (char *) "-c", (char *) script, NULL };
	struct init_exec exec = { .argv = argv, .flags = flags, .rows = flags & INIT_EXEC_PTY ? 24 : 0,
	                          .cols = flags & INIT_EXEC_PTY ? 80 : 0 };
	int fd = connect_init();

	send_exec(fd, &exec);
	return fd;
}

static _unused_ void run_shell(const char *script, struct result *ret)
{
	uint64_t start = now_ns();
	int fd = begin_shell(script, 0);

	result_init(ret);
	finish_exec(fd, ret);
	ret->took_us = (now_ns() - start) / 1000;
}

/* Waits for STARTED and returns the pid. */
static _unused_ uint32_t wait_started(int fd)
{
	static struct packet p;
	struct wire_reader r;

	CHECK(recv_packet(fd, &p));
	if (p.header.type == INIT_ERROR) {
		struct init_error e;

		get_error(&p, &e);
		FAIL("not started: %s", e.msg);
	}
	CHECK_INT(p.header.type, INIT_STARTED);
	r = (struct wire_reader) { .data = p.payload, .len = p.header.len };
	return wire_get_u32(&r);
}

static _unused_ void send_u32(int fd, uint8_t type, uint32_t value)
{
	uint8_t payload[4];
	struct wire_writer w = { .data = payload, .cap = sizeof payload };

	wire_put_u32(&w, value);
	send_packet(fd, type, 0, payload, w.len);
}

static _unused_ int attach(uint32_t pid, uint32_t flags)
{
	uint8_t payload[8];
	struct wire_writer w = { .data = payload, .cap = sizeof payload };
	int fd = connect_init();

	wire_put_u32(&w, pid);
	wire_put_u32(&w, flags);
	send_packet(fd, INIT_ATTACH, 0, payload, w.len);
	return fd;
}

/* One file request and the first packet of its answer. */
static _unused_ void ask_file(const struct init_file *f, struct packet *ret)
{
	uint8_t payload[INIT_PAYLOAD_MAX];
	struct wire_writer w = { .data = payload, .cap = sizeof payload };
	int fd = connect_init();

	init_encode_file(&w, f);
	send_packet(fd, INIT_FILE, 0, payload, w.len);
	CHECK(recv_packet(fd, ret));
	close(fd);
}

/* Resident anonymous memory of init, in KiB. */
static _unused_ unsigned long init_memory_kib(void)
{
	char path[64], text[4096], *at;
	struct err err;

	snprintf(path, sizeof path, "/proc/%d/status", box.pid);
	CHECK_OK(read_file_at(AT_FDCWD, path, text, sizeof text, &err));
	at = strstr(text, "RssAnon:");
	CHECK(at);
	return strtoul(at + 8, NULL, 10);
}
