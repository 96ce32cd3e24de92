/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Actions: what the host side of the probes has a sandbox do, so that no row
 * depends on which programs a template holds.
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int complain(const char *what)
{
	fprintf(stderr, "cuvette-probe: %s: %s\n", what, strerror(errno));
	return 1;
}

static void sleep_seconds(const char *text)
{
	struct timespec t = { .tv_sec = strtol(text, NULL, 10) };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static void say(const char *line)
{
	printf("%s\n", line);
	fflush(stdout);
}

/* D09: takes every name that another sandbox could meet, until its input ends. */
static int act_hold(char **args)
{
	struct sockaddr_in port = { .sin_family = AF_INET, .sin_port = htons(HELD_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int tcp = socket(AF_INET, SOCK_STREAM, 0), abstract = socket(AF_UNIX, SOCK_STREAM, 0);
	char end;

	(void) args;
	memcpy(name.sun_path + 1, HELD_ABSTRACT, strlen(HELD_ABSTRACT));
	if (bind(tcp, (void *) &port, sizeof port) < 0 || listen(tcp, 8) < 0)
		return complain("hold the port");
	if (bind(abstract, (void *) &name, (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + strlen(HELD_ABSTRACT))) < 0 ||
	    listen(abstract, 8) < 0)
		return complain("hold the abstract name");
	if (shmget(HELD_SYSV, 4096, IPC_CREAT | 0666) < 0)
		return complain("hold the SysV key");
	if (syscall(SYS_mq_open, HELD_QUEUE + 1, O_RDWR | O_CREAT, 0666, NULL) < 0)
		return complain("hold the queue");
	if (open(HELD_SHM, O_RDWR | O_CREAT, 0666) < 0)
		return complain("hold " HELD_SHM);
	if (open(HELD_TMP, O_RDWR | O_CREAT, 0666) < 0)
		return complain("hold " HELD_TMP);
	say("holding");
	while (read(0, &end, 1) > 0)
		;
	return 0;
}

/* C14: a process that did everything to be forgotten.  args[0] is a mark to find it by. */
static int act_linger(char **args)
{
	sigset_t all;

	(void) args;
	sigfillset(&all);
	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			if (chdir("/") < 0)
				_exit(1);
			sigprocmask(SIG_BLOCK, &all, NULL);
			signal(SIGTERM, SIG_IGN);
			for (int fd = 0; fd < 4096; fd++)
				close(fd);
			sleep_seconds("600");
		}
		_exit(0);
	}
	say("lingering");
	return 0;
}

/* C15: a process that outlives its command and holds its output open. */
static int act_hold_output(char **args)
{
	(void) args;
	if (fork() == 0) {
		sleep_seconds("60");
		_exit(0);
	}
	say("left");
	return 0;
}

/* Is there for the host to look at: prints its ids, sleeps args[1] seconds; args[0] is its mark. */
static int act_stay(char **args)
{
	printf("uid %d gid %d\n", geteuid(), getegid());
	fflush(stdout);
	sleep_seconds(args[1]);
	return 0;
}

static int act_ids(char **args)
{
	(void) args;
	printf("uid %d gid %d\n", geteuid(), getegid());
	return 0;
}

/* B21, B22: changes a file of the template, and says how long it was and is. */
static int act_append(char **args)
{
	struct stat before, after;
	int fd = open(args[0], O_WRONLY | O_APPEND);

	if (fd < 0 || fstat(fd, &before) < 0 || write(fd, args[1], strlen(args[1])) < 0 || fstat(fd, &after) < 0)
		return complain(args[0]);
	printf("%lld %lld\n", (long long) before.st_size, (long long) after.st_size);
	return 0;
}

static int act_print(char **args)
{
	static char text[1 << 20];

	if (read_text(args[0], text, sizeof text) < 0)
		return complain(args[0]);
	fputs(text, stdout);
	return 0;
}

/* B24: the mount table before and after the host did something. */
static int act_mounts(char **args)
{
	static char before[1 << 16], after[1 << 16];
	char go;

	(void) args;
	if (read_text("/proc/self/mountinfo", before, sizeof before) < 0)
		return complain("/proc/self/mountinfo");
	say("ready");
	if (read(0, &go, 1) < 0)
		return complain("wait");
	if (read_text("/proc/self/mountinfo", after, sizeof after) < 0)
		return complain("/proc/self/mountinfo");
	say(strcmp(before, after) ? "changed" : "unchanged");
	fputs(after, stdout);
	return 0;
}

/* C09: where a command started, and whether the top of that is the sandbox's root. */
static int act_where(char **args)
{
	char cwd[4096] = "?";
	struct stat root, top;

	(void) args;
	if (!getcwd(cwd, sizeof cwd))
		return complain("getcwd");
	for (int i = 0; i < 64; i++)
		if (chdir("..") < 0)
			return complain("chdir ..");
	if (stat("/", &root) < 0 || stat(".", &top) < 0)
		return complain("stat");
	printf("%s %s\n", root.st_dev == top.st_dev && root.st_ino == top.st_ino && cwd[0] == '/' ? "inside" : "OUTSIDE", cwd);
	return 0;
}

static int act_crash(char **args)
{
	(void) args;
	abort();
}

/* B23: takes back a limit that keeps crash handlers out, then crashes. */
static int act_crash_without_limit(char **args)
{
	struct { uint64_t soft, hard; } none = { 0, 0 };

	(void) args;
	syscall(SYS_prlimit64, 0, 4 /* RLIMIT_CORE */, &none, NULL);
	abort();
}

/* C07: everything that this process can reach. */
static int act_kill_all(char **args)
{
	(void) args;
	kill(-1, SIGKILL);
	say("still here");
	return 0;
}

static int make_link(const char *target, const char *path)
{
	unlink(path);
	return symlink(target, path);
}

/* F01, F02, F04: args[0] becomes a directory of traps; args[1] is a file of the host. */
static int act_traps(char **args)
{
	const char *secret = args[1];
	char up[4200] = "";
	int fd;

	if (mkdir(args[0], 0755) < 0 || chdir(args[0]) < 0)
		return complain(args[0]);
	for (int i = 0; i < 40; i++)
		strcat(up, "../");
	strncat(up, secret + 1, 2000);
	make_link(secret, "link-absolute");
	make_link(up, "link-dots");
	make_link("/etc/shadow", "link-shadow");
	make_link("/proc/1/root/etc/passwd", "link-init-root");
	make_link("/proc/self/root/etc/passwd", "link-self-root");
	make_link("link-loop", "link-loop");
	make_link("/", "link-directory");
	if (mkfifo("fifo", 0666) < 0 || mkfifo("\x1b[31mfifo\n", 0666) < 0)
		return complain("fifo");
	{
		struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "socket" };

		if (bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *) &name, sizeof name) < 0)
			return complain("socket");
	}
	fd = open("sparse", O_WRONLY | O_CREAT, 0644);
	if (fd < 0 || ftruncate(fd, 1L << 40) < 0)
		return complain("sparse");
	fd = open("name\nwith\x1b[31m\xff" "bytes", O_WRONLY | O_CREAT, 0644);
	if (fd < 0)
		return complain("name");
	fd = open("setuid", O_WRONLY | O_CREAT, 0755);
	if (fd < 0 || write(fd, "x", 1) != 1 || fchmod(fd, 06755) < 0)
		return complain("setuid");
	say("planted");
	return 0;
}

