// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A thread writes while its process is being forked, and ends. Child and parent
 * share the page then: what the thread left dirty has to be in memory before the
 * child looks, not come later. Or it writes while memory is given back, and what
 * it left dirty must not be written over what the pages are next.
 *
 * Each round has a process of its own, which had no other thread before. It is
 * met when the thread wrote behind the first quarter of the call, without a fault,
 * and had come to its end when the call returned: fork keeps it from leaving the
 * address space until then, madvise and munmap do not.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "mm_suite.h"
#include "race.h"

#define RW		(PROT_READ | PROT_WRITE)
#define COUNT		512
#define LINES		(LAST * PAGE / LINE)
#define LINE_WORDS	(LINE / 4)
#define STACK		(4 * PAGE)
#define FIRST_NS	400000
#define LAST_NS		6000000
#define STEP_NS		97000
#define ASLEEP		2
#define HEIRS		80	/* enough to get the last pages again */
#define THREAD		(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | \
			 CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID)

/* Shared, so that fork leaves it writable: the thread has no other memory. */
struct leaver {
	volatile uint32_t *last;	/* pages that it writes to */
	int64_t began, wrote, ended;
	volatile bool inside, written;
	volatile int there;		/* the kernel clears it */
	long delay;
	enum seen seen;
	char stack[STACK] __attribute__((aligned(8)));
};

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt;
}

static int write_and_leave(void *arg)
{
	struct leaver *leaver = arg;
	static const struct sched_param first = { .sched_priority = 1 };
	struct timespec delay = { 0, leaver->delay };
	unsigned int i;
	volatile long before;

	/* So that it comes in when it wakes up. */
	sched_setscheduler(0, SCHED_FIFO, &first);
	prctl(PR_SET_TIMERSLACK, 1);
	/* Code that is called for the first time is a fault, which waits for fork. */
	before = faults() + now() + syscall(SYS_gettid);
	leaver->there = ASLEEP;
	nanosleep(&delay, NULL);
	before = faults();
	for (i = 0; leaver->inside && i < LINES; i++) {
		volatile uint32_t *line = leaver->last + i * LINE_WORDS;

		/* Only a read takes the line in. */
		line[5] = INTRUDER + line[1];
	}
	leaver->wrote = now();
	leaver->written = leaver->inside && faults() == before;
	syscall(SYS_exit, 0);
	return 0;
}

/* What it reads first it reads in the end, too. */
static enum result see_twice(const volatile uint32_t *last)
{
	static uint32_t copy[LINES];
	unsigned int i, changed = 0;

	for (i = 0; i < LINES; i++)
		copy[i] = last[i * LINE_WORDS + 5];
	race_sweep();
	for (i = 0; i < LINES; i++)
		changed += copy[i] != last[i * LINE_WORDS + 5];
	EXPECT(!changed, "%u words of the child changed later", changed);
	return PASS;
}

static enum result all_written(const volatile uint32_t *last, uint32_t seed)
{
	unsigned int i;

	for (i = 0; i < LINES; i++)
		EXPECT(last[i * LINE_WORDS + 5] == seed + INTRUDER,
		       "the parent's line %u is lost", i);
	return PASS;
}

static enum seen seen_by(const struct leaver *leaver)
{
	if (!leaver->written || leaver->there)
		return LATE;
	return (leaver->wrote - leaver->began) * 4 <
		leaver->ended - leaver->began ? EARLY : MET;
}

/* A range, and the thread that will write to its end. */
static enum result begin(struct leaver *leaver, volatile uint32_t *at,
			 uint32_t seed)
{
	unsigned int i;

	leaver->last = at + (COUNT - LAST) * PAGE_WORDS;
	for (i = 0; i < COUNT - LAST; i++)
		at[i * PAGE_WORDS] = i;
	for (i = 0; i < LAST * PAGE_WORDS; i++)
		leaver->last[i] = seed;
	race_sweep();
	leaver->there = 1;
	leaver->written = false;
	EXPECT(clone(write_and_leave, leaver->stack + STACK, THREAD, leaver,
		     NULL, NULL, &leaver->there) > 0, "clone: %s",
	       strerror(errno));
	while (leaver->there != ASLEEP)
		sched_yield();
	leaver->began = now();
	leaver->inside = true;
	return PASS;
}

