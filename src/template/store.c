/* SPDX-License-Identifier: Apache-2.0 */
#include "template/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "template/progress.h"
#include "template/tree.h"

#define META_MAX 1048576

static int make_dir(int at, const char *path, struct err *err)
{
	if (mkdirat(at, path, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "create %s", path);
	return 0;
}

int store_open(const char *data_dir, bool create, struct store *ret, struct err *err)
{
	_cleanup_free_ char *path = xasprintf("%s/templates", data_dir);
	_cleanup_close_ int fd = -1;

	if (create && (make_dir(AT_FDCWD, data_dir, err) < 0 || make_dir(AT_FDCWD, path, err) < 0))
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "open %s", path);
	/* Others must not reach the setuid, world-writable or root-owned files of a tree. */
	if (create && (fchmod(fd, 0700) < 0 || make_dir(fd, "names", err) < 0))
		return err && err->code ? -1 : err_sys(err, errno, "chmod %s", path);
	*ret = (struct store) { .path = TAKE_PTR(path), .fd = TAKE_FD(fd), .lock_fd = -1 };
	return 0;
}

void store_done(struct store *s)
{
	s->lock_fd = close_fd(s->lock_fd);
	if (s->path)
		close_fd(s->fd);
	free(TAKE_PTR(s->path));
}

static bool is_tmp(const char *name)
{
	return strncmp(name, ".tmp-", 5) == 0;
}

/* Whoever has the lock knows that no .tmp- directory belongs to anybody. */
static int sweep(struct store *s, struct err *err)
{
	int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		close_fd(fd);
		return err_sys(err, errno, "read %s", s->path);
	}
	while (result == 0 && (e = readdir(dir))) {
		if (is_tmp(e->d_name) && tree_remove(s->fd, e->d_name, NULL) < 0)
			result = err_sys(err, errno, "remove %s/%s, left by an interrupted run", s->path, e->d_name);
	}
	closedir(dir);
	return result;
}

int store_lock(struct store *s, struct err *err)
{
	int fd = openat(s->fd, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, errno, "open %s/.lock", s->path);
	s->lock_fd = fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return err_sys(err, errno, "lock %s/.lock", s->path);
		fprintf(stderr, "waiting for another cuvette-template that works in %s\n", s->path);
		while (flock(fd, LOCK_EX) < 0) {
			if (errno != EINTR)
				return err_sys(err, errno, "lock %s/.lock", s->path);
			if (progress_interrupted())
				return err_set(err, ERR_CANCELED, "interrupted");
		}
	}
	return sweep(s, err);
}

int store_begin(struct store *s, char ret_tmp[STORE_TMP_SIZE], int *ret_root_fd, struct err *err)
{
	char tmp[STORE_TMP_SIZE], path[STORE_TMP_SIZE + 8];
	uint32_t random;

	if (getrandom(&random, sizeof random, 0) != sizeof random)
		return err_sys(err, errno, "getrandom");
	snprintf(tmp, sizeof tmp, ".tmp-%08x", random);
	snprintf(path, sizeof path, "%s/rootfs", tmp);
	if (mkdirat(s->fd, tmp, 0700) < 0)
		return err_sys(err, errno, "create %s/%s", s->path, tmp);
	memcpy(ret_tmp, tmp, sizeof tmp);
	/* 0755 whatever the umask: it is "/" of sandboxes. */
	if (mkdirat(s->fd, path, 0755) < 0 || fchmodat(s->fd, path, 0755, 0) < 0)
		return err_sys(err, errno, "create %s/%s", s->path, path);
	*ret_root_fd = openat(s->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_root_fd < 0)
		return err_sys(err, errno, "open %s/%s", s->path, path);
	return 0;
}

void store_discard(struct store *s, const char *tmp)
{
	/* What cannot be removed now goes at the next store_lock(). */
	if (*tmp && tree_remove(s->fd, tmp, NULL) < 0)
		fprintf(stderr, "cuvette-template: cannot remove %s/%s: %s\n", s->path, tmp, strerror(errno));
}

