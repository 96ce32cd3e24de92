/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/codec.h"

static uint8_t *room(struct wire_writer *w, size_t n)
{
	uint8_t *at;

	if (w->failed || n > w->cap - w->len) {
		w->failed = true;
		return NULL;
	}
	at = w->data + w->len;
	w->len += n;
	return at;
}

static void put_le(struct wire_writer *w, uint64_t v, size_t n)
{
	uint8_t *at = room(w, n);

	for (size_t i = 0; at && i < n; i++)
		at[i] = (uint8_t) (v >> (8 * i));
}

void wire_put_u8(struct wire_writer *w, uint8_t v) { put_le(w, v, 1); }
void wire_put_u16(struct wire_writer *w, uint16_t v) { put_le(w, v, 2); }
void wire_put_u32(struct wire_writer *w, uint32_t v) { put_le(w, v, 4); }
void wire_put_u64(struct wire_writer *w, uint64_t v) { put_le(w, v, 8); }

void wire_put_bytes(struct wire_writer *w, const void *data, size_t len)
{
	uint8_t *at;

	if (len > UINT32_MAX) {
		w->failed = true;
		return;
	}
	wire_put_u32(w, (uint32_t) len);
	at = room(w, len);
	if (at && len)
		memcpy(at, data, len);
}

void wire_put_str(struct wire_writer *w, const char *s)
{
	wire_put_bytes(w, s, strlen(s));
}

static const uint8_t *take(struct wire_reader *r, size_t n)
{
	const uint8_t *at;

	if (r->failed || n > r->len - r->at) {
		r->failed = true;
		return NULL;
	}
	at = r->data + r->at;
	r->at += n;
	return at;
}

static uint64_t get_le(struct wire_reader *r, size_t n)
{
	const uint8_t *at = take(r, n);
	uint64_t v = 0;

	for (size_t i = 0; at && i < n; i++)
		v |= (uint64_t) at[i] << (8 * i);
	return v;
}

uint8_t wire_get_u8(struct wire_reader *r) { return (uint8_t) get_le(r, 1); }
uint16_t wire_get_u16(struct wire_reader *r) { return (uint16_t) get_le(r, 2); }
uint32_t wire_get_u32(struct wire_reader *r) { return (uint32_t) get_le(r, 4); }
uint64_t wire_get_u64(struct wire_reader *r) { return get_le(r, 8); }

size_t wire_get_bytes(struct wire_reader *r, const uint8_t **ret)
{
	size_t len = wire_get_u32(r);

	*ret = take(r, len);
	return *ret ? len : 0;
}

void wire_get_str(struct wire_reader *r, char *ret, size_t size)
{
	const uint8_t *at;
	size_t len = wire_get_bytes(r, &at);

	ret[0] = '\0';
	if (r->failed)
		return;
	if (len >= size || (len && memchr(at, '\0', len))) {
		r->failed = true;
		return;
	}
	if (len)
		memcpy(ret, at, len);
	ret[len] = '\0';
}
