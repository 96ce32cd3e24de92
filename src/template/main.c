/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuvette-template: makes, lists and removes root filesystem templates.
 *
 * `cuvette template ...` executes it with the same arguments.  A program of its own, so
 * that `cuvette run` need not load an archive and a cryptography library.
 */
#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/str.h"
#include "template/build.h"
#include "template/import.h"
#include "template/make.h"

#define DEFAULT_MAX_BYTES       (20ull << 30)

static const char usage[] =
	"usage: cuvette template list [--json]\n"
	"       cuvette template build [NAME] [--suite S] [--mirror URL] [--packages a,b] [--force] [--json]\n"
	"       cuvette template import FILE|DIR --name NAME [--max-size 20G] [--json]\n"
	"       cuvette template show NAME|DIGEST [--json]\n"
	"       cuvette template rm NAME|DIGEST [--json]\n"
	"\n"
	"A template is the read-only root filesystem that sandboxes start from.\n"
	"\n"
	"  --data DIR       where cuvette keeps its data ($CUVETTE_DATA, else /var/lib/cuvette)\n"
	"  --json           the result as JSON on stdout\n"
	"  --suite S        Debian suite to build (bookworm)\n"
	"  --mirror URL     Debian archive to build from (this machine's own)\n"
	"  --packages a,b   packages to add to those of the recipe\n"
	"  --force          build even if NAME exists\n"
	"  --name NAME      what to call an imported template\n"
	"  --max-size SIZE  refuse an import or build larger than this (20G)\n"
	"\n"
	"examples:\n"
	"  cuvette template build                       the template 'default': Python, Node.js, git\n"
	"  cuvette template build gcc --packages gcc,make\n"
	"  cuvette template import rootfs.tar.zst --name alpine\n"
	"  cuvette template import image/ --name app    an OCI layout: skopeo copy docker://... oci:image\n"
	"  cuvette run --template alpine -- sh -c 'cat /etc/os-release'\n";

struct options {
	const char *data_dir, *suite, *mirror, *packages, *name, *arg;
	uint64_t max_bytes;
	bool force, json;
};

static int print_json(const json_t *value)
{
	json_dumpf(value, stdout, JSON_INDENT(2));
	putchar('\n');
	return 0;
}

static const char *str_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

static const char *size_of(const json_t *meta, char ret[16])
{
	return size_text((uint64_t) json_integer_value(json_object_get(meta, "size_bytes")), ret);
}

/* "default, app" or "-" */
static char *names_text(const json_t *meta)
{
	char *text = xstrdup("");
	json_t *names = json_object_get(meta, "names"), *name;
	size_t i;

	json_array_foreach(names, i, name) {
		char *longer = xasprintf("%s%s%s", text, i ? ", " : "", json_string_value(name));

		free(text);
		text = longer;
	}
	if (!*text) {
		free(text);
		text = xstrdup("-");
	}
	return text;
}

/* The one clear line at the end of a build or import. */
static int print_made(const struct options *o, json_t *meta)
{
	char size[16];

	if (o->json)
		return print_json(meta);
	if (json_is_true(json_object_get(meta, "existed")) && !json_object_get(meta, "seconds"))
		printf("template %s is there already: %.12s, %s; --force builds it again\n", o->name,
		       str_of(meta, "digest"), size_of(meta, size));
	else
		printf("template %s: %.12s, %s, %lld files, %.1f s%s\n", o->name, str_of(meta, "digest"),
		       size_of(meta, size), (long long) json_integer_value(json_object_get(meta, "files")),
		       json_real_value(json_object_get(meta, "seconds")),
		       json_is_true(json_object_get(meta, "existed")) ? " (the same tree was there already)" : "");
	return 0;
}

static int cmd_build(struct options *o, struct err *err)
{
	struct build_options b = {
		.data_dir = o->data_dir, .name = o->arg ? o->arg : "default", .suite = o->suite, .mirror = o->mirror,
		.packages = o->packages, .force = o->force, .max_bytes = o->max_bytes,
	};
	json_auto_t *meta = NULL;

	o->name = b.name;
	if (build_template(&b, &meta, err) < 0)
		return -1;
	return print_made(o, meta);
}

static int cmd_import(struct options *o, struct err *err)
{
	json_auto_t *meta = NULL;

	if (!o->arg)
		return err_set(err, ERR_INVALID, "import: which FILE or directory?");
	if (!o->name || !template_name_is_valid(o->name))
		return err_set(err, ERR_INVALID, "--name: expected 1 to 64 characters of a-z 0-9 . _ - for the new template");
	if (import_template(o->data_dir, o->arg, o->name, o->max_bytes, &meta, err) < 0)
		return -1;
	return print_made(o, meta);
}

static int cmd_list(struct options *o, struct err *err)
{
	json_auto_t *list = NULL;
	struct store s = { 0 };
	json_t *meta;
	size_t i;

	if (store_open(o->data_dir, false, &s, err) == 0) {
		int result = store_list(&s, &list, err);

		store_done(&s);
		if (result < 0)
			return -1;
	} else if (err->sys == ENOENT) {
		list = json_array();
	} else {
		return -1;
	}
	if (o->json)
		return print_json(list);
	if (!json_array_size(list))
		puts("no templates yet; 'cuvette template build' makes the default one");
	else
		printf("%-20s %-12s %8s %8s  %s\n", "NAME", "DIGEST", "SIZE", "FILES", "CREATED");
	json_array_foreach(list, i, meta) {
		_cleanup_free_ char *names = names_text(meta);
		char size[16];

		printf("%-20s %.12s %8s %8lld  %s\n", names, str_of(meta, "digest"), size_of(meta, size),
		       (long long) json_integer_value(json_object_get(meta, "files")), str_of(meta, "created_at"));
	}
	return 0;
}