/* F01: stays behind and swaps args[0] between a file and a link to args[1], as fast as it can. */
static int act_swap(char **args)
{
	char link[512], file[512];
	time_t end = time(NULL) + 20;
	int fd;

	snprintf(link, sizeof link, "%s.link", args[0]);
	snprintf(file, sizeof file, "%s.file", args[0]);
	fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || write(fd, "inside\n", 7) != 7 || make_link(args[1], link) < 0 || symlink(file, args[0]) < 0)
		return complain("prepare");
	if (fork() != 0) {
		say("swapping");
		return 0;
	}
	setsid();
	for (int fds = 0; fds < 3; fds++)
		close(fds);
	while (time(NULL) < end) {
		unlink(args[0]);
		if (linkat(AT_FDCWD, file, AT_FDCWD, args[0], 0) < 0)
			continue;
		rename(link, args[0]);
		make_link(args[1], link);
	}
	_exit(0);
}

/* Exit 0 when there is nothing to worry about (run_action() of the tables). */
static int act_have_caps(char **args)
{
	(void) args;
	return status_field("CapEff", 16) || status_field("CapPrm", 16) ? 1 : 0;
}

static int act_have_root(char **args)
{
	(void) args;
	return geteuid() == 1000 && getegid() == 1000 ? 0 : 1;
}

static const struct { const char *name; int args; int (*run)(char **args); const char *usage; } actions[] = {
	{ "append", 2, act_append, "FILE TEXT" },
	{ "crash", 0, act_crash, "" },
	{ "crash-without-limit", 0, act_crash_without_limit, "" },
	{ "have-caps", 0, act_have_caps, "" },
	{ "have-root", 0, act_have_root, "" },
	{ "hold", 0, act_hold, "" },
	{ "hold-output", 0, act_hold_output, "" },
	{ "ids", 0, act_ids, "" },
	{ "kill-all", 0, act_kill_all, "" },
	{ "linger", 1, act_linger, "MARK" },
	{ "mounts", 0, act_mounts, "" },
	{ "print", 1, act_print, "FILE" },
	{ "stay", 2, act_stay, "MARK SECONDS" },
	{ "swap", 2, act_swap, "PATH TARGET" },
	{ "traps", 2, act_traps, "DIRECTORY HOST-FILE" },
	{ "where", 0, act_where, "" },
};

void act_usage(void)
{
	for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
		fprintf(stderr, "       cuvette-probe act %s %s\n", actions[i].name, actions[i].usage);
}

int act(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
		if (!strcmp(argv[0], actions[i].name) && argc - 1 == actions[i].args)
			return actions[i].run(argv + 1);
	act_usage();
	return 2;
}
