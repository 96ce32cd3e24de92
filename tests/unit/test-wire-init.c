/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to and from init: both sides take the other's bytes for hostile. */
#include "tap.h"

#include "wire/init.h"

TEST(a_header_survives_the_journey)
{
	uint8_t packet[INIT_HEADER + 3] = { 0 };
	struct init_header h;

	init_put_header(packet, INIT_STDOUT, INIT_MORE, 3);
	CHECK(init_get_header(packet, sizeof packet, &h));
	CHECK_INT(h.type, INIT_STDOUT);
	CHECK_INT(h.flags, INIT_MORE);
	CHECK_INT(h.len, 3);
}

TEST(a_header_that_lies_is_refused)
{
	uint8_t packet[INIT_HEADER + 4] = { 0 };
	struct init_header h;

	init_put_header(packet, INIT_STDOUT, 0, 3);
	CHECK(!init_get_header(packet, INIT_HEADER + 4, &h));
	CHECK(!init_get_header(packet, INIT_HEADER + 2, &h));
	CHECK(!init_get_header(packet, INIT_HEADER - 1, &h));
	CHECK(!init_get_header(packet, 0, &h));
	packet[0] = INIT_VERSION + 1;
	CHECK(!init_get_header(packet, INIT_HEADER + 3, &h));
	init_put_header(packet, INIT_STDOUT, 0, UINT32_MAX);
	CHECK(!init_get_header(packet, INIT_HEADER, &h));
}

TEST(the_largest_packet_is_accepted_and_one_byte_more_is_not)
{
	_cleanup_free_ uint8_t *packet = xcalloc(1, INIT_PACKET_MAX + 1);
	struct init_header h;

	init_put_header(packet, INIT_STDIN, 0, INIT_PAYLOAD_MAX);
	CHECK(init_get_header(packet, INIT_PACKET_MAX, &h));
	init_put_header(packet, INIT_STDIN, 0, INIT_PAYLOAD_MAX + 1);
	CHECK(!init_get_header(packet, INIT_PACKET_MAX + 1, &h));
}

static void encode(const struct init_exec *exec, struct buf *ret)
{
	struct err err = { 0 };

	CHECK_OK(init_encode_exec(exec, ret, &err));
}

TEST(a_command_survives_the_journey)
{
	_cleanup_buf_ struct buf b = BUF_INIT(INIT_EXEC_MAX);
	char *argv[] = { "sh", "-c", "", "echo \xc3\xa9\n", NULL }, *env[] = { "A=1", "B=", NULL };
	struct init_exec in = { .flags = INIT_EXEC_PTY | INIT_EXEC_STDIN, .rows = 24, .cols = 80, .user = "user",
	                        .cwd = "/tmp", .tag = "t", .argv = argv, .env = env }, out;
	struct err err = { 0 };

	encode(&in, &b);
	CHECK_OK(init_decode_exec((uint8_t *) b.data, b.len, &out, &err));
	CHECK_INT(out.flags, in.flags);
	CHECK_INT(out.rows, 24);
	CHECK_INT(out.cols, 80);
	CHECK_STR(out.user, "user");
	CHECK_STR(out.cwd, "/tmp");
	CHECK_STR(out.tag, "t");
	for (int i = 0; i < 4; i++)
		CHECK_STR(out.argv[i], argv[i]);
	CHECK(!out.argv[4]);
	CHECK_STR(out.env[0], "A=1");
	CHECK_STR(out.env[1], "B=");
	CHECK(!out.env[2]);
	init_exec_done(&out);
}

TEST(no_environment_is_an_empty_list)
{
	_cleanup_buf_ struct buf b = BUF_INIT(INIT_EXEC_MAX);
	char *argv[] = { "true", NULL };
	struct init_exec in = { .argv = argv }, out;
	struct err err = { 0 };

	encode(&in, &b);
	CHECK_OK(init_decode_exec((uint8_t *) b.data, b.len, &out, &err));
	CHECK(out.env && !out.env[0]);
	init_exec_done(&out);
}

