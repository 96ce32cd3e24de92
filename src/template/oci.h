/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * oci: the JSON documents of an image, into plain structs.
 *
 * OCI image spec 1.1 (index, manifest, config), the same in Docker's media types, and
 * the manifest.json of `docker save`.  All of it is foreign: parse only, no I/O.
 */
#include <jansson.h>

#include "template/template.h"

enum {
	OCI_DOCUMENT_MAX = 4 << 20,     /* bytes; registries refuse larger manifests too */
	OCI_LAYERS_MAX = 512,
	OCI_PATH_SIZE = 256,
};

struct oci_blob {
	char hex[TEMPLATE_DIGEST_SIZE]; /* of its sha256 digest; other algorithms are refused */
	uint64_t size;
};

/* The one entry of an index that a linux/amd64 machine wants. */
struct oci_choice {
	struct oci_blob blob;
	bool is_index;                  /* it is another index: look there */
};

struct oci_manifest {
	struct oci_blob config;
	struct oci_blob *layers;        /* the lowest first */
	size_t layer_count;
};

struct oci_config {
	char (*diff_ids)[TEMPLATE_DIGEST_SIZE];  /* digests of the uncompressed layers */
	size_t diff_id_count;
	json_t *run;                    /* Env, Cmd, Entrypoint, WorkingDir, User; owned */
};

/* An image of `docker save`: paths inside the archive. */
struct oci_docker {
	char config[OCI_PATH_SIZE];
	char (*layers)[OCI_PATH_SIZE];
	size_t layer_count;
};

int oci_parse_index(const char *data, size_t len, struct oci_choice *ret, struct err *err) _must_check_;
int oci_parse_manifest(const char *data, size_t len, struct oci_manifest *ret, struct err *err) _must_check_;
int oci_parse_config(const char *data, size_t len, struct oci_config *ret, struct err *err) _must_check_;
int oci_parse_docker(const char *data, size_t len, struct oci_docker *ret, struct err *err) _must_check_;

void oci_manifest_done(struct oci_manifest *m);
void oci_config_done(struct oci_config *c);
void oci_docker_done(struct oci_docker *d);
