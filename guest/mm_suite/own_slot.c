// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * With FCSE what a process has below 32 MB is also at the addresses of its own
 * slot. A mapping that comes to be there must not be that memory again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "mm_suite.h"

#define RW		(PROT_READ | PROT_WRITE)
#define ANON		(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
#define COUNT		4
#define BYTES		(COUNT * PAGE)
#define TABLE		(2u << 20)
#define THREADS		3

static sigjmp_buf fault;

static void on_fault(int number)
{
	(void)number;
	siglongjmp(fault, 1);
}

static bool shows(const volatile uint32_t *at, uint32_t word)
{
	if (sigsetjmp(fault, 1))
		return false;
	return *at == word;
}

unsigned int own_slot(void)
{
	struct sigaction action = { .sa_handler = on_fault }, before;
	volatile uint32_t *word = pages(1);
	unsigned int slot, found = 0;

	sigaction(SIGSEGV, &action, &before);
	for (slot = (uintptr_t)word < SLOT ? 1 : SLOTS;
	     slot < SLOTS && !found; slot++) {
		volatile uint32_t *at = word + slot * (SLOT / 4);
		unsigned int i, alike = 0;

		for (i = 0; i < 4 && alike == i; i++) {
			*word = word_of(slot, i);
			alike += shows(at, *word);
		}
		found = alike == 4 ? slot : 0;
	}
	sigaction(SIGSEGV, &before, NULL);
	munmap((void *)word, PAGE);
	return found;
}

static void *at_slot(unsigned int slot, const void *low)
{
	return (void *)(slot * SLOT + (uintptr_t)low % SLOT);
}

static void *map_fixed(void *at, size_t bytes, int flags)
{
	return mmap(at, bytes, RW, ANON | MAP_FIXED_NOREPLACE | flags, -1, 0);
}

/* Ways to come to have something at `at` that was not mapped. */
static void *by_mmap(char *at)
{
	return map_fixed(at, BYTES, 0);
}

/* Over the slot's first address. */
static void *by_crossing(char *at)
{
	char *border = (char *)((uintptr_t)at / SLOT * SLOT);
	char *all = map_fixed(border - BYTES, 2 * BYTES, 0);

	if (all == MAP_FAILED)
		return all;
	fill(all, BYTES, 1);
	return holds(all, BYTES, 1, "in front of the slot") ? MAP_FAILED :
		border;
}

static void *by_brk(char *at)
{
	char *border = (char *)((uintptr_t)at / SLOT * SLOT);

	if (prctl(PR_SET_MM, PR_SET_MM_BRK, border, 0, 0) ||
	    prctl(PR_SET_MM, PR_SET_MM_START_BRK, border, 0, 0))
		return MAP_FAILED;
	return syscall(SYS_brk, border + BYTES) == (long)(border + BYTES) ?
		border : MAP_FAILED;
}

/* From above, where it may grow to. */
static void *by_growing(char *at)
{
	char *end = map_fixed(at + 2 * BYTES, PAGE, MAP_GROWSDOWN);
	unsigned int i;

	if (end == MAP_FAILED)
		return end;
	for (i = 1; i <= 2 * COUNT; i++)
		(void)*(volatile char *)(end - i * PAGE);
	return at;
}

static void *by_mremap(char *at)
{
	char *low = pages(COUNT);

	return mremap(low, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, at);
}

static void *by_resizing(char *at)
{
	char *border = (char *)((uintptr_t)at / SLOT * SLOT);
	char *before = map_fixed(border - BYTES, BYTES, 0);

	if (before == MAP_FAILED ||
	    mremap(before, BYTES, 2 * BYTES, 0) != before)
		return MAP_FAILED;
	return border;
}

static const struct way {
	const char *what;
	void *(*map)(char *at);
} ways[] = {
	{ "mmap", by_mmap }, { "a mapping that crosses", by_crossing },
	{ "brk", by_brk }, { "MAP_GROWSDOWN", by_growing },
	{ "mremap", by_mremap }, { "mremap, larger", by_resizing },
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

/* Memory at low addresses, in several page tables. */
struct lows {
	uint32_t *at[THREADS];
	uint32_t *high;
	uint32_t seed;
	volatile bool over;
};

static enum result lows_hold(const struct lows *lows)
{
	unsigned int i;

	for (i = 0; i < THREADS; i++)
		TRY(holds(lows->at[i], BYTES, lows->seed + i, "low memory"));
	return PASS;
}

static void fill_lows(struct lows *lows, uint32_t seed)
{
	unsigned int i;

	lows->seed = seed;
	for (i = 0; i < THREADS; i++)
		fill(lows->at[i], BYTES, seed + i);
}

static void make_lows(struct lows *lows)
{
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		lows->at[i] = pages(TABLE / PAGE);
		munmap((char *)lows->at[i] + BYTES, TABLE - BYTES);
	}
}

