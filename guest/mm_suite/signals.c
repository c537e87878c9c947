// SPDX-License-Identifier: MIT OR Apache-2.0
/* Signals: frames, alternative stacks, the way back through trampolines. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include "mm_suite.h"

#define ALT_PAGES	4

static volatile unsigned int handled;
static volatile uintptr_t handler_stack;
static volatile uint32_t handled_value;

/* Fills the registers that the kernel saves and checks them behind a signal. */
static enum result raise_with_registers(int number, uint32_t seed)
{
	uint32_t local[16];

	fill(local, sizeof(local), seed);
	EXPECT(!syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number),
	       "tgkill: %s", strerror(errno));
	return holds(local, sizeof(local), seed, "locals behind a signal");
}

static void count(int number)
{
	uint32_t local[64];

	(void)number;
	handler_stack = (uintptr_t)local;
	fill(local, sizeof(local), handled);
	if (holds(local, sizeof(local), handled, "locals of a handler"))
		_exit(FAIL);
	handled++;
}

static void count_nested(int number)
{
	if (number == SIGUSR1)
		raise(SIGUSR2);
	count(number);
}

static enum result signal_frames(unsigned int rounds)
{
	struct sigaction action = { .sa_handler = count_nested };
	unsigned int round;

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	for (round = 0; round < rounds * 8; round++) {
		TRY(raise_with_registers(SIGUSR1, round));
		EXPECT(handled == 2 * round + 2, "%u handlers ran, not %u",
		       handled, 2 * round + 2);
	}
	return PASS;
}

/* The kernel's struct, for a handler without the C library's way back. */
struct kernel_action {
	void (*handler)(int number);
	unsigned long flags;
	void (*restorer)(void);
	uint32_t mask[2];
};

/* Without SA_RESTORER the handler returns through the kernel's trampoline. */
static enum result trampoline(unsigned int rounds)
{
	struct kernel_action action = { .handler = count };
	unsigned int round;

	for (round = 0; round < rounds * 8; round++) {
		action.flags = round & 1 ? SA_SIGINFO : 0;
		EXPECT(!syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 8),
		       "rt_sigaction: %s", strerror(errno));
		TRY(raise_with_registers(SIGUSR1, round));
		EXPECT(handled == round + 1, "%u handlers ran", handled);
	}
	return PASS;
}

static enum result alternative_stack(unsigned int rounds)
{
	struct sigaction action = { .sa_handler = count, .sa_flags = SA_ONSTACK };
	char *stack = pages(ALT_PAGES);
	unsigned int round;

	sigaction(SIGUSR1, &action, NULL);
	for (round = 0; round < rounds * 2; round++) {
		stack_t alt = { .ss_sp = stack, .ss_size = ALT_PAGES * PAGE };
		uintptr_t from = (uintptr_t)stack;

		/* Fresh pages each time. */
		madvise(stack, ALT_PAGES * PAGE, MADV_DONTNEED);
		EXPECT(!sigaltstack(&alt, NULL), "sigaltstack: %s",
		       strerror(errno));
		TRY(raise_with_registers(SIGUSR1, round));
		EXPECT(handler_stack >= from &&
		       handler_stack < from + ALT_PAGES * PAGE,
		       "the handler ran on %#lx", (unsigned long)handler_stack);
	}
	return PASS;
}

/* The handler mends what faulted, and the access is made again. */
static void *mended;

static void mend(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	if (info->si_addr != mended ||
	    mprotect(mended, PAGE, PROT_READ | PROT_WRITE))
		_exit(FAIL);
	*(volatile uint32_t *)mended = handled_value;
	handled++;
}

static enum result fault_mended(unsigned int rounds)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO };
	unsigned int round;

	action.sa_sigaction = mend;
	sigaction(SIGSEGV, &action, NULL);
	mended = pages(1);
	for (round = 0; round < rounds * 4; round++) {
		uint32_t seen;

		handled_value = word_of(round, 5);
		EXPECT(!mprotect(mended, PAGE, PROT_NONE), "mprotect");
		seen = *(volatile uint32_t *)mended;
		EXPECT(seen == handled_value, "read %08x", (unsigned int)seen);
		EXPECT(handled == round + 1, "%u faults", handled);
	}
	return PASS;
}

/* A handler that changes the registers of what it interrupted. */
static void change(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)number;
	(void)info;
	/* Behind the undefined instruction, with a result. */
	uc->uc_mcontext.arm_r0 = handled_value;
	uc->uc_mcontext.arm_pc += 4;
	handled++;
}

static enum result context_changed(unsigned int rounds)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO };
	uint32_t *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int round;

	EXPECT(code != MAP_FAILED, "mmap: %s", strerror(errno));
	action.sa_sigaction = change;
	sigaction(SIGILL, &action, NULL);
	code[0] = 0xe7f000f0;	/* undefined */
	code[1] = 0xe12fff1e;	/* bx lr */
	flush_code(code, 8);
	for (round = 0; round < rounds * 4; round++) {
		handled_value = word_of(round, 9) & 0xffffff;
		EXPECT(call(code) == (int)handled_value, "round %u", round);
	}
	return PASS;
}

static void tick(int number)
{
	(void)number;
	handled++;
}

/* Signals at any instruction, from a timer. */
static enum result signal_timer(unsigned int rounds)
{
	struct sigaction action = { .sa_handler = tick };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = SIGUSR1 };
	struct itimerspec every = { .it_interval.tv_nsec = 300000,
				    .it_value.tv_nsec = 300000 };
	uint32_t *data = pages(2);
	unsigned int round = 0;
	timer_t timer;

	sigaction(SIGUSR1, &action, NULL);
	EXPECT(!timer_create(CLOCK_MONOTONIC, &event, &timer), "timer: %s",
	       strerror(errno));
	EXPECT(!timer_settime(timer, 0, &every, NULL), "timer: %s",
	       strerror(errno));
	while (handled < 20 * rounds) {
		fill(data, 2 * PAGE, round);
		TRY(holds(data, 2 * PAGE, round, "between signals"));
		round++;
	}
	timer_delete(timer);
	return PASS;
}

const struct test signal_tests[] = {
	{ "signal_frames", "nested handlers and what they interrupt",
	  signal_frames, NULL },
	{ "trampoline", "the way back through the kernel's code", trampoline,
	  NULL },
	{ "alternative_stack", "handlers on fresh pages", alternative_stack,
	  NULL },
	{ "fault_mended", "a handler mends the page that faulted",
	  fault_mended, NULL },
	{ "context_changed", "a handler changes the interrupted registers",
	  context_changed, NULL },
	{ "signal_timer", "signals at any instruction", signal_timer, NULL },
	{ NULL, NULL, NULL, NULL },
};
