/* SPDX-License-Identifier: Apache-2.0 */
#include "spawner/registry.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include "base/clock.h"
#include "base/log.h"

enum { REFILL_RETRY_MS = 1000 };

/* ---- ids ---- */

static void draw_id(char ret[SPAWN_ID_SIZE])
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	uint8_t bytes[64];
	int n = 0;

	while (n < SPAWN_ID_SIZE - 1) {
		if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
			continue;
		/* 252 is the largest multiple of 36 in a byte: above it some characters would be likelier. */
		for (size_t i = 0; i < sizeof bytes && n < SPAWN_ID_SIZE - 1; i++)
			if (bytes[i] < 252)
				ret[n++] = alphabet[bytes[i] % 36];
	}
	ret[n] = '\0';
}

static struct sandbox_list *bucket(struct registry *r, const char *id)
{
	uint32_t hash = 2166136261u;

	for (; *id; id++)
		hash = (hash ^ (uint8_t) *id) * 16777619u;
	return &r->buckets[hash % REGISTRY_BUCKETS];
}

static struct sandbox *find(struct registry *r, const char *id)
{
	struct sandbox *sb;

	LIST_FOREACH(sb, bucket(r, id), link)
		if (!strcmp(sb->id, id))
			return sb;
	return NULL;
}

int registry_get(struct registry *r, const char *id, struct sandbox **ret, struct err *err)
{
	*ret = find(r, id);
	return *ret ? 0 : err_set(err, ERR_NOT_FOUND, "no sandbox %s", id);
}

/* ---- templates ---- */

static int get_template(struct registry *r, const char *digest, int *ret, struct err *err)
{
	for (unsigned i = 0; i < r->ntemplates; i++) {
		if (!strcmp(r->templates[i].digest, digest)) {
			*ret = r->templates[i].fd;
			return 0;
		}
	}
	if (!digest[0])
		return err_set(err, ERR_INVALID, "digest: a template is needed");
	if (r->ntemplates == TEMPLATES_MAX)
		return err_set(err, ERR_EXHAUSTED, "more than %d templates in use", TEMPLATES_MAX);
	if (engine_open_template(&r->engine, digest, ret, &r->templates[r->ntemplates].lock_fd, err) < 0)
		return -1;
	snprintf(r->templates[r->ntemplates].digest, SPAWN_DIGEST_SIZE, "%s", digest);
	r->templates[r->ntemplates++].fd = *ret;
	return 0;
}

/* ---- slots ---- */

static int take_slot(struct registry *r, struct slot **ret, struct err *err)
{
	if (r->nfree) {
		*ret = r->free_slots[--r->nfree];
		return 0;
	}
	return slot_create(&r->engine, ret, err);
}

static void return_slot(struct registry *r, struct slot *slot)
{
	if (r->recycle && r->nfree < FREE_SLOTS_MAX && slot_recycle(&r->engine, slot))
		r->free_slots[r->nfree++] = slot;
	else
		slot_destroy(&r->engine, slot);
}

/* ---- making one ---- */

static void free_sandbox(struct registry *r, struct sandbox *sb)
{
	close_fd(sb->conn);
	if (r->recycle && sb->box)
		(void) !slot_wake(&r->engine, sb->slot, sb->box->pid);
	box_destroy(sb->box, NULL);
	if (sb->slot)
		return_slot(r, sb->slot);
	free(sb);
}

static struct cgroup_limits cgroup_limits_of(const struct spawn_limits *l)
{
	return (struct cgroup_limits) {
		.memory_bytes = l->memory_bytes, .pids = l->pids, .cpu_milli = l->cpu_milli,
	};
}

/* Never silently weaker than asked. */
static int check_controllers(struct registry *r, uint32_t options, struct err *err)
{
	const char *missing = cgroup_tree_missing(r->engine.cgroups);

	if (!*missing || options & SPAWN_ALLOW_UNLIMITED)
		return 0;
	return err_set(err, ERR_UNIMPLEMENTED, "this host has no cgroup controller for: %s; limits could not be enforced "
	               "(see 'cuvette doctor', or pass --allow-unlimited)", missing);
}

/* A blank sandbox with an identity of its own, linked nowhere yet. */
static int make(struct registry *r, const struct kind *kind, const struct spawn_limits *limits, struct sandbox **ret,
                struct err *err)
{
	static char *const environment[] = { NULL };
	int tasks[CGROUP_TASKS_MAX];
	char hostname[16], groups[4], nofile[16];
	char *argv[] = { "cuvette-init", groups, nofile, NULL };
	struct box_spec spec;
	struct sandbox *sb;
	int template_fd;

