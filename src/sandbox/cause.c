/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cause: why a command ended, in one sentence.
 *
 * A limit never ends a command by name: the kernel kills with SIGKILL, refuses a fork with
 * EAGAIN or a write with ENOSPC, and the command then fails in its own words.  Counters that
 * grew meanwhile are the evidence.  Refusals count only when the command failed as well, as
 * a program that copes with them has nothing to explain.
 */
#include "sandbox/sandbox.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* Process names are chosen inside: nothing but plain ASCII reaches a person's terminal. */
static void plain_name(const char *name, char *ret, size_t size)
{
	size_t n = 0;

	for (; *name && n + 5 < size; name++) {
		unsigned char c = (unsigned char) *name;

		if (c >= 0x20 && c < 0x7f && c != '\\')
			ret[n++] = (char) c;
		else
			n += (size_t) snprintf(ret + n, size - n, "\\x%02x", c);
	}
	ret[n] = '\0';
}

static void killed_process(const struct init_exit *e, char *ret, size_t size)
{
	char name[4 * sizeof e->killed_name + 1];

	plain_name(e->killed_name, name, sizeof name);
	if ((e->flags & INIT_EXIT_KILLED) && name[0])
		snprintf(ret, size, "%s (pid %" PRIu32 ")", name, e->killed_pid);
	else if (e->signaled && e->status == SIGKILL)
		snprintf(ret, size, "the command (pid %" PRIu32 ")", e->pid);
	else
		snprintf(ret, size, "a process");
}

static bool has_failed(const struct exec_result *r)
{
	return r->timed_out || r->exit.signaled || r->exit.status;
}

/* A full disk still counts the blocks that the failing write had no use for. */
static bool is_full(uint64_t used, uint64_t limit, uint64_t slack)
{
	return limit && used + MAX(limit / 128, slack) >= limit;
}

/* A file system on an image refuses some hundred blocks early, more while it still writes. */
static bool is_disk_full(const struct spawn_stats *s)
{
	return is_full(s->disk_used_bytes, s->disk_limit_bytes, MIN(s->disk_limit_bytes / 16, (uint64_t) 4 << 20));
}

static void judge_memory(struct exec_result *r, const struct spawn_stats *s)
{
	char limit[16], peak[16], who[160];

	killed_process(&r->exit, who, sizeof who);
	r->limit = EXEC_LIMIT_MEMORY;
	snprintf(r->reason, sizeof r->reason, "memory limit of %s reached: %s was killed; peak %s",
	         size_text(s->memory_limit_bytes, limit), who, size_text(s->memory_peak_bytes, peak));
}

static void judge_pids(struct exec_result *r, const struct spawn_stats *s)
{
	r->limit = EXEC_LIMIT_PIDS;
	snprintf(r->reason, sizeof r->reason, "process limit of %" PRIu64 " reached: %" PRIu64 " fork%s refused",
	         s->pids_limit, s->pids_refused, s->pids_refused == 1 ? " was" : "s were");
}

static void judge_disk(struct exec_result *r, const struct spawn_stats *s)
{
	char limit[16], used[16];

	if (is_disk_full(s)) {
		r->limit = EXEC_LIMIT_DISK;
		snprintf(r->reason, sizeof r->reason, "disk limit of %s reached: %s are in use",
		         size_text(s->disk_limit_bytes, limit), size_text(s->disk_used_bytes, used));
	} else {
		r->limit = EXEC_LIMIT_INODES;
		snprintf(r->reason, sizeof r->reason, "file limit of %" PRIu64 " reached: %" PRIu64 " inodes are in use",
		         s->inodes_limit, s->inodes_used);
	}
}

static void judge_wall(struct exec_result *r, const struct exec_options *o, const struct spawn_stats *s)
{
	char also[80] = "";

	r->limit = EXEC_LIMIT_WALL;
	if (s && s->oom_kills)
		snprintf(also, sizeof also, "; the memory limit had been reached as well");
	else if (s && s->pids_refused)
		snprintf(also, sizeof also, "; the process limit of %" PRIu64 " had been reached as well", s->pids_limit);
	snprintf(r->reason, sizeof r->reason, "time limit of %gs reached: the command and all it had started were killed%s",
	         (double) o->timeout_ms / 1000, also);
}

static void judge_output(struct exec_result *r, const struct exec_options *o)
{
	char limit[16], produced[16];
	bool is_err = r->exit.stderr_bytes > o->output_bytes && r->exit.stdout_bytes <= o->output_bytes;

	r->limit = EXEC_LIMIT_OUTPUT;
	snprintf(r->reason, sizeof r->reason, "output limit of %s reached: %s of %s were produced and the rest was dropped",
	         size_text(o->output_bytes, limit),
	         size_text(is_err ? r->exit.stderr_bytes : r->exit.stdout_bytes, produced), is_err ? "stderr" : "stdout");
}

void exec_judge(struct exec_result *r, const struct exec_options *o, const struct spawn_stats *s)
{
	r->limit = EXEC_LIMIT_NONE;
	r->reason[0] = '\0';
	if (r->timed_out)
		judge_wall(r, o, s);
	else if (r->sink_failed)
		;       /* the reader left: no limit of ours */
	else if (s && s->oom_kills)
		judge_memory(r, s);
	else if (s && s->pids_refused && has_failed(r))
		judge_pids(r, s);
	else if (s && has_failed(r) && (is_disk_full(s) ||
	                                is_full(s->inodes_used, s->inodes_limit, 4)))
		judge_disk(r, s);
	else if (r->truncated)
		judge_output(r, o);
}
