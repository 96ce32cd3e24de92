/* SPDX-License-Identifier: Apache-2.0 */
/* HOST:BOX of --in and --out: whatever was accepted names something, and fits. */
#include <assert.h>
#include <string.h>

#include "cli/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xstrndup((const char *) data, size);
	struct copy_spec spec;
	struct err err = { 0 };

	if (parse_copy_spec(text, &spec, &err) == 0) {
		assert(spec.first[0]);
		assert(strlen(spec.first) + strlen(spec.second) < strlen(text));
		if (complete_copy_spec(&spec, &err) == 0) {
			assert(spec.second[0]);
			assert(spec.second[strlen(spec.second) - 1] != '/');
		}
	}
	free(text);
	return 0;
}
