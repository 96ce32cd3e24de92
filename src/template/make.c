/* SPDX-License-Identifier: Apache-2.0 */
#include "template/make.h"

#include <stdio.h>
#include <time.h>

#include "template/digest.h"
#include "template/finalize.h"

int make_begin(struct make *m, const char *data_dir, uint64_t max_bytes, struct err *err)
{
	*m = (struct make) { .root_fd = -1, .store.lock_fd = -1 };
	progress_init(&m->progress);
	if (geteuid() != 0)
		return err_set(err, ERR_PERMISSION, "templates are made as root: their files have many owners");
	if (store_open(data_dir, true, &m->store, err) < 0 || store_lock(&m->store, err) < 0)
		return -1;
	if (store_begin(&m->store, m->tmp, &m->root_fd, err) < 0)
		return -1;
	m->extract = (struct extract) {
		.root_fd = m->root_fd, .max_bytes = max_bytes, .progress = &m->progress,
	};
	return 0;
}

void make_done(struct make *m)
{
	progress_clear(&m->progress);
	m->root_fd = close_fd(m->root_fd);
	if (m->store.path)
		store_discard(&m->store, m->tmp);
	store_done(&m->store);
	json_decref(m->source);
}

static json_t *report_json(const struct extract_report *r)
{
	return json_pack("{s:I, s:I, s:I, s:I}",
	                 "devices_dropped", (json_int_t) r->devices_dropped,
	                 "xattrs_dropped", (json_int_t) r->xattrs_dropped,
	                 "owners_mapped", (json_int_t) r->owners_mapped,
	                 "setuid_cleared", (json_int_t) r->setuid_cleared);
}

static json_t *meta_json(struct make *m, const struct digest_result *d)
{
	time_t now = time(NULL);
	struct tm tm;
	char when[32];

	gmtime_r(&now, &tm);
	strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return json_pack("{s:i, s:s, s:s, s:I, s:I, s:o, s:O, s:o}", "version", 1, "digest", d->hex,
	                 "created_at", when, "size_bytes", (json_int_t) d->size_bytes,
	                 "files", (json_int_t) d->files, "programs", finalize_programs(m->root_fd),
	                 "source", m->source, "import", report_json(&m->extract.report));
}

int make_finish(struct make *m, const char *name, json_t **ret, struct err *err)
{
	struct digest_result d;
	bool existed;
	json_t *meta;
	int result;

	progress_phase(&m->progress, "finishing");
	if (finalize_tree(m->root_fd, err) < 0)
		return -1;
	progress_phase(&m->progress, "computing the digest");
	if (digest_tree(m->root_fd, &m->progress, &d, err) < 0)
		return -1;
	progress_phase(&m->progress, "writing to disk");
	meta = meta_json(m, &d);
	result = store_commit(&m->store, m->tmp, d.hex, meta, &existed, err);
	json_decref(meta);
	if (result < 0)
		return -1;
	if (!existed)
		m->tmp[0] = '\0';       /* it has another name now */
	if (name && store_set_name(&m->store, name, d.hex, err) < 0)
		return -1;
	if (store_meta(&m->store, d.hex, ret, err) < 0)
		return -1;
	json_object_set_new(*ret, "existed", json_boolean(existed));
	json_object_set_new(*ret, "seconds", json_real((double) (int64_t) (progress_seconds(&m->progress) * 1e3) / 1e3));
	return 0;
}
