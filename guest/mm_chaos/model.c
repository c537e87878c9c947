// SPDX-License-Identifier: MIT OR Apache-2.0
/* Small things of the model, faults, and what is said of wrong words. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "mm_chaos.h"

#define SIGNAL_TEXT	80
/* The second ring is a word of every fourth line. */
#define FEW		4u
#define SOME		32u

struct control *control;
struct process *self;
__thread struct task me;

/* Whoever spins gives way: all are of one real-time priority. */
/* Who has it may be of a lower priority, and nobody but a sleeper lets him run. */
void lock(uint32_t *at)
{
	unsigned int tries = 0;

	while (!__sync_bool_compare_and_swap(at, 0, 1))
		if (++tries < 10)
			sched_yield();
		else
			nap(100);
}

void unlock(uint32_t *at)
{
	__sync_synchronize();
	*(volatile uint32_t *)at = 0;
}

void nap(long us)
{
	struct timespec time = { 0, us * 1000 };

	nanosleep(&time, NULL);
}

uint32_t add(uint32_t *at, uint32_t more)
{
	return __sync_add_and_fetch(at, more);
}

uint32_t new_stamp(void)
{
	return add(&control->stamps, 1);
}

/* The first ones are the backings. One that is used again says less. */
uint8_t new_object(void)
{
	uint32_t n = add(&control->objects, 1);

	return (uint8_t)(BACKINGS + n % (OBJECTS - BACKINGS));
}

uint32_t word_of(uint8_t object, unsigned int page, uint32_t stamp)
{
	return page << 26 | (uint32_t)object << STAMP_BITS | stamp;
}

static const uint16_t few[FEW] = { 0, 7, 514, PAGE_WORDS - 1 };

static unsigned int one_of_some(unsigned int n)
{
	return (n * 4 + 1) * LINE_WORDS + n % LINE_WORDS;
}

unsigned int ring_of(unsigned int word)
{
	unsigned int line = word / LINE_WORDS;

	if (word == few[0] || word == few[1] || word == few[2] ||
	    word == few[3])
		return 0;
	if (line % 4 == 1 && one_of_some(line / 4) == word)
		return 1;
	return 2;
}

unsigned int word_at(unsigned int ring, unsigned int n)
{
	if (ring == 2)
		return n;
	if (n < FEW)
		return few[n];
	if (ring == 1 && n < FEW + SOME)
		return one_of_some(n - FEW);
	return PAGE_WORDS;
}

volatile uint32_t *address(const struct process *process, unsigned int slot,
			   unsigned int page)
{
	/* Some pages between two slots are nobody's. */
	uintptr_t at = process->base + slot * (PAGES + 16) * PAGE;

	if (slot == HIGH_SLOT && process->high)
		at = process->high;
	return (uint32_t *)(at + page * PAGE);
}

void say_wrong(const char *fmt, ...)
{
	char text[200];
	int at;
	va_list ap;

	if (add(&control->wrong, 1) > WRONG_LINES)
		return;
	at = snprintf(text, sizeof(text), "wrong: seq %u op %u ", me.sequence,
		      me.op);
	va_start(ap, fmt);
	at += vsnprintf(text + at, sizeof(text) - (size_t)at - 1, fmt, ap);
	va_end(ap);
	text[at++] = '\n';
	if (write(STDOUT_FILENO, text, (size_t)at) < 0)
		_exit(UNABLE);
}

void unguard(void)
{
	me.armed = false;
}

/* A fault elsewhere is one of this program's own memory: its end. */
static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (me.armed) {
		me.armed = false;
		add(&control->faults, 1);
		siglongjmp(me.fault, 1);
	}
	say_wrong("signal %d at %p, which is no slot", number, info->si_addr);
	signal(number, SIG_DFL);
	raise(number);
}

void catch_faults(void)
{
	struct sigaction action = { .sa_sigaction = on_fault };

	action.sa_flags = SA_SIGINFO | SA_NODEFER;
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGILL, &action, NULL);
}
