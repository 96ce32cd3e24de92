/* SPDX-License-Identifier: Apache-2.0 */
#include "init/passwd.h"

#include <string.h>

/* A piece of a line. */
struct field {
	const char *at;
	size_t len;
};

/* Cuts the next field off the front of `rest`; false when the line has no more. */
static bool next_field(struct field *rest, char separator, struct field *ret)
{
	const char *end;

	if (!rest->at)
		return false;
	ret->at = rest->at;
	end = rest->len ? memchr(rest->at, separator, rest->len) : NULL;
	if (end) {
		ret->len = (size_t) (end - rest->at);
		rest->at += ret->len + 1;
		rest->len -= ret->len + 1;
	} else {
		ret->len = rest->len;
		rest->at = NULL;
	}
	return true;
}

static bool is_field(const struct field *f, const char *text)
{
	return f->len == strlen(text) && !memcmp(f->at, text, f->len);
}

static bool get_number(const struct field *f, uint32_t *ret)
{
	uint64_t v = 0;

	if (!f->len || f->len > 10)
		return false;
	for (size_t i = 0; i < f->len; i++) {
		if (f->at[i] < '0' || f->at[i] > '9')
			return false;
		v = v * 10 + (uint64_t) (f->at[i] - '0');
	}
	*ret = (uint32_t) v;
	return v <= UINT32_MAX;
}

/* Copies a field as a string; false when it is too long or holds a NUL. */
static bool get_text(const struct field *f, char *ret, size_t size)
{
	if (f->len >= size || (f->len && memchr(f->at, '\0', f->len)))
		return false;
	memcpy(ret, f->at, f->len);
	ret[f->len] = '\0';
	return true;
}

bool passwd_line(const char *line, size_t len, const struct user_key *key, struct user *ret)
{
	struct field rest = { line, len }, name, password, uid_text, gid_text, comment, home, shell;
	uint32_t uid, gid;

	if (!next_field(&rest, ':', &name) || !next_field(&rest, ':', &password) ||
	    !next_field(&rest, ':', &uid_text) || !next_field(&rest, ':', &gid_text) ||
	    !next_field(&rest, ':', &comment) || !next_field(&rest, ':', &home) ||
	    !next_field(&rest, ':', &shell))
		return false;
	if (!name.len || !get_number(&uid_text, &uid) || !get_number(&gid_text, &gid))
		return false;
	if (key->name ? !is_field(&name, key->name) : uid != key->uid)
		return false;
	if (!get_text(&name, ret->name, sizeof ret->name) || !get_text(&home, ret->home, sizeof ret->home) ||
	    !get_text(&shell, ret->shell, sizeof ret->shell))
		return false;
	if (ret->home[0] != '/')
		strcpy(ret->home, "/");
	if (!ret->shell[0])
		strcpy(ret->shell, "/bin/sh");
	ret->uid = uid;
	ret->gid = gid;
	return true;
}

void group_line(const char *line, size_t len, struct user *user)
{
	struct field rest = { line, len }, name, password, gid_text, member;
	uint32_t gid;

	if (!next_field(&rest, ':', &name) || !next_field(&rest, ':', &password) ||
	    !next_field(&rest, ':', &gid_text) || !get_number(&gid_text, &gid) || gid >= USER_ID_LIMIT)
		return;
	while (next_field(&rest, ',', &member)) {
		if (!is_field(&member, user->name))
			continue;
		for (size_t i = 0; i < user->ngroups; i++)
			if (user->groups[i] == gid)
				return;
		if (user->ngroups < USER_GROUPS_MAX)
			user->groups[user->ngroups++] = gid;
		return;
	}
}
