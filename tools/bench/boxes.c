/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-engine ROOT PROGRAM [INIT]: sandboxes over the directory ROOT, by the engine alone.
 *
 *      cold      a sandbox whose PID 1 is PROGRAM, in a recycled slot: create, run, reap
 *      recycle   what made that slot fit for use again
 *      allcold   the same with a new slot, whose removal counts too
 *      create    a sandbox with an init, until that answers
 *      exec      PROGRAM in a running sandbox, over a connection of its own
 *
 * Answers are nanoseconds.
 */
#include "boxes.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "base/clock.h"
#include "base/fd.h"
#include "worker.h"

enum { OWN_FDS_FROM = 40 };

struct engine bench_engine;
int bench_init_fd = -1;

static int template_fd = -1, program_fd = -1;
static struct slot *pooled;             /* for `cold` and `create` */
static struct slot *exec_slot;
static struct box *exec_box;
static uint64_t last_recycle_ns;

static char *const no_env[] = { NULL };

struct box_spec bench_spec(void)
{
	return (struct box_spec) {
		.template_fd = template_fd, .hostname = "bench",
		.limits = { .memory_bytes = 512 << 20, .pids = 1024, .cpu_milli = 1000 },
		.disk_bytes = 256 << 20, .disk_inodes = 65536, .envp = no_env,
	};
}

/* ---- slots ---- */

static int have_slot(struct slot **slot, struct err *err)
{
	return *slot ? 0 : slot_create(&bench_engine, slot, err);
}

static void recycle_pooled(void)
{
	uint64_t began = now_ns();

	if (!slot_recycle(&bench_engine, pooled)) {
		slot_destroy(&bench_engine, pooled);
		pooled = NULL;
	}
	last_recycle_ns = now_ns() - began;
}

/* ---- sandboxes whose PID 1 is the program ---- */

static int run_box(struct slot *s, struct err *err)
{
	static char *const argv[] = { "exit", NULL };
	struct box_spec spec = bench_spec();
	struct box *box;
	siginfo_t info;
	int status;

	spec.limit_first = true;
	spec.program_fd = program_fd;
	spec.argv = argv;
	if (box_create(&bench_engine, s, &spec, &box, NULL, err) < 0)
		return -1;
	waitid(P_PIDFD, (id_t) box->pidfd, &info, WEXITED | WNOWAIT | __WALL);
	box_destroy(box, &status);
	return status ? err_set(err, ERR_INTERNAL, "the program ended with status %#x", (unsigned) status) : 0;
}

static int cold(_unused_ int argc, _unused_ char **argv, uint64_t *ret, struct err *err)
{
	uint64_t began;
	int r;

	if (have_slot(&pooled, err) < 0)
		return -1;
	began = now_ns();
	r = run_box(pooled, err);
	*ret = now_ns() - began;
	recycle_pooled();
	return r;
}

static int recycle(_unused_ int argc, _unused_ char **argv, uint64_t *ret, _unused_ struct err *err)
{
	*ret = last_recycle_ns;
	return 0;
}

static int all_cold(_unused_ int argc, _unused_ char **argv, uint64_t *ret, struct err *err)
{
	uint64_t began = now_ns();
	struct slot *s;
	int r;

	if (slot_create(&bench_engine, &s, err) < 0)
		return -1;
	r = run_box(s, err);
	slot_destroy(&bench_engine, s);
	*ret = now_ns() - began;
	return r;
}

/* ---- sandboxes with an init ---- */

static int create_with_init(struct slot *s, struct box **ret, int *ret_conn, struct err *err)
{
	char digits[] = "10";
	char *argv[] = { "cuvette-init", digits, NULL };
	struct box_spec spec = bench_spec();
	int tasks[CGROUP_TASKS_MAX];

	if (bench_init_fd < 0)
		return err_set(err, ERR_NOT_FOUND, "no init was given");
	digits[1] = (char) ('0' + cgroup_tasks_fds(s->cgroup, tasks));
	spec.program_fd = bench_init_fd;
	spec.argv = argv;
	return box_create(&bench_engine, s, &spec, ret, ret_conn, err);
}