/* Cut at every length, and with every byte spoilt: refused or decoded, never a wild read. */
TEST(a_spoilt_command_is_refused_or_harmless)
{
	_cleanup_buf_ struct buf b = BUF_INIT(INIT_EXEC_MAX);
	char *argv[] = { "sh", "-c", "true", NULL }, *env[] = { "A=1", NULL };
	struct init_exec in = { .user = "u", .cwd = "/", .argv = argv, .env = env }, out;
	struct err err = { 0 };

	encode(&in, &b);
	for (size_t i = 0; i < b.len; i++) {
		_cleanup_free_ uint8_t *cut = xcalloc(i + 1, 1), *spoilt = xcalloc(b.len, 1);

		memcpy(cut, b.data, i);
		CHECK_ERR(init_decode_exec(cut, i, &out, &err), ERR_INVALID);
		CHECK(!out.argv && !out.env);
		memcpy(spoilt, b.data, b.len);
		spoilt[i] ^= 0xff;
		if (init_decode_exec(spoilt, b.len, &out, &err) == 0)
			init_exec_done(&out);
	}
	CHECK_ERR(init_decode_exec((uint8_t *) b.data, b.len - 1, &out, &err), ERR_INVALID);
}

static void decode_refused(const struct init_exec *in)
{
	_cleanup_buf_ struct buf b = BUF_INIT(INIT_EXEC_MAX);
	struct init_exec out;
	struct err err = { 0 };

	encode(in, &b);
	CHECK_ERR(init_decode_exec((uint8_t *) b.data, b.len, &out, &err), ERR_INVALID);
}

TEST(no_command_and_unknown_flags_are_refused)
{
	char *none[] = { NULL }, *argv[] = { "true", NULL };

	decode_refused(&(struct init_exec) { .argv = none });
	decode_refused(&(struct init_exec) { .argv = argv, .flags = INIT_EXEC_ALL + 1 });
}

TEST(a_count_that_the_packet_cannot_hold_is_not_allocated)
{
	/* flags, rows, cols; three empty fields; an argument count of 4,096 and nothing behind it */
	uint8_t body[8 + 3 * 5 + 4] = { 0 };
	struct init_exec out;
	struct err err = { 0 };

	body[8 + 15 + 1] = 0x10;
	CHECK_ERR(init_decode_exec(body, sizeof body, &out, &err), ERR_INVALID);
}

