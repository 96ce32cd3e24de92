/* SPDX-License-Identifier: Apache-2.0 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* musl has no strerrorname_np(). */
#define WORD(name) { name, #name }
static const struct { int number; const char *word; } errnos[] = {
	WORD(E2BIG), WORD(EACCES), WORD(EADDRINUSE), WORD(EADDRNOTAVAIL), WORD(EAFNOSUPPORT), WORD(EAGAIN),
	WORD(EBADF), WORD(EBADMSG), WORD(EBUSY), WORD(ECHILD), WORD(ECONNREFUSED), WORD(ECONNRESET), WORD(EDOM),
	WORD(EEXIST), WORD(EFAULT), WORD(EFBIG), WORD(EHOSTUNREACH), WORD(EINPROGRESS), WORD(EINTR),
	WORD(EINVAL), WORD(EIO), WORD(EISDIR), WORD(ELOOP), WORD(EMFILE), WORD(EMSGSIZE), WORD(ENAMETOOLONG),
	WORD(ENETDOWN), WORD(ENETUNREACH), WORD(ENFILE), WORD(ENODATA), WORD(ENODEV), WORD(ENOENT), WORD(ENOEXEC),
	WORD(ENOKEY), WORD(ENOMEM), WORD(ENOPROTOOPT), WORD(ENOSPC), WORD(ENOSYS), WORD(ENOTBLK), WORD(ENOTCONN),
	WORD(ENOTDIR), WORD(ENOTEMPTY), WORD(ENOTSOCK), WORD(ENOTSUP), WORD(ENOTTY), WORD(ENXIO),
	WORD(EOVERFLOW), WORD(EPERM), WORD(EPIPE), WORD(EPROTO), WORD(EPROTONOSUPPORT), WORD(EPROTOTYPE),
	WORD(EROFS), WORD(ESOCKTNOSUPPORT), WORD(ESPIPE), WORD(ESRCH), WORD(ESTALE), WORD(ETIMEDOUT), WORD(ETXTBSY),
	WORD(EUSERS), WORD(EXDEV),
};
static const struct { int number; const char *word; } signals[] = {
	WORD(SIGABRT), WORD(SIGBUS), WORD(SIGFPE), WORD(SIGHUP), WORD(SIGILL), WORD(SIGINT), WORD(SIGKILL),
	WORD(SIGPIPE), WORD(SIGQUIT), WORD(SIGSEGV), WORD(SIGSYS), WORD(SIGTERM), WORD(SIGTRAP), WORD(SIGXCPU),
	WORD(SIGXFSZ),
};

const char *errno_word(int sys)
{
	static char unknown[32];

	for (size_t i = 0; i < sizeof errnos / sizeof errnos[0]; i++)
		if (errnos[i].number == sys)
			return errnos[i].word;
	snprintf(unknown, sizeof unknown, "E%d", sys);
	return unknown;
}

const char *signal_word(int signo)
{
	static char unknown[32];

	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		if (signals[i].number == signo)
			return signals[i].word;
	snprintf(unknown, sizeof unknown, "signal-%d", signo);
	return unknown;
}

long fail(int sys)
{
	errno = sys;
	return -1;
}

long call_it(const struct probe *p)
{
	return syscall(p->nr, p->args[0], p->args[1], p->args[2], p->args[3], p->args[4], p->args[5]);
}

ssize_t read_text(const char *path, char *ret, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), saved;
	size_t len = 0;
	ssize_t n = 0;

	if (fd < 0)
		return -1;
	while (len < size - 1 && (n = read(fd, ret + len, size - 1 - len)) > 0)
		len += (size_t) n;
	saved = errno;
	close(fd);
	errno = saved;
	if (n < 0 && len == 0)
		return -1;
	ret[len] = '\0';
	return (ssize_t) len;
}

uint64_t status_field(const char *name, int base)
{
	char text[8192], *at;

	if (read_text("/proc/self/status", text, sizeof text) < 0)
		return UINT64_MAX;
	for (at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, name, strlen(name)) && at[strlen(name)] == ':')
			return strtoull(at + strlen(name) + 1, NULL, base);
	}
	return UINT64_MAX;
}

long open_close(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);

	if (fd >= 0)
		close(fd);
	return fd;
}

long write_once(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;
	int saved;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	saved = errno;
	close(fd);
	errno = saved;
	return n;
}

long netlink_ask(int protocol, struct nlmsghdr *message)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct timeval patience = { .tv_sec = 5 };
	_Alignas(struct nlmsghdr) char reply[8192];
	struct nlmsghdr *head = (void *) reply;
	struct nlmsgerr *error;
	int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	ssize_t n;

	if (sock < 0)
		return -1;
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	if (sendto(sock, message, message->nlmsg_len, 0, (void *) &kernel, sizeof kernel) < 0)
		return -1;
	n = recv(sock, reply, sizeof reply, 0);
	if (n < 0)
		return -1;
	if ((size_t) n < NLMSG_LENGTH(sizeof *error) || head->nlmsg_type != NLMSG_ERROR)
		return 0;
	error = NLMSG_DATA(head);
	return error->error < 0 ? fail(-error->error) : 0;
}

int run_action(const char *program, const char *action, uid_t uid)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		if (uid != geteuid() && (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
			_exit(99);
		execl(program, "cuvette-probe", "act", action, (char *) NULL);
		_exit(98);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
