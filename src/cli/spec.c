/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/job.h"

/* Copies up to an unescaped colon (or the end); returns what follows, NULL when it is too long. */
static const char *take_path(const char *text, bool until_colon, char *ret, size_t size)
{
	size_t n = 0;

	while (*text && !(until_colon && *text == ':')) {
		if (*text == '\\' && (text[1] == ':' || text[1] == '\\'))
			text++;
		if (n + 1 >= size)
			return NULL;
		ret[n++] = *text++;
	}
	ret[n] = '\0';
	return text;
}

int parse_copy_spec(const char *text, struct copy_spec *ret, struct err *err)
{
	const char *rest = take_path(text, true, ret->first, sizeof ret->first);

	if (rest && *rest != ':')
		return err_set(err, ERR_INVALID, "'%.60s' has no colon: expected FROM:TO (write a colon in a name as '\\:')",
		               text);
	if (!rest || !take_path(rest + 1, false, ret->second, sizeof ret->second))
		return err_set(err, ERR_INVALID, "'%.60s...' is too long", text);
	if (!ret->first[0])
		return err_set(err, ERR_INVALID, "'%.60s' names nothing to copy", text);
	return 0;
}

int complete_copy_spec(struct copy_spec *spec, struct err *err)
{
	size_t len = strlen(spec->second), end = strlen(spec->first), start;

	if (len && spec->second[len - 1] != '/')
		return 0;
	while (end > 1 && spec->first[end - 1] == '/')
		end--;
	for (start = end; start && spec->first[start - 1] != '/';)
		start--;
	if (start == end || (end - start <= 2 && !strncmp(spec->first + start, "..", end - start)))
		return err_set(err, ERR_INVALID, "'%.60s' has no name of its own: say what the copy is to be called",
		               spec->first);
	if (len + (end - start) >= sizeof spec->second)
		return err_set(err, ERR_INVALID, "'%.60s...' is too long", spec->second);
	memcpy(spec->second + len, spec->first + start, end - start);
	spec->second[len + (end - start)] = '\0';
	return 0;
}
