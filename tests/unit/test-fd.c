/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include "base/fd.h"

static int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void socket_pair(int ret[2])
{
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) == 0);
}

TEST(a_message_travels_with_its_descriptors)
{
	int sock[2], pipe_fds[2], fds[FD_PASS_MAX];
	char data[16] = "", c = 0;
	size_t n = 99;

	socket_pair(sock);
	CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
	CHECK_INT(send_msg(sock[0], "hello", 5, &pipe_fds[1], 1), 0);
	CHECK_INT(recv_msg(sock[1], data, sizeof data, fds, &n), 5);
	CHECK_STR(data, "hello");
	CHECK_INT(n, 1);
	CHECK(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	CHECK_INT(write_all(fds[0], "x", 1), 0);
	CHECK_INT(read(pipe_fds[0], &c, 1), 1);
	CHECK_INT(c, 'x');
}

TEST(as_many_descriptors_as_fit_and_no_more)
{
	int sock[2], send[FD_PASS_MAX + 1], fds[FD_PASS_MAX];
	char c;
	size_t n;

	socket_pair(sock);
	for (size_t i = 0; i < ARRAY_SIZE(send); i++)
		send[i] = sock[0];
	CHECK_INT(send_msg(sock[0], "x", 1, send, FD_PASS_MAX), 0);
	CHECK_INT(recv_msg(sock[1], &c, 1, fds, &n), 1);
	CHECK_INT(n, FD_PASS_MAX);
	CHECK_INT(send_msg(sock[0], "x", 1, send, FD_PASS_MAX + 1), -1);
	CHECK_INT(errno, EINVAL);
}

TEST(a_message_that_does_not_fit_leaves_nothing)
{
	int sock[2], fds[FD_PASS_MAX], before;
	char data[4];
	size_t n = 99;

	socket_pair(sock);
	CHECK_INT(send_msg(sock[0], "too long", 8, sock, 2), 0);
	before = open_fds();
	CHECK_INT(recv_msg(sock[1], data, sizeof data, fds, &n), -1);
	CHECK_INT(errno, EMSGSIZE);
	CHECK_INT(open_fds(), before);
	CHECK_INT(n, 99);
}

/* More descriptors than recv_msg() has room for, as a hostile peer may send. */
static void send_many_fds(int sock, int fd, size_t count)
{
	_cleanup_free_ char *control = xcalloc(1, CMSG_SPACE(sizeof(int) * count));
	struct iovec iov = { (void *) (uintptr_t) "x", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
	                      .msg_controllen = CMSG_SPACE(sizeof(int) * count) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * count);
	for (size_t i = 0; i < count; i++)
		memcpy(CMSG_DATA(c) + i * sizeof fd, &fd, sizeof fd);
	CHECK_INT(sendmsg(sock, &msg, 0), 1);
}

TEST(too_many_descriptors_leave_nothing)
{
	int sock[2], fds[FD_PASS_MAX], before;
	size_t n;
	char c;

	socket_pair(sock);
	send_many_fds(sock[0], sock[0], FD_PASS_MAX + 8);
	before = open_fds();
	CHECK_INT(recv_msg(sock[1], &c, 1, fds, &n), -1);
	CHECK_INT(errno, EMSGSIZE);
	CHECK_INT(open_fds(), before);
}

TEST(unwanted_descriptors_are_closed)
{
	int sock[2], before;
	char c;

	socket_pair(sock);
	CHECK_INT(send_msg(sock[0], "x", 1, sock, 2), 0);
	before = open_fds();
	CHECK_INT(recv_msg(sock[1], &c, 1, NULL, NULL), 1);
	CHECK_INT(open_fds(), before);
}

TEST(the_end_of_a_connection_is_zero_and_a_lost_reader_an_error)
{
	int sock[2];
	char c;

	socket_pair(sock);
	close(sock[0]);
	CHECK_INT(recv_msg(sock[1], &c, 1, NULL, NULL), 0);
	CHECK_INT(send_msg(sock[1], "x", 1, NULL, 0), -1);      /* and no SIGPIPE */
	CHECK_INT(errno, EPIPE);
}

TEST(whole_reads_stop_at_the_end)
{
	int p[2];
	char data[10];

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	CHECK_INT(write_all(p[1], "abc", 3), 0);
	CHECK_INT(write_all(p[1], "defg", 4), 0);
	CHECK_INT(read_full(p[0], data, 5), 5);
	close(p[1]);
	CHECK_INT(read_full(p[0], data, sizeof data), 2);
	CHECK_INT(read_full(p[0], data, sizeof data), 0);
	CHECK_INT(read_full(-1, data, 1), -1);
}

TEST(whole_writes_outlast_a_slow_reader)
{
	static char data[300000];
	size_t got = 0;
	int p[2];

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	if (fork() == 0)
		_exit(write_all(p[1], data, sizeof data) < 0);
	close(p[1]);
	for (ssize_t n; (n = read(p[0], data, 777)) > 0;)
		got += (size_t) n;
	CHECK_INT(got, sizeof data);
}

TEST(reading_a_file_stops_at_the_ceiling)
{
	_cleanup_buf_ struct buf small = BUF_INIT(1000), big = BUF_INIT(1 << 20);
	_cleanup_close_ int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int self = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	struct err err = { 0 };

	CHECK_ERR(read_to_buf(fd, &small, &err), ERR_EXHAUSTED);
	CHECK_OK(read_to_buf(self, &big, &err));
	CHECK_CONTAINS(big.data, "Name:");
	CHECK_ERR(read_to_buf(-1, &big, &err), ERR_INTERNAL);
}

TEST(small_files_lose_one_newline_and_errors_name_the_path)
{
	char dir[] = "/tmp/cuvette-test-XXXXXX", text[20];
	_cleanup_close_ int dir_fd = -1;
	struct err err = { 0 };

	CHECK(mkdtemp(dir));
	dir_fd = open(dir, O_DIRECTORY | O_CLOEXEC);
	CHECK_ERR(write_file_at(dir_fd, "knob", "1", &err), ERR_NOT_FOUND);     /* never creates */
	CHECK_STR(err.msg, "open knob: No such file or directory");
	close(openat(dir_fd, "knob", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	CHECK_OK(write_file_at(dir_fd, "knob", "max\n\n", &err));
	CHECK_OK(read_file_at(dir_fd, "knob", text, sizeof text, &err));
	CHECK_STR(text, "max\n");
	unlinkat(dir_fd, "knob", 0);
	rmdir(dir);
	CHECK_ERR(read_file_at(dir_fd, "knob", text, sizeof text, &err), ERR_NOT_FOUND);
}
