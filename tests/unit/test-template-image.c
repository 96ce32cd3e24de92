/* SPDX-License-Identifier: Apache-2.0 */
/* OCI layouts, docker save, and where Debian comes from. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "tap.h"
#include "template-tar.h"
#include "template/build.h"
#include "template/digest.h"
#include "template/import.h"
#include "template/oci.h"
#include "template/sources.h"
#include "template/tree.h"

#define HEX "1111111111111111111111111111111111111111111111111111111111111111"
#define HEX2 "2222222222222222222222222222222222222222222222222222222222222222"
#define MANIFEST "\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\""
#define INDEX "\"mediaType\":\"application/vnd.oci.image.index.v1+json\""
#define LAYER "\"mediaType\":\"application/vnd.oci.image.layer.v1.tar\""
#define AMD64 "\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}"
#define ARM64 "\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\"}"
#define BLOB(hex) "\"digest\":\"sha256:" hex "\",\"size\":5"

static int index_of(const char *text, struct oci_choice *ret, struct err *err)
{
	return oci_parse_index(text, strlen(text), ret, err);
}

TEST(the_image_of_our_platform_is_chosen)
{
	struct oci_choice c;
	struct err err = { 0 };

	CHECK_OK(index_of("{\"manifests\":[{" MANIFEST "," BLOB(HEX2) "," ARM64 "},{" MANIFEST "," BLOB(HEX) "," AMD64
	                  "}]}", &c, &err));
	CHECK_STR(c.blob.hex, HEX);
	CHECK_INT(c.blob.size, 5);
	CHECK(!c.is_index);
	CHECK_OK(index_of("{\"manifests\":[{" INDEX "," BLOB(HEX) "}]}", &c, &err));
	CHECK(c.is_index);
	CHECK_ERR(index_of("{\"manifests\":[{" MANIFEST "," BLOB(HEX2) "," ARM64 "}]}", &c, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "linux/arm64");
	CHECK_ERR(index_of("{\"manifests\":[{" MANIFEST "," BLOB(HEX2) "},{" MANIFEST "," BLOB(HEX) "}]}", &c, &err),
	          ERR_INVALID);
	CHECK_CONTAINS(err.msg, "several");
}

TEST(documents_that_lie_are_refused)    /* F06 */
{
	static const char *const bad[] = {
		"", "[]", "{", "{\"manifests\":{}}", "{\"manifests\":[1,null,\"x\"]}",
		"{\"manifests\":[{" MANIFEST ",\"digest\":\"sha512:" HEX "\",\"size\":5}]}",
		"{\"manifests\":[{" MANIFEST ",\"digest\":\"sha256:../../../etc/passwd\",\"size\":5}]}",
		"{\"manifests\":[{" MANIFEST ",\"digest\":\"sha256:" HEX "\",\"size\":-5}]}",
		"{\"manifests\":[{" MANIFEST ",\"digest\":\"sha256:" HEX "\"}]}",
		"{\"manifests\":[],\"manifests\":[]}",
	};
	struct oci_manifest m;
	struct oci_choice c;
	struct err err = { 0 };
	static const char foreign[] = "{\"config\":{" BLOB(HEX) "},\"layers\":[{\"mediaType\":"
		"\"application/vnd.oci.image.layer.v1.tar+gzip+encrypted\"," BLOB(HEX) "}]}";

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_ERR(index_of(bad[i], &c, &err), ERR_INVALID);
	CHECK_ERR(oci_parse_manifest(foreign, strlen(foreign), &m, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "encrypted");
}

/* ---- whole imports ---- */

struct place {
	char path[64], data[80];
	int fd;
};

static struct place place_new(void)
{
	struct place p = { .path = "/tmp/cuvette-image-XXXXXX" };

	if (geteuid() != 0)
		SKIP("templates are made as root");
	CHECK(mkdtemp(p.path));
	snprintf(p.data, sizeof p.data, "%s/data", p.path);
	p.fd = open(p.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(mkdirat(p.fd, "layout", 0755) == 0 && mkdirat(p.fd, "layout/blobs", 0755) == 0);
	CHECK(mkdirat(p.fd, "layout/blobs/sha256", 0755) == 0);
	return p;
}

static void place_done(struct place *p)
{
	CHECK(tree_empty(p->fd, NULL) == 0);
	close(p->fd);
	CHECK(rmdir(p->path) == 0);
}
#define _place_ _cleanup_(place_done)

static void put(struct place *p, const char *path, const void *data, size_t len)
{
	_cleanup_close_ int fd = openat(p->fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	CHECK(fd >= 0 && write_all(fd, data, len) == 0);
}

/* Puts a blob where its digest says; the digest is in `ret`. */
static void put_blob(struct place *p, const void *data, size_t len, char ret[TEMPLATE_DIGEST_SIZE])
{
	struct err err = { 0 };
	char path[128];

	put(p, "blob", data, len);
	_cleanup_close_ int fd = openat(p->fd, "blob", O_RDONLY);
	CHECK_OK(digest_fd(fd, NULL, ret, NULL, &err));
	snprintf(path, sizeof path, "layout/blobs/sha256/%s", ret);
	CHECK(renameat(p->fd, "blob", p->fd, path) == 0);
}

struct image {
	char layers[2][TEMPLATE_DIGEST_SIZE], config[TEMPLATE_DIGEST_SIZE], manifest[TEMPLATE_DIGEST_SIZE];
	size_t sizes[2];
};

/* Two layers: the second replaces a file, hides one, and is compressed by nothing. */
static struct image put_image(struct place *p)
{
	struct image im;
	char text[2048];
	int n;

	for (int i = 0; i < 2; i++) {
		struct tar t = TAR_INIT;

		if (i == 0) {
			tar_dir(&t, "etc");
			tar_file(&t, "etc/gone", "1");
			tar_file(&t, "etc/changed", "1");
		} else {
			tar_file(&t, "etc/.wh.gone", "");
			tar_file(&t, "etc/changed", "2");
		}
		tar_end(&t);
		put_blob(p, t.data, t.len, im.layers[i]);
		im.sizes[i] = t.len;
		free(t.data);
	}
	n = snprintf(text, sizeof text, "{\"os\":\"linux\",\"architecture\":\"amd64\",\"config\":{\"Env\":[\"A=b\"],"
	             "\"WorkingDir\":\"/app\"},\"rootfs\":{\"diff_ids\":[\"sha256:%s\",\"sha256:%s\"]}}",
	             im.layers[0], im.layers[1]);
	put_blob(p, text, (size_t) n, im.config);
	n = snprintf(text, sizeof text, "{\"config\":{\"digest\":\"sha256:%s\",\"size\":%d},\"layers\":["
	             "{" LAYER ",\"digest\":\"sha256:%s\",\"size\":%zu},{" LAYER ",\"digest\":\"sha256:%s\",\"size\":%zu}]}",
	             im.config, n, im.layers[0], im.sizes[0], im.layers[1], im.sizes[1]);
	put_blob(p, text, (size_t) n, im.manifest);
	n = snprintf(text, sizeof text, "{\"manifests\":[{" MANIFEST ",\"digest\":\"sha256:%s\",\"size\":%d}]}",
	             im.manifest, n);
	put(p, "layout/index.json", text, (size_t) n);
	put(p, "layout/oci-layout", "{}", 2);
	return im;
}

static int import(struct place *p, const char *what, json_t **ret, struct err *err)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", p->path, what);

	return import_template(p->data, path, "t", 1 << 20, ret, err);
}

static void check_tree(struct place *p)
{
	char text[16];

	CHECK(read_file_at(p->fd, "data/templates/names/t/rootfs/etc/changed", text, sizeof text, NULL) == 0);
	CHECK_STR(text, "2");
	CHECK(faccessat(p->fd, "data/templates/names/t/rootfs/etc/gone", F_OK, 0) < 0);
	CHECK(faccessat(p->fd, "data/templates/names/t/rootfs/home/user", F_OK, 0) == 0);
}

/* After a refusal nothing is left but the empty store. */
static void check_nothing(struct place *p)
{
	_cleanup_close_ int fd = openat(p->fd, "data/templates", O_RDONLY | O_DIRECTORY);
	struct stat st;

	CHECK(fstat(fd, &st) == 0);
	CHECK_INT(st.st_nlink, 3);      /* itself, its parent's entry, names */
}

TEST(an_oci_layout_becomes_a_template)
{
	_place_ struct place p = place_new();
	struct image im = put_image(&p);
	struct err err = { 0 };
	json_auto_t *meta = NULL;
	json_t *source;

	CHECK_OK(import(&p, "layout", &meta, &err));
	check_tree(&p);
	source = json_object_get(meta, "source");
	CHECK_STR(json_string_value(json_object_get(source, "kind")), "oci");
	CHECK_STR(json_string_value(json_object_get(source, "manifest")), im.manifest);
	CHECK_STR(json_string_value(json_object_get(json_object_get(source, "run"), "WorkingDir")), "/app");
}

TEST(a_damaged_or_resized_blob_is_refused_before_use)   /* F06 */
{
	for (int i = 0; i < 3; i++) {
		_place_ struct place p = place_new();
		struct image im = put_image(&p);
		struct err err = { 0 };
		json_t *meta = NULL;
		char path[128];

		snprintf(path, sizeof path, "layout/blobs/sha256/%s", i == 1 ? im.config : im.layers[1]);
		_cleanup_close_ int fd = openat(p.fd, path, O_WRONLY);
		CHECK(i < 2 ? pwrite(fd, "X", 1, 20) == 1 : ftruncate(fd, (off_t) im.sizes[1] + 512) == 0);
		CHECK_ERR(import(&p, "layout", &meta, &err), ERR_INVALID);
		CHECK_CONTAINS(err.msg, i < 2 ? "damaged" : "bytes, not");
		check_nothing(&p);
	}
}

TEST(blobs_are_not_followed_out_of_the_layout)  /* C19 */
{
	_place_ struct place p = place_new();
	struct image im = put_image(&p);
	struct err err = { 0 };
	json_t *meta = NULL;
	char path[128], target[160];

	snprintf(path, sizeof path, "layout/blobs/sha256/%s", im.layers[0]);
	snprintf(target, sizeof target, "%s/moved", p.path);
	CHECK(renameat(p.fd, path, p.fd, "moved") == 0 && symlinkat(target, p.fd, path) == 0);
	CHECK(import(&p, "layout", &meta, &err) < 0);
	CHECK_CONTAINS(err.msg, im.layers[0]);
	check_nothing(&p);
}

/* The layout as one tar, in the order that is worst for a reader: documents last. */
static void put_archive(struct place *p, const char *name, bool docker)
{
	struct image im = put_image(p);
	struct tar t = TAR_INIT;
	char text[1024], path[128];
	_cleanup_free_ char *data = xcalloc(1, 65536);
	const char *files[4] = { im.layers[0], im.layers[1], im.config, im.manifest };

	for (int i = 0; i < (docker ? 3 : 4); i++) {
		snprintf(path, sizeof path, "layout/blobs/sha256/%s", files[i]);
		_cleanup_close_ int fd = openat(p->fd, path, O_RDONLY);
		ssize_t n = read_full(fd, data, 65536);

		CHECK(n > 0);
		snprintf(path, sizeof path, docker ? i < 2 ? "%s/layer.tar" : "%s.json" : "blobs/sha256/%s", files[i]);
		tar_member(&t, '0', path, NULL, data, (size_t) n);
	}
	if (docker) {
		snprintf(text, sizeof text, "[{\"Config\":\"%s.json\",\"Layers\":[\"%s/layer.tar\",\"%s/layer.tar\"]}]",
		         im.config, im.layers[0], im.layers[1]);
		tar_file(&t, "manifest.json", text);
	} else {
		CHECK(read_file_at(p->fd, "layout/index.json", text, sizeof text, NULL) == 0);
		tar_file(&t, "index.json", text);
	}
	tar_end(&t);
	put(p, name, t.data, t.len);
	free(t.data);
}

TEST(a_tar_of_a_layout_and_docker_save_become_templates)
{
	for (int docker = 0; docker < 2; docker++) {
		_place_ struct place p = place_new();
		struct err err = { 0 };
		json_auto_t *meta = NULL;

		put_archive(&p, "image.tar", docker);
		CHECK_OK(import(&p, "image.tar", &meta, &err));
		check_tree(&p);
		CHECK_STR(json_string_value(json_object_get(json_object_get(meta, "source"), "kind")),
		          docker ? "docker" : "oci");
	}
}

TEST(an_import_that_is_refused_leaves_nothing_behind)   /* F07, F13 */
{
	_place_ struct place p = place_new();
	struct tar t = TAR_INIT;
	struct err err = { 0 };
	json_t *meta = NULL;

	tar_link(&t, "proc", "/etc");
	tar_end(&t);
	put(&p, "root.tar", t.data, t.len);
	free(t.data);
	CHECK_ERR(import(&p, "root.tar", &meta, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "/proc");
	check_nothing(&p);
	put(&p, "text", "this is not an archive at all, but long enough to look at", 57);
	CHECK_ERR(import(&p, "text", &meta, &err), ERR_INVALID);
	put(&p, "empty", "", 0);
	CHECK_ERR(import(&p, "empty", &meta, &err), ERR_INVALID);
	CHECK_ERR(import(&p, "nowhere", &meta, &err), ERR_NOT_FOUND);
	CHECK(mkdirat(p.fd, "dir", 0755) == 0);
	CHECK_ERR(import(&p, "dir", &meta, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "OCI layout");
	check_nothing(&p);
}

/* ---- building ---- */

TEST(only_debian_of_this_machines_archives_goes_into_a_template)
{
	static const char targets[] =
		"http://mirror.invalid/debian/ bookworm main Debian\n"
		"http://mirror.invalid/debian/ bookworm main Debian\n"
		"http://mirror.invalid/debian/ bookworm contrib Debian\n"
		"http://mirror.invalid/debian/ bookworm-updates main $(ORIGIN)\n"
		"http://mirror.invalid/debian-security bookworm-security main $(ORIGIN)\n"
		"http://mirror.invalid/debian/ bookworm-backports main Debian\n"
		"https://node.invalid/node_20.x nodistro main . nodistro\n"
		"https://cloud.invalid/apt cloud-sdk-bookworm main cloud-sdk-bookworm\n"
		"https://docker.invalid/linux/debian/ bookworm stable Docker\n"
		"https://vendor.invalid/ bookworm main $(ORIGIN)\n"
		"https://[evil.invalid/debian/ bookworm main Debian\n"
		"garbage\n\n";
	_cleanup_buf_ struct buf lines = BUF_INIT(4096);
	struct err err = { 0 };

	CHECK_OK(sources_parse(targets, "bookworm", &lines, &err));
	CHECK_STR(lines.data, "deb http://mirror.invalid/debian/ bookworm main\n"
	          "deb http://mirror.invalid/debian/ bookworm-updates main\n"
	          "deb http://mirror.invalid/debian-security bookworm-security main\n");
}

TEST(arguments_of_a_build_are_checked_before_anything_runs)
{
	struct build_options o = { .data_dir = "/nonexistent", .name = "x", .suite = "bookworm", .force = true };
	struct err err = { 0 };
	json_t *meta = NULL;

	CHECK(build_packages_are_valid("gcc,g++,libc6-dev"));
	CHECK(!build_packages_are_valid("") && !build_packages_are_valid("a") && !build_packages_are_valid("gcc,"));
	CHECK(!build_packages_are_valid("gcc,-o") && !build_packages_are_valid("/tmp/x.deb"));
	CHECK(!build_packages_are_valid("?essential") && !build_packages_are_valid("gcc make"));
	o.packages = "gcc;rm";
	CHECK_ERR(build_template(&o, &meta, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "--packages");
	o.packages = NULL;
	o.suite = "--hook";
	CHECK_ERR(build_template(&o, &meta, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "--suite");
	o.suite = "bookworm";
	o.name = "../x";
	CHECK_ERR(build_template(&o, &meta, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "NAME");
}
