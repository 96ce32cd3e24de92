/* SPDX-License-Identifier: Apache-2.0 */
#include "template/build.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "template/make.h"
#include "template/sources.h"
#include "template/spawn.h"
#include "template/tree.h"

#define TICK_MS         200
#define LOG_TAIL        4096

/* recipe.sh, carried in the binary by tools/embed. */
extern const char build_recipe[];

struct build {
	const struct build_options *o;
	struct make make;
	char work[80];                  /* directory that is the build's /tmp, below the store */
	_Alignas(16) char chunk[65536];
	int work_fd, log_fd, tar_fd;
	pid_t pid;
};

bool build_packages_are_valid(const char *packages)
{
	size_t start = 0;

	for (size_t i = 0; ; i++) {
		char c = packages[i];

		if (c == ',' || c == '\0') {
			if (i - start < 2)
				return false;
			if (!c)
				return true;
			start = i + 1;
		} else if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		             (i > start && (c == '+' || c == '-' || c == '.')))) {
			return false;
		}
	}
}

static int check_options(const struct build_options *o, struct err *err)
{
	if (!template_name_is_valid(o->name))
		return err_set(err, ERR_INVALID, "NAME: expected 1 to 64 characters of a-z 0-9 . _ -, not '%.80s'", o->name);
	if (!sources_suite_is_valid(o->suite))
		return err_set(err, ERR_INVALID, "--suite: expected a Debian suite such as bookworm, not '%.40s'", o->suite);
	if (o->packages && !build_packages_are_valid(o->packages))
		return err_set(err, ERR_INVALID, "--packages: expected package names with commas between, not '%.80s'",
		               o->packages);
	return 0;
}

/* The template that has the name already, if any. */
static bool find_existing(const struct build_options *o, json_t **ret)
{
	char digest[TEMPLATE_DIGEST_SIZE];
	struct store s;
	bool found;

	if (template_find(o->data_dir, o->name, digest, NULL) < 0 || store_open(o->data_dir, false, &s, NULL) < 0)
		return false;
	found = store_meta(&s, digest, ret, NULL) == 0;
	if (found)
		json_object_set_new(*ret, "existed", json_true());
	store_done(&s);
	return found;
}

static int write_work_file(struct build *b, const char *name, const char *text, struct err *err)
{
	_cleanup_close_ int fd = openat(b->work_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0 || fchmod(fd, 0644) < 0 || write_all(fd, text, strlen(text)) < 0)
		return err_sys(err, errno, "write %s", name);
	return 0;
}

