/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/job.h"

/* ---- streams ---- */

static char *base64(const char *data, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = xcalloc((len + 2) / 3 * 4 + 1, 1), *at = text;

	for (size_t i = 0; i < len; i += 3) {
		uint32_t v = (uint32_t) (uint8_t) data[i] << 16;

		if (i + 1 < len)
			v |= (uint32_t) (uint8_t) data[i + 1] << 8;
		if (i + 2 < len)
			v |= (uint8_t) data[i + 2];
		*at++ = digits[v >> 18];
		*at++ = digits[v >> 12 & 63];
		*at++ = i + 1 < len ? digits[v >> 6 & 63] : '=';
		*at++ = i + 2 < len ? digits[v & 63] : '=';
	}
	return text;
}

/* Text for people and models; the exact bytes beside it only where the text had to be repaired. */
static void put_stream(struct json *j, const char *name, const struct buf *b, uint64_t produced)
{
	const char *data = b->data ? b->data : "";
	/* A cut at the ceiling may have split a character: that is no defect of the output. */
	size_t len = produced > b->len ? utf8_complete_prefix(data, b->len) : b->len;
	char key[32];

	json_put_text(j, name, data, len);
	if (!utf8_is_valid(data, len)) {
		_cleanup_free_ char *exact = base64(data, b->len);

		snprintf(key, sizeof key, "%s_base64", name);
		json_put_str(j, key, exact);
	}
	snprintf(key, sizeof key, "%s_bytes", name);
	json_put_u64(j, key, produced);
}

/* The shell's sentence about a command that could not be started is its stderr. */
static void put_streams(struct json *j, const struct job_report *r)
{
	_cleanup_buf_ struct buf message = BUF_INIT(1024);
	const struct buf *err_text = &r->output.collected[1];
	uint64_t err_bytes = r->result.exit.stderr_bytes;

	if (r->not_started) {
		(void) !buf_printf(&message, NULL, "cuvette: %s\n", r->err.msg);
		err_text = &message;
		err_bytes = message.len;
	}
	put_stream(j, "stdout", &r->output.collected[0], MAX(r->result.exit.stdout_bytes, r->output.collected[0].len));
	put_stream(j, "stderr", err_text, MAX(err_bytes, err_text->len));
	json_put_bool(j, "truncated", r->result.truncated);
	json_put_bool(j, "output_incomplete", r->result.exit.flags & INIT_EXIT_INCOMPLETE);
}

/* ---- the outcome ---- */

static const char *status_name(const struct job_report *r)
{
	if (r->not_started)
		return "not_started";
	if (!r->ran)
		return "error";
	if (r->result.timed_out)
		return "timeout";
	if (r->result.canceled)
		return "canceled";
	return r->result.exit.signaled ? "signaled" : "exited";
}

/* The names that a shell's `kill -l` prints; the C library here has none. */
static void put_signal_name(struct json *j, unsigned number)
{
	static const char *const names[] = {
		[SIGHUP] = "SIGHUP", [SIGINT] = "SIGINT", [SIGQUIT] = "SIGQUIT", [SIGILL] = "SIGILL", [SIGTRAP] = "SIGTRAP",
		[SIGABRT] = "SIGABRT", [SIGBUS] = "SIGBUS", [SIGFPE] = "SIGFPE", [SIGKILL] = "SIGKILL", [SIGUSR1] = "SIGUSR1",
		[SIGSEGV] = "SIGSEGV", [SIGUSR2] = "SIGUSR2", [SIGPIPE] = "SIGPIPE", [SIGALRM] = "SIGALRM",
		[SIGTERM] = "SIGTERM", [SIGSTKFLT] = "SIGSTKFLT", [SIGCHLD] = "SIGCHLD", [SIGCONT] = "SIGCONT",
		[SIGSTOP] = "SIGSTOP", [SIGTSTP] = "SIGTSTP", [SIGTTIN] = "SIGTTIN", [SIGTTOU] = "SIGTTOU",
		[SIGURG] = "SIGURG", [SIGXCPU] = "SIGXCPU", [SIGXFSZ] = "SIGXFSZ", [SIGVTALRM] = "SIGVTALRM",
		[SIGPROF] = "SIGPROF", [SIGWINCH] = "SIGWINCH", [SIGIO] = "SIGIO", [SIGPWR] = "SIGPWR", [SIGSYS] = "SIGSYS",
	};
	char text[16];

	snprintf(text, sizeof text, "SIG%u", number);
	json_put_str(j, "signal_name", number < ARRAY_SIZE(names) && names[number] ? names[number] : text);
}

static void put_killed_process(struct json *j, const struct init_exit *e)
{
	if (!(e->flags & INIT_EXIT_KILLED)) {
		json_put_null(j, "process");
		return;
	}
	json_open(j, "process", '{');
	json_put_u64(j, "pid", e->killed_pid);
	json_put_str(j, "name", e->killed_name);
	json_close(j, '}');
}

