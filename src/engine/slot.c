/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot: leases on id ranges, and what is dear enough to be used again.
 *
 * Slot N is byte N of /run/cuvette/slots under an open-file-description lock, so
 * a lease ends with its holder however that ends; and it is the cgroup
 * cuvette.N, which outlives a killed holder.  A cgroup whose byte is free is
 * therefore a leftover, and whoever takes the byte may reap it.
 */
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>
#include "base/str.h"
#include "engine/userns.h"

#define NAME_PREFIX "cuvette."

enum { KILL_TIMEOUT_MS = 5000 };

static bool lock_slot(struct engine *e, unsigned n, bool lock)
{
	struct flock l = { .l_type = lock ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET, .l_start = n, .l_len = 1 };

	return fcntl(e->slots_fd, F_OFD_SETLK, &l) == 0;
}

static void slot_name(unsigned n, char ret[CGROUP_NAME_MAX])
{
	snprintf(ret, CGROUP_NAME_MAX, NAME_PREFIX "%u", n);
}

static bool leased_by_us(const struct engine *e, unsigned n)
{
	return e->leased[n / 8] & (1u << (n % 8));
}

static void note_lease(struct engine *e, unsigned n, bool leased)
{
	if (leased)
		e->leased[n / 8] |= (uint8_t) (1u << (n % 8));
	else
		e->leased[n / 8] &= (uint8_t) ~(1u << (n % 8));
}

/* Open-file-description locks do not exclude their own holder, hence the bitmap. */
static bool lease(struct engine *e, unsigned n)
{
	if (leased_by_us(e, n) || !lock_slot(e, n, true))
		return false;
	note_lease(e, n, true);
	return true;
}

static void give_back(struct engine *e, unsigned n)
{
	note_lease(e, n, false);
	lock_slot(e, n, false);
}

