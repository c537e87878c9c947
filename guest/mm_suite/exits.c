// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Two processes end at a time. The first, X, has no memory of its own any more
 * and has borrowed that of the second, Y, while it flushes the caches of what
 * it had. Y comes in at the end of the flush, dirties lines, and ends, too.
 * These lines must be gone when Y's pages are somebody else's, whatever X
 * believes to have flushed.
 *
 * An AIO context makes both sleep for periods of RCU when their memory has no
 * users any more and is still there. Behind that sleep Y lets X go on for some
 * microseconds at a time, slowly more of them. The flush goes on until no line
 * is dirty: it gets ahead when X has more time than it takes to clean what Y
 * has dirtied by waking up, and then it does by little. Y sees that it is over
 * by lines that have to be read from memory again.
 *
 * A round is met when Y has seen that: mostly it is then before X takes note of
 * what its flush has done. Without FCSE the switch away from X has flushed, and
 * X does not flush again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "mm_suite.h"

#define WORDS		(LINE / 4)
#define PROBE		64	/* lines */
#define CACHE_PAGES	4	/* 16 KB of data */
#define HEIRLOOMS	64	/* enough to get Y's pages */
#define ATTEMPTS	3	/* for each round */
#define SETTLE_US	3000
#define ASLEEP_NS	300000000
#define SLEEPS		6	/* of which the shortest counts */
#define SHORTEST_NS	5000
#define LONGEST_NS	100000
#define STEP_NS		1000
#define SAME		6	/* slices of one length */

/* How Y ends. */
enum outcome { MET, NO_AIO, NO_FIFO, NO_CACHE, NOT_WOKEN, NOT_SEEN };

static const char * const why[] = {
	[NO_AIO]	= "no AIO",
	[NO_FIFO]	= "no SCHED_FIFO",
	[NO_CACHE]	= "caches make no difference",
	[NOT_WOKEN]	= "X slept on",
	[NOT_SEEN]	= "no flush was seen",
};

static int64_t time_by(clockid_t clock)
{
	struct timespec t = { 0, 0 };

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_ns(long ns)
{
	struct timespec time = { 0, ns };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* How long it takes to fall asleep and to wake up. */
static long shortest_sleep(void)
{
	int64_t least = INT32_MAX;
	unsigned int i;

	for (i = 0; i < SLEEPS; i++) {
		int64_t from = now(), took;

		sleep_ns(1);
		took = now() - from;
		if (took < least)
			least = took;
	}
	return (long)least;
}

static bool before_others(int priority)
{
	struct sched_param param = { .sched_priority = priority };

	return !sched_setscheduler(0, SCHED_FIFO, &param);
}

static bool make_aio_context(void)
{
	unsigned long context = 0;

	return !syscall(SYS_io_setup, 1, &context);
}

/* X */
static void end_when_told(int gate)
{
	char byte;

	if (!make_aio_context() || !before_others(1))
		_exit(FAIL);
	(void)!read(gate, &byte, 1);
	_exit(PASS);
}

static int64_t time_to_read(const volatile uint32_t *at)
{
	unsigned int i;
	int64_t from;

	/* The clock's own lines. */
	now();
	from = now();
	for (i = 0; i < PROBE; i++)
		(void)at[i * WORDS];
	return now() - from;
}

static void dirty(volatile uint32_t *at)
{
	size_t i;

	for (i = 0; i < CACHE_PAGES * PAGE_WORDS; i += WORDS) {
		at[i] = i;
		at[i + 1] = at[i] + 1;
	}
}

/* X sleeps in the middle of its end; then it runs a little at a time. */
static enum outcome meet(clockid_t x, const volatile uint32_t *at,
			 int64_t misses)
{
	int64_t from = now(), ran = time_by(x);
	unsigned int count = 0;
	long slice = SHORTEST_NS, watch = shortest_sleep();

	while (time_by(x) == ran) {
		if (now() - from > ASLEEP_NS)
			return NOT_WOKEN;
		sleep_ns(watch);
	}
	time_to_read(at);
	while (slice < LONGEST_NS) {
		int64_t took;

		sleep_ns(slice);
		took = time_to_read(at);
		/* An interrupt takes longer. */
		if (took * 8 > misses * 7 && took * 2 < misses * 3)
			return MET;
		if (++count % SAME == 0)
			slice += STEP_NS;
	}
	return NOT_SEEN;
}

/* Y */
static enum outcome meet_and_end(pid_t pid, int gate)
{
	volatile uint32_t *at = pages(CACHE_PAGES);
	enum outcome outcome;
	int64_t hits, misses;
	clockid_t x;

	if (clock_getcpuclockid(pid, &x) || !make_aio_context())
		return NO_AIO;
	/* X gets as far as it does without Y. */
	usleep(SETTLE_US);
	if (!before_others(2))
		return NO_FIFO;
	dirty(at);
	time_to_read(at);
	hits = time_to_read(at);
	empty_cache();
	misses = time_to_read(at);
	if (misses < 2 * hits)
		return NO_CACHE;
	close(gate);
	usleep(SETTLE_US);
	outcome = meet(x, at, misses);
	dirty(at);
	return outcome;
}

/* Does somebody else write to pages that are fresh behind Y's end? */
static enum result one_round(enum outcome *outcome, bool *overwritten)
{
	char *at = pages(HEIRLOOMS);
	int gate[2], status = 0;
	unsigned int i;
	pid_t x, y;

	EXPECT(!pipe(gate), "pipe: %s", strerror(errno));
	fflush(stdout);
	x = fork();
	EXPECT(x >= 0, "fork: %s", strerror(errno));
	if (!x) {
		close(gate[1]);
		end_when_told(gate[0]);
	}
	y = fork();
	EXPECT(y >= 0, "fork: %s", strerror(errno));
	if (!y)
		_exit(meet_and_end(x, gate[1]));
	close(gate[1]);
	EXPECT(waitpid(y, &status, 0) == y && WIFEXITED(status),
	       "Y ended by signal %d", WTERMSIG(status));
	*outcome = WEXITSTATUS(status);
	for (i = 0; i < HEIRLOOMS; i++)
		*(volatile uint32_t *)(at + i * PAGE) = 0;
	TRY(empty_cache());
	*overwritten = all_zero(at, HEIRLOOMS * PAGE, "fresh pages") != PASS;
	munmap(at, HEIRLOOMS * PAGE);
	close(gate[0]);
	EXPECT(waitpid(x, NULL, 0) == x, "waitpid: %s", strerror(errno));
	return PASS;
}

static enum result ends_in_flush(unsigned int rounds)
{
	bool flushes = own_slot();
	unsigned int attempts = flushes ? rounds * ATTEMPTS : rounds;
	unsigned int i, met = 0, overwritten = 0;
	enum outcome last = MET;

	for (i = 0; i < attempts && met < rounds; i++) {
		enum outcome outcome = NOT_SEEN;
		bool wrong = false;

		TRY(one_round(&outcome, &wrong));
		overwritten += wrong;
		if (outcome == MET)
			met++;
		else
			last = outcome;
	}
	EXPECT(!overwritten, "%u met of %u, %u overwritten, should be none",
	       met, i, overwritten);
	SKIP_UNLESS(met == rounds || (!flushes && last == NOT_SEEN),
		    "%u met of %u, should be %u: %s", met, i, rounds, why[last]);
	return PASS;
}

const struct test exit_tests[] = {
	{ "ends_in_flush", "an end at the end of another one's flush",
	  ends_in_flush, NULL },
	{ NULL, NULL, NULL, NULL },
};