/* The build's /tmp: the recipe, the archive's lines, and the log of what it says. */
static int prepare_work(struct build *b, struct err *err)
{
	_cleanup_buf_ struct buf sources = BUF_INIT(65536);
	struct store *s = &b->make.store;

	snprintf(b->work, sizeof b->work, "%s/work", b->make.tmp);
	if (mkdirat(s->fd, b->work, 0700) < 0 || fchmodat(s->fd, b->work, 01777, 0) < 0)
		return err_sys(err, errno, "create %s/%s", s->path, b->work);
	b->work_fd = openat(s->fd, b->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (b->work_fd < 0)
		return err_sys(err, errno, "open %s/%s", s->path, b->work);
	if (b->o->mirror ? sources_of_mirror(b->o->mirror, b->o->suite, &sources, err) < 0
	                 : sources_of_machine(b->o->suite, &sources, err) < 0)
		return -1;
	if (write_work_file(b, "sources", sources.data, err) < 0 || write_work_file(b, "recipe", build_recipe, err) < 0)
		return -1;
	b->log_fd = openat(b->work_fd, "log", O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	return b->log_fd < 0 ? err_sys(err, errno, "create the log") : 0;
}

static int start(struct build *b, struct err *err)
{
	const char *const argv[] = { "/bin/sh", "/tmp/recipe", b->o->suite, b->o->packages ? b->o->packages : "", NULL };
	_cleanup_free_ char *work = xasprintf("%s/%s", b->make.store.path, b->work);
	_cleanup_free_ char *mmdebstrap = spawn_find("mmdebstrap");
	struct spawn_box box = { .argv = argv, .tmp_dir = work, .stderr_fd = b->log_fd };
	int ends[2], result;

	if (!mmdebstrap)
		return err_set(err, ERR_PRECONDITION,
		               "mmdebstrap is not installed; 'apt-get install mmdebstrap' brings it");
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	b->tar_fd = ends[0];
	box.stdout_fd = ends[1];
	result = spawn_box(&box, &b->pid, err);
	close_fd(ends[1]);
	return result;
}

/* The last LOG_TAIL bytes of the log, cleaned of what could drive a terminal. */
static void read_tail(struct build *b, char ret[LOG_TAIL + 1])
{
	off_t size = lseek(b->log_fd, 0, SEEK_END);
	ssize_t n = pread(b->log_fd, ret, LOG_TAIL, size > LOG_TAIL ? size - LOG_TAIL : 0);

	ret[n > 0 ? n : 0] = '\0';
	for (char *p = ret; *p; p++)
		if (*p != '\n' && (*p < ' ' || *p > 126))
			*p = ' ';
}

/* The last line that starts with `mark`, from the log's end; false if there is none. */
static bool last_line(struct build *b, const char *mark, char *ret, size_t size)
{
	char tail[LOG_TAIL + 1], *found = NULL;

	read_tail(b, tail);
	for (char *p = tail; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (strncmp(p, mark, strlen(mark)) == 0)
			found = p + strlen(mark);
	if (!found)
		return false;
	snprintf(ret, size, "%.*s", (int) strcspn(found, "\n"), found);
	return true;
}

static void show_phase(struct build *b)
{
	struct progress *p = &b->make.progress;
	char text[48];

	if (!p->on)
		return;
	if (!p->bytes && last_line(b, "I: ", text, sizeof text))
		progress_phase(p, text);
}

/* libarchive's source of bytes: the pipe, with a look at the log while it is silent. */
static la_ssize_t read_tar(struct archive *a, void *arg, const void **ret)
{
	struct build *b = arg;

	for (;;) {
		struct pollfd pfd = { .fd = b->tar_fd, .events = POLLIN };
		int ready = poll(&pfd, 1, TICK_MS);
		ssize_t n;

		if (progress_interrupted()) {
			archive_set_error(a, EINTR, "interrupted");
			return -1;
		}
		if (ready <= 0) {
			show_phase(b);
			continue;
		}
		n = read(b->tar_fd, b->chunk, sizeof b->chunk);
		if (n < 0 && errno == EINTR)
			continue;
		*ret = b->chunk;
		return n;
	}
}

/* Ends the box; answers the status it ended with, or -1 if it was killed. */
static int finish_box(struct build *b, bool stop)
{
	int status;

	if (stop)
		kill(b->pid, SIGKILL);
	while (waitpid(b->pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	b->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What mmdebstrap said last is the reason; the whole tail goes to stderr for the reader. */
static int build_failed(struct build *b, int status, struct err *err)
{
	char tail[LOG_TAIL + 1], reason[160] = "";

	progress_clear(&b->make.progress);
	read_tail(b, tail);
	fprintf(stderr, "%s%s", tail, *tail && tail[strlen(tail) - 1] != '\n' ? "\n" : "");
	if (!last_line(b, "E: ", reason, sizeof reason) || strcmp(reason, "mmdebstrap failed to run") == 0)
		snprintf(reason, sizeof reason, "see its output above");
	return err_set(err, ERR_UNAVAILABLE, "mmdebstrap failed (status %d): %s", status, reason);
}

static int receive(struct build *b, struct err *err)
{
	_cleanup_(archive_freep) struct archive *a = extract_reader_new();
	struct err tar = { 0 };
	int result = 0, status;

	progress_phase(&b->make.progress, "starting mmdebstrap");
	if (archive_read_open(a, b, NULL, read_tar, NULL) != ARCHIVE_OK)
		result = err_set(&tar, ERR_INTERNAL, "mmdebstrap wrote no tar archive");
	if (result == 0)
		result = extract_archive(&b->make.extract, a, EXTRACT_TREE, &tar);
	if (progress_interrupted()) {
		finish_box(b, true);
		return err_set(err, ERR_CANCELED, "interrupted");
	}
	/* A failed build ends its tar early: its own reason comes first.  A reader that
	 * failed leaves a writer that must not wait for it. */
	b->tar_fd = close_fd(b->tar_fd);
	status = finish_box(b, false);
	if (result < 0 && (status == 0 || tar.code == ERR_EXHAUSTED)) {
		*err = tar;
		return -1;
	}
	return status ? build_failed(b, status, err) : 0;
}

static void build_done(struct build *b)
{
	if (b->pid)
		finish_box(b, true);
	close_fd(b->tar_fd);
	close_fd(b->log_fd);
	close_fd(b->work_fd);
	make_done(&b->make);
	free(b);
}

static void build_donep(struct build **b)
{
	build_done(*b);
}

static int remove_work(struct build *b, struct err *err)
{
	if (tree_remove(b->make.store.fd, b->work, NULL) < 0)
		return err_sys(err, errno, "remove %s/%s", b->make.store.path, b->work);
	return 0;
}

int build_template(const struct build_options *o, json_t **ret, struct err *err)
{
	_cleanup_(build_donep) struct build *b = xcalloc(1, sizeof *b);

	b->o = o;
	b->work_fd = b->log_fd = b->tar_fd = -1;
	b->make = (struct make) { .root_fd = -1 };
	if (check_options(o, err) < 0)
		return -1;
	if (!o->force && find_existing(o, ret))
		return 0;
	if (make_begin(&b->make, o->data_dir, o->max_bytes, err) < 0)
		return -1;
	/* Whoever held the lock may have made it. */
	if (!o->force && find_existing(o, ret))
		return 0;
	if (prepare_work(b, err) < 0 || start(b, err) < 0 || receive(b, err) < 0 || remove_work(b, err) < 0)
		return -1;
	b->make.source = json_pack("{s:s, s:s, s:s*, s:s*}", "kind", "mmdebstrap", "suite", o->suite,
	                           "packages", o->packages, "mirror", o->mirror);
	return make_finish(&b->make, o->name, ret, err);
}
