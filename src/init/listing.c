/* SPDX-License-Identifier: Apache-2.0 */
/* file_list(): a directory as a stream of packets, in the order the file system has it. */
#include "init/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include "init/conn.h"
#include "init/helper.h"
#include "init/path.h"
#include "init/scratch.h"

enum { ENTRY_MAX = 256 + INIT_PATH_MAX + 128 };         /* bytes of one encoded entry, at most */

struct packet {
	int fd;
	struct wire_writer w;
	uint32_t count;
};

static void packet_begin(struct packet *p)
{
	p->w = (struct wire_writer) { .data = scratch.packet + INIT_HEADER, .cap = INIT_PAYLOAD_MAX };
	p->count = 0;
	wire_put_u32(&p->w, 0);
}

static bool packet_send(struct packet *p, uint16_t flags)
{
	struct wire_writer count = { .data = p->w.data, .cap = 4 };

	wire_put_u32(&count, p->count);
	init_put_header(scratch.packet, INIT_ENTRIES, flags, (uint32_t) p->w.len);
	return helper_send(p->fd, scratch.packet, INIT_HEADER + p->w.len);
}

/*
 * What can be said about one entry.  An error concerns it alone; of a link it
 * says what following it comes to (C14: ELOOP, or ENOENT), beside its own data.
 */
static void look_at(int dir_fd, const char *name, struct init_stat *ret)
{
	struct stat st;
	ssize_t n;

	memset(ret, 0, sizeof *ret);
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		ret->sys = errno;
		return;
	}
	file_set_stat(ret, &st);
	if (!S_ISLNK(st.st_mode))
		return;
	n = readlinkat(dir_fd, name, ret->target, sizeof ret->target - 1);
	ret->target[n > 0 ? n : 0] = '\0';
	if (n < 0 || fstatat(dir_fd, name, &st, 0) < 0)
		ret->sys = errno;
}

static bool send_entries(DIR *dir, struct packet *p, int *ret_sys)
{
	for (;;) {
		struct dirent *entry;

		errno = 0;
		entry = readdir(dir);
		if (!entry) {
			*ret_sys = errno;
			return true;
		}
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (p->w.cap - p->w.len < ENTRY_MAX) {
			if (!packet_send(p, INIT_MORE))
				return false;
			packet_begin(p);
		}
		look_at(dirfd(dir), entry->d_name, &scratch.stat);
		wire_put_str(&p->w, entry->d_name);
		init_encode_stat(&p->w, &scratch.stat);
		p->count++;
	}
}

void file_list(int fd, const char *path)
{
	struct packet p = { .fd = fd };
	int dir_fd = path_open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0), sys = 0;
	DIR *dir = dir_fd >= 0 ? fdopendir(dir_fd) : NULL;
	struct err err;

	if (!dir) {
		err_sys(&err, errno, "list %.160s", path);
		conn_send_error(fd, &err, INIT_STEP_FILE);
		close_fd(dir_fd);
		return;
	}
	packet_begin(&p);
	if (send_entries(dir, &p, &sys)) {
		if (sys) {
			err_sys(&err, sys, "list %.160s", path);
			conn_send_error(fd, &err, INIT_STEP_FILE);
		} else {
			packet_send(&p, 0);
		}
	}
	closedir(dir);
}
