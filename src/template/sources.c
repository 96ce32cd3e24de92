/* SPDX-License-Identifier: Apache-2.0 */
#include "template/sources.h"

#include <stdio.h>
#include <string.h>

#include "template/spawn.h"

#define TARGETS_MAX 1048576

struct target {
	char uri[512], release[64], component[64], origin[64];
};

bool sources_suite_is_valid(const char *suite)
{
	size_t n = strlen(suite);

	return n > 0 && n < 32 && suite[0] >= 'a' && suite[0] <= 'z' &&
	       strspn(suite, "abcdefghijklmnopqrstuvwxyz0123456789.-") == n;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

/*
 * apt knows an archive's origin only once its lists were fetched; before, it leaves
 * the variable as it stands.  Then the directory tells: every mirror of Debian calls
 * it so, and third parties that also do (Docker) have other components.
 */
static bool is_debian(const struct target *t)
{
	if (strcmp(t->component, "main") != 0)
		return false;
	if (t->origin[0] != '$' && t->origin[0] != '\0')
		return strcmp(t->origin, "Debian") == 0;
	return ends_with(t->uri, "/debian/") || ends_with(t->uri, "/debian") ||
	       ends_with(t->uri, "/debian-security/") || ends_with(t->uri, "/debian-security");
}

/* "bookworm-updates" is "-updates" of its suite; NULL for what a template does not take. */
static const char *pocket(const char *release)
{
	const char *dash = strchr(release, '-');

	if (!dash)
		return "";
	return strcmp(dash, "-updates") == 0 || strcmp(dash, "-security") == 0 ? dash : NULL;
}

static bool is_plain_uri(const char *uri)
{
	for (const char *p = uri; *p; p++)
		if (*p <= ' ' || *p >= 127 || *p == '[' || *p == ']' || *p == '#')
			return false;
	return strstr(uri, ":/") != NULL;
}

static int add_line(struct buf *out, const char *uri, const char *suite, const char *suffix, struct err *err)
{
	_cleanup_free_ char *line = xasprintf("deb %s %s%s main\n", uri, suite, suffix);

	/* One archive shows up once per architecture. */
	if (out->data && strstr(out->data, line))
		return 0;
	return buf_puts(out, line, err);
}

int sources_parse(const char *targets, const char *suite, struct buf *ret, struct err *err)
{
	while (*targets) {
		size_t len = strcspn(targets, "\n");
		char line[1024];
		struct target t;

		if (len < sizeof line) {
			snprintf(line, sizeof line, "%.*s", (int) len, targets);
			t.origin[0] = '\0';
			if (sscanf(line, "%511s %63s %63s %63s", t.uri, t.release, t.component, t.origin) >= 3 &&
			    is_debian(&t) && is_plain_uri(t.uri) && pocket(t.release) &&
			    add_line(ret, t.uri, suite, pocket(t.release), err) < 0)
				return -1;
		}
		targets += len + (targets[len] == '\n');
	}
	return 0;
}

int sources_of_machine(const char *suite, struct buf *ret, struct err *err)
{
	static const char *const argv[] = {
		"apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)",
		"Created-By: Packages", NULL,
	};
	_cleanup_buf_ struct buf targets = BUF_INIT(TARGETS_MAX);

	if (spawn_read(argv, &targets, err) < 0)
		return err_wrap(err, "ask apt for this machine's Debian archive");
	if (targets.len && sources_parse(targets.data, suite, ret, err) < 0)
		return -1;
	if (!ret->len)
		return err_set(err, ERR_PRECONDITION,
		               "this machine's apt sources name no Debian archive; name one with --mirror URL");
	return 0;
}

int sources_of_mirror(const char *mirror, const char *suite, struct buf *ret, struct err *err)
{
	if (!is_plain_uri(mirror))
		return err_set(err, ERR_INVALID, "--mirror: expected the URL of a Debian archive, not '%.80s'", mirror);
	return add_line(ret, mirror, suite, "", err);
}