	if (check_controllers(r, kind->options, err) < 0 || get_template(r, kind->digest, &template_fd, err) < 0)
		return -1;
	sb = xcalloc(1, sizeof *sb);
	sb->conn = -1;
	sb->limits = *limits;
	draw_id(sb->id);
	snprintf(hostname, sizeof hostname, "%.12s", sb->id);
	if (take_slot(r, &sb->slot, err) < 0)
		goto fail;
	snprintf(groups, sizeof groups, "%c%zu", cgroup_tree_mode(r->engine.cgroups) == CGROUP_V1 ? '2' : '1',
	         cgroup_tasks_fds(sb->slot->cgroup, tasks));
	snprintf(nofile, sizeof nofile, "%u", kind->nofile);
	spec = (struct box_spec) {
		.template_fd = template_fd, .hostname = hostname, .limits = cgroup_limits_of(limits),
		.disk = kind->disk == SPAWN_DISK_IMAGE ? BOX_DISK_IMAGE : BOX_DISK_MEMORY,
		.disk_bytes = kind->disk_bytes, .disk_inodes = kind->disk_inodes,
		.terminals = kind->options & SPAWN_TERMINALS, .no_filter = kind->options & SPAWN_NO_FILTER,
		.program_fd = r->init_fd, .argv = argv, .envp = environment,
	};
	if (box_create(&r->engine, sb->slot, &spec, &sb->box, &sb->conn, err) < 0)
		goto fail;
	slot_rest(sb->slot);
	*ret = sb;
	return 0;
fail:
	free_sandbox(r, sb);
	return -1;
}

static struct kind kind_of(const struct spawn_request *req, const struct spawn_limits *limits)
{
	struct kind k;

	memset(&k, 0, sizeof k);        /* compared by bytes */
	snprintf(k.digest, sizeof k.digest, "%s", req->digest);
	k.options = req->options;
	k.disk = req->disk;
	k.disk_bytes = limits->disk_bytes;
	k.disk_inodes = limits->disk_inodes;
	k.nofile = limits->nofile;
	return k;
}

static struct pool *find_pool(struct registry *r, const struct kind *kind)
{
	struct pool *p;

	SLIST_FOREACH(p, &r->pools, link)
		if (!memcmp(&p->kind, kind, sizeof *kind))
			return p;
	return NULL;
}

/* Somebody may have killed its init while it waited: the kernel, or a person. */
static bool has_ended(const struct sandbox *sb)
{
	struct pollfd end = { .fd = sb->box->pidfd, .events = POLLIN };

	return poll(&end, 1, 0) != 0;
}

/* A blank one from the pool with the wanted limits; NULL when there is none that works. */
static struct sandbox *claim(struct registry *r, struct pool *p, const struct spawn_limits *limits)
{
	struct cgroup_limits cl = cgroup_limits_of(limits);
	struct sandbox *sb;

	while ((sb = LIST_FIRST(&p->blank))) {
		struct err err;

		LIST_REMOVE(sb, link);
		p->ready--;
		if (has_ended(sb)) {
			err_set(&err, ERR_UNAVAILABLE, "its init was killed");
		} else if (cgroup_set_limits(sb->slot->cgroup, &cl, &err) == 0) {
			sb->limits = *limits;
			return sb;
		}
		log_warn("a pooled sandbox was dropped", "id", sb->id, "why", err.msg);
		free_sandbox(r, sb);
	}
	return NULL;
}

int registry_create(struct registry *r, const struct spawn_request *req, struct sandbox **ret, int *ret_conn,
                    bool *ret_pooled, struct err *err)
{
	struct spawn_limits limits = req->limits;
	struct sandbox *sb = NULL;
	struct pool *pool;
	struct kind kind;

	spawn_default_limits(&limits);
	kind = kind_of(req, &limits);
	pool = find_pool(r, &kind);
	if (pool)
		sb = claim(r, pool, &limits);
	*ret_pooled = sb != NULL;
	if (!sb && make(r, &kind, &limits, &sb, err) < 0)
		return -1;
	LIST_INSERT_HEAD(bucket(r, sb->id), sb, link);
	*ret_conn = TAKE_FD(sb->conn);
	*ret = sb;
	return 0;
}

/* ---- counters and the end ---- */

