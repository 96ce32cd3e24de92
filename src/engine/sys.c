/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sys.h"

#if !defined(__x86_64__)
#error "sys_clone_call() and the seccomp table are written for x86-64 only"
#endif

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
/* A child that execs or exits leaves its frames' red zones behind for the next one. */
#define FRESH_STACK(stack, size) __asan_unpoison_memory_region(stack, size)
#else
#define FRESH_STACK(stack, size) ((void) 0)
#endif

pid_t sys_clone_call(struct clone_args *args, void *stack, size_t stack_size, int (*fn)(void *), void *arg)
{
	long ret;

	FRESH_STACK(stack, stack_size);

	args->stack = (uint64_t) (uintptr_t) stack;
	args->stack_size = stack_size & ~(size_t) 15;
	/* fn and arg wait in callee-saved registers, which the child keeps over the system call. */
	__asm__ volatile(
		"mov %[fn], %%r12\n\t"
		"mov %[arg], %%r13\n\t"
		"syscall\n\t"
		"test %%rax, %%rax\n\t"
		"jnz 1f\n\t"
		"xor %%ebp, %%ebp\n\t"
		"mov %%r13, %%rdi\n\t"
		"call *%%r12\n\t"
		"mov %%eax, %%edi\n\t"
		"mov %[nr_exit], %%eax\n\t"
		"syscall\n"
		"1:"
		: "=a"(ret)
		: "a"((long) SYS_clone3), "D"(args), "S"(sizeof *args), [fn] "r"(fn), [arg] "r"(arg),
		  [nr_exit] "i"(SYS_exit)
		: "rcx", "r11", "r12", "r13", "memory", "cc");
	if (ret < 0) {
		errno = (int) -ret;
		return -1;
	}
	return (pid_t) ret;
}
