/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the spawner and its replies: what decodes is in range and encodes to the same again. */
#include <stdlib.h>
#include <string.h>
#include "wire/spawn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void request(const uint8_t *data, size_t size)
{
	uint8_t packet[SPAWN_REQUEST_SIZE];
	struct spawn_request req, again;
	struct err err = { 0 };

	if (spawn_decode_request(data, size, &req, &err) < 0) {
		must(err.code == ERR_INVALID && err.msg[0]);
		return;
	}
	must(req.type >= SPAWN_HELLO && req.type < SPAWN_TYPE_COUNT);
	must(strlen(req.id) < SPAWN_ID_SIZE);
	must(!req.digest[0] || strlen(req.digest) == SPAWN_DIGEST_SIZE - 1);
	spawn_encode_request(&req, packet);
	must(spawn_decode_request(packet, sizeof packet, &again, &err) == 0);
	must(memcmp(&req.limits, &again.limits, sizeof req.limits) == 0);
	spawn_default_limits(&req.limits);
	must(spawn_check_limits(&req.limits, &err) == 0);
}

static void reply(const uint8_t *data, size_t size)
{
	struct spawn_reply rep;
	struct err err = { 0 };

	if (spawn_decode_reply(data, size, &rep, &err) == 0)
		must(err_name(&rep.err) && strlen(rep.id) < SPAWN_ID_SIZE);
}

/* The first byte chooses the direction, so that one corpus serves both. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] == 'r')
		reply(data + 1, size - 1);
	else
		request(data + 1, size - 1);
	return 0;
}