int registry_stats(const struct sandbox *sb, struct spawn_stats *ret, struct err *err)
{
	struct cgroup_stats cg;
	struct box_usage usage;

	if (cgroup_stats(sb->slot->cgroup, &cg, err) < 0 || box_usage(sb->box, &usage, err) < 0)
		return err_wrap(err, "counters of sandbox %s", sb->id);
	*ret = (struct spawn_stats) {
		.memory_bytes = cg.memory_bytes, .memory_peak_bytes = cg.memory_peak_bytes,
		.memory_limit_bytes = sb->limits.memory_bytes, .oom_kills = cg.oom_kills,
		.pids = cg.pids, .pids_limit = sb->limits.pids, .pids_refused = cg.pids_refused,
		.cpu_us = cg.cpu_us, .cpu_user_us = cg.cpu_user_us, .cpu_system_us = cg.cpu_system_us,
		.cpu_throttled_us = cg.cpu_throttled_us, .cpu_milli_limit = sb->limits.cpu_milli,
		.io_read_bytes = cg.io_read_bytes, .io_write_bytes = cg.io_write_bytes,
		.disk_used_bytes = usage.disk_bytes, .disk_limit_bytes = sb->box->disk_bytes,
		.inodes_used = usage.disk_inodes, .inodes_limit = sb->box->disk_inodes,
		.create_us = sb->box->create_us,
	};
	return 0;
}

void registry_destroy(struct registry *r, struct sandbox *sb, struct spawn_stats *ret)
{
	struct err err;

	LIST_REMOVE(sb, link);
	if (r->recycle)
		(void) !slot_wake(&r->engine, sb->slot, sb->box->pid);
	if (!box_kill(sb->box))
		log_warn("a sandbox does not end", "id", sb->id);
	if (ret && registry_stats(sb, ret, &err) < 0)
		log_warn("the last counters are lost", "id", sb->id, "why", err.msg);
	free_sandbox(r, sb);
}

/* ---- pools ---- */

static void shrink(struct registry *r, struct pool *p)
{
	while (p->ready > p->target) {
		struct sandbox *sb = LIST_FIRST(&p->blank);

		LIST_REMOVE(sb, link);
		p->ready--;
		free_sandbox(r, sb);
	}
}

int registry_set_pool(struct registry *r, const struct spawn_request *req, struct err *err)
{
	struct spawn_limits limits = req->limits;
	struct kind kind;
	struct pool *p;
	int fd;

	spawn_default_limits(&limits);
	kind = kind_of(req, &limits);
	p = find_pool(r, &kind);
	if (!p) {
		if (get_template(r, kind.digest, &fd, err) < 0)
			return -1;
		p = xcalloc(1, sizeof *p);
		p->kind = kind;
		LIST_INIT(&p->blank);
		SLIST_INSERT_HEAD(&r->pools, p, link);
	}
	p->limits = limits;
	p->target = req->count;
	p->retry_ns = 0;
	r->recycle = true;
	shrink(r, p);
	return 0;
}

bool registry_refill(struct registry *r, int *ret_wait_ms)
{
	struct pool *p;

	*ret_wait_ms = -1;
	SLIST_FOREACH(p, &r->pools, link) {
		struct sandbox *sb;
		struct err err;
		int wait;

		if (p->ready >= p->target)
			continue;
		wait = ms_until(p->retry_ns);
		if (wait) {
			*ret_wait_ms = *ret_wait_ms < 0 ? wait : MIN(*ret_wait_ms, wait);
			continue;
		}
		if (make(r, &p->kind, &p->limits, &sb, &err) < 0) {
			log_warn("the pool can't be refilled", "template", p->kind.digest, "why", err.msg);
			p->retry_ns = now_ns() + REFILL_RETRY_MS * 1000000ull;
			*ret_wait_ms = 0;
			return false;
		}
		LIST_INSERT_HEAD(&p->blank, sb, link);
		p->ready++;
		*ret_wait_ms = 0;
		return true;
	}
	return false;
}

void registry_done(struct registry *r)
{
	struct pool *p;

	r->recycle = false;
	for (size_t i = 0; i < REGISTRY_BUCKETS; i++)
		while (!LIST_EMPTY(&r->buckets[i]))
			registry_destroy(r, LIST_FIRST(&r->buckets[i]), NULL);
	while ((p = SLIST_FIRST(&r->pools))) {
		p->target = 0;
		shrink(r, p);
		SLIST_REMOVE_HEAD(&r->pools, link);
		free(p);
	}
	while (r->nfree)
		slot_destroy(&r->engine, r->free_slots[--r->nfree]);
	for (unsigned i = 0; i < r->ntemplates; i++) {
		close_fd(r->templates[i].fd);
		close_fd(r->templates[i].lock_fd);
	}
	close_fd(r->init_fd);
	engine_close(&r->engine);
}
