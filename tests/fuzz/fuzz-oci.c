/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of an image: what parses has whole digests, bounded counts and paths that end. */
#include <string.h>

#include "base/str.h"
#include "template/oci.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void must_be_refused(const struct err *err)
{
	must(err->code == ERR_INVALID && err->msg[0]);
}

static void index_document(const char *text, size_t len)
{
	struct oci_choice c;
	struct err err = { 0 };

	if (oci_parse_index(text, len, &c, &err) < 0)
		must_be_refused(&err);
	else
		must(is_hex(c.blob.hex, TEMPLATE_DIGEST_SIZE - 1));
}

static void manifest_document(const char *text, size_t len)
{
	struct oci_manifest m;
	struct err err = { 0 };

	if (oci_parse_manifest(text, len, &m, &err) < 0) {
		must_be_refused(&err);
		return;
	}
	must(m.layer_count > 0 && m.layer_count <= OCI_LAYERS_MAX);
	must(is_hex(m.config.hex, TEMPLATE_DIGEST_SIZE - 1));
	for (size_t i = 0; i < m.layer_count; i++)
		must(is_hex(m.layers[i].hex, TEMPLATE_DIGEST_SIZE - 1) && m.layers[i].size <= INT64_MAX);
	oci_manifest_done(&m);
}

static void config_document(const char *text, size_t len)
{
	struct oci_config c;
	struct err err = { 0 };

	if (oci_parse_config(text, len, &c, &err) < 0) {
		must_be_refused(&err);
		return;
	}
	must(c.diff_id_count <= OCI_LAYERS_MAX && json_is_object(c.run));
	oci_config_done(&c);
}

static void docker_document(const char *text, size_t len)
{
	struct oci_docker d;
	struct err err = { 0 };

	if (oci_parse_docker(text, len, &d, &err) < 0) {
		must_be_refused(&err);
		return;
	}
	must(d.config[0] && d.layer_count > 0 && d.layer_count <= OCI_LAYERS_MAX);
	for (size_t i = 0; i < d.layer_count; i++)
		must(d.layers[i][0] && strnlen(d.layers[i], OCI_PATH_SIZE) < OCI_PATH_SIZE);
	oci_docker_done(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *) data;

	index_document(text, size);
	manifest_document(text, size);
	config_document(text, size);
	docker_document(text, size);
	return 0;
}
