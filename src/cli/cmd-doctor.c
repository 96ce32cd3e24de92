/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "engine/features.h"
#include "sandbox/sandbox.h"
#include "template/template.h"

struct doctor_options {
	const char *data;
	bool json;
};

static const struct option options[] = {
	{ "data", 0, OPTION_TEXT, offsetof(struct doctor_options, data), "DIR",
	  "where templates are (default $CUVETTE_DATA or /var/lib/cuvette)", .hint = HINT_DIR },
	{ "json", 0, OPTION_FLAG, offsetof(struct doctor_options, json), NULL, "print a JSON object" },
};

static const char *const states[] = {
	[LAYER_PRESENT] = "ok", [LAYER_DEGRADED] = "degraded", [LAYER_MISSING] = "missing",
};

/* One more line of the same kind, for what is not the kernel's. */
static struct layer *add_layer(struct layers *layers, const char *name, bool required)
{
	struct layer *l;

	if (layers->count == LAYERS_MAX)
		return NULL;
	l = &layers->list[layers->count++];
	*l = (struct layer) { .name = name, .required = required, .state = LAYER_MISSING };
	return l;
}

static void check_template(struct layers *layers, const char *data_dir)
{
	struct layer *l = add_layer(layers, "default template", false);
	char digest[TEMPLATE_DIGEST_SIZE];
	struct err err = { 0 };

	if (!l)
		return;
	if (template_find(data_dir, "default", digest, &err) == 0) {
		l->state = LAYER_PRESENT;
		snprintf(l->text, sizeof l->text, "%.12s in %.100s", digest, data_dir);
		return;
	}
	if (err.code != ERR_NOT_FOUND) {
		snprintf(l->text, sizeof l->text, "%s", err.msg);
		snprintf(l->fix, sizeof l->fix, "see \"data directory\" above");
		return;
	}
	snprintf(l->text, sizeof l->text, "no template named default in %.100s", data_dir);
	snprintf(l->fix, sizeof l->fix, "cuvette template build default");
}

static void check_spawner(struct layers *layers)
{
	struct layer *l = add_layer(layers, "spawner program", true);
	struct err err = { 0 };
	char path[4096];

	if (!l)
		return;
	if (sandbox_find_program("cuvette-spawner", path, sizeof path, &err) == 0) {
		l->state = LAYER_PRESENT;
		snprintf(l->text, sizeof l->text, "%s", path);
		return;
	}
	snprintf(l->text, sizeof l->text, "cuvette-spawner was not found");
	snprintf(l->fix, sizeof l->fix, "run 'make build', or set CUVETTE_LIBEXEC to the directory of the programs");
}

static bool is_usable(const struct layers *layers)
{
	for (size_t i = 0; i < layers->count; i++)
		if (layers->list[i].required && layers->list[i].state == LAYER_MISSING)
			return false;
	return true;
}

static void print_text(const struct layers *layers)
{
	for (size_t i = 0; i < layers->count; i++) {
		const struct layer *l = &layers->list[i];
		const char *state = l->state == LAYER_MISSING && !l->required ? "absent" : states[l->state];

		printf("%-9s %-26s %s\n", state, l->name, l->text);
		if (l->state != LAYER_PRESENT && l->fix[0])
			printf("%-9s %-26s -> %s\n", "", "", l->fix);
	}
	if (is_usable(layers))
		printf("\nEverything that a sandbox requires is here.\n");
	else
		printf("\nSomething required is missing: sandboxes are refused until it is there.\n");
}

static void print_json(const struct layers *layers)
{
	_cleanup_json_ struct json j = JSON_INIT;

	json_open(&j, NULL, '{');
	json_put_bool(&j, "usable", is_usable(layers));
	json_open(&j, "layers", '[');
	for (size_t i = 0; i < layers->count; i++) {
		const struct layer *l = &layers->list[i];

		json_open(&j, NULL, '{');
		json_put_str(&j, "name", l->name);
		json_put_bool(&j, "required", l->required);
		json_put_str(&j, "state", states[l->state]);
		json_put_str(&j, "text", l->text);
		json_put_str(&j, "fix", l->fix);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	puts(j.out.data);
}

static int diagnose(const struct doctor_options *o)
{
	struct layers *layers = xcalloc(1, sizeof *layers);
	const char *data = o->data ? o->data : sandbox_data_dir();
	int status;

	features_probe(data, layers);
	check_spawner(layers);
	check_template(layers, data);
	if (o->json)
		print_json(layers);
	else
		print_text(layers);
	status = is_usable(layers) ? 0 : 1;
	free(layers);
	return status;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct doctor_options o = { 0 };
	struct arguments args;
	struct err err = { 0 };
	int status = 0;

	if (parse_arguments(cmd, argc, argv, &o, 0, &args, &err) < 0)
		return fail(cmd, &err, -1);
	if (args.help)
		print_help(cmd);
	else if (no_words(&args, &err) < 0)
		status = fail(cmd, &err, -1);
	else
		status = diagnose(&o);
	arguments_done(&args);
	return status;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "say what this machine can enforce, and what is missing",
	.usage = "[--json] [--data DIR]",
	.text =
		"Tries each layer of the isolation for real. The exit status is 1 when something is\n"
		"missing without which a sandbox is refused.",
	.examples = "  cuvette doctor\n  cuvette doctor --json",
	.options = { OPTION_SET(options) },
	.run = run,
};
