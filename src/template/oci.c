/* SPDX-License-Identifier: Apache-2.0 */
#include "template/oci.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "template/tree.h"

static json_t *load(const char *data, size_t len, const char *what, struct err *err)
{
	json_error_t where;
	json_t *doc;

	if (len > OCI_DOCUMENT_MAX) {
		err_set(err, ERR_INVALID, "%s is larger than %d bytes", what, OCI_DOCUMENT_MAX);
		return NULL;
	}
	doc = json_loadb(data ? data : "", len, JSON_REJECT_DUPLICATES, &where);
	if (!doc) {
		char shown[96];

		err_set(err, ERR_INVALID, "%s is not JSON (line %d: %s)", what, where.line,
		        tree_printable(where.text, shown));
	}
	return doc;
}

static const char *str_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

/* "sha256:HEX" */
static int parse_digest(const char *text, char ret[TEMPLATE_DIGEST_SIZE], struct err *err)
{
	char shown[96];

	if (strncmp(text, "sha256:", 7) != 0 || strlen(text) != 7 + TEMPLATE_DIGEST_SIZE - 1 ||
	    !is_hex(text + 7, TEMPLATE_DIGEST_SIZE - 1))
		return err_set(err, ERR_INVALID, "expected a digest sha256:<64 hex digits>, not '%s'",
		               tree_printable(text, shown));
	memcpy(ret, text + 7, TEMPLATE_DIGEST_SIZE);
	return 0;
}

static int parse_blob(const json_t *descriptor, struct oci_blob *ret, struct err *err)
{
	const json_t *size = json_object_get(descriptor, "size");

	if (!json_is_integer(size) || json_integer_value(size) < 0)
		return err_set(err, ERR_INVALID, "a descriptor lacks its size");
	ret->size = (uint64_t) json_integer_value(size);
	return parse_digest(str_of(descriptor, "digest"), ret->hex, err);
}

static bool one_of(const char *text, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(text, *list) == 0)
			return true;
	return false;
}

static bool is_index_type(const char *type)
{
	static const char *const types[] = {
		"application/vnd.oci.image.index.v1+json",
		"application/vnd.docker.distribution.manifest.list.v2+json", NULL,
	};

	return one_of(type, types);
}

static bool is_manifest_type(const char *type)
{
	static const char *const types[] = {
		"application/vnd.oci.image.manifest.v1+json",
		"application/vnd.docker.distribution.manifest.v2+json", NULL,
	};

	return one_of(type, types);
}

/* No platform means "look at it": layouts made by single-platform tools have none. */
static bool is_our_platform(const json_t *descriptor)
{
	const json_t *platform = json_object_get(descriptor, "platform");

	return !platform || (strcmp(str_of(platform, "os"), "linux") == 0 &&
	                     strcmp(str_of(platform, "architecture"), "amd64") == 0);
}

/* "linux/arm64 linux/s390x", for the refusal. */
static void note_platform(char *seen, size_t size, const json_t *descriptor)
{
	const json_t *platform = json_object_get(descriptor, "platform");
	char text[96], shown[96];
	size_t n = strlen(seen);

	snprintf(text, sizeof text, "%.20s/%.20s", str_of(platform, "os"), str_of(platform, "architecture"));
	snprintf(seen + n, size - n, "%s%s", n ? " " : "", tree_printable(text, shown));
}

static int choose(const json_t *manifests, struct oci_choice *ret, struct err *err)
{
	char seen[128] = "";
	bool found = false;
	const json_t *each;
	size_t i;

	json_array_foreach(manifests, i, each) {
		const char *type = str_of(each, "mediaType");
		struct oci_choice c;

		if (!is_index_type(type) && !is_manifest_type(type))
			continue;       /* artifacts of other kinds may share a layout */
		if (!is_our_platform(each)) {
			note_platform(seen, sizeof seen, each);
			continue;
		}
		if (parse_blob(each, &c.blob, err) < 0)
			return err_wrap(err, "manifests[%zu]", i);
		c.is_index = is_index_type(type);
		if (found && strcmp(c.blob.hex, ret->blob.hex) != 0)
			return err_set(err, ERR_INVALID, "it holds several linux/amd64 images; export one");
		*ret = c;
		found = true;
	}
	if (!found)
		return err_set(err, ERR_INVALID, "it holds no linux/amd64 image%s%s", *seen ? "; only " : "", seen);
	return 0;
}

int oci_parse_index(const char *data, size_t len, struct oci_choice *ret, struct err *err)
{
	json_auto_t *doc = load(data, len, "the index", err);
	struct oci_choice choice;

	if (!doc)
		return -1;
	if (!json_is_array(json_object_get(doc, "manifests")))
		return err_set(err, ERR_INVALID, "the index has no list 'manifests'");
	if (choose(json_object_get(doc, "manifests"), &choice, err) < 0)
		return -1;
	*ret = choice;
	return 0;
}

static int check_layer_type(const char *type, struct err *err)
{
	static const char *const types[] = {
		"application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip",
		"application/vnd.oci.image.layer.v1.tar+zstd", "application/vnd.docker.image.rootfs.diff.tar",
		"application/vnd.docker.image.rootfs.diff.tar.gzip", "application/vnd.docker.image.rootfs.diff.tar.zstd",
		NULL,
	};
	char shown[96];

	if (one_of(type, types))
		return 0;
	return err_set(err, ERR_INVALID, "a layer of type '%s' cannot be unpacked; expected tar, gzip or zstd",
	               tree_printable(type, shown));
}

