/* SPDX-License-Identifier: Apache-2.0 */
#include "init/loop.h"

static int epoll_fd = -1;
static bool descriptors_shared;

/* Events that epoll has handed out and that are not served yet.  A source that is dropped
 * meanwhile is struck out, because its memory may be gone. */
static struct epoll_event batch[8];
static int batch_next, batch_len;

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
	if (src->events && descriptors_shared)
		epoll_ctl(epoll_fd, EPOLL_CTL_DEL, src->fd, NULL);
	strike_out(src);
	src->events = 0;
	src->fd = close_fd(src->fd);
}

void loop_set_shared(bool shared)
{
	descriptors_shared = shared;
}

void loop_run(int idle_ms, void (*idle)(void))
{
	int timeout = idle_ms;

	for (;;) {
		batch_next = 0;
		batch_len = epoll_wait(epoll_fd, batch, ARRAY_SIZE(batch), timeout);
		if (batch_len < 0) {
			if (errno == EINTR)
				continue;
			return;
		}
		if (batch_len == 0)
			idle();
		timeout = batch_len ? idle_ms : -1;
		while (batch_next < batch_len) {
			struct epoll_event *event = &batch[batch_next++];
			struct source *src = event->data.ptr;

			if (src && src->events)
				src->ready(src, event->events);
		}
	}
}