static void print_details(const json_t *meta)
{
	_cleanup_free_ char *names = names_text(meta);
	const char *key;
	json_t *value;
	char size[16];

	printf("names     %s\ndigest    %s\ncreated   %s\nsize      %s in %lld files\n", names, str_of(meta, "digest"),
	       str_of(meta, "created_at"), size_of(meta, size),
	       (long long) json_integer_value(json_object_get(meta, "files")));
	json_object_foreach(json_object_get(meta, "programs"), key, value)
		printf("%-9s %s\n", key, json_is_string(value) ? json_string_value(value) : "none");
	json_object_foreach(json_object_get(meta, "source"), key, value)
		if (json_is_string(value))
			printf("source    %s %s\n", key, json_string_value(value));
}

static int cmd_show(struct options *o, struct err *err)
{
	char digest[TEMPLATE_DIGEST_SIZE];
	json_auto_t *meta = NULL;
	struct store s;
	int result;

	if (template_find(o->data_dir, o->arg ? o->arg : "default", digest, err) < 0 ||
	    store_open(o->data_dir, false, &s, err) < 0)
		return -1;
	result = store_meta(&s, digest, &meta, err);
	store_done(&s);
	if (result < 0)
		return -1;
	if (o->json)
		return print_json(meta);
	print_details(meta);
	return 0;
}

static int cmd_rm(struct options *o, struct err *err)
{
	json_auto_t *removed = NULL;
	struct store s = { 0 };
	int result;

	if (!o->arg)
		return err_set(err, ERR_INVALID, "rm: which NAME or DIGEST?");
	if (store_open(o->data_dir, false, &s, err) < 0)
		return err->sys == ENOENT ? err_set(err, ERR_NOT_FOUND, "there is no template %.64s", o->arg) : -1;
	result = store_lock(&s, err);
	if (result == 0)
		result = store_remove(&s, o->data_dir, o->arg, &removed, err);
	store_done(&s);
	if (result < 0)
		return -1;
	if (o->json)
		return print_json(removed);
	printf("removed %s%s\n", o->arg, json_is_true(json_object_get(removed, "tree_removed")) ? "" :
	       "; its files stay, because they have another name");
	return 0;
}

static const struct command {
	const char *name;
	int (*run)(struct options *o, struct err *err);
} commands[] = {
	{ "build", cmd_build }, { "import", cmd_import }, { "list", cmd_list }, { "rm", cmd_rm }, { "show", cmd_show },
};

static const struct option long_options[] = {
	{ "data", required_argument, NULL, 'd' },     { "json", no_argument, NULL, 'j' },
	{ "suite", required_argument, NULL, 's' },    { "mirror", required_argument, NULL, 'm' },
	{ "packages", required_argument, NULL, 'p' }, { "force", no_argument, NULL, 'f' },
	{ "name", required_argument, NULL, 'n' },     { "max-size", required_argument, NULL, 'M' },
	{ "help", no_argument, NULL, 'h' },           { NULL, 0, NULL, 0 },
};

static int parse_options(int argc, char **argv, struct options *o, struct err *err)
{
	int c;

	*o = (struct options) {
		.data_dir = template_data_dir(), .suite = "bookworm", .max_bytes = DEFAULT_MAX_BYTES,
	};
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		switch (c) {
		case 'd': o->data_dir = optarg; break;
		case 'j': o->json = true; break;
		case 's': o->suite = optarg; break;
		case 'm': o->mirror = optarg; break;
		case 'p': o->packages = optarg; break;
		case 'f': o->force = true; break;
		case 'n': o->name = optarg; break;
		case 'M':
			if (parse_size(optarg, 1, 1ull << 50, &o->max_bytes, err) < 0)
				return err_wrap(err, "--max-size");
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		case ':':
			return err_set(err, ERR_INVALID, "%s needs a value", argv[optind - 1]);
		default:
			return err_set(err, ERR_INVALID, "unknown option %.80s; --help lists them", argv[optind - 1]);
		}
	}
	return 0;
}

static int run(int argc, char **argv, struct err *err)
{
	struct options o;

	if (parse_options(argc, argv, &o, err) < 0)
		return -1;
	if (optind >= argc)
		return err_set(err, ERR_INVALID, "which command? build, import, list, rm or show; --help explains them");
	if (optind + 2 < argc)
		return err_set(err, ERR_INVALID, "unexpected argument '%.80s'", argv[optind + 2]);
	o.arg = argv[optind + 1];
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(argv[optind], commands[i].name) == 0)
			return commands[i].run(&o, err);
	return err_set(err, ERR_INVALID, "unknown command '%.40s'; --help lists them", argv[optind]);
}

/* Walking a tree holds two descriptors per level. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int main(int argc, char **argv)
{
	struct err err = { 0 };

	setlocale(LC_CTYPE, "C.UTF-8");
	signal(SIGPIPE, SIG_IGN);
	progress_catch_signals();
	raise_descriptor_limit();
	if (run(argc, argv, &err) == 0 && fflush(stdout) == 0)
		return 0;
	if (!err.code)
		err_sys(&err, errno, "write the result");
	fprintf(stderr, "cuvette-template: %s\n", err.msg);
	return err_exit(&err);
}
