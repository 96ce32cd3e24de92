/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

int write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		p += n;
		len -= (size_t) n;
	}
	return 0;
}

ssize_t read_full(int fd, void *data, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = read(fd, (char *) data + got, len - got);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		if (n == 0)
			break;
		got += (size_t) n;
	}
	return (ssize_t) got;
}

int read_to_buf(int fd, struct buf *ret, struct err *err)
{
	for (;;) {
		char chunk[16384];
		ssize_t n = read(fd, chunk, sizeof chunk);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return err_sys(err, errno, "read");
		}
		if (n == 0)
			return 0;
		if (buf_append(ret, chunk, (size_t) n, err) < 0)
			return -1;
	}
}

int read_file_at(int dir_fd, const char *path, char *ret, size_t size, struct err *err)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return err_sys(err, errno, "open %s", path);
	n = read_full(fd, ret, size - 1);
	if (n < 0)
		return err_sys(err, errno, "read %s", path);
	if (n > 0 && ret[n - 1] == '\n')
		n--;
	ret[n] = '\0';
	return 0;
}

int write_file_at(int dir_fd, const char *path, const char *text, struct err *err)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, errno, "open %s", path);
	if (write_all(fd, text, strlen(text)) < 0)
		return err_sys(err, errno, "write %s", path);
	return 0;
}

int send_msg(int sock, const void *data, size_t len, const int *fds, size_t nfds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
	} control;
	struct iovec iov = { (void *) data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (nfds > FD_PASS_MAX) {
		errno = EINVAL;
		return -1;
	}
	if (nfds) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof control);
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * nfds);
	}
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -1 : 0;
}

ssize_t recv_msg(int sock, void *data, size_t len, int fds[FD_PASS_MAX], size_t *ret_nfds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
	} control;
	struct iovec iov = { data, len };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control.space, .msg_controllen = sizeof control.space,
	};
	size_t nfds = 0;
	ssize_t n;

	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (fds && nfds < FD_PASS_MAX)
				fds[nfds++] = fd;
			else
				close(fd);
		}
	}
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		while (nfds)
			close(fds[--nfds]);
		errno = EMSGSIZE;
		return -1;
	}
	if (ret_nfds)
		*ret_nfds = nfds;
	return n;
}
