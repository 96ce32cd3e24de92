/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * fd: whole reads and writes, small files, descriptors over unix sockets.
 *
 * All retry on EINTR and never leave a descriptor inheritable.
 */
#include "base/buf.h"

#define FD_PASS_MAX 8           /* descriptors in one message */

/* Write everything, or fail with errno set. */
int write_all(int fd, const void *data, size_t len) _must_check_;

/* Reads until EOF or until `len` bytes are there; returns the count, or -1 with errno. */
ssize_t read_full(int fd, void *data, size_t len) _must_check_;

/* Appends the rest of the file, up to the buffer's ceiling. */
int read_to_buf(int fd, struct buf *ret, struct err *err) _must_check_;

/* A small text file below `dir_fd`, without its trailing newline; errors name the path. */
int read_file_at(int dir_fd, const char *path, char *ret, size_t size, struct err *err) _must_check_;
int write_file_at(int dir_fd, const char *path, const char *text, struct err *err) _must_check_;

/*
 * One message on a SEQPACKET socket, with descriptors.  send_msg() blocks (or
 * gives EAGAIN on a non-blocking socket) and returns 0 or -1 with errno;
 * recv_msg() returns the length, 0 at the end of the connection, -1 with errno
 * (EMSGSIZE when the message or its descriptors did not fit: nothing is kept).
 * Received descriptors are close-on-exec and the caller's.
 */
int send_msg(int sock, const void *data, size_t len, const int *fds, size_t nfds) _must_check_;
ssize_t recv_msg(int sock, void *data, size_t len, int fds[FD_PASS_MAX], size_t *ret_nfds) _must_check_;
