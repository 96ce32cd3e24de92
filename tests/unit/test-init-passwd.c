/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"

#include "init/passwd.h"

static struct user user;

static bool by_name(const char *line, const char *name)
{
	struct user_key key = { .name = name };

	memset(&user, 0, sizeof user);
	return passwd_line(line, strlen(line), &key, &user);
}

static bool by_number(const char *line, uid_t uid)
{
	struct user_key key = { .uid = uid };

	return passwd_line(line, strlen(line), &key, &user);
}

TEST(a_line_is_found_by_name_and_by_number)
{
	CHECK(by_name("user:x:1000:100:A User,,,:/home/user:/bin/bash", "user"));
	CHECK_INT(user.uid, 1000);
	CHECK_INT(user.gid, 100);
	CHECK_STR(user.name, "user");
	CHECK_STR(user.home, "/home/user");
	CHECK_STR(user.shell, "/bin/bash");
	CHECK(by_number("user:x:1000:100::/home/user:", 1000));
	CHECK_STR(user.shell, "/bin/sh");
	CHECK(!by_name("user:x:1000:100::/h:/s", "use"));
	CHECK(!by_name("user:x:1000:100::/h:/s", "user2"));
	CHECK(!by_number("user:x:1000:100::/h:/s", 100));
}

TEST(a_home_that_is_not_absolute_becomes_the_root)
{
	CHECK(by_name("u:x:1:1:::", "u"));
	CHECK_STR(user.home, "/");
	CHECK(by_name("u:x:1:1::home:", "u"));
	CHECK_STR(user.home, "/");
}

TEST(lines_that_do_not_parse_are_passed_over)
{
	static const char *const lines[] = { "",
		                             ":",
		                             "u",
		                             "u:x",
		                             "u:x:1",
		                             "u:x:1:1",
		                             "u:x:1:1:",
		                             "u:x:1:1::/h",
		                             "u:x::1::/h:/s",
		                             "u:x:-1:1::/h:/s",
		                             "u:x:1x:1::/h:/s",
		                             "u:x:4294967296:1::/h:/s",
		                             "u:x:99999999999999999999:1::/h:/s",
		                             "+u:x:1:1::/h:/s",
		                             ":x:1:1::/h:/s" };

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (by_name(lines[i], "u") || by_name(lines[i], ""))
			FAIL("%s", lines[i]);
}

TEST(fields_that_are_too_long_or_hold_a_nul_are_refused)
{
	static char line[4096];
	struct user_key key = { .name = "u" };

	snprintf(line, sizeof line, "u:x:1:1::/%02000d:/s", 0);
	CHECK(!by_name(line, "u"));
	snprintf(line, sizeof line, "u:x:1:1::/h:/%0400d", 0);
	CHECK(!by_name(line, "u"));
	memcpy(line, "u:x:1:1::/h\0h:/s", 16);
	CHECK(!passwd_line(line, 16, &key, &user));
}

TEST(groups_are_those_that_list_the_user)
{
	static const char *const lines[] = { "a:x:10:user",
		                             "b:x:11:other,user,more",
		                             "c:x:12:users",
		                             "d:x:13:",
		                             "e:x:14:auser",
		                             "f:x:70000:user",
		                             "g:x:10:user",
		                             "h:x:x:user",
		                             "i:x:15",
		                             "j:x:16:user,user",
		                             "" };
	static const gid_t expected[] = { 10, 11, 16 };

	CHECK(by_name("user:x:1000:100::/h:", "user"));
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		group_line(lines[i], strlen(lines[i]), &user);
	CHECK_INT(user.ngroups, 3);
	for (size_t i = 0; i < 3; i++)
		CHECK_INT(user.groups[i], expected[i]);
}

TEST(too_many_groups_are_left_out)
{
	CHECK(by_name("user:x:1000:100::/h:", "user"));
	for (int i = 0; i < 200; i++) {
		char line[64];

		snprintf(line, sizeof line, "g%d:x:%d:user", i, i);
		group_line(line, strlen(line), &user);
	}
	CHECK_INT(user.ngroups, USER_GROUPS_MAX);
}
