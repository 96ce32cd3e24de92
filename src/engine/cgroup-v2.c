/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits and counters where controllers are in the v2 tree.
 *
 * NAME has the controllers switched on for its children, so it holds no process:
 * init is in NAME/init without a limit of its own, and every command in NAME/box.
 * (Kernel documentation: admin-guide/cgroup-v2.)
 */
#include "engine/cgroup-internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool has(const struct cgroup *cg, unsigned controller)
{
	return cg->tree->controllers & controller;
}

/* A knob of NAME/box. */
static int box_write(struct cgroup *cg, const char *file, const char *value, struct err *err)
{
	return knob_write(cg->tree->v2_fd, cg->name, "box", file, value, err);
}

static int box_read(const struct cgroup *cg, const char *file, char *ret, size_t size, struct err *err)
{
	return knob_read(cg->tree->v2_fd, cg->name, "box", file, ret, size, err);
}

static int v2_make(struct cgroup *cg, struct err *err)
{
	struct err e;
	char on[64];

	/* Tree and slot have the same controllers; io is optional, but was found to work. */
	snprintf(on, sizeof on, "%s%s%s%s", has(cg, CG_MEMORY) ? "+memory " : "", has(cg, CG_PIDS) ? "+pids " : "",
	         has(cg, CG_CPU) ? "+cpu " : "", has(cg, CG_IO) ? "+io " : "");
	if (on[0] && knob_write(cg->tree->v2_fd, cg->name, "", "cgroup.subtree_control", on, err) < 0)
		return -1;
	if (!has(cg, CG_MEMORY))
		return 0;
	/* A killed process takes the whole command tree with it: a pipeline of which one part is
	 * gone would hang on a pipe that never closes. */
	if (box_write(cg, "memory.oom.group", "1", err) < 0)
		return -1;
	/* Absent in kernels without swap. */
	if (box_write(cg, "memory.swap.max", "0", &e) < 0 && e.sys != ENOENT)
		return err_sys(err, e.sys, "memory.swap.max");
	return 0;
}

static int set_or_max(struct cgroup *cg, const char *file, uint64_t value, struct err *err)
{
	if (!value)
		return box_write(cg, file, "max", err);
	return knob_write_u64(cg->tree->v2_fd, cg->name, "box", file, value, err);
}

static int v2_set_memory(struct cgroup *cg, uint64_t bytes, struct err *err)
{
	return has(cg, CG_MEMORY) ? set_or_max(cg, "memory.max", bytes, err) : 0;
}

static int v2_set_pids(struct cgroup *cg, uint64_t count, struct err *err)
{
	return has(cg, CG_PIDS) ? set_or_max(cg, "pids.max", count, err) : 0;
}

static int v2_set_cpu(struct cgroup *cg, uint64_t milli, struct err *err)
{
	char text[48];

	if (!has(cg, CG_CPU))
		return 0;
	if (milli)
		snprintf(text, sizeof text, "%llu %d", (unsigned long long) milli * (CG_CPU_PERIOD_US / 1000),
		         CG_CPU_PERIOD_US);
	else
		snprintf(text, sizeof text, "max %d", CG_CPU_PERIOD_US);
	return box_write(cg, "cpu.max", text, err);
}

/* The box competes inside its slot, and the slot with the rest of the host. */
static void v2_set_hurry(struct cgroup *cg, bool on)
{
	if (has(cg, CG_CPU))
		(void) !knob_write(cg->tree->v2_fd, cg->name, "", "cpu.weight", on ? "10000" : "100", NULL);
}

/* memory.peak is new in 5.19; a descriptor that has reset it (6.12) reads its own peak. */
static uint64_t read_peak(const struct cgroup *cg)
{
	char text[32];
	ssize_t n;
	uint64_t peak;

	if (cg->peak_fd < 0)
		return knob_read_u64(cg->tree->v2_fd, cg->name, "box", "memory.peak", &peak, NULL) < 0 ? 0 : peak;
	n = pread(cg->peak_fd, text, sizeof text - 1, 0);
	text[n < 0 ? 0 : n] = '\0';
	return strtoull(text, NULL, 10);
}

/* Where the peak could not be reset, an old one says nothing about the time since the baseline; it
 * was then the limit if something was killed for it, and what is in use now at least. */
static uint64_t peak_since_baseline(const struct cgroup *cg, const struct cgroup_stats *now)
{
	uint64_t peak = read_peak(cg);

	if (peak <= cg->peak_before)
		peak = now->oom_kills > cg->base.oom_kills ? cg->limits.memory_bytes : 0;
	return MAX(peak, now->memory_bytes);
}

static int v2_stats(const struct cgroup *cg, struct cgroup_stats *ret, struct err *err)
{
	int fd = cg->tree->v2_fd;
	char text[4096];

	if (has(cg, CG_MEMORY)) {
		if (knob_read_u64(fd, cg->name, "box", "memory.current", &ret->memory_bytes, err) < 0 ||
		    box_read(cg, "memory.events", text, sizeof text, err) < 0)
			return -1;
		ret->oom_kills = knob_key(text, "oom_kill");
		ret->memory_peak_bytes = peak_since_baseline(cg, ret);
	}
	if (has(cg, CG_PIDS)) {
		if (knob_read_u64(fd, cg->name, "box", "pids.current", &ret->pids, err) < 0 ||
		    box_read(cg, "pids.events", text, sizeof text, err) < 0)
			return -1;
		ret->pids_refused = knob_key(text, "max");
	}
	if (has(cg, CG_CPU)) {
		if (box_read(cg, "cpu.stat", text, sizeof text, err) < 0)
			return -1;
		ret->cpu_throttled_us = knob_key(text, "throttled_usec");
	}
	/* Read for the slot, box and init together, as the CPU time is. */
	if (has(cg, CG_IO) && knob_read(fd, cg->name, "", "io.stat", text, sizeof text, NULL) == 0)
		knob_io_v2(text, &ret->io_read_bytes, &ret->io_write_bytes);
	return 0;
}

static void v2_reset_peak(struct cgroup *cg)
{
	if (!has(cg, CG_MEMORY))
		return;
	if (cg->peak_fd < 0)
		cg->peak_fd = knob_open(cg->tree->v2_fd, cg->name, "box", "memory.peak", O_RDWR);
	cg->peak_before = 0;
	if (cg->peak_fd >= 0 && pwrite(cg->peak_fd, "reset", 5, 0) == 5)
		return;
	/* Refused before 6.12. */
	cg->peak_fd = close_fd(cg->peak_fd);
	cg->peak_before = read_peak(cg);
}

static void v2_drop_cache(struct cgroup *cg)
{
	uint64_t bytes;

	/* EAGAIN says that less than that could be reclaimed, which is as good. */
	if (has(cg, CG_MEMORY) &&
	    knob_read_u64(cg->tree->v2_fd, cg->name, "box", "memory.current", &bytes, NULL) == 0 && bytes)
		(void) !knob_write_u64(cg->tree->v2_fd, cg->name, "box", "memory.reclaim", bytes, NULL);
}

const struct cgroup_ops cgroup_v2_ops = {
	.name = "v2",
	.make = v2_make,
	.set_memory = v2_set_memory,
	.set_pids = v2_set_pids,
	.set_cpu = v2_set_cpu,
	.set_hurry = v2_set_hurry,
	.stats = v2_stats,
	.reset_peak = v2_reset_peak,
	.drop_cache = v2_drop_cache,
};