/* Its own words, in the slot that was left as well. */
static enum result use_copy(void *arg)
{
	struct lows *lows = arg;
	uint32_t seed = lows->seed + 3;

	TRY(lows_hold(lows));
	TRY(holds(lows->high, BYTES, seed, "high memory, child"));
	fill_lows(lows, ~seed);
	fill(lows->high, BYTES, seed + 5);
	sched_yield();
	TRY(lows_hold(lows));
	TRY(holds(lows->high, BYTES, seed + 5, "child's own"));
	if (seed % 2)
		execl("/bin/true", "true", NULL);
	return PASS;
}

/* What was in the slot is where it was, and what comes there is new. */
static enum result take_slot(struct lows *lows, const struct way *way,
			     uint32_t seed)
{
	unsigned int own = own_slot(), slot = own ? own : 7 + seed % 8 * 3, now;
	uint32_t *high;

	fill_lows(lows, seed);
	lows->high = high = way->map(at_slot(slot, lows->at[0]));
	if (high == MAP_FAILED && slot == 1)
		return SKIP;	/* the stack is in front of it */
	EXPECT(high != MAP_FAILED, "%s: %s", way->what, strerror(errno));
	TRY(lows_hold(lows));
	TRY(all_zero(high, BYTES, way->what));
	fill(high, BYTES, seed + 3);
	TRY(lows_hold(lows));
	TRY(holds(high, BYTES, seed + 3, way->what));
	now = own_slot();
	EXPECT(!own || now != own, "%s: the own slot still is %u", way->what,
	       own);
	sched_yield();
	TRY(lows_hold(lows));
	TRY(in_child(use_copy, lows));
	TRY(lows_hold(lows));
	return holds(high, BYTES, seed + 3, way->what);
}

/* One way, and the next ones by the same process. */
static enum result take_slots(void *arg)
{
	unsigned int i, round = *(unsigned int *)arg;
	struct lows lows = { .over = false };

	make_lows(&lows);
	for (i = 0; i < 3; i++)
		TRY(take_slot(&lows, &ways[(round + i) % WAYS], round * 8 + i));
	return PASS;
}

static enum result left_slot(unsigned int rounds)
{
	unsigned int round, taken = 0;

	SKIP_UNLESS(!limited(), "FCSE limits the size of processes");
	for (round = 0; round < rounds * WAYS; round++) {
		enum result result = in_child(take_slots, &round);

		EXPECT(result == PASS || result == SKIP, "%s",
		       ways[round % WAYS].what);
		taken += !result;
	}
	EXPECT(taken, "no slot was taken");
	return PASS;
}

struct keeper {
	struct lows *lows;
	unsigned int number;
};

/* Its words are read and written all the time. */
static void *keep(void *arg)
{
	struct keeper *me = arg;
	uint32_t *at = me->lows->at[me->number], seed = me->number;

	while (!me->lows->over) {
		fill(at, BYTES, ++seed);
		if (seed % 4 == 0)
			sched_yield();
		if (holds(at, BYTES, seed, "a thread's words"))
			return me;
	}
	return NULL;
}

static enum result move_under_threads(unsigned int rounds)
{
	struct lows lows = { .over = false };
	struct keeper keepers[THREADS];
	pthread_t threads[THREADS];
	pthread_attr_t attr;
	unsigned int round, i;
	uint32_t *probe = pages(COUNT);

	make_lows(&lows);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16 * PAGE);
	for (i = 0; i < THREADS; i++) {
		keepers[i] = (struct keeper){ &lows, i };
		EXPECT(!pthread_create(&threads[i], &attr, keep, &keepers[i]),
		       "thread %u", i);
	}
	for (round = 0; round < rounds * 8; round++) {
		unsigned int own = own_slot();
		uint32_t *high = by_mmap(at_slot(own ? own : 7, probe));

		EXPECT(high != MAP_FAILED, "mmap: %s", strerror(errno));
		TRY(all_zero(high, BYTES, "in the own slot"));
		fill(high, BYTES, round);
		sched_yield();
		TRY(holds(high, BYTES, round, "in the own slot"));
		munmap(high, BYTES);
	}
	lows.over = true;
	for (i = 0; i < THREADS; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		EXPECT(!failed, "thread %u", i);
	}
	return PASS;
}

static enum result moved_with_threads(unsigned int rounds)
{
	SKIP_UNLESS(!limited(), "FCSE limits the size of processes");
	return move_under_threads(rounds);
}

const struct test own_slot_tests[] = {
	{ "left_slot", "mappings in the slot that the process itself is in",
	  left_slot, NULL },
	{ "moved_with_threads", "the same under threads that use low memory",
	  moved_with_threads, NULL },
	{ NULL, NULL, NULL, NULL },
};
