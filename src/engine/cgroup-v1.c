/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and counters where controllers are v1 hierarchies; also the host without any controller. */
#include "engine/cgroup-internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* The hierarchy of a controller, or -1. */
static int fd_of(const struct cgroup *cg, unsigned controller)
{
	for (size_t i = 0; i < cg->tree->v1_count; i++)
		if (cg->tree->v1[i].controllers & controller)
			return cg->tree->v1[i].fd;
	return -1;
}

static int v1_make(struct cgroup *cg, struct err *err)
{
	for (size_t i = 0; i < cg->tree->v1_count; i++) {
		if (mkdirat(cg->tree->v1[i].fd, cg->name, 0755) < 0)
			return err_sys(err, errno, "create v1 cgroup %s", cg->name);
		cg->made_v1 |= 1u << i;
	}
	return 0;
}

static int v1_set_memory(struct cgroup *cg, uint64_t bytes, struct err *err)
{
	int fd = fd_of(cg, CG_MEMORY);
	char text[24] = "-1";
	struct err e = { 0 };
	bool swap;

	if (fd < 0)
		return 0;
	if (bytes)
		snprintf(text, sizeof text, "%llu", (unsigned long long) bytes);
	/* memsw counts memory and swap together: at the same value nothing is ever swapped out.
	 * It may never be below the limit, so the order depends on the direction. */
	if (knob_write(fd, cg->name, "", "memory.limit_in_bytes", text, &e) == 0) {
		if (knob_write(fd, cg->name, "", "memory.memsw.limit_in_bytes", text, &e) < 0 && e.sys != ENOENT)
			goto failed;
		return 0;
	}
	swap = e.sys == EINVAL && knob_write(fd, cg->name, "", "memory.memsw.limit_in_bytes", text, &e) == 0;
	if (swap && knob_write(fd, cg->name, "", "memory.limit_in_bytes", text, &e) == 0)
		return 0;
failed:
	if (e.sys == EBUSY)
		return err_set(err, ERR_PRECONDITION, "memory limit of %s bytes is below what is in use", text);
	return err_sys(err, e.sys, "memory limit %s", text);
}

static int v1_set_pids(struct cgroup *cg, uint64_t count, struct err *err)
{
	int fd = fd_of(cg, CG_PIDS);

	if (fd < 0)
		return 0;
	if (!count)
		return knob_write(fd, cg->name, "", "pids.max", "max", err);
	return knob_write_u64(fd, cg->name, "", "pids.max", count, err);
}

/* The period is the kernel's default of 100 ms. */
static int v1_set_cpu(struct cgroup *cg, uint64_t milli, struct err *err)
{
	int fd = fd_of(cg, CG_CPU);

	if (fd < 0)
		return 0;
	if (!milli)
		return knob_write(fd, cg->name, "", "cpu.cfs_quota_us", "-1", err);
	return knob_write_u64(fd, cg->name, "", "cpu.cfs_quota_us", milli * (CG_CPU_PERIOD_US / 1000), err);
}

static void v1_set_hurry(struct cgroup *cg, bool on)
{
	int fd = fd_of(cg, CG_CPU);

	if (fd >= 0)
		(void) !knob_write(fd, cg->name, "", "cpu.shares", on ? "262144" : "1024", NULL);
}

static int memory_stats(int fd, const struct cgroup *cg, struct cgroup_stats *ret, struct err *err)
{
	char text[256];

	if (knob_read_u64(fd, cg->name, "", "memory.usage_in_bytes", &ret->memory_bytes, err) < 0 ||
	    knob_read_u64(fd, cg->name, "", "memory.max_usage_in_bytes", &ret->memory_peak_bytes, err) < 0 ||
	    knob_read(fd, cg->name, "", "memory.oom_control", text, sizeof text, err) < 0)
		return -1;
	ret->oom_kills = knob_key(text, "oom_kill");
	return 0;
}

static int pids_stats(int fd, const struct cgroup *cg, struct cgroup_stats *ret, struct err *err)
{
	char text[128];

	if (knob_read_u64(fd, cg->name, "", "pids.current", &ret->pids, err) < 0 ||
	    knob_read(fd, cg->name, "", "pids.events", text, sizeof text, err) < 0)
		return -1;
	ret->pids_refused = knob_key(text, "max");
	return 0;
}

static int v1_stats(const struct cgroup *cg, struct cgroup_stats *ret, struct err *err)
{
	int memory = fd_of(cg, CG_MEMORY), pids = fd_of(cg, CG_PIDS);
	int cpu = fd_of(cg, CG_CPU), io = fd_of(cg, CG_IO);
	char text[4096];

	if (memory >= 0 && memory_stats(memory, cg, ret, err) < 0)
		return -1;
	if (pids >= 0 && pids_stats(pids, cg, ret, err) < 0)
		return -1;
	if (cpu >= 0) {
		if (knob_read(cpu, cg->name, "", "cpu.stat", text, sizeof text, err) < 0)
			return -1;
		ret->cpu_throttled_us = knob_key(text, "throttled_time") / 1000;
	}
	/* Absent where the block layer has no throttling: no numbers then. */
	if (io >= 0 && knob_read(io, cg->name, "", "blkio.throttle.io_service_bytes", text, sizeof text, NULL) == 0)
		knob_io_v1(text, &ret->io_read_bytes, &ret->io_write_bytes);
	return 0;
}

static void v1_reset_peak(struct cgroup *cg)
{
	int fd = fd_of(cg, CG_MEMORY);

	if (fd >= 0)
		(void) !knob_write(fd, cg->name, "", "memory.max_usage_in_bytes", "0", NULL);
}

static void v1_drop_cache(struct cgroup *cg)
{
	int fd = fd_of(cg, CG_MEMORY);

	if (fd >= 0)
		(void) !knob_write(fd, cg->name, "", "memory.force_empty", "0", NULL);
}

const struct cgroup_ops cgroup_v1_ops = {
	.name = "v1",
	.make = v1_make,
	.set_memory = v1_set_memory,
	.set_pids = v1_set_pids,
	.set_cpu = v1_set_cpu,
	.set_hurry = v1_set_hurry,
	.stats = v1_stats,
	.reset_peak = v1_reset_peak,
	.drop_cache = v1_drop_cache,
};
