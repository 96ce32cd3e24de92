/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of /etc/passwd and /etc/group of a sandbox, which belong to whoever
 * owns it.  The input is a file; the user "user" and the number 1000 are looked
 * for in it.  Each line is copied to the end of its own allocation, so that a
 * read past it shows.
 */
#include <stdlib.h>
#include <string.h>
#include "init/passwd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check(const struct user *u)
{
	must(memchr(u->name, '\0', sizeof u->name) && u->name[0]);
	must(memchr(u->home, '\0', sizeof u->home) && u->home[0] == '/');
	must(memchr(u->shell, '\0', sizeof u->shell) && u->shell[0]);
	must(u->ngroups <= USER_GROUPS_MAX);
	for (size_t i = 0; i < u->ngroups; i++) {
		must(u->groups[i] < USER_ID_LIMIT);
		for (size_t j = 0; j < i; j++)
			must(u->groups[i] != u->groups[j]);
	}
}

static void line(const uint8_t *at, size_t len)
{
	static struct user listed = { .name = "user", .home = "/", .shell = "/bin/sh" };
	struct user_key by_name = { .name = "user" }, by_number = { .uid = 1000 };
	struct user found = { 0 };
	char *copy = malloc(len ? len : 1);

	memcpy(copy, at, len);
	if (passwd_line(copy, len, &by_name, &found)) {
		must(!strcmp(found.name, "user"));
		check(&found);
	}
	if (passwd_line(copy, len, &by_number, &found)) {
		must(found.uid == 1000);
		check(&found);
	}
	group_line(copy, len, &listed);
	check(&listed);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	while (size) {
		const uint8_t *end = memchr(data, '\n', size);
		size_t len = end ? (size_t) (end - data) : size;

		line(data, len);
		data += len + (end ? 1 : 0);
		size -= len + (end ? 1 : 0);
	}
	return 0;
}