static int write_meta(struct store *s, const char *tmp, const json_t *meta, struct err *err)
{
	_cleanup_free_ char *text = json_dumps(meta, JSON_INDENT(2));
	char path[STORE_TMP_SIZE + 16];
	_cleanup_close_ int fd = -1;

	if (!text)
		return err_set(err, ERR_INTERNAL, "meta.json cannot be written");
	snprintf(path, sizeof path, "%s/meta.json", tmp);
	fd = openat(s->fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write_all(fd, text, strlen(text)) < 0 || write_all(fd, "\n", 1) < 0)
		return err_sys(err, errno, "write %s/%s", s->path, path);
	return 0;
}

static int sync_dir(int fd, const char *path, struct err *err)
{
	return fsync(fd) < 0 ? err_sys(err, errno, "fsync %s", path) : 0;
}

int store_commit(struct store *s, const char *tmp, const char *digest, const json_t *meta, bool *ret_existed,
                 struct err *err)
{
	if (write_meta(s, tmp, meta, err) < 0)
		return -1;
	/* Without this a power cut could leave a digest in front of files that are not it. */
	if (syncfs(s->fd) < 0)
		return err_sys(err, errno, "sync %s", s->path);
	*ret_existed = false;
	if (renameat(s->fd, tmp, s->fd, digest) < 0) {
		if (errno != EEXIST && errno != ENOTEMPTY)
			return err_sys(err, errno, "rename %s/%s", s->path, tmp);
		*ret_existed = true;
		return 0;
	}
	return sync_dir(s->fd, s->path, err);
}

int store_set_name(struct store *s, const char *name, const char *digest, struct err *err)
{
	char target[TEMPLATE_DIGEST_SIZE + 3], path[TEMPLATE_NAME_SIZE + 8];

	snprintf(target, sizeof target, "../%s", digest);
	snprintf(path, sizeof path, "names/%s", name);
	unlinkat(s->fd, "names/.new", 0);
	if (symlinkat(target, s->fd, "names/.new") < 0 || renameat(s->fd, "names/.new", s->fd, path) < 0)
		return err_sys(err, errno, "write %s/%s", s->path, path);
	_cleanup_close_ int fd = openat(s->fd, "names", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return sync_dir(fd, s->path, err);
}

/* The names that point to the digest, sorted. */
static json_t *names_of(struct store *s, const char *digest)
{
	json_t *names = json_array();
	struct dirent **list = NULL;
	int count = scandirat(s->fd, "names", &list, NULL, alphasort);

	for (int i = 0; i < count; i++) {
		char path[TEMPLATE_NAME_SIZE + 8], target[80];
		ssize_t n;

		snprintf(path, sizeof path, "names/%s", list[i]->d_name);
		n = template_name_is_valid(list[i]->d_name) ? readlinkat(s->fd, path, target, sizeof target - 1) : -1;
		if (n > 3) {
			target[n] = '\0';
			if (strcmp(target + 3, digest) == 0)
				json_array_append_new(names, json_string(list[i]->d_name));
		}
		free(list[i]);
	}
	free(list);
	return names;
}

int store_meta(struct store *s, const char *digest, json_t **ret, struct err *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT(META_MAX);
	char path[TEMPLATE_DIGEST_SIZE + 16];
	_cleanup_close_ int fd = -1;
	json_error_t where;
	json_t *meta;

	snprintf(path, sizeof path, "%s/meta.json", digest);
	fd = openat(s->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "open %s/%s", s->path, path);
	if (read_to_buf(fd, &text, err) < 0)
		return err_wrap(err, "%s/%s", s->path, path);
	meta = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, &where);
	if (!json_is_object(meta)) {
		json_decref(meta);
		return err_set(err, ERR_INTERNAL, "%s/%s is damaged (line %d: %s)", s->path, path, where.line, where.text);
	}
	json_object_set_new(meta, "names", names_of(s, digest));
	*ret = meta;
	return 0;
}

