/* SPDX-License-Identifier: Apache-2.0 */
/* Names of templates, members, suites, packages, and apt's answer about archives. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "template/build.h"
#include "template/extract.h"
#include "template/sources.h"
#include "template/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void member_name(const char *text)
{
	char clean[PATH_MAX], again[PATH_MAX], bounded[PATH_MAX + 2];
	struct err err = { 0 };

	if (extract_clean_name(text, clean, &err) < 0) {
		must(err.code == ERR_INVALID && err.msg[0]);
		return;
	}
	must(clean[0] != '/' && strlen(clean) < PATH_MAX && !strstr(clean, "//"));
	snprintf(bounded, sizeof bounded, "/%s/", clean);
	must(!strstr(bounded, "/../") && !strstr(bounded, "/./"));
	must(extract_clean_name(clean, again, &err) == 0 && strcmp(clean, again) == 0);
}

static void archives(const char *text)
{
	_cleanup_buf_ struct buf lines = BUF_INIT(1 << 20);
	struct err err = { 0 };

	must(sources_parse(text, "bookworm", &lines, &err) == 0);
	for (const char *p = lines.data; p && *p; p = strchr(p, '\n') + 1)
		must(strncmp(p, "deb ", 4) == 0 && strchr(p, '\n') && memchr(p, '[', (size_t) (strchr(p, '\n') - p)) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = xstrndup((const char *) data, size);

	if (template_name_is_valid(text))
		must(strlen(text) < TEMPLATE_NAME_SIZE && !strchr(text, '/') && text[0] != '.' && text[0] != '-');
	if (build_packages_are_valid(text))
		must(text[0] != '-' && !strstr(text, ",-") && !strpbrk(text, " /?;=\n"));
	if (sources_suite_is_valid(text))
		must(text[0] != '-' && !strchr(text, '/'));
	member_name(text);
	archives(text);
	return 0;
}
