/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every message between host and init, in both directions.  The first byte
 * chooses the decoder, so that one corpus serves all.  What decodes is within its
 * limits and encodes to the very same bytes.
 */
#include <stdlib.h>
#include <string.h>
#include "wire/init.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void header(const uint8_t *data, size_t size)
{
	uint8_t again[INIT_HEADER];
	struct init_header h;

	if (!init_get_header(data, size, &h))
		return;
	must(h.len == size - INIT_HEADER && h.len <= INIT_PAYLOAD_MAX);
	init_put_header(again, h.type, h.flags, h.len);
	must(memcmp(again, data, sizeof again) == 0);
}

static void exec(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *body = xcalloc(size + 1, 1);
	_cleanup_buf_ struct buf again = BUF_INIT(INIT_EXEC_MAX);
	struct init_exec e;
	struct err err = { 0 };

	memcpy(body, data, size);
	if (init_decode_exec(body, size, &e, &err) < 0) {
		must(err.code == ERR_INVALID && !e.argv && !e.env);
		return;
	}
	must(e.argv[0] && strlen(e.cwd) < INIT_PATH_MAX && strlen(e.user) < INIT_NAME_MAX);
	if (size <= INIT_EXEC_MAX) {
		must(init_encode_exec(&e, &again, &err) == 0);
		must(again.len == size && memcmp(again.data, data, size) == 0);
	}
	init_exec_done(&e);
}

static uint8_t packet[INIT_PAYLOAD_MAX];

/* The writer holds exactly what the reader has consumed. */
static void must_be_the_same(const struct wire_writer *w, const struct wire_reader *r)
{
	must(!w->failed && w->len == r->at && memcmp(w->data, r->data, w->len) == 0);
}

static void file(struct wire_reader *r, struct wire_writer *w)
{
	static struct init_file f;

	if (!init_decode_file(r, &f))
		return;
	must(f.path[0] && strlen(f.path) < INIT_PATH_MAX && strlen(f.target) < INIT_PATH_MAX && f.mode <= 07777);
	init_encode_file(w, &f);
	must_be_the_same(w, r);
}

static void stat_entries(struct wire_reader *r, struct wire_writer *w)
{
	static struct init_stat st;

	for (size_t at = r->at; init_decode_stat(r, &st); at = r->at) {
		must(r->at > at && strlen(st.target) < INIT_PATH_MAX);
		init_encode_stat(w, &st);
		must_be_the_same(w, r);
	}
}

static void exit_report(struct wire_reader *r, struct wire_writer *w)
{
	struct init_exit e;

	if (!init_decode_exit(r, &e))
		return;
	must(strlen(e.killed_name) < sizeof e.killed_name);
	init_encode_exit(w, &e);
	must_be_the_same(w, r);
}

static void error_report(struct wire_reader *r, struct wire_writer *w)
{
	struct init_error e;

	if (!init_decode_error(r, &e))
		return;
	must(e.code > ERR_OK && e.code < ERR_CODE_COUNT && strlen(e.msg) < sizeof e.msg);
	init_encode_error(w, &e);
	must_be_the_same(w, r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_writer w = { .data = packet, .cap = sizeof packet };
	struct wire_reader r;

	if (size == 0 || size > sizeof packet)
		return 0;
	r = (struct wire_reader) { .data = data + 1, .len = size - 1 };
	switch (data[0]) {
	case 'h':
		header(data + 1, size - 1);
		break;
	case 'x':
		exec(data + 1, size - 1);
		break;
	case 'f':
		file(&r, &w);
		break;
	case 's':
		stat_entries(&r, &w);
		break;
	case 'q':
		exit_report(&r, &w);
		break;
	case 'e':
		error_report(&r, &w);
		break;
	}
	return 0;
}
