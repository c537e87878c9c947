// SPDX-License-Identifier: MIT OR Apache-2.0
/* ptrace: a debugger's pokes into data and text of another process. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mm_suite.h"

/* ARM Linux: the debugger's breakpoint, an undefined instruction. */
#define BREAKPOINT	0xe7f001f0
#define AT_R0		0
#define AT_PC		15
#define AT_CPSR		16
#define ZERO_FLAG	(1u << 30)
/* What the stepped function does when the debugger looks at it. */
#define TURNS		5

struct regs {
	uint32_t r[18];
};

/* What the debugger pokes; no other test uses it. Alone on its pages. */
static struct {
	uint32_t words[2 * PAGE_WORDS];
} __attribute__((aligned(4096))) poked;

static int __attribute__((noinline, aligned(32))) patched(int x)
{
	__asm__ volatile("" : "+r" (x));
	return x + 1;
}

/* Adds up all numbers from x down to 1. */
int stepped(int x);
__asm__(".text\n"
	".align	2\n"
	"stepped:\n\t"
	"mov	r1, #0\n"
	"1:\t"
	"add	r1, r1, r0\n\t"
	"subs	r0, r0, #1\n\t"
	"bne	1b\n\t"
	"mov	r0, r1\n\t"
	"bx	lr\n");
#define TO_BNE		3
#define TO_BX		5

/* Stops for the debugger, then tells what it finds, for ever. */
static enum result traced(struct other *other, void *arg)
{
	uint32_t what;

	(void)arg;
	fill(poked.words, sizeof(poked.words), 1);
	/* In the cache as the debugger's victim would have it. */
	TRY(holds(poked.words, sizeof(poked.words), 1, "at first"));
	patched(0);
	EXPECT(!ptrace(PTRACE_TRACEME, 0, NULL, NULL), "PTRACE_TRACEME: %s",
	       strerror(errno));
	for (;;) {
		raise(SIGSTOP);
		TRY(child_wait(other, &what));
		if (what == UINT32_MAX)
			return PASS;
		if (what >= 0x20000)
			TRY(child_go(other, (uint32_t)stepped(TURNS)));
		else if (what >= 0x10000)
			TRY(child_go(other, (uint32_t)patched((int)what)));
		else
			TRY(child_go(other,
				     ((volatile uint32_t *)poked.words)[what]));
	}
}

static enum result stopped(pid_t pid, int number)
{
	int status = 0;

	EXPECT(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
	EXPECT(WIFSTOPPED(status) && WSTOPSIG(status) == number,
	       "the child is %#x, not stopped by %d", (unsigned int)status,
	       number);
	return PASS;
}

static enum result poke(pid_t pid, void *at, uint32_t word)
{
	EXPECT(!ptrace(PTRACE_POKEDATA, pid, at, (void *)(uintptr_t)word),
	       "poke %p: %s", at, strerror(errno));
	return PASS;
}

static uint32_t peek(pid_t pid, void *at)
{
	return (uint32_t)ptrace(PTRACE_PEEKDATA, pid, at, NULL);
}

/* Lets the child answer and stop again. */
static enum result ask(struct other *other, uint32_t what, uint32_t *answer)
{
	EXPECT(!ptrace(PTRACE_CONT, other->pid, NULL, NULL), "PTRACE_CONT: %s",
	       strerror(errno));
	TRY(other_go(other, what));
	TRY(other_wait(other, answer));
	return stopped(other->pid, SIGSTOP);
}

static enum result let_go(struct other *other)
{
	EXPECT(!ptrace(PTRACE_CONT, other->pid, NULL, NULL), "PTRACE_CONT");
	TRY(other_go(other, UINT32_MAX));
	return other_end(other);
}

static enum result ptrace_data(unsigned int rounds)
{
	static const uint32_t none[4];
	struct other other;
	unsigned int round;

	TRY(other_start(&other, traced, NULL));
	TRY(stopped(other.pid, SIGSTOP));
	for (round = 0; round < rounds * 4; round++) {
		unsigned int index = round * 37 % (2 * PAGE_WORDS);
		uint32_t answer, old = peek(other.pid, &poked.words[index]);

		EXPECT(old == word_of(1, index), "peek: %08x", (unsigned int)old);
		TRY(poke(other.pid, &poked.words[index], round));
		TRY(ask(&other, index, &answer));
		EXPECT(answer == round, "the child reads %08x, poked %08x",
		       (unsigned int)answer, round);
		EXPECT(peek(other.pid, &poked.words[index]) == round, "peek");
		TRY(poke(other.pid, &poked.words[index], old));
	}
	EXPECT(!memcmp(poked.words, none, 16),
	       "the poke reached our own memory");
	return let_go(&other);
}

/* `add r0, r0, #1` becomes `add r0, r0, #n`. */
static enum result ptrace_text(unsigned int rounds)
{
	uint32_t *text = (uint32_t *)(uintptr_t)patched;
	struct other other;
	unsigned int round, at;
	uint32_t answer;