static void put_limit(struct json *j, const struct job_report *r)
{
	static const char *const kinds[] = {
		[EXEC_LIMIT_WALL] = "time", [EXEC_LIMIT_MEMORY] = "memory", [EXEC_LIMIT_PIDS] = "pids",
		[EXEC_LIMIT_DISK] = "disk", [EXEC_LIMIT_OUTPUT] = "output",
		[EXEC_LIMIT_INODES] = "inodes",
	};
	static const char *const units[] = {
		[EXEC_LIMIT_WALL] = "ms", [EXEC_LIMIT_MEMORY] = "bytes", [EXEC_LIMIT_PIDS] = "processes",
		[EXEC_LIMIT_DISK] = "bytes", [EXEC_LIMIT_OUTPUT] = "bytes", [EXEC_LIMIT_INODES] = "inodes",
	};
	const struct spawn_stats *s = &r->stats;
	uint64_t limit = 0, peak = 0;

	switch (r->result.limit) {
	case EXEC_LIMIT_NONE:
		json_put_null(j, "limit");
		return;
	case EXEC_LIMIT_WALL:
		limit = r->plan->timeout_ms;
		peak = r->result.exit.wall_us / 1000;
		break;
	case EXEC_LIMIT_MEMORY:
		limit = s->memory_limit_bytes;
		peak = s->memory_peak_bytes;
		break;
	case EXEC_LIMIT_PIDS:
		limit = peak = s->pids_limit;
		break;
	case EXEC_LIMIT_DISK:
		limit = s->disk_limit_bytes;
		peak = s->disk_used_bytes;
		break;
	case EXEC_LIMIT_INODES:
		limit = s->inodes_limit;
		peak = s->inodes_used;
		break;
	case EXEC_LIMIT_OUTPUT:
		limit = r->plan->output_bytes;
		peak = MAX(r->result.exit.stdout_bytes, r->result.exit.stderr_bytes);
		break;
	}
	json_open(j, "limit", '{');
	json_put_str(j, "kind", kinds[r->result.limit]);
	json_put_u64(j, "limit", limit);
	json_put_u64(j, "peak", peak);
	json_put_str(j, "unit", units[r->result.limit]);
	put_killed_process(j, &r->result.exit);
	json_close(j, '}');
}

static void put_outcome(struct json *j, const struct job_report *r)
{
	const struct init_exit *e = &r->result.exit;

	json_put_str(j, "status", status_name(r));
	json_put_u64(j, "exit_code", (uint64_t) r->status);
	if (r->ran && e->signaled) {
		json_put_u64(j, "signal", e->status);
		put_signal_name(j, e->status);
	} else {
		json_put_null(j, "signal");
		json_put_null(j, "signal_name");
	}
	json_put_bool(j, "timed_out", r->result.timed_out);
	json_put_bool(j, "oom_killed", r->has_stats && r->stats.oom_kills);
	put_limit(j, r);
	json_put_str(j, "reason", r->result.reason[0] ? r->result.reason : NULL);
}

/* ---- numbers ---- */

static void put_numbers(struct json *j, const char *key, size_t count, const char *const names[], const uint64_t values[])
{
	json_open(j, key, '{');
	for (size_t i = 0; i < count; i++)
		json_put_u64(j, names[i], values[i]);
	json_close(j, '}');
}
#define PUT_NUMBERS(j, key, names, ...) \
	put_numbers(j, key, ARRAY_SIZE(names), names, (const uint64_t[ARRAY_SIZE(names)]) { __VA_ARGS__ })

static void put_times(struct json *j, const struct job_report *r)
{
	const struct init_exit *e = &r->result.exit;

	json_open(j, "times", '{');
	json_put_milli(j, "wall_ms", e->wall_us);
	json_put_milli(j, "user_ms", e->user_us);
	json_put_milli(j, "system_ms", e->system_us);
	json_put_milli(j, "create_ms", r->create_us);
	json_put_milli(j, "total_ms", r->total_us);
	json_close(j, '}');
}

static void put_counters(struct json *j, const struct spawn_stats *s)
{
	static const char *const memory[] = { "peak_bytes", "limit_bytes", "oom_kills" };
	static const char *const pids[] = { "limit", "refused" };
	static const char *const io[] = { "read_bytes", "write_bytes" };
	static const char *const disk[] = { "used_bytes", "limit_bytes", "inodes_used", "inodes_limit" };

	json_put_milli(j, "cpu_ms", s->cpu_us);
	PUT_NUMBERS(j, "memory", memory, s->memory_peak_bytes, s->memory_limit_bytes, s->oom_kills);
	PUT_NUMBERS(j, "pids", pids, s->pids_limit, s->pids_refused);
	PUT_NUMBERS(j, "io", io, s->io_read_bytes, s->io_write_bytes);
	PUT_NUMBERS(j, "disk", disk, s->disk_used_bytes, s->disk_limit_bytes, s->inodes_used, s->inodes_limit);
}

void print_report_json(const struct job_report *r)
{
	_cleanup_json_ struct json j = JSON_INIT;

	json_open(&j, NULL, '{');
	put_outcome(&j, r);
	put_streams(&j, r);
	put_times(&j, r);
	if (r->has_stats)
		put_counters(&j, &r->stats);
	json_put_str(&j, "sandbox", r->id[0] ? r->id : NULL);
	json_put_str(&j, "template", r->digest[0] ? r->digest : NULL);
	if (r->err.code) {
		json_open(&j, "error", '{');
		json_put_str(&j, "code", err_name(&r->err));
		json_put_str(&j, "message", r->err.msg);
		json_close(&j, '}');
	}
	json_close(&j, '}');
	puts(j.out.data);
	fflush(stdout);
}
