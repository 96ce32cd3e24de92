/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * loop: the one epoll loop of init.
 *
 * A source is a descriptor and what to do when it is ready.  It is embedded in
 * whatever owns the descriptor, so registering allocates nothing.  Single
 * thread: a callback runs to its end before the next one starts, and may drop
 * any source, its own included.
 */
#include "base/base.h"

#include <sys/epoll.h>

struct source {
	int fd;
	uint32_t events;        /* what epoll watches; 0: not registered */
	void (*ready)(struct source *src, uint32_t events);
};

#define CONTAINER_OF(p, type, member) ((type *) (void *) ((char *) (p) - offsetof(type, member)))

int loop_init(void) _must_check_;

/*
 * Watches for `events` from now on; 0 stops watching (a descriptor that is
 * merely not watched for anything would still report hang-ups, for ever).
 * Fails only when the kernel has no room for another watch.
 */
int loop_watch(struct source *src, uint32_t events) _must_check_;

/* Stops watching and closes the descriptor.  Fine when there is none. */
void loop_drop(struct source *src);

/* Calls fn() once, in that many milliseconds.  There is one such call at a time: a second
 * one before it happens changes nothing. */
void loop_call_after(unsigned ms, void (*fn)(void));

/* Serves for ever; returns only when epoll itself fails.  After `idle_ms` without an event
 * idle() is called once, until there is an event again. */
void loop_run(int idle_ms, void (*idle)(void));
