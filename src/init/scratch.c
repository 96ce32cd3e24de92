/* SPDX-License-Identifier: Apache-2.0 */
#include "init/scratch.h"

#include <sys/mman.h>

enum { PAGE = 4096 };

struct scratch scratch __attribute__((aligned(PAGE)));

void scratch_release(void)
{
	/* Only whole pages: what follows the struct in memory belongs to others. */
	madvise(&scratch, sizeof scratch / PAGE * PAGE, MADV_DONTNEED);
}
