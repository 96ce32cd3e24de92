/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "tap.h"

TEST(objects_arrays_and_commas)
{
	_cleanup_json_ struct json j = JSON_INIT;

	json_open(&j, NULL, '{');
	json_open(&j, "empty", '{');
	json_close(&j, '}');
	json_open(&j, "list", '[');
	json_put_u64(&j, NULL, 1);
	json_put_u64(&j, NULL, 2);
	json_open(&j, NULL, '{');
	json_put_bool(&j, "yes", true);
	json_put_null(&j, "nothing");
	json_close(&j, '}');
	json_close(&j, ']');
	json_put_str(&j, "text", "t");
	json_put_str(&j, "none", NULL);
	json_close(&j, '}');
	CHECK_STR(j.out.data, "{\"empty\":{},\"list\":[1,2,{\"yes\":true,\"nothing\":null}],\"text\":\"t\",\"none\":null}");
}

TEST(what_a_string_may_not_hold_is_escaped)
{
	_cleanup_json_ struct json j = JSON_INIT;

	static const char text[] = "a\"b\\c\n\r\t\b\f\x01\x1f\x7f/\0z";

	json_put_text(&j, NULL, text, sizeof text - 1);
	CHECK_STR(j.out.data, "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001f\\u007f/\\u0000z\"");
}

TEST(text_that_is_not_utf8_is_repaired)
{
	_cleanup_json_ struct json j = JSON_INIT;

	json_open(&j, NULL, '[');
	json_put_str(&j, NULL, "\xff" "a");
	json_put_str(&j, NULL, "\xf0\x9f\x98\x80");
	json_put_text(&j, NULL, NULL, 0);
	json_close(&j, ']');
	CHECK_STR(j.out.data, "[\"\xef\xbf\xbd" "a\",\"\xf0\x9f\x98\x80\",\"\"]");
}

TEST(numbers_keep_64_bits)                              /* C36 */
{
	_cleanup_json_ struct json j = JSON_INIT;

	json_open(&j, NULL, '[');
	json_put_u64(&j, NULL, 6ull << 30);
	json_put_u64(&j, NULL, UINT64_MAX);
	json_put_milli(&j, NULL, 1500);
	json_put_milli(&j, NULL, 7);
	json_close(&j, ']');
	CHECK_STR(j.out.data, "[6442450944,9223372036854775807,1.500,0.007]");
}
