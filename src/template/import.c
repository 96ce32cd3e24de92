/* SPDX-License-Identifier: Apache-2.0 */
#include "template/import.h"

#include <archive_entry.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "template/extract-internal.h"
#include "template/image.h"
#include "template/make.h"
#include "template/tree.h"

static int open_archive(int fd, struct archive **ret, struct err *err)
{
	_cleanup_(archive_freep) struct archive *a = extract_reader_new();

	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(err, errno, "seek");
	if (archive_read_open_fd(a, fd, 65536) != ARCHIVE_OK)
		return extract_archive_error(a, err);
	*ret = TAKE_PTR(a);
	return 0;
}

/*
 * The first member tells a root filesystem from an archive of an image: nothing
 * that a root directory holds is called like the files of a layout.  A wrong
 * guess ends in an error that names the missing index.json.
 */
static bool is_image_member(const char *path)
{
	static const char *const names[] = { "blobs", "index.json", "oci-layout", "manifest.json", "repositories" };
	size_t len = strcspn(path, "/");

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (len == strlen(names[i]) && memcmp(path, names[i], len) == 0)
			return true;
	/* docker save: HEX/layer.tar, HEX.json */
	return strspn(path, "0123456789abcdef") == TEMPLATE_DIGEST_SIZE - 1 &&
	       (len == TEMPLATE_DIGEST_SIZE - 1 || strncmp(path + TEMPLATE_DIGEST_SIZE - 1, ".json", 5) == 0 ||
	        strncmp(path + TEMPLATE_DIGEST_SIZE - 1, ".tar", 4) == 0);
}

static int looks_like_image(int fd, bool *ret, struct err *err)
{
	_cleanup_(archive_freep) struct archive *a = NULL;
	struct archive_entry *entry;
	char path[PATH_MAX] = "";
	int r;

	if (open_archive(fd, &a, err) < 0)
		return -1;
	/* "." alone says nothing yet. */
	while ((r = archive_read_next_header(a, &entry)) == ARCHIVE_OK || r == ARCHIVE_WARN) {
		const char *name = archive_entry_pathname(entry);

		if (name && extract_clean_name(name, path, NULL) == 0 && *path)
			break;
	}
	if (r == ARCHIVE_EOF)
		return err_set(err, ERR_INVALID, "the archive is empty");
	if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		return extract_archive_error(a, err);
	*ret = is_image_member(path);
	return 0;
}

/* An archive of an image is unpacked beside the root first: its parts come in any order. */
static int import_image_archive(struct make *m, int fd, struct err *err)
{
	_cleanup_(archive_freep) struct archive *a = NULL;
	_cleanup_close_ int layout_fd = -1;
	struct extract x = { .max_bytes = m->extract.max_bytes, .progress = &m->progress };
	char path[STORE_TMP_SIZE + 8];

	snprintf(path, sizeof path, "%s/layout", m->tmp);
	if (mkdirat(m->store.fd, path, 0700) < 0)
		return err_sys(err, errno, "create %s/%s", m->store.path, path);
	layout_fd = openat(m->store.fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (layout_fd < 0)
		return err_sys(err, errno, "open %s/%s", m->store.path, path);
	progress_phase(&m->progress, "unpacking the image");
	x.root_fd = layout_fd;
	if (open_archive(fd, &a, err) < 0 || extract_archive(&x, a, EXTRACT_FILES, err) < 0)
		return -1;
	if (image_apply(m, layout_fd, err) < 0)
		return -1;
	return tree_remove(m->store.fd, path, NULL) < 0 ? err_sys(err, errno, "remove %s/%s", m->store.path, path) : 0;
}

static int import_file(struct make *m, int fd, struct err *err)
{
	_cleanup_(archive_freep) struct archive *a = NULL;
	bool image;

	if (looks_like_image(fd, &image, err) < 0)
		return -1;
	if (image)
		return import_image_archive(m, fd, err);
	progress_phase(&m->progress, "unpacking");
	m->source = json_pack("{s:s}", "kind", "tar");
	return open_archive(fd, &a, err) < 0 ? -1 : extract_archive(&m->extract, a, EXTRACT_TREE, err);
}

static int import_opened(struct make *m, int fd, bool is_dir, struct err *err)
{
	return is_dir ? image_apply(m, fd, err) : import_file(m, fd, err);
}

static int open_source(const char *path, bool *ret_dir, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "open %.150s", path);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "%.150s: expected a tar file or a directory", path);
	*ret_dir = S_ISDIR(st.st_mode);
	if (*ret_dir && !image_is_layout(fd))
		return err_set(err, ERR_INVALID, "%.100s is not an OCI layout (it has no index.json); a root filesystem "
		               "is imported as a tar: tar -C DIR -cf rootfs.tar .", path);
	return TAKE_FD(fd);
}

int import_template(const char *data_dir, const char *path, const char *name, uint64_t max_bytes, json_t **ret,
                    struct err *err)
{
	struct make m;
	bool is_dir;
	_cleanup_close_ int fd = open_source(path, &is_dir, err);
	int result;

	if (fd < 0)
		return -1;
	result = make_begin(&m, data_dir, max_bytes, err);
	if (result == 0)
		result = import_opened(&m, fd, is_dir, err);
	if (result < 0 && err && err->code == ERR_INVALID)
		err_wrap(err, "%.80s", path);
	if (result == 0)
		result = make_finish(&m, name, ret, err);
	make_done(&m);
	return result;
}
