/* SPDX-License-Identifier: Apache-2.0 */
#include "template/image.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "template/digest.h"
#include "template/extract-internal.h"
#include "template/oci.h"
#include "template/tree.h"

#define INDEX_DEPTH_MAX 4

bool image_is_layout(int dir_fd)
{
	return faccessat(dir_fd, "index.json", R_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       faccessat(dir_fd, "oci-layout", R_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       faccessat(dir_fd, "manifest.json", R_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A regular file of the layout; links lead nowhere but inside it. */
static int open_file(int layout_fd, const char *path, uint64_t *ret_size, struct err *err)
{
	int fd = tree_open(layout_fd, path, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;

	if (fd < 0)
		return err_sys(err, errno, "open %.100s of the image", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close_fd(fd);
		return err_set(err, ERR_INVALID, "%.100s of the image is not a file", path);
	}
	*ret_size = (uint64_t) st.st_size;
	return fd;
}

/* The file has that SHA-256; it is back at its start afterwards. */
static int verify(struct make *m, int fd, const char *hex, const char *path, struct err *err)
{
	char actual[TEMPLATE_DIGEST_SIZE];

	if (digest_fd(fd, &m->progress, actual, NULL, err) < 0)
		return -1;
	if (strcmp(actual, hex) != 0)
		return err_set(err, ERR_INVALID, "%.100s of the image is damaged: its SHA-256 is %.12s..., not %.12s...",
		               path, actual, hex);
	return lseek(fd, 0, SEEK_SET) < 0 ? err_sys(err, errno, "seek") : 0;
}

static int open_blob(struct make *m, int layout_fd, const struct oci_blob *blob, struct err *err)
{
	_cleanup_close_ int fd = -1;
	char path[TEMPLATE_DIGEST_SIZE + 16];
	uint64_t size;

	snprintf(path, sizeof path, "blobs/sha256/%s", blob->hex);
	fd = open_file(layout_fd, path, &size, err);
	if (fd < 0)
		return -1;
	if (size != blob->size)
		return err_set(err, ERR_INVALID, "%s of the image has %llu bytes, not %llu", path,
		               (unsigned long long) size, (unsigned long long) blob->size);
	if (verify(m, fd, blob->hex, path, err) < 0)
		return -1;
	return TAKE_FD(fd);
}

static int read_blob(struct make *m, int layout_fd, const struct oci_blob *blob, struct buf *ret, struct err *err)
{
	_cleanup_close_ int fd = -1;

	if (blob->size > OCI_DOCUMENT_MAX)
		return err_set(err, ERR_INVALID, "blob %.12s of the image is too large for a document", blob->hex);
	fd = open_blob(m, layout_fd, blob, err);
	return fd < 0 ? -1 : read_to_buf(fd, ret, err);
}

static int read_document(int layout_fd, const char *path, struct buf *ret, struct err *err)
{
	uint64_t size;
	_cleanup_close_ int fd = open_file(layout_fd, path, &size, err);

	return fd < 0 ? -1 : read_to_buf(fd, ret, err);
}

static int apply_layer(struct make *m, int fd, size_t number, size_t count, struct err *err)
{
	_cleanup_(archive_freep) struct archive *a = extract_reader_new();
	char phase[48];
	int result;

	snprintf(phase, sizeof phase, "unpacking layer %zu of %zu", number + 1, count);
	progress_phase(&m->progress, phase);
	result = archive_read_open_fd(a, fd, 65536) == ARCHIVE_OK ? 0 : extract_archive_error(a, err);
	if (result == 0)
		result = extract_archive(&m->extract, a, EXTRACT_LAYER, err);
	if (result < 0 && err && err->code != ERR_CANCELED)
		return err_wrap(err, "layer %zu of %zu", number + 1, count);
	return result;
}

/* From index to index down to the manifest of our platform. */
static int find_manifest(struct make *m, int layout_fd, struct oci_blob *ret, struct err *err)
{
	_cleanup_buf_ struct buf doc = BUF_INIT(OCI_DOCUMENT_MAX);

	if (read_document(layout_fd, "index.json", &doc, err) < 0)
		return -1;
	for (int depth = 0; depth < INDEX_DEPTH_MAX; depth++) {
		struct oci_choice choice;

		if (oci_parse_index(doc.data, doc.len, &choice, err) < 0)
			return -1;
		if (!choice.is_index) {
			*ret = choice.blob;
			return 0;
		}
		buf_consume(&doc, doc.len);
		if (read_blob(m, layout_fd, &choice.blob, &doc, err) < 0)
			return -1;
	}
	return err_set(err, ERR_INVALID, "the image's indexes are nested more than %d deep", INDEX_DEPTH_MAX);
}

static json_t *source_json(const char *kind, const char *manifest, size_t layers, json_t *run)
{
	return json_pack("{s:s, s:s*, s:i, s:O}", "kind", kind, "manifest", manifest, "layers", (int) layers, "run", run);
}

static int apply_oci(struct make *m, int layout_fd, struct err *err)
{
	_cleanup_(oci_manifest_done) struct oci_manifest manifest = { .layers = NULL };
	_cleanup_(oci_config_done) struct oci_config config = { .run = NULL };
	_cleanup_buf_ struct buf doc = BUF_INIT(OCI_DOCUMENT_MAX);
	struct oci_blob blob;

	if (find_manifest(m, layout_fd, &blob, err) < 0 || read_blob(m, layout_fd, &blob, &doc, err) < 0 ||
	    oci_parse_manifest(doc.data, doc.len, &manifest, err) < 0)
		return -1;
	buf_consume(&doc, doc.len);
	if (read_blob(m, layout_fd, &manifest.config, &doc, err) < 0 ||
	    oci_parse_config(doc.data, doc.len, &config, err) < 0)
		return -1;
	if (config.diff_id_count != manifest.layer_count)
		return err_set(err, ERR_INVALID, "the image has %zu layers, but its configuration speaks of %zu",
		               manifest.layer_count, config.diff_id_count);
	for (size_t i = 0; i < manifest.layer_count; i++) {
		_cleanup_close_ int fd = open_blob(m, layout_fd, &manifest.layers[i], err);

		if (fd < 0 || apply_layer(m, fd, i, manifest.layer_count, err) < 0)
			return -1;
	}
	m->source = source_json("oci", blob.hex, manifest.layer_count, config.run);
	return 0;
}

/* `docker save` before version 25 has no blobs; its layers are plain tars, so that the
 * digests of the configuration are those of the files. */
static int apply_docker(struct make *m, int layout_fd, struct err *err)
{
	_cleanup_(oci_docker_done) struct oci_docker docker = { .layers = NULL };
	_cleanup_(oci_config_done) struct oci_config config = { .run = NULL };
	_cleanup_buf_ struct buf doc = BUF_INIT(OCI_DOCUMENT_MAX);

	if (read_document(layout_fd, "manifest.json", &doc, err) < 0 ||
	    oci_parse_docker(doc.data, doc.len, &docker, err) < 0)
		return -1;
	buf_consume(&doc, doc.len);
	if (read_document(layout_fd, docker.config, &doc, err) < 0 ||
	    oci_parse_config(doc.data, doc.len, &config, err) < 0)
		return -1;
	if (config.diff_id_count != docker.layer_count)
		return err_set(err, ERR_INVALID, "the image has %zu layers, but its configuration speaks of %zu",
		               docker.layer_count, config.diff_id_count);
	for (size_t i = 0; i < docker.layer_count; i++) {
		uint64_t size;
		_cleanup_close_ int fd = open_file(layout_fd, docker.layers[i], &size, err);

		if (fd < 0 || verify(m, fd, config.diff_ids[i], docker.layers[i], err) < 0 ||
		    apply_layer(m, fd, i, docker.layer_count, err) < 0)
			return -1;
	}
	m->source = source_json("docker", NULL, docker.layer_count, config.run);
	return 0;
}

int image_apply(struct make *m, int layout_fd, struct err *err)
{
	progress_phase(&m->progress, "checking the image");
	if (faccessat(layout_fd, "index.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return apply_oci(m, layout_fd, err);
	if (faccessat(layout_fd, "manifest.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return apply_docker(m, layout_fd, err);
	return err_set(err, ERR_INVALID, "the image has neither index.json nor manifest.json");
}