	for (at = 0; at < 4 && text[at] != 0xe2800001; at++)
		;
	SKIP_UNLESS(at < 4, "the compiler made other code");
	TRY(other_start(&other, traced, NULL));
	TRY(stopped(other.pid, SIGSTOP));
	for (round = 0; round < rounds * 4; round++) {
		uint32_t n = round % 255 + 1;

		EXPECT(!ptrace(PTRACE_POKETEXT, other.pid, text + at,
			       (void *)(uintptr_t)(0xe2800000 | n)), "poke: %s",
		       strerror(errno));
		TRY(ask(&other, 0x10000, &answer));
		EXPECT(answer == 0x10000 + n, "round %u: the child ran + %u",
		       round, (unsigned int)(answer - 0x10000));
		EXPECT(patched(1) == 2, "the poke reached our own text");
	}
	return let_go(&other);
}

static enum result get_regs(pid_t pid, struct regs *regs)
{
	EXPECT(!ptrace(PTRACE_GETREGS, pid, NULL, regs), "PTRACE_GETREGS: %s",
	       strerror(errno));
	return PASS;
}

/* Puts a breakpoint in, lets the child run into it, takes it out. */
static enum result breakpoint(unsigned int rounds)
{
	uint32_t *text = (uint32_t *)(uintptr_t)patched;
	struct other other;
	unsigned int round;

	TRY(other_start(&other, traced, NULL));
	TRY(stopped(other.pid, SIGSTOP));
	for (round = 0; round < rounds * 4; round++) {
		uint32_t old = peek(other.pid, text), answer;
		struct regs regs;

		EXPECT(old == *text, "peek: %08x", (unsigned int)old);
		TRY(poke(other.pid, text, BREAKPOINT));
		EXPECT(!ptrace(PTRACE_CONT, other.pid, NULL, NULL), "cont");
		TRY(other_go(&other, 0x10000 + round));
		TRY(stopped(other.pid, SIGTRAP));
		TRY(get_regs(other.pid, &regs));
		EXPECT(regs.r[AT_PC] == (uint32_t)(uintptr_t)text &&
		       regs.r[AT_R0] == 0x10000 + round,
		       "stopped at %08x with r0 %08x",
		       (unsigned int)regs.r[AT_PC],
		       (unsigned int)regs.r[AT_R0]);
		TRY(poke(other.pid, text, old));
		regs.r[AT_R0] = 0x20000 + round;
		EXPECT(!ptrace(PTRACE_SETREGS, other.pid, NULL, &regs), "setregs");
		EXPECT(!ptrace(PTRACE_CONT, other.pid, NULL, NULL), "cont");
		TRY(other_wait(&other, &answer));
		EXPECT(answer == 0x20001 + round, "the child says %08x",
		       (unsigned int)answer);
		TRY(stopped(other.pid, SIGSTOP));
	}
	return let_go(&other);
}

/* As a debugger does it where the core cannot: a breakpoint behind each step. */
static enum result step_through(struct other *other, unsigned int *steps)
{
	uint32_t *text = (uint32_t *)(uintptr_t)stepped, *at = text, *next;
	struct regs regs;

	for (*steps = 0; at != text + TO_BX; ++*steps) {
		TRY(get_regs(other->pid, &regs));
		EXPECT(regs.r[AT_PC] == (uint32_t)(uintptr_t)at,
		       "step %u: stopped at %08x, not at %p", *steps,
		       (unsigned int)regs.r[AT_PC], (void *)at);
		next = at + 1;
		if (at == text + TO_BNE && !(regs.r[AT_CPSR] & ZERO_FLAG))
			next = text + 1;
		/* This process' own text is as it was. */
		TRY(poke(other->pid, at, *at));
		TRY(poke(other->pid, next, BREAKPOINT));
		EXPECT(!ptrace(PTRACE_CONT, other->pid, NULL, NULL), "cont");
		TRY(stopped(other->pid, SIGTRAP));
		at = next;
	}
	return poke(other->pid, at, *at);
}

static enum result stepping(unsigned int rounds)
{
	void *text = (void *)(uintptr_t)stepped;
	struct other other;
	unsigned int round, steps;
	uint32_t answer;

	TRY(other_start(&other, traced, NULL));
	TRY(stopped(other.pid, SIGSTOP));
	for (round = 0; round < rounds; round++) {
		TRY(poke(other.pid, text, BREAKPOINT));
		EXPECT(!ptrace(PTRACE_CONT, other.pid, NULL, NULL), "cont");
		TRY(other_go(&other, 0x20000));
		TRY(stopped(other.pid, SIGTRAP));
		TRY(step_through(&other, &steps));
		EXPECT(steps == 2 + 3 * TURNS, "%u steps", steps);
		EXPECT(!ptrace(PTRACE_CONT, other.pid, NULL, NULL), "cont");
		TRY(other_wait(&other, &answer));
		EXPECT(answer == TURNS * (TURNS + 1) / 2, "the child says %u",
		       (unsigned int)answer);
		TRY(stopped(other.pid, SIGSTOP));
	}
	return let_go(&other);
}

const struct test trace_tests[] = {
	{ "ptrace_data", "peek and poke of data", ptrace_data, NULL },
	{ "ptrace_text", "poke of text, which then runs", ptrace_text, NULL },
	{ "breakpoint", "breakpoints put in, hit, taken out", breakpoint, NULL },
	{ "stepping", "a function, instruction by instruction", stepping, NULL },
	{ NULL, NULL, NULL, NULL },
};
