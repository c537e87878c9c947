// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * bare_pie: a static program that the kernel may put anywhere, as it does with
 * the dynamic loader itself. Its code reaches everything relative to itself, so
 * that nobody has to relocate it.
 *
 * Exit codes: 0 text, data, bss, stack and break work (and with an argument are
 * all below 32 MB), 1 they do not.
 */
#include <stdint.h>

#define LIMIT		(32u << 20)
#define WORDS		1024
#define SYS_BRK		45
#define BREAK		(64u << 10)

static volatile uint32_t data[WORDS] = { 1, 2, 3 };
static volatile uint32_t bss[WORDS];

static long call(long number, long argument)
{
	register long r7 __asm__("r7") = number;
	register long r0 __asm__("r0") = argument;

	__asm__ volatile("svc #0" : "+r" (r0) : "r" (r7) : "memory");
	return r0;
}

static int works(volatile uint32_t *at, uint32_t words)
{
	uint32_t i;

	for (i = 0; i < words; i++)
		at[i] = i * 2654435761u;
	for (i = 0; i < words; i++)
		if (at[i] != i * 2654435761u)
			return 0;
	return 1;
}

/* What is at the stack's top when the kernel starts a program: argc first. */
__attribute__((used)) int start(const uint32_t *top)
{
	volatile uint32_t stack[WORDS];
	uintptr_t from = (uintptr_t)call(SYS_BRK, 0);
	int good = data[0] == 1 && data[2] == 3 && !bss[0] && !bss[WORDS - 1];

	good &= works(data, WORDS) & works(bss, WORDS) & works(stack, WORDS);
	from = (from + 3) & ~3u;
	good &= (uintptr_t)call(SYS_BRK, (long)(from + BREAK)) == from + BREAK &&
		works((uint32_t *)from, BREAK / 4);
	if (top[0] > 1)
		good &= (uintptr_t)start < LIMIT && (uintptr_t)top < LIMIT &&
			(uintptr_t)bss < LIMIT && from + BREAK < LIMIT;
	return !good;
}

__asm__(".globl _start\n"
	"_start:\n\t"
	"mov	r0, sp\n\t"
	"bl	start\n\t"
	"mov	r7, #1\n\t"
	"svc	#0\n");