int bench_create_with_init(struct slot *s, struct box **ret, struct err *err)
{
	_cleanup_close_ int conn = -1;
	struct box *box;

	if (create_with_init(s, &box, &conn, err) < 0)
		return -1;
	if (talk_ping(conn, err) < 0) {
		box_destroy(box, NULL);
		return -1;
	}
	*ret = box;
	return 0;
}

static int create(_unused_ int argc, _unused_ char **argv, uint64_t *ret, struct err *err)
{
	uint64_t began;
	struct box *box;

	if (have_slot(&pooled, err) < 0)
		return -1;
	began = now_ns();
	if (bench_create_with_init(pooled, &box, err) < 0)
		return -1;
	*ret = now_ns() - began;
	box_destroy(box, NULL);
	recycle_pooled();
	return 0;
}

static int have_exec_box(struct err *err)
{
	_cleanup_close_ int conn = -1;

	if (exec_box)
		return 0;
	if (have_slot(&exec_slot, err) < 0 || bench_create_with_init(exec_slot, &exec_box, err) < 0)
		return -1;
	if (box_connect(&bench_engine, exec_box, &conn, err) < 0)
		return -1;
	return talk_put_program(conn, "/tmp/exit", program_fd, err);
}

static int exec(_unused_ int argc, _unused_ char **argv, uint64_t *ret, struct err *err)
{
	_cleanup_close_ int conn = -1;
	uint64_t began;

	if (have_exec_box(err) < 0)
		return -1;
	began = now_ns();
	if (box_connect(&bench_engine, exec_box, &conn, err) < 0 || talk_exec(conn, "/tmp/exit", err) < 0)
		return -1;
	*ret = now_ns() - began;
	return 0;
}

/* ---- the program ---- */

static const struct worker_command table[] = {
	{ "allcold", all_cold },
	{ "cold", cold },
	{ "create", create },
	{ "drop", live_drop },
	{ "exec", exec },
	{ "live", live_make },
	{ "pid", live_pid },
	{ "recycle", recycle },
	{ NULL, NULL },
};

/* Above what the engine arranges; readable, because `exec` copies the program. */
static int open_program(const char *path, int *ret, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, errno, "open %s", path);
	*ret = fcntl(fd, F_DUPFD_CLOEXEC, OWN_FDS_FROM);
	close_fd(fd);
	return 0;
}

static int prepare(int argc, char **argv, uint64_t *ret, struct err *err)
{
	struct rlimit files;
	uint64_t began;
	unsigned reaped;

	if (argc < 3)
		return err_set(err, ERR_INVALID, "usage: bench-engine ROOT PROGRAM [INIT]");
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (open_program(argv[2], &program_fd, err) < 0 || (argc > 3 && open_program(argv[3], &bench_init_fd, err) < 0))
		return -1;
	began = now_ns();
	if (engine_open(&bench_engine, NULL, err) < 0)
		return -1;
	*ret = now_ns() - began;
	if (engine_reap_leftovers(&bench_engine, &reaped, err) < 0)
		return -1;
	return engine_open_tree(&bench_engine, argv[1], &template_fd, err);
}

int main(int argc, char **argv)
{
	struct err err = { 0 };
	uint64_t opened = 0;
	int r;

	if (worker_start(&err) < 0)
		return err_exit(&err);
	r = prepare(argc, argv, &opened, &err);
	worker_ready(r, opened, &err);
	if (r < 0)
		return err_exit(&err);
	worker_serve(table);
	live_drop(0, NULL, &opened, &err);
	box_destroy(exec_box, NULL);
	slot_destroy(&bench_engine, exec_slot);
	slot_destroy(&bench_engine, pooled);
	engine_close(&bench_engine);
	return 0;
}
