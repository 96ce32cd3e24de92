/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * scratch: the large short-lived buffers of init, in one place.
 *
 * Init lives in every sandbox, so a page that it touches once is paid for by
 * thousands of them.  Everything that is needed only while one packet is
 * handled lies here instead of on the stack, and the idle loop gives the pages
 * back to the kernel.  There is one thread and no nesting: whoever handles a
 * packet owns all of it until the loop goes on.
 */
#include "wire/init.h"

struct scratch {
	/* A received packet; or, behind INIT_HEADER bytes of room, output on its way out. */
	uint8_t packet[INIT_PACKET_MAX];
	struct init_exec exec;
	struct init_file file;
	struct init_stat stat;
	char path[2 * INIT_PATH_MAX];           /* a path put together from two */
	char found[INIT_PATH_MAX + 256];        /* the program that is being tried */
	char lines[4096];                       /* of an account file */
	char text[2048];                        /* the default environment */
	char head[512];                         /* the beginning of a program that did not start */
	uint8_t stack[16384] __attribute__((aligned(16)));      /* of a child between clone and exec */
};

extern struct scratch scratch;

/* Gives the pages back; the contents are gone. */
void scratch_release(void);
