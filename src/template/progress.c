/* SPDX-License-Identifier: Apache-2.0 */
#include "template/progress.h"

#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"

#define REDRAW_NS 100000000u

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	(void) sig;
	interrupted = 1;
}

void progress_catch_signals(void)
{
	/* No SA_RESTART: a read that waits for a child must come back. */
	struct sigaction act = { .sa_handler = on_signal };

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
}

bool progress_interrupted(void)
{
	return interrupted;
}

void progress_init(struct progress *p)
{
	*p = (struct progress) { .on = isatty(STDERR_FILENO), .started_ns = now_ns() };
}

static void draw(struct progress *p)
{
	char size[16];

	p->drawn_ns = now_ns();
	p->shown = true;
	if (p->files || p->bytes)
		fprintf(stderr, "\r\033[K%s: %llu files, %s (%.0f s)", p->phase, (unsigned long long) p->files,
		        size_text(p->bytes, size), progress_seconds(p));
	else
		fprintf(stderr, "\r\033[K%s (%.0f s)", p->phase, progress_seconds(p));
	fflush(stderr);
}

void progress_phase(struct progress *p, const char *phase)
{
	if (!p)
		return;
	snprintf(p->phase, sizeof p->phase, "%s", phase);
	p->bytes = p->files = 0;
	if (p->on)
		draw(p);
}

int progress_add(struct progress *p, uint64_t bytes, uint64_t files, struct err *err)
{
	if (interrupted)
		return err_set(err, ERR_CANCELED, "interrupted");
	if (!p)
		return 0;
	p->bytes += bytes;
	p->files += files;
	if (p->on && now_ns() - p->drawn_ns > REDRAW_NS)
		draw(p);
	return 0;
}

void progress_clear(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}

double progress_seconds(const struct progress *p)
{
	return (double) (now_ns() - p->started_ns) / 1e9;
}
