// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Memory is taken away while a thread still writes to it. What the thread left
 * dirty in the caches must be gone when the pages are somebody else's.
 *
 * A round: thread A gives a range of pages back. Thread B sleeps until A is in
 * the middle, dirties lines of the last pages, and sleeps again. Then a second
 * process takes fresh pages, writes its words past the cache (a miss of a store
 * takes no line in), empties the cache by reading, and looks at its words.
 *
 * A round is met when, first, B found the range's first page gone and its last
 * ones not, so that whatever the kernel flushes before it begins is over,
 * second, A's call had not returned when B was done, and third, the second
 * process got one of the pages that B wrote to, by the number of its frame.
 * Nothing else has to come together: B dirties more lines than the rest of A's
 * call, the switches and the faults push out. All run as an ordinary user.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "mm_suite.h"
#include "race.h"

#define RW		(PROT_READ | PROT_WRITE)
#define HEIRS		80
#define SWEEP		32	/* pages: eight times the cache */
#define SWEEP_SETS	(SWEEP * PAGE / LINE)
/* What the second process is told to do. */
enum { STOP, TAKE, ECHO };

#define FIRST_NS	500000
#define LONGEST_NS	20000000

static struct {
	struct race_range *range;
	sem_t begin, end;
	volatile bool inside, over;
} race;

static sigjmp_buf fault;

bool race_inside(void)
{
	return race.inside;
}

static void on_fault(int number)
{
	(void)number;
	siglongjmp(fault, 1);
}

void ordinary_user(void)
{
	if (setgid(NOBODY) || setuid(NOBODY))
		_exit(say(FAIL, __FILE__, __LINE__, "setuid: %s",
			  strerror(errno)));
}

/* Opened by root it shows numbers of frames to whoever has it then. */
int open_pagemap(void)
{
	return open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

uint32_t frame_of(int pagemap, const volatile void *at)
{
	uint64_t entry = 0;
	off_t place = (off_t)((uintptr_t)at / PAGE * sizeof(entry));

	if (pread(pagemap, &entry, sizeof(entry), place) != sizeof(entry) ||
	    !(entry >> 63))
		return 0;
	return (uint32_t)entry;
}

/* The first word of page i says whether it is still the one of the round. */
bool race_there(const struct race_range *range, unsigned int i)
{
	if (sigsetjmp(fault, 1))
		return false;
	return *(range->at + i * PAGE_WORDS) == word_of(range->seed, i);
}

bool race_dirty(const struct race_range *range)
{
	unsigned int i, line;

	if (sigsetjmp(fault, 1))
		return false;
	for (i = range->count - LAST; i < range->count; i++)
		for (line = 0; line < PAGE / LINE; line++) {
			volatile uint32_t *word = range->at + i * PAGE_WORDS +
						  line * (LINE / 4);

			/* Only a read takes the line in. */
			word[2] = word[1] + 1;
			word[5] = INTRUDER;
		}
	return true;
}

static enum seen dirty_the_last(const struct race_range *range)
{
	unsigned int i;

	if (race_there(range, 0))
		return EARLY;
	for (i = range->count - LAST; i < range->count; i++)
		if (!race.inside || !race_there(range, i))
			return LATE;
	return race_dirty(range) && race.inside ? MET : LATE;
}

static void *writer(void *arg)
{
	/* As exact as an ordinary user may ask for. */
	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		struct timespec delay = { 0, 0 };

		while (sem_wait(&race.begin))
			;
		if (race.over)
			return arg;
		delay.tv_nsec = race.range->delay;
		nanosleep(&delay, NULL);
		race.range->seen = race.range->meet(race.range);
		sem_post(&race.end);
	}
}

