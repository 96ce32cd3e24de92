/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/job.h"

static json_t *number(uint64_t v)
{
	return json_integer((json_int_t) MIN(v, (uint64_t) INT64_MAX));
}

static json_t *milliseconds(uint64_t us)
{
	return json_real((double) us / 1000);
}

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
static void put_stream(json_t *out, const char *name, const struct buf *b, uint64_t produced)
{
	/* A cut at the ceiling may have split a character: that is no defect of the output. */
	size_t len = produced > b->len ? utf8_complete_prefix(b->data ? b->data : "", b->len) : b->len;
	_cleanup_buf_ struct buf text = BUF_INIT(SIZE_MAX / 4);
	char key[32];
	bool lossy = false;

	(void) !utf8_append_lossy(&text, b->data ? b->data : "", len, &lossy, NULL);
	json_object_set_new(out, name, json_stringn_nocheck(text.data ? text.data : "", text.len));
	if (lossy) {
		_cleanup_free_ char *exact = base64(b->data, b->len);

		snprintf(key, sizeof key, "%s_base64", name);
		json_object_set_new(out, key, json_string_nocheck(exact));
	}
	snprintf(key, sizeof key, "%s_bytes", name);
	json_object_set_new(out, key, number(produced));
}

/* The shell's sentence about a command that could not be started is its stderr. */
static void put_streams(json_t *out, const struct job_report *r)
{
	_cleanup_buf_ struct buf message = BUF_INIT(1024);
	const struct buf *err_text = &r->output.collected[1];
	uint64_t err_bytes = r->result.exit.stderr_bytes;

	if (r->not_started) {
		(void) !buf_printf(&message, NULL, "cuvette: %s\n", r->err.msg);
		err_text = &message;
		err_bytes = message.len;
	}
	put_stream(out, "stdout", &r->output.collected[0], MAX(r->result.exit.stdout_bytes, r->output.collected[0].len));
	put_stream(out, "stderr", err_text, MAX(err_bytes, err_text->len));
	json_object_set_new(out, "truncated", json_boolean(r->result.truncated));
	json_object_set_new(out, "output_incomplete", json_boolean(r->result.exit.flags & INIT_EXIT_INCOMPLETE));
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

static json_t *signal_name(unsigned number_)
{
	const char *name = sigabbrev_np((int) number_);
	char text[32];

	if (name)
		snprintf(text, sizeof text, "SIG%s", name);
	else
		snprintf(text, sizeof text, "SIG%u", number_);
	return json_string(text);
}

static json_t *lossy_text(const char *text)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	(void) !utf8_append_lossy(&b, text, strlen(text), NULL, NULL);
	return json_stringn_nocheck(b.data ? b.data : "", b.len);
}

static json_t *killed_process(const struct init_exit *e)
{
	json_t *p;

	if (!(e->flags & INIT_EXIT_KILLED))
		return json_null();
	p = json_object();
	json_object_set_new(p, "pid", number(e->killed_pid));
	json_object_set_new(p, "name", lossy_text(e->killed_name));
	return p;
}

static json_t *limit_object(const struct job_report *r)
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
	json_t *o;

	switch (r->result.limit) {
	case EXEC_LIMIT_NONE:
		return json_null();
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
	o = json_object();
	json_object_set_new(o, "kind", json_string(kinds[r->result.limit]));
	json_object_set_new(o, "limit", number(limit));
	json_object_set_new(o, "peak", number(peak));
	json_object_set_new(o, "unit", json_string(units[r->result.limit]));
	json_object_set_new(o, "process", killed_process(&r->result.exit));
	return o;
}

static void put_outcome(json_t *out, const struct job_report *r)
{
	const struct init_exit *e = &r->result.exit;
	bool signaled = r->ran && e->signaled;

	json_object_set_new(out, "status", json_string(status_name(r)));
	json_object_set_new(out, "exit_code", json_integer(r->status));
	json_object_set_new(out, "signal", signaled ? json_integer(e->status) : json_null());
	json_object_set_new(out, "signal_name", signaled ? signal_name(e->status) : json_null());
	json_object_set_new(out, "timed_out", json_boolean(r->result.timed_out));
	json_object_set_new(out, "oom_killed", json_boolean(r->has_stats && r->stats.oom_kills));
	json_object_set_new(out, "limit", limit_object(r));
	json_object_set_new(out, "reason", r->result.reason[0] ? lossy_text(r->result.reason) : json_null());
}

/* ---- numbers ---- */

static json_t *pairs(size_t count, const char *const names[], const uint64_t values[])
{
	json_t *o = json_object();

	for (size_t i = 0; i < count; i++)
		json_object_set_new(o, names[i], number(values[i]));
	return o;
}
#define PAIRS(names, ...) \
	pairs(ARRAY_SIZE(names), names, (const uint64_t[ARRAY_SIZE(names)]) { __VA_ARGS__ })

static void put_times(json_t *out, const struct job_report *r)
{
	const struct init_exit *e = &r->result.exit;
	json_t *times = json_object();

	json_object_set_new(times, "wall_ms", milliseconds(e->wall_us));
	json_object_set_new(times, "user_ms", milliseconds(e->user_us));
	json_object_set_new(times, "system_ms", milliseconds(e->system_us));
	json_object_set_new(times, "create_ms", milliseconds(r->create_us));
	json_object_set_new(times, "total_ms", milliseconds(r->total_us));
	json_object_set_new(out, "times", times);
}

static void put_counters(json_t *out, const struct spawn_stats *s)
{
	static const char *const memory[] = { "peak_bytes", "limit_bytes", "oom_kills" };
	static const char *const pids[] = { "limit", "refused" };
	static const char *const io[] = { "read_bytes", "write_bytes" };
	static const char *const disk[] = { "used_bytes", "limit_bytes", "inodes_used", "inodes_limit" };

	json_object_set_new(out, "cpu_ms", milliseconds(s->cpu_us));
	json_object_set_new(out, "memory", PAIRS(memory, s->memory_peak_bytes, s->memory_limit_bytes, s->oom_kills));
	json_object_set_new(out, "pids", PAIRS(pids, s->pids_limit, s->pids_refused));
	json_object_set_new(out, "io", PAIRS(io, s->io_read_bytes, s->io_write_bytes));
	json_object_set_new(out, "disk", PAIRS(disk, s->disk_used_bytes, s->disk_limit_bytes, s->inodes_used,
	                                       s->inodes_limit));
}

static void put_error(json_t *out, const struct err *err)
{
	json_t *e = json_object();

	json_object_set_new(e, "code", json_string(err_name(err)));
	json_object_set_new(e, "message", lossy_text(err->msg));
	json_object_set_new(out, "error", e);
}

void print_report_json(const struct job_report *r)
{
	json_auto_t *out = json_object();

	put_outcome(out, r);
	put_streams(out, r);
	put_times(out, r);
	if (r->has_stats)
		put_counters(out, &r->stats);
	json_object_set_new(out, "sandbox", r->id[0] ? json_string(r->id) : json_null());
	json_object_set_new(out, "template", r->digest[0] ? json_string(r->digest) : json_null());
	if (r->err.code)
		put_error(out, &r->err);
	json_dumpf(out, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
	putchar('\n');
	fflush(stdout);
}
