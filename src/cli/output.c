/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output goes to its reader byte for byte, and never waits in write(2): a reader that
 * stopped reading must not keep a time limit or a Ctrl-C from working.
 *
 * The descriptors are the caller's and shared with others, so O_NONBLOCK (a flag of the
 * open file, not of ours) is out.  RWF_NOWAIT asks for the same per call; where the kernel
 * does not know it for pipes, 4 KiB after a POLLOUT are what a pipe takes without waiting.
 */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "cli/job.h"

static ssize_t collect(struct output *out, int stream, const char *data, size_t len)
{
	/* exec stops delivering at the ceiling, so this cannot fail. */
	(void) !buf_append(&out->collected[stream - 1], data, len, NULL);
	return (ssize_t) len;
}

static bool is_writable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, 0) > 0;
}

static ssize_t write_now(const struct output *out, int fd, const char *data, size_t len)
{
	struct iovec iov = { (void *) (uintptr_t) data, len };
	ssize_t n;

	if (out->is_file[fd - 1])
		return write(fd, data, len);
	n = syscall(SYS_pwritev2, fd, &iov, 1, -1L, -1L, RWF_NOWAIT);
	if (n >= 0 || (errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS))
		return n;
	if (!is_writable(fd)) {
		errno = EAGAIN;
		return -1;
	}
	return write(fd, data, MIN(len, (size_t) PIPE_BUF));
}

static ssize_t sink_write(void *ctx, int stream, const char *data, size_t len)
{
	struct output *out = ctx;
	ssize_t n;

	if (out->collect)
		return collect(out, stream, data, len);
	n = write_now(out, stream, data, len);
	if (n >= 0)
		return n;
	if (errno == EINTR || errno == EAGAIN)
		return 0;
	out->sys = errno;
	return -1;
}

void output_init(struct output *out, bool collect_it, uint64_t max)
{
	*out = (struct output) { .collect = collect_it };
	for (int i = 0; i < 2; i++) {
		struct stat st;

		out->collected[i] = BUF_INIT((size_t) max);
		out->is_file[i] = fstat(i + 1, &st) == 0 && !S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode) &&
		                  !isatty(i + 1);
	}
	/* A reader that left is EPIPE, not our death: the sandbox must be taken down first. */
	signal(SIGPIPE, SIG_IGN);
}

void output_done(struct output *out)
{
	buf_done(&out->collected[0]);
	buf_done(&out->collected[1]);
}

struct exec_sink output_sink(struct output *out)
{
	return (struct exec_sink) { .write = sink_write, .ctx = out, .poll_fd = { STDOUT_FILENO, STDERR_FILENO } };
}