void race_prepare(struct race_range *range)
{
	unsigned int i;

	range->prepare(range);
	for (i = 0; i < range->count; i++)
		*(range->at + i * PAGE_WORDS) = word_of(range->seed, i);
	/* B shall not find pages in the TLB when they are gone. */
	mprotect((void *)range->at, range->count * PAGE, PROT_NONE);
	mprotect((void *)range->at, range->count * PAGE, RW);
	for (i = 0; i < LAST; i++)
		range->frames[i] = frame_of(range->pagemap, range->at +
				(range->count - LAST + i) * PAGE_WORDS);
}

bool race_take_away(struct race_range *range)
{
	bool ok;

	race.inside = true;
	ok = range->take_away(range);
	race.inside = false;
	return ok;
}

static enum result two_threads(struct race_range *range, struct other *other)
{
	bool ok;

	race_prepare(range);
	race.range = range;
	sem_post(&race.begin);
	ok = race_take_away(range);
	while (sem_wait(&race.end))
		;
	EXPECT(ok, "%s: %s", range->what, strerror(errno));
	return range->seen == MET ? range->judge(range, other) : PASS;
}

/*
 * The time of B is found by trying: it moves to where rounds are met and
 * wanders about there.
 */
static void learn(struct race_range *range)
{
	long step = range->delay / 16 + 1000;

	if (range->seen == EARLY && range->delay < LONGEST_NS)
		range->delay += step;
	else if (range->seen == LATE && range->delay > 4000)
		range->delay -= step - (long)word_of(range->seed, 0) % 500;
}

void race_sweep(void)
{
	static volatile uint32_t *sweep;
	unsigned int i;

	if (!sweep) {
		sweep = pages(SWEEP);
		fill((void *)sweep, SWEEP * PAGE, 1);
	}
	for (i = 0; i < SWEEP_SETS; i++)
		(void)sweep[i * (LINE / 4)];
}

/* The second process: takes pages and looks what becomes of its words. */
static void take_pages(volatile uint32_t *at, uint32_t seed,
		       uint32_t *overwritten)
{
	unsigned int page, i;

	for (page = 0; page < HEIRS; page++)
		for (i = 0; i < PAGE_WORDS; i++)
			at[page * PAGE_WORDS + i] = seed + i;
	race_sweep();
	*overwritten = 0;
	for (page = 0; page < HEIRS; page++)
		for (i = 0; i < PAGE_WORDS; i++)
			*overwritten += at[page * PAGE_WORDS + i] != seed + i;
}

static enum result heir(struct other *other, void *arg)
{
	volatile uint32_t *at = pages(HEIRS);
	int pagemap = open_pagemap();
	uint32_t go, seed = 0;

	(void)arg;
	ordinary_user();
	take_pages(at, seed, &go);
	go = TAKE;
	for (;;) {
		uint32_t overwritten, wanted, got = 0;
		unsigned int i, page;

		/* This empties the cache: not behind an echo. */
		if (go != ECHO)
			madvise((void *)at, HEIRS * PAGE, MADV_DONTNEED);
		TRY(child_wait(other, &go));
		if (go == STOP)
			return PASS;
		if (go == ECHO) {
			TRY(child_go(other, go));
			continue;
		}
		take_pages(at, seed += PAGE_WORDS, &overwritten);
		for (i = 0; i < LAST; i++) {
			TRY(child_wait(other, &wanted));
			for (page = 0; page < HEIRS; page++)
				got += wanted && wanted == frame_of(pagemap,
						at + page * PAGE_WORDS);
		}
		TRY(child_go(other, got));
		TRY(child_go(other, overwritten));
	}
}

enum result race_switch(struct other *other)
{
	TRY(other_go(other, ECHO));
	return other_wait(other, NULL);
}

/* Counts a round that B was in time for, if the second process got a page. */
static enum result inherit(struct race_range *range, struct other *other)
{
	uint32_t got, overwritten;
	unsigned int i;

