/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* clock: monotonic nanoseconds that go on during suspend, for deadlines and durations. */
#include <stdint.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

/* Milliseconds from now until deadline_ns, rounded up and never negative, for poll(). */
static inline int ms_until(uint64_t deadline_ns)
{
	uint64_t now = now_ns(), left;

	if (deadline_ns <= now)
		return 0;
	left = (deadline_ns - now + 999999) / 1000000;
	return left > 1000000000 ? 1000000000 : (int) left;
}