static int is_digest(const struct dirent *e)
{
	return strlen(e->d_name) == TEMPLATE_DIGEST_SIZE - 1 && is_hex(e->d_name, TEMPLATE_DIGEST_SIZE - 1);
}

static int by_creation(const void *a, const void *b)
{
	const char *ta = json_string_value(json_object_get(*(json_t *const *) a, "created_at"));
	const char *tb = json_string_value(json_object_get(*(json_t *const *) b, "created_at"));

	return strcmp(ta ? ta : "", tb ? tb : "");
}

int store_list(struct store *s, json_t **ret, struct err *err)
{
	struct dirent **list = NULL;
	int count = scandirat(s->fd, ".", &list, is_digest, alphasort), known = 0;
	json_t **metas;

	if (count < 0)
		return err_sys(err, errno, "read %s", s->path);
	metas = xcalloc((size_t) count + 1, sizeof *metas);
	for (int i = 0; i < count; i++) {
		struct err one = { 0 };

		/* One that is being removed right now, or was damaged by hand, does not hide the others. */
		if (store_meta(s, list[i]->d_name, &metas[known], &one) == 0)
			known++;
		else if (one.sys != ENOENT)
			fprintf(stderr, "cuvette-template: %s\n", one.msg);
		free(list[i]);
	}
	free(list);
	qsort(metas, (size_t) known, sizeof *metas, by_creation);
	*ret = json_array();
	for (int i = 0; i < known; i++)
		json_array_append_new(*ret, metas[i]);
	free(metas);
	return 0;
}

static int remove_name(struct store *s, const char *name, struct err *err)
{
	char path[TEMPLATE_NAME_SIZE + 8];

	snprintf(path, sizeof path, "names/%s", name);
	if (unlinkat(s->fd, path, 0) < 0 && errno != ENOENT)
		return err_sys(err, errno, "remove %s/%s", s->path, path);
	return 0;
}

/* Names first: from then on nobody finds it.  Then out of the way in one step, then file by file. */
static int remove_tree(struct store *s, const char *digest, json_t *names, struct err *err)
{
	_cleanup_close_ int fd = openat(s->fd, digest, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char tmp[STORE_TMP_SIZE];
	json_t *name;
	size_t i;

	if (fd < 0)
		return err_sys(err, errno, "open %s/%s", s->path, digest);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, ERR_PRECONDITION, "the template %.12s is in use by a running sandbox", digest);
	json_array_foreach(names, i, name)
		if (remove_name(s, json_string_value(name), err) < 0)
			return -1;
	snprintf(tmp, sizeof tmp, ".tmp-rm%.6s", digest);
	if (renameat(s->fd, digest, s->fd, tmp) < 0)
		return err_sys(err, errno, "rename %s/%s", s->path, digest);
	if (tree_remove(s->fd, tmp, NULL) < 0)
		return err_sys(err, errno, "remove %s/%s", s->path, tmp);
	return 0;
}

int store_remove(struct store *s, const char *data_dir, const char *name, json_t **ret, struct err *err)
{
	char digest[TEMPLATE_DIGEST_SIZE];
	bool by_name = false, last;
	json_t *names, *each;
	size_t i;
	int result;

	if (template_find(data_dir, name, digest, err) < 0)
		return -1;
	names = names_of(s, digest);
	json_array_foreach(names, i, each)
		by_name = by_name || strcmp(json_string_value(each), name) == 0;
	last = !by_name || json_array_size(names) < 2;
	result = last ? remove_tree(s, digest, names, err) : remove_name(s, name, err);
	json_decref(names);
	if (result == 0)
		*ret = json_pack("{s:s, s:s, s:b}", "removed", name, "digest", digest, "tree_removed", (int) last);
	return result;
}