static int reap_slot(struct engine *e, unsigned n, bool *ret_found, struct err *err)
{
	char name[CGROUP_NAME_MAX];
	struct cgroup *cg;

	*ret_found = false;
	slot_name(n, name);
	/* Between the look at the directory and the lease on the slot, its holder may have removed it. */
	if (cgroup_open(e->cgroups, name, &cg, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	*ret_found = true;
	if (cgroup_kill_all(cg, KILL_TIMEOUT_MS, err) < 0) {
		cgroup_forget(cg);
		return err_wrap(err, "reap %s", name);
	}
	cgroup_destroy(cg);
	if (cgroup_open(e->cgroups, name, &cg, NULL) < 0)
		return 0;
	cgroup_forget(cg);
	return err_sys(err, EEXIST, "cgroup %s could not be removed", name);
}

struct leftovers {
	struct engine *engine;
	unsigned reaped;
	int failed;
	struct err err;
};

static void consider(void *ctx, const char *name)
{
	struct leftovers *l = ctx;
	bool found;
	uint64_t n;

	if (parse_u64(name + strlen(NAME_PREFIX), 0, ENGINE_SLOTS - 1, &n, NULL) < 0 || !lease(l->engine, (unsigned) n))
		return;
	if (reap_slot(l->engine, (unsigned) n, &found, &l->err) < 0) {
		/* Stays leased while we run: nothing waits for it again. */
		l->failed = -1;
		return;
	}
	if (found)
		l->reaped++;
	give_back(l->engine, (unsigned) n);
}

int engine_reap_leftovers(struct engine *e, unsigned *ret_reaped, struct err *err)
{
	struct leftovers l = { .engine = e };

	if (cgroup_tree_list(e->cgroups, NAME_PREFIX, consider, &l, err) < 0)
		return err_wrap(err, "look for leftovers");
	*ret_reaped = l.reaped;
	if (l.failed < 0 && err)
		*err = l.err;
	return l.failed;
}

static int make_cgroup(struct engine *e, struct slot *s, struct err *err)
{
	char name[CGROUP_NAME_MAX];
	bool found;

	slot_name(s->number, name);
	if (cgroup_create(e->cgroups, name, s->uid_base, &s->cgroup, err) == 0)
		return 0;
	if (err->sys != EEXIST)
		return -1;
	/* A spawner was killed since we last looked. */
	if (reap_slot(e, s->number, &found, err) < 0)
		return -1;
	return cgroup_create(e->cgroups, name, s->uid_base, &s->cgroup, err);
}

/* The dearest part, so it is made beside all the others. */
static int begin_netns(struct engine *e, struct netns_maker **ret, struct err *err)
{
	static struct netns_maker maker;        /* single-threaded; too large to clear each time */

	if (e->first_netns_started) {
		e->first_netns_started = false;
		*ret = &e->first_netns;
		return 0;
	}
	if (netns_start(&maker, e->proc_fd, err) < 0)
		return -1;
	*ret = &maker;
	return 0;
}

static int take_number(struct engine *e, unsigned *ret, struct err *err)
{
	for (unsigned i = 0; i < ENGINE_SLOTS; i++) {
		unsigned n = (e->next_slot + i) % ENGINE_SLOTS;

		if (!lease(e, n))
			continue;
		e->next_slot = n + 1;
		*ret = n;
		return 0;
	}
	return err_set(err, ERR_EXHAUSTED, "all %d slots of this machine are in use", ENGINE_SLOTS);
}

/*
 * A number and its cgroups.  A number whose leftover resists (a process that hangs in the kernel)
 * stays leased, so that nobody asks for it again, and the next one serves.
 */
static int take_place(struct engine *e, struct slot *s, struct err *err)
{
	for (int tries = 0; tries < 64; tries++) {
		if (take_number(e, &s->number, err) < 0)
			return -1;
		s->uid_base = ENGINE_UID_BASE + s->number * USERNS_RANGE;
		s->leased = true;
		if (make_cgroup(e, s, err) == 0)
			return 0;
		if (err->sys != EEXIST && err->code != ERR_DEADLINE)
			return -1;
		s->leased = false;
	}
	return -1;
}

int slot_create(struct engine *e, struct slot **ret, struct err *err)
{
	int tasks[CGROUP_TASKS_MAX];
	struct netns_maker *netns = NULL;
	struct userns_spec userns;
	struct slot *s;

	s = xcalloc(1, sizeof *s);
	s->userns_fd = s->cgroupns_fd = s->netns_fd = -1;
	if (begin_netns(e, &netns, err) < 0 || take_place(e, s, err) < 0)
		goto fail;
	userns = (struct userns_spec) {
		.proc_fd = e->proc_fd, .uid_base = s->uid_base, .cgroup_fd = cgroup_box_fd(s->cgroup),
		.tasks_fds = tasks, .ntasks = cgroup_tasks_fds(s->cgroup, tasks),
	};
	if (userns_create(&userns, &s->userns_fd, &s->cgroupns_fd, err) < 0 ||
	    netns_finish(netns, &s->netns_fd, err) < 0)
		goto fail;
	*ret = s;
	return 0;
fail:
	if (netns)
		netns_cancel(netns);
	slot_destroy(e, s);
	return err_wrap(err, "make a slot");
}

void slot_rest(struct slot *s)
{
	s->userns_fd = close_fd(s->userns_fd);
	s->cgroupns_fd = close_fd(s->cgroupns_fd);
	s->netns_fd = close_fd(s->netns_fd);
	cgroup_rest(s->cgroup);
}

bool slot_wake(struct engine *e, struct slot *s, pid_t pid)
{
	const struct { const char *name; int *fd; } namespaces[] = {
		{ "user", &s->userns_fd }, { "cgroup", &s->cgroupns_fd }, { "net", &s->netns_fd },
	};
	char path[32];

	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
		if (*namespaces[i].fd >= 0)
			continue;
		snprintf(path, sizeof path, "%d/ns/%s", pid, namespaces[i].name);
		*namespaces[i].fd = openat(e->proc_fd, path, O_RDONLY | O_CLOEXEC);
		if (*namespaces[i].fd < 0)
			return false;
	}
	return true;
}

bool slot_recycle(struct engine *e, struct slot *s)
{
	struct err err;

	if (s->userns_fd < 0 || s->cgroupns_fd < 0 || s->netns_fd < 0)
		return false;
	if (cgroup_kill_all(s->cgroup, KILL_TIMEOUT_MS, &err) < 0 || cgroup_recycle(s->cgroup, &err) < 0)
		return false;
	/* Its counters have just been read; nothing runs in it until its next box. */
	s->used = false;
	return netns_is_clean(s->netns_fd, e->own_netns_fd, e->proc_fd);
}

void slot_destroy(struct engine *e, struct slot *s)
{
	if (!s)
		return;
	cgroup_destroy(s->cgroup);
	close_fd(s->userns_fd);
	close_fd(s->cgroupns_fd);
	close_fd(s->netns_fd);
	if (s->leased)
		give_back(e, s->number);
	free(s);
}