	TRY(other_go(other, TAKE));
	for (i = 0; i < LAST; i++)
		TRY(other_go(other, range->frames[i]));
	TRY(other_wait(other, &got));
	TRY(other_wait(other, &overwritten));
	if (got) {
		range->met++;
		range->overwritten += overwritten != 0;
	} else {
		range->elsewhere++;
		range->stray += overwritten != 0;
	}
	return PASS;
}

static enum result race_rounds(struct race_range *range, unsigned int rounds,
			       struct other *other)
{
	unsigned int most = 20 * rounds + 60;

	if (!range->meet)
		range->meet = dirty_the_last;
	if (!range->judge)
		range->judge = inherit;
	if (!range->round)
		range->round = two_threads;
	range->delay = FIRST_NS;
	while (range->met < rounds && range->tries < most) {
		range->tries++;
		range->seed++;
		TRY(range->round(range, other));
		learn(range);
	}
	say(PASS, __FILE__, __LINE__, "%s: %u tries, %u met, %u overwritten; "
	    "%u times the page went elsewhere", range->what, range->tries,
	    range->met, range->overwritten, range->elsewhere);
	return PASS;
}

static struct other taker;

static enum result take_when_told(struct other *other, void *arg)
{
	struct race_range *range = arg;
	uint32_t go;

	ordinary_user();
	EXPECT(!setpriority(PRIO_PROCESS, 0, 19), "nice: %s", strerror(errno));
	for (;;) {
		TRY(child_wait(other, &go));
		if (go == STOP)
			return PASS;
		TRY(child_go(other, !range->take_away(range)));
	}
}

enum result race_other_start(struct race_range *theirs)
{
	return other_start(&taker, take_when_told, theirs);
}

bool race_by_other(struct race_range *range)
{
	uint32_t failed = 1;

	(void)range;
	return !other_go(&taker, TAKE) && !other_wait(&taker, &failed) &&
		!failed;
}

enum result race_other_end(void)
{
	TRY(other_go(&taker, STOP));
	return other_end(&taker);
}

static enum result start_writer(pthread_t *thread)
{
	pthread_attr_t attr;

	ordinary_user();
	sem_init(&race.begin, 0, 0);
	sem_init(&race.end, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16 * PAGE);
	EXPECT(!pthread_create(thread, &attr, writer, NULL), "thread");
	/* A thread's own, on Linux: B comes in when it wakes up. */
	EXPECT(!setpriority(PRIO_PROCESS, 0, 19), "nice: %s", strerror(errno));
	return PASS;
}

static void end_writer(pthread_t thread)
{
	race.over = true;
	sem_post(&race.begin);
	pthread_join(thread, NULL);
}

enum result race_for_pages(struct race_range *ranges, unsigned int count,
			   unsigned int rounds)
{
	struct sigaction action = { .sa_handler = on_fault };
	enum result result = PASS;
	struct other other;
	bool threads = !ranges->round;
	pthread_t thread;
	unsigned int i;
	int pagemap = open_pagemap();

	SKIP_UNLESS(frame_of(pagemap, &other), "no numbers of frames");
	TRY(other_start(&other, heir, NULL));
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	if (threads)
		TRY(start_writer(&thread));
	for (i = 0; i < count; i++) {
		ranges[i].pagemap = pagemap;
		TRY(race_rounds(&ranges[i], rounds, &other));
	}
	if (threads)
		end_writer(thread);
	TRY(other_go(&other, STOP));
	TRY(other_end(&other));
	for (i = 0; i < count; i++) {
		if (ranges[i].overwritten || ranges[i].stray)
			result = say(FAIL, __FILE__, __LINE__,
				     "%s: %u overwritten, should be none",
				     ranges[i].what,
				     ranges[i].overwritten + ranges[i].stray);
		else if (ranges[i].met < rounds && result == PASS)
			result = say(SKIP, __FILE__, __LINE__,
				     "%s: %u met, should be %u",
				     ranges[i].what, ranges[i].met, rounds);
	}
	return result;
}