int oci_parse_manifest(const char *data, size_t len, struct oci_manifest *ret, struct err *err)
{
	json_auto_t *doc = load(data, len, "the manifest", err);
	_cleanup_(oci_manifest_done) struct oci_manifest m = { .layers = NULL };
	const json_t *layers = json_object_get(doc, "layers"), *each;
	size_t i;

	if (!doc)
		return -1;
	if (!json_is_array(layers) || !json_array_size(layers))
		return err_set(err, ERR_INVALID, "the manifest has no list 'layers'");
	if (json_array_size(layers) > OCI_LAYERS_MAX)
		return err_set(err, ERR_INVALID, "the image has more than %d layers", OCI_LAYERS_MAX);
	if (parse_blob(json_object_get(doc, "config"), &m.config, err) < 0)
		return err_wrap(err, "config of the manifest");
	m.layers = xcalloc(json_array_size(layers), sizeof *m.layers);
	json_array_foreach(layers, i, each) {
		if (check_layer_type(str_of(each, "mediaType"), err) < 0 || parse_blob(each, &m.layers[i], err) < 0)
			return err_wrap(err, "layers[%zu] of the manifest", i);
		m.layer_count++;
	}
	*ret = m;
	m.layers = NULL;
	return 0;
}

/* What a sandbox may want to know of how the image meant to be run. */
static json_t *run_of(const json_t *config)
{
	static const char *const keys[] = { "Env", "Cmd", "Entrypoint", "WorkingDir", "User" };
	json_t *run = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		json_t *value = json_object_get(config, keys[i]);

		if (json_is_array(value) || (json_is_string(value) && *json_string_value(value)))
			json_object_set(run, keys[i], value);
	}
	return run;
}

int oci_parse_config(const char *data, size_t len, struct oci_config *ret, struct err *err)
{
	json_auto_t *doc = load(data, len, "the image's configuration", err);
	_cleanup_(oci_config_done) struct oci_config c = { .run = NULL };
	const json_t *ids = json_object_get(json_object_get(doc, "rootfs"), "diff_ids"), *each;
	char shown[96];
	size_t i;

	if (!doc)
		return -1;
	if (strcmp(str_of(doc, "os"), "linux") != 0 || strcmp(str_of(doc, "architecture"), "amd64") != 0) {
		_cleanup_free_ char *platform = xasprintf("%.20s/%.20s", str_of(doc, "os"), str_of(doc, "architecture"));

		return err_set(err, ERR_INVALID, "the image is for %s, not for linux/amd64", tree_printable(platform, shown));
	}
	if (!json_is_array(ids) || json_array_size(ids) > OCI_LAYERS_MAX)
		return err_set(err, ERR_INVALID, "the image's configuration has no list rootfs.diff_ids of up to %d",
		               OCI_LAYERS_MAX);
	c.diff_ids = xcalloc(json_array_size(ids) + 1, sizeof *c.diff_ids);
	json_array_foreach(ids, i, each) {
		const char *text = json_string_value(each);

		if (parse_digest(text ? text : "", c.diff_ids[i], err) < 0)
			return err_wrap(err, "rootfs.diff_ids[%zu]", i);
		c.diff_id_count++;
	}
	c.run = run_of(json_object_get(doc, "config"));
	*ret = c;
	c = (struct oci_config) { .run = NULL };
	return 0;
}

static int copy_path(const json_t *value, char ret[OCI_PATH_SIZE], struct err *err)
{
	const char *text = json_string_value(value);

	if (!text || !*text || strlen(text) >= OCI_PATH_SIZE)
		return err_set(err, ERR_INVALID, "expected a path of up to %d bytes", OCI_PATH_SIZE - 1);
	memcpy(ret, text, strlen(text) + 1);
	return 0;
}

int oci_parse_docker(const char *data, size_t len, struct oci_docker *ret, struct err *err)
{
	json_auto_t *doc = load(data, len, "manifest.json", err);
	_cleanup_(oci_docker_done) struct oci_docker d = { .layers = NULL };
	const json_t *image = json_array_get(doc, 0), *layers = json_object_get(image, "Layers"), *each;
	size_t i;

	if (!doc)
		return -1;
	if (json_array_size(doc) != 1)
		return err_set(err, ERR_INVALID, "manifest.json lists %zu images; save one", json_array_size(doc));
	if (!json_is_array(layers) || !json_array_size(layers) || json_array_size(layers) > OCI_LAYERS_MAX)
		return err_set(err, ERR_INVALID, "manifest.json has no list 'Layers' of 1 to %d", OCI_LAYERS_MAX);
	if (copy_path(json_object_get(image, "Config"), d.config, err) < 0)
		return err_wrap(err, "'Config' of manifest.json");
	d.layers = xcalloc(json_array_size(layers), sizeof *d.layers);
	json_array_foreach(layers, i, each) {
		if (copy_path(each, d.layers[i], err) < 0)
			return err_wrap(err, "Layers[%zu] of manifest.json", i);
		d.layer_count++;
	}
	*ret = d;
	d.layers = NULL;
	return 0;
}

void oci_manifest_done(struct oci_manifest *m)
{
	free(TAKE_PTR(m->layers));
}

void oci_config_done(struct oci_config *c)
{
	free(TAKE_PTR(c->diff_ids));
	json_decref(TAKE_PTR(c->run));
}

void oci_docker_done(struct oci_docker *d)
{
	free(TAKE_PTR(d->layers));
}
