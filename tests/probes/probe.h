/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * probe: small attempts to get out of a sandbox, each with one right answer.
 *
 * A probe tries one thing that must not work (or, rarely, must) and reports one
 * word: "ok", the name of an errno, the name of the signal that killed it,
 * "hung", or an observation of its own.  The tables say which words are right.
 * A probe never does the harm: it opens for writing and closes, connects and
 * does not send, asks to delete what is not there.
 *
 * Each probe runs in a child of its own, so that a kill or a hang is an answer
 * too and nothing it changes reaches the next one.  The names begin with the
 * row of the probe list (A12, C05, ...), and the tables follow its order.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct probe {
	const char *name;
	/* The attempt; NULL makes the system call below.  >= 0 is "ok", -1 the errno,
	 * unless observe() spoke. */
	long (*try)(const struct probe *p);
	long nr;
	long args[6];
	const char *path;

	/*
	 * The right answers: words separated by spaces, "refused" for any errno.
	 * NULL: the probe makes no sense there and is skipped.  `bare_*` apply when
	 * the seccomp filter is off, and are set only where the row names a second
	 * layer.
	 */
	const char *user, *root;
	const char *bare_user, *bare_root;
};

#define FILTERED(words)       .user = (words), .root = (words)
#define BARE(words)           .bare_user = (words), .bare_root = (words)
#define ALWAYS(words)         FILTERED(words), BARE(words)
#define ROOT_ONLY(words)      .root = (words), .bare_root = (words)

struct probe_group {
	const struct probe *list;
	size_t count;
};

extern const struct probe_group probes_calls, probes_sockets, probes_files, probes_mounts, probes_processes,
        probes_network, probes_resources;

/* What the host side told us (main.c). */
struct surroundings {
	bool bare;                      /* no seccomp filter in this run */
	const char *program;            /* path of this program */
	const char *host_paths[16];     /* exist on the host, must not exist here */
	size_t host_path_count;
	const char *host_addresses[16]; /* where the host listens, on host_port */
	size_t host_address_count;
	unsigned host_port;
	pid_t host_pids[16];
	size_t host_pid_count;
	const char *host_abstract;      /* abstract unix name that the host listens on */
	int first_leaked_fd;            /* inherited by main() beyond 0..2, or -1 */
	int directory_fd;               /* inherited descriptor that is a directory, or -1 */
};
extern struct surroundings around;

/* Things that another sandbox holds while the probes run (act.c makes them, D09 looks for them). */
#define HELD_PORT     47001
#define HELD_ABSTRACT "cuvette-probe-held"
#define HELD_SYSV     0x43565454
#define HELD_QUEUE    "/cuvette-probe-held"
#define HELD_SHM      "/dev/shm/cuvette-probe-held"
#define HELD_TMP      "/tmp/cuvette-probe-held"

/* ---- help.c ---- */

/* Says what was seen instead of "ok" or an errno; the last call counts.  Returns 0. */
int observe(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

const char *errno_word(int sys);        /* "EPERM" */
const char *signal_word(int signo);     /* "SIGSYS" */

/* Fails with `sys`. */
long fail(int sys);

/* The kernel's answer to the call of `p`, with errno. */
long call_it(const struct probe *p);

/* The whole file (at most size - 1 bytes) as a string; the length, or -1 with errno. */
ssize_t read_text(const char *path, char *ret, size_t size);
/* The number (in `base`) after "NAME:" in /proc/self/status. */
uint64_t status_field(const char *name, int base);

/* Opens, and closes at once. */
long open_close(const char *path, int flags);
long write_once(const char *path, const char *text);

/* One netlink request with an acknowledgement: 0, or -1 with the errno of socket(), send() or the answer. */
struct nlmsghdr;
long netlink_ask(int protocol, struct nlmsghdr *message);

/* Runs itself with one of the actions below as `uid`, and returns its exit status, -1 when it was killed. */
int run_action(const char *program, const char *action, uid_t uid);

/* ---- act.c: what the host side asks a sandbox to do, outside of the tables ---- */
int act(int argc, char **argv);
void act_usage(void);
