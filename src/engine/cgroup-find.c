/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cgroup-internal.h"

#include <stdio.h>
#include <string.h>

/* A piece of a line, not terminated. */
struct span {
	const char *at;
	size_t len;
};

struct mount_line {
	struct span device;     /* "0:37": the same for every mount of one hierarchy */
	struct span point;
	struct span options;    /* of the mount */
	struct span type;
	struct span super;      /* options of the file system */
};

static bool span_is(struct span s, const char *text)
{
	return s.len == strlen(text) && !memcmp(s.at, text, s.len);
}

/* Cuts the next word off `rest`; an empty one at the end. */
static struct span next_word(struct span *rest)
{
	struct span word;

	while (rest->len && *rest->at == ' ')
		rest->at++, rest->len--;
	word.at = rest->at;
	while (rest->len && *rest->at != ' ')
		rest->at++, rest->len--;
	word.len = (size_t) (rest->at - word.at);
	return word;
}

/*
 * 31 30 0:28 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu
 * id parent device root point options tags...          - type   source super
 */
static bool parse_line(struct span line, struct mount_line *ret)
{
	struct span word;

	next_word(&line);
	next_word(&line);
	ret->device = next_word(&line);
	next_word(&line);
	ret->point = next_word(&line);
	ret->options = next_word(&line);
	do
		word = next_word(&line);
	while (word.len && !span_is(word, "-"));
	ret->type = next_word(&line);
	next_word(&line);
	ret->super = next_word(&line);
	return ret->super.len > 0;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* Undoes the \040 of blanks in a path.  False when it does not fit. */
static bool unescape(struct span s, char *ret, size_t size)
{
	size_t out = 0;

	for (size_t i = 0; i < s.len; i++) {
		char c = s.at[i];

		if (c == '\\' && i + 3 < s.len && is_octal(s.at[i + 1]) && is_octal(s.at[i + 2]) &&
		    is_octal(s.at[i + 3])) {
			c = (char) ((s.at[i + 1] - '0') * 64 + (s.at[i + 2] - '0') * 8 + (s.at[i + 3] - '0'));
			i += 3;
		}
		if (!c || out + 1 >= size)
			return false;
		ret[out++] = c;
	}
	ret[out] = '\0';
	return out > 0;
}

static bool is_read_only(struct span options)
{
	return options.len >= 2 && !memcmp(options.at, "ro", 2) && (options.len == 2 || options.at[2] == ',');
}

static unsigned controllers_in(struct span list)
{
	static const struct {
		const char *name;
		unsigned bit;
	} known[] = {
		{ "memory", CG_MEMORY }, { "pids", CG_PIDS }, { "cpu", CG_CPU },
		{ "blkio", CG_IO }, { "io", CG_IO },
	};
	unsigned found = 0;

	for (size_t i = 0, start = 0; i <= list.len; i++) {
		if (i < list.len && !strchr(", \n", list.at[i]))
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(known); k++)
			if (span_is((struct span) { list.at + start, i - start }, known[k].name))
				found |= known[k].bit;
		start = i + 1;
	}
	return found;
}

unsigned cgroup_controllers_of(const char *list)
{
	return controllers_in((struct span) { list, strlen(list) });
}

/* A hierarchy may be mounted in several places: the first one counts. */
static void add_v1(const struct mount_line *m, struct cgroup_places *ret, unsigned *seen)
{
	unsigned controllers = controllers_in(m->super) & CG_ALL & ~*seen;
	struct cgroup_place *place;

	if (!controllers || ret->v1_count == CGROUP_TASKS_MAX)
		return;
	place = &ret->v1[ret->v1_count];
	if (!unescape(m->point, place->path, sizeof place->path))
		return;
	place->controllers = controllers;
	*seen |= controllers;
	ret->v1_count++;
}

void cgroup_find_mounts(const char *mountinfo, size_t len, struct cgroup_places *ret)
{
	const char *end = mountinfo + len;
	unsigned seen = 0;

	memset(ret, 0, sizeof *ret);
	for (const char *at = mountinfo; at < end;) {
		const char *eol = memchr(at, '\n', (size_t) (end - at));
		struct mount_line m;
		struct span line = { at, (size_t) ((eol ? eol : end) - at) };

		at = eol ? eol + 1 : end;
		/* A read-only mount of a container is of no use; a private one may be had. */
		if (!parse_line(line, &m) || is_read_only(m.options))
			continue;
		if (span_is(m.type, "cgroup"))
			add_v1(&m, ret, &seen);
		else if (span_is(m.type, "cgroup2") && !ret->v2.path[0] &&
		         !unescape(m.point, ret->v2.path, sizeof ret->v2.path))
			ret->v2.path[0] = '\0';
	}
}

int cgroup_find_own(const char *text, size_t len, char *ret, size_t size, struct err *err)
{
	const char *end = text + len;

	for (const char *at = text; at < end;) {
		const char *eol = memchr(at, '\n', (size_t) (end - at));
		size_t n = (size_t) ((eol ? eol : end) - at);

		if (n >= 4 && !memcmp(at, "0::/", 4)) {
			if (n - 4 >= size || memchr(at, '\0', n))
				return err_set(err, ERR_INVALID, "own cgroup path is too long");
			memcpy(ret, at + 4, n - 4);
			ret[n - 4] = '\0';
			return 0;
		}
		at = eol ? eol + 1 : end;
	}
	return err_set(err, ERR_NOT_FOUND, "no cgroup v2 line in /proc/self/cgroup");
}
