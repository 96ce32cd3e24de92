/* SPDX-License-Identifier: Apache-2.0 */
#include "init/loop.h"

#include "base/clock.h"

static int epoll_fd = -1;

/* Events that epoll has handed out and that are not served yet.  A source that is dropped
 * meanwhile is struck out, because its memory may be gone. */
static struct epoll_event batch[8];
static int batch_next, batch_len;

static struct {
	void (*fn)(void);       /* NULL: none */
	uint64_t at_ns;
} later;

int loop_init(void)
{
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return epoll_fd < 0 ? -1 : 0;
}

int loop_watch(struct source *src, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = src };
	int op;

	if (events == src->events)
		return 0;
	op = !src->events ? EPOLL_CTL_ADD : events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;
	if (epoll_ctl(epoll_fd, op, src->fd, &event) < 0)
		return -1;
	src->events = events;
	return 0;
}

static void strike_out(const struct source *src)
{
	for (int i = batch_next; i < batch_len; i++)
		if (batch[i].data.ptr == src)
			batch[i].data.ptr = NULL;
}

void loop_drop(struct source *src)
{
	if (src->fd < 0)
		return;
	/* A helper, or a child between its birth and its exec, may hold a copy, and the epoll entry
	 * lives as long as that: closing alone would leave it pointing at memory that is freed. */
	if (src->events)
		epoll_ctl(epoll_fd, EPOLL_CTL_DEL, src->fd, NULL);
	strike_out(src);
	src->events = 0;
	src->fd = close_fd(src->fd);
}

void loop_call_after(unsigned ms, void (*fn)(void))
{
	if (later.fn)
		return;
	later.fn = fn;
	later.at_ns = now_ns() + (uint64_t) ms * 1000000;
}

static void call_if_due(void)
{
	void (*fn)(void) = later.fn;

	if (!fn || now_ns() < later.at_ns)
		return;
	later.fn = NULL;
	fn();
}

static void serve_batch(void)
{
	while (batch_next < batch_len) {
		struct epoll_event *event = &batch[batch_next++];
		struct source *src = event->data.ptr;

		if (src && src->events)
			src->ready(src, event->events);
	}
}

void loop_run(int idle_ms, void (*idle)(void))
{
	bool is_idle = false;

	for (;;) {
		int timeout = later.fn ? ms_until(later.at_ns) : is_idle ? -1 : idle_ms;

		batch_next = 0;
		batch_len = epoll_wait(epoll_fd, batch, ARRAY_SIZE(batch), timeout);
		if (batch_len < 0 && errno != EINTR)
			return;
		if (batch_len == 0 && !later.fn)
			idle();
		is_idle = batch_len == 0 && !later.fn;
		serve_batch();
		call_if_due();
	}
}
