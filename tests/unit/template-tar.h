/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * template-tar: makes tar archives in memory, honest and hostile ones.
 *
 * Headers are written byte by byte (POSIX ustar), so that names may be anything.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

struct tar {
	char *data;
	size_t len, cap;
	/* of the members that follow */
	unsigned mode, uid, gid;
};

#define TAR_INIT { .mode = 0644 }

static inline char *tar_room(struct tar *t, size_t len)
{
	if (t->len + len > t->cap) {
		t->cap = 2 * (t->len + len);
		t->data = xrealloc(t->data, t->cap, 1);
	}
	memset(t->data + t->len, 0, len);
	t->len += len;
	return t->data + t->len - len;
}

/* One member; type '0' file, '1' hard link, '2' link, '3' char device, '5' directory, 'x' pax. */
static inline void tar_member(struct tar *t, char type, const char *name, const char *link, const void *data, size_t size)
{
	char *h = tar_room(t, 512);
	unsigned sum = 0;

	snprintf(h, 101, "%s", name);
	if (strlen(name) == 100)
		memcpy(h, name, 100);
	snprintf(h + 100, 8, "%07o", t->mode);
	snprintf(h + 108, 8, "%07o", t->uid);
	snprintf(h + 116, 8, "%07o", t->gid);
	snprintf(h + 124, 12, "%011zo", size);
	snprintf(h + 136, 12, "%011o", 1000000000);
	h[156] = type;
	if (link)
		snprintf(h + 157, 100, "%s", link);
	memcpy(h + 257, "ustar\00000", 8);
	memset(h + 148, ' ', 8);
	for (int i = 0; i < 512; i++)
		sum += (unsigned char) h[i];
	snprintf(h + 148, 7, "%06o", sum);
	if (size)
		memcpy(tar_room(t, (size + 511) / 512 * 512), data, size);
}

static inline void tar_file(struct tar *t, const char *name, const char *text)
{
	tar_member(t, '0', name, NULL, text, strlen(text));
}

static inline void tar_dir(struct tar *t, const char *name)
{
	unsigned mode = t->mode;

	t->mode = 0755;
	tar_member(t, '5', name, NULL, NULL, 0);
	t->mode = mode;
}

static inline void tar_link(struct tar *t, const char *name, const char *target)
{
	tar_member(t, '2', name, target, NULL, 0);
}

static inline void tar_hardlink(struct tar *t, const char *name, const char *target)
{
	tar_member(t, '1', name, target, NULL, 0);
}

/* A pax header with one record, for the member that follows. */
static inline void tar_pax(struct tar *t, const char *key, const void *value, size_t len)
{
	size_t size = strlen(key) + len + 3, digits = 1;
	char *record;

	while ((size_t) snprintf(NULL, 0, "%zu", size + digits) != digits)
		digits++;
	size += digits;
	record = xcalloc(1, size + 1);
	sprintf(record, "%zu %s=", size, key);
	memcpy(record + size - len - 1, value, len);
	record[size - 1] = '\n';
	tar_member(t, 'x', "pax", NULL, record, size);
	free(record);
}

static inline void tar_end(struct tar *t)
{
	tar_room(t, 1024);
}
