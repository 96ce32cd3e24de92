/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, sizes, durations and UTF-8 repair: in range when accepted, valid when repaired. */
#include <stdlib.h>
#include <string.h>
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void numbers(const char *text)
{
	struct err err = { 0 };
	uint64_t v;

	if (parse_u64(text, 3, 1000000, &v, &err) == 0)
		must(v >= 3 && v <= 1000000);
	if (parse_size(text, 3, 1ull << 40, &v, &err) == 0)
		must(v >= 3 && v <= 1ull << 40);
	if (parse_duration_ms(text, 3, 86400000, &v, &err) == 0)
		must(v >= 3 && v <= 86400000);
	if (parse_milli(text, 3, 64000, &v, &err) == 0)
		must(v >= 3 && v <= 64000);
}

static void repair(const char *data, size_t size)
{
	_cleanup_buf_ struct buf whole = BUF_INIT(3 * size + 3);
	size_t cut = utf8_complete_prefix(data, size);
	struct err err = { 0 };
	bool lossy = false;

	must(cut <= size && size - cut <= 3);
	must(utf8_append_lossy(&whole, data, size, &lossy, &err) == 0);
	must(utf8_is_valid(whole.data ? whole.data : "", whole.len));
	must(lossy == !utf8_is_valid(data, size));
	if (!lossy)
		must(whole.len == size && (!size || memcmp(whole.data, data, size) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = xstrndup((const char *) data, size);

	numbers(text);
	repair((const char *) data, size);
	return 0;
}
