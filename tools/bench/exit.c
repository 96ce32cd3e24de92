/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest program there is: what remains of its time is the time to start and end one. */
void _start(void);

void _start(void)
{
	__asm__ volatile("syscall" : : "a"(231 /* exit_group */), "D"(0));
	__builtin_unreachable();
}