TEST(too_many_arguments_are_refused_by_name)
{
	static char *argv[INIT_ARGS_MAX + 2], *env[INIT_ENV_MAX + 2];
	_cleanup_buf_ struct buf b = BUF_INIT(INIT_EXEC_MAX);
	struct init_exec in = { .argv = argv };
	struct err err = { 0 };

	for (int i = 0; i <= INIT_ARGS_MAX; i++)
		argv[i] = "x";
	CHECK_ERR(init_encode_exec(&in, &b, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "arguments");
	argv[1] = NULL;
	for (int i = 0; i <= INIT_ENV_MAX; i++)
		env[i] = "A=1";
	in.env = env;
	CHECK_ERR(init_encode_exec(&in, &b, &err), ERR_INVALID);
	CHECK_CONTAINS(err.msg, "environment");
}

TEST(a_command_past_the_ceiling_is_resource_exhausted)
{
	_cleanup_buf_ struct buf b = BUF_INIT(INIT_EXEC_MAX);
	_cleanup_free_ char *huge = xcalloc(1, INIT_EXEC_MAX + 1);
	char *argv[] = { "echo", huge, NULL };
	struct init_exec in = { .argv = argv };
	struct err err = { 0 };

	memset(huge, 'x', INIT_EXEC_MAX);
	CHECK_ERR(init_encode_exec(&in, &b, &err), ERR_EXHAUSTED);
}

TEST(an_exit_survives_the_journey)
{
	struct init_exit in = { .pid = 7, .signaled = 1, .status = 9, .core = 1, .flags = INIT_EXIT_KILLED,
	                        .stdout_bytes = 1ull << 40, .stderr_bytes = 2, .user_us = 3, .system_us = 4,
	                        .max_rss_bytes = 5, .wall_us = 6, .killed_pid = 8, .killed_name = "python3" }, out;
	uint8_t data[256];
	struct wire_writer w = { .data = data, .cap = sizeof data };
	struct wire_reader r = { .data = data };

	init_encode_exit(&w, &in);
	CHECK(!w.failed);
	r.len = w.len;
	CHECK(init_decode_exit(&r, &out));
	CHECK_INT(out.pid, 7);
	CHECK(out.signaled == 1 && out.status == 9 && out.core == 1 && out.flags == INIT_EXIT_KILLED);
	CHECK(out.stdout_bytes == 1ull << 40 && out.stderr_bytes == 2 && out.user_us == 3 && out.system_us == 4);
	CHECK(out.max_rss_bytes == 5 && out.wall_us == 6);
	CHECK_INT(out.killed_pid, 8);
	CHECK_STR(out.killed_name, "python3");
	for (size_t i = 0; i < w.len; i++) {
		r = (struct wire_reader) { .data = data, .len = i };
		CHECK(!init_decode_exit(&r, &out));
	}
}

TEST(an_error_survives_and_its_code_is_checked)
{
	struct init_error in = { .code = ERR_NOT_FOUND, .sys = ENOENT, .step = INIT_STEP_EXEC, .msg = "no such" }, out;
	uint8_t data[300];
	struct wire_writer w = { .data = data, .cap = sizeof data };
	struct wire_reader r = { .data = data };

	init_encode_error(&w, &in);
	r.len = w.len;
	CHECK(init_decode_error(&r, &out));
	CHECK_INT(out.code, ERR_NOT_FOUND);
	CHECK_INT(out.sys, ENOENT);
	CHECK_INT(out.step, INIT_STEP_EXEC);
	CHECK_STR(out.msg, "no such");
	data[0] = ERR_OK;
	r = (struct wire_reader) { .data = data, .len = w.len };
	CHECK(!init_decode_error(&r, &out));
	data[0] = ERR_CODE_COUNT;
	r = (struct wire_reader) { .data = data, .len = w.len };
	CHECK(!init_decode_error(&r, &out));
}

static bool file_decodes(const struct init_file *in, struct init_file *ret)
{
	static uint8_t data[2 * INIT_PATH_MAX + 1024];
	struct wire_writer w = { .data = data, .cap = sizeof data };
	struct wire_reader r = { .data = data };

	init_encode_file(&w, in);
	CHECK(!w.failed);
	r.len = w.len;
	return init_decode_file(&r, ret);
}

TEST(a_file_request_survives_and_is_checked)
{
	static struct init_file f = { .op = INIT_FILE_RENAME, .flags = INIT_FILE_PARENTS, .mode = 07777, .user = "u",
	                              .path = "/a", .target = "/b" }, out;

	CHECK(file_decodes(&f, &out));
	CHECK_INT(out.op, INIT_FILE_RENAME);
	CHECK_INT(out.flags, INIT_FILE_PARENTS);
	CHECK_INT(out.mode, 07777);
	CHECK_STR(out.user, "u");
	CHECK_STR(out.path, "/a");
	CHECK_STR(out.target, "/b");
#define BAD(set) do { struct init_file bad = f; bad.set; CHECK(!file_decodes(&bad, &out)); } while (0)
	BAD(op = 0);
	BAD(op = INIT_FILE_SYMLINK + 1);
	BAD(flags = INIT_FILE_ALL + 1);
	BAD(mode = 010000);
	BAD(path[0] = '\0');
#undef BAD
	memset(f.path, 'p', INIT_PATH_MAX - 1);
	memset(f.target, 't', INIT_PATH_MAX - 1);
	CHECK(file_decodes(&f, &out));
	CHECK_INT(strlen(out.path), INIT_PATH_MAX - 1);
}

TEST(a_listing_of_files_decodes_entry_by_entry)
{
	static struct init_stat in = { .mode = 0120777, .uid = 1000, .gid = 1001, .size = 1ull << 40, .blocks = 8,
	                               .inode = 77, .mtime_s = -5, .mtime_ns = 999, .links = 2, .target = "../x",
	                               .sys = EACCES }, out;
	uint8_t data[2048];
	struct wire_writer w = { .data = data, .cap = sizeof data };
	struct wire_reader r = { .data = data };

	init_encode_stat(&w, &in);
	init_encode_stat(&w, &in);
	CHECK(!w.failed);
	r.len = w.len;
	for (int i = 0; i < 2; i++) {
		CHECK(init_decode_stat(&r, &out));
		CHECK_INT(out.mode, in.mode);
		CHECK(out.size == in.size && out.inode == 77 && out.blocks == 8);
		CHECK_INT(out.mtime_s, -5);
		CHECK_INT(out.sys, EACCES);
		CHECK_STR(out.target, "../x");
	}
	CHECK(wire_done(&r));
	CHECK(!init_decode_stat(&r, &out));
}
