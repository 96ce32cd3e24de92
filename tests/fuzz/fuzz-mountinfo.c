/* SPDX-License-Identifier: Apache-2.0 */
/* Where the hierarchies are, from mountinfo and /proc/self/cgroup: mount points come from whoever mounts. */
#include <stdlib.h>
#include <string.h>

#include "engine/cgroup-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_place(const struct cgroup_place *place)
{
	must(strnlen(place->path, sizeof place->path) < sizeof place->path);
	must(!(place->controllers & ~(unsigned) CG_ALL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xcalloc(1, size + 1), own[64];
	struct cgroup_places places;
	unsigned seen = 0;

	memcpy(text, data, size);
	cgroup_find_mounts((const char *) data, size, &places);
	must(places.v1_count <= CGROUP_TASKS_MAX);
	check_place(&places.v2);
	for (size_t i = 0; i < places.v1_count; i++) {
		check_place(&places.v1[i]);
		must(places.v1[i].path[0] && places.v1[i].controllers);
		must(!(seen & places.v1[i].controllers));
		seen |= places.v1[i].controllers;
	}
	if (cgroup_find_own((const char *) data, size, own, sizeof own, NULL) == 0)
		must(strlen(own) < sizeof own);
	cgroup_controllers_of(text);
	knob_key(text, "oom_kill");
	knob_io_v1(text, &(uint64_t) { 0 }, &(uint64_t) { 0 });
	knob_io_v2(text, &(uint64_t) { 0 }, &(uint64_t) { 0 });
	free(text);
	return 0;
}
