/* SPDX-License-Identifier: Apache-2.0 */
#include "init/pty.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* What line editing must know to erase whole characters (J04). */
static void set_utf8(int slave)
{
	struct termios t;

	if (tcgetattr(slave, &t) < 0)
		return;
	t.c_iflag |= IUTF8;
	tcsetattr(slave, TCSANOW, &t);
}

int pty_resize(int master, uint16_t rows, uint16_t cols, struct err *err)
{
	struct winsize size = { .ws_row = rows, .ws_col = cols };

	if (!rows || !cols || rows > PTY_SIZE_MAX || cols > PTY_SIZE_MAX)
		return err_set(err, ERR_INVALID, "terminal size must be 1 to %d rows and columns, not %u x %u",
		               PTY_SIZE_MAX, rows, cols);
	if (ioctl(master, TIOCSWINSZ, &size) < 0)
		return err_sys(err, errno, "set the terminal size");
	return 0;
}

int pty_open(uint16_t rows, uint16_t cols, uid_t uid, int *ret_master, int *ret_slave, struct err *err)
{
	_cleanup_close_ int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	_cleanup_close_ int slave = -1;
	int locked = 0;

	if (master < 0)
		return err_sys(err, errno, "open a terminal (/dev/ptmx)");
	if (ioctl(master, TIOCSPTLCK, &locked) < 0)
		return err_sys(err, errno, "unlock the terminal");
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return err_sys(err, errno, "open the terminal's other end");
	if (pty_resize(master, rows, cols, err) < 0)
		return -1;
	set_utf8(slave);
	/* Programs reopen their terminal by name.  Not being able to give it away only costs them that. */
	if (fchown(slave, uid, (gid_t) -1) == 0)
		fchmod(slave, 0620);
	*ret_master = TAKE_FD(master);
	*ret_slave = TAKE_FD(slave);
	return 0;
}