static void end(struct leaver *leaver)
{
	leaver->inside = false;
	leaver->ended = now();
	leaver->seen = seen_by(leaver);
}

static enum result fork_once(struct leaver *leaver, uint32_t seed)
{
	int status = 0;
	pid_t pid;

	TRY(begin(leaver, pages(COUNT), seed));
	pid = (int)syscall(SYS_fork);
	if (!pid)
		_exit(see_twice(leaver->last));
	end(leaver);
	EXPECT(pid > 0, "fork: %s", strerror(errno));
	EXPECT(waitpid(pid, &status, 0) == pid && !status,
	       "the child ended with %#x", (unsigned int)status);
	while (leaver->there)
		sched_yield();
	return leaver->seen == MET ? all_written(leaver->last, seed) : PASS;
}

/* Another process gets the pages: for its own, Linux does not take care either. */
static enum result heir(struct other *other, void *arg)
{
	volatile uint32_t *at = pages(HEIRS);
	unsigned int i;

	(void)arg;
	TRY(child_wait(other, NULL));
	for (i = 0; i < HEIRS; i++)
		at[i * PAGE_WORDS] = 0;
	race_sweep();
	return all_zero((void *)at, HEIRS * PAGE, "fresh pages");
}

/* By madvise and munmap in turns. */
static enum result unmap_once(struct leaver *leaver, uint32_t seed)
{
	volatile uint32_t *at = pages(COUNT);
	struct other other;
	int error;

	TRY(other_start(&other, heir, NULL));
	TRY(begin(leaver, at, seed));
	error = seed % 2 ? munmap((void *)at, COUNT * PAGE) :
		madvise((void *)at, COUNT * PAGE, MADV_DONTNEED);
	end(leaver);
	EXPECT(!error, "%s", strerror(errno));
	TRY(other_go(&other, 0));
	TRY(other_end(&other));
	while (leaver->there)
		sched_yield();
	return PASS;
}

/* Through all times, with a stay where rounds are met. */
static void learn(struct leaver *leaver)
{
	if (leaver->seen == MET)
		return;
	leaver->delay += STEP_NS;
	if (leaver->delay > LAST_NS)
		leaver->delay = FIRST_NS;
}

static enum result with_leaver(unsigned int rounds,
			       enum result (*once)(struct leaver *leaver,
						   uint32_t seed))
{
	struct leaver *leaver = mmap(NULL, sizeof(*leaver), RW,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int tries, met = 0, failed = 0, most = 20 * rounds + 40;

	EXPECT(leaver != MAP_FAILED, "mmap: %s", strerror(errno));
	race_sweep();
	leaver->delay = FIRST_NS;
	for (tries = 0; met < rounds && tries < most; tries++) {
		int status = 0;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		EXPECT(pid >= 0, "fork: %s", strerror(errno));
		if (!pid)
			_exit(once(leaver, tries));
		EXPECT(waitpid(pid, &status, 0) == pid, "waitpid: %s",
		       strerror(errno));
		met += leaver->seen == MET;
		failed += status != 0;
		learn(leaver);
	}
	say(PASS, __FILE__, __LINE__, "%u tries, %u met, %u failed, at %ld us",
	    tries, met, failed, leaver->delay / 1000);
	EXPECT(!failed, "%u failed", failed);
	SKIP_UNLESS(met == rounds, "%u met, should be %u", met, rounds);
	return PASS;
}

static enum result fork_races_leaver(unsigned int rounds)
{
	return with_leaver(rounds, fork_once);
}

static enum result unmap_races_leaver(unsigned int rounds)
{
	return with_leaver(rounds, unmap_once);
}

const struct test leaver_tests[] = {
	{ "fork_races_leaver", "fork under the writes of a thread that ends",
	  fork_races_leaver, NULL },
	{ "unmap_races_leaver",
	  "memory given back under the writes of a thread that ends",
	  unmap_races_leaver, NULL },
	{ NULL, NULL, NULL, NULL },
};
