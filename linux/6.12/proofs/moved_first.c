// SPDX-License-Identifier: GPL-2.0-only
/*
 * moved_first ROUNDS, as root, on PREEMPT_RT
 *
 * A process of one task makes a second one, which does not run yet, and moves pages by
 * mremap(). In the middle a tick lets the second task run, for the first time: it
 * stores to a page at its old address, by the entry that its sibling has left in the
 * TLB, and reads the word at the new one.
 *
 * A round has begun when the second task ran first in the middle of the call, and is met
 * when it got as far as reading before the call was over: else it came too early, or the
 * entry was gone. The ARM920T's TLB keeps entries best.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define TABLE	(2 << 20)	/* what one call of move_ptes() moves */
#define STACK	(16 * PAGE)
#define NS	1000000000LL
#define TICK_NS	10000000LL
/* The call begins so long before the tick, in steps. */
#define STEP_NS	20000
#define STEPS	100
#define OLD	0x11111111
#define NEW	0x22222222

static volatile uint32_t *from, *to;
static sigjmp_buf away;

static struct shared {
	volatile bool moving, stored;
	volatile unsigned int begun, met, old, lost;
} *shared;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	_exit(2);
}

static void segv(int number)
{
	(void)number;
	siglongjmp(away, 1);
}

static void *second(void *arg)
{
	uint32_t there;

	(void)arg;
	if (sigsetjmp(away, 1))
		return NULL;
	if (shared->moving)
		shared->begun++;
	/* These caches take in a line by a load only. */
	(void)*from;
	*from = NEW;
	there = *to;
	/* A fault waits for the end of the call. */
	if (!shared->moving)
		return NULL;
	shared->stored = true;
	shared->met++;
	if (there != NEW)
		shared->old++;
	return NULL;
}

static long long now(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return at.tv_sec * NS + at.tv_nsec;
}

static void *map(size_t bytes, int protection)
{
	void *mapped = mmap(NULL, bytes, protection,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(mapped != MAP_FAILED, "mmap");
	return mapped;
}

static volatile uint32_t *map_table(int protection)
{
	uintptr_t at = (uintptr_t)map(2 * TABLE, protection);

	return (void *)((at + TABLE - 1) & ~(TABLE - 1));
}

static void one_round(int step)
{
	struct sched_param param = { .sched_priority = 1 };
	pthread_attr_t attr;
	pthread_t thread;
	long long tick, coarse;
	void *moved;
	int i;

	/* Where the second task begins, nothing may fault: that would wait for the end. */
	must(!pthread_attr_init(&attr), "pthread_attr_init");
	must(!pthread_attr_setstack(&attr, map(STACK, PROT_READ | PROT_WRITE), STACK),
	     "pthread_attr_setstack");
	must(!mlockall(MCL_CURRENT), "mlockall");
	from = map_table(PROT_READ | PROT_WRITE);
	to = map_table(PROT_NONE);
	for (i = TABLE / PAGE - 1; i >= 0; i--)
		from[i * (PAGE / 4)] = OLD;
	signal(SIGSEGV, segv);
	/* musl has no sched_setscheduler(). */
	must(!syscall(SYS_sched_setscheduler, 0, SCHED_RR, &param), "sched_setscheduler");

	coarse = now(CLOCK_MONOTONIC_COARSE);
	while (now(CLOCK_MONOTONIC_COARSE) == coarse)
		;
	tick = now(CLOCK_MONOTONIC);
	must(!pthread_create(&thread, &attr, second, NULL), "pthread_create");
	do
		(void)*from;
	while (now(CLOCK_MONOTONIC) - tick < TICK_NS - step * (long long)STEP_NS);
	shared->moving = true;
	moved = mremap((void *)from, TABLE, TABLE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)to);
	shared->moving = false;
	must(moved == (void *)to, "mremap");
	pthread_join(thread, NULL);
	if (shared->stored && *to != NEW)
		shared->lost++;
	_exit(0);
}

/* Tasks of one priority take turns at each tick. */
static void set_turns(void)
{
	FILE *turn = fopen("/proc/sys/kernel/sched_rr_timeslice_ms", "w");

	must(turn && fprintf(turn, "10\n") > 0 && !fclose(turn), "sched_rr_timeslice_ms");
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100, i;

	set_turns();
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(shared != MAP_FAILED, "mmap");
	for (i = 0; i < rounds; i++) {
		pid_t child;
		int status;

		shared->stored = false;
		child = fork();
		must(child >= 0, "fork");
		if (!child) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			one_round(i % STEPS);
		}
		must(waitpid(child, &status, 0) == child && !status, "a round");
	}
	printf("%d rounds, %u begun in the call, %u met: old words in %u, lost stores in %u\n",
	       rounds, shared->begun, shared->met, shared->old, shared->lost);
	return shared->old || shared->lost;
}
