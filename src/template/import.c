/* SPDX-License-Identifier: Apache-2.0 */
#include "template/import.h"

#include <archive_entry.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "template/extract-internal.h"
#include "template/make.h"

static int import_tar(struct make *m, int fd, struct err *err)
{
	_cleanup_(archive_freep) struct archive *a = extract_reader_new();

	progress_phase(&m->progress, "unpacking");
	if (archive_read_open_fd(a, fd, 65536) != ARCHIVE_OK)
		return extract_archive_error(a, err);
	m->source = json_pack("{s:s}", "kind", "tar");
	return extract_archive(&m->extract, a, EXTRACT_TREE, err);
}

int import_template(const char *data_dir, const char *path, const char *name, uint64_t max_bytes, json_t **ret,
                    struct err *err)
{
	struct make m;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int result;

	if (fd < 0)
		return err_sys(err, errno, "open %s", path);
	result = make_begin(&m, data_dir, max_bytes, err);
	if (result == 0)
		result = import_tar(&m, fd, err);
	if (result == 0)
		result = make_finish(&m, name, ret, err);
	make_done(&m);
	return result;
}
