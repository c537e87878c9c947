// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * With FCSE what a process has below 32 MB is also at the addresses of its own
 * slot. A mapping that comes to be there must not be that memory again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mm_suite.h"

#define RW		(PROT_READ | PROT_WRITE)
#define ANON		(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
#define SLOT		(32u << 20)
#define SLOTS		95
#define COUNT		4
#define BYTES		(COUNT * PAGE)
#define TABLE		(2u << 20)
#define HIGH		(16u << 20)
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

static enum result in_child(struct lows *lows, uint32_t *high, uint32_t seed)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	EXPECT(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		enum result result = lows_hold(lows) ||
			holds(high, BYTES, seed, "high memory, child");

		fill_lows(lows, ~seed);
		fill(high, BYTES, seed + 5);
		sched_yield();
		if (!result)
			result = lows_hold(lows) ||
				holds(high, BYTES, seed + 5, "child's own");
		fflush(stdout);
		if (!result && seed % 2)
			execl("/bin/true", "true", NULL);
		_exit(result);
	}
	EXPECT(waitpid(pid, &status, 0) == pid && !status,
	       "the child ended with %#x", (unsigned int)status);
	return PASS;
}

/* What was in the slot is where it was, and what comes there is new. */
static enum result take_slot(struct lows *lows, const struct way *way,
			     uint32_t seed)
{
	unsigned int own = own_slot(), slot = own ? own : 7 + seed % 8 * 3, now;
	uint32_t *high;

	fill_lows(lows, seed);
	high = way->map(at_slot(slot, lows->at[0]));
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
	TRY(in_child(lows, high, seed + 3));
	TRY(lows_hold(lows));
	return holds(high, BYTES, seed + 3, way->what);
}

static enum result left_slot(unsigned int rounds)
{
	unsigned int round, i, taken = 0;

	SKIP_UNLESS(!limited(), "FCSE limits the size of processes");
	for (round = 0; round < rounds * WAYS; round++) {
		struct lows lows = { .over = false };
		int status = 0;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		EXPECT(pid >= 0, "fork: %s", strerror(errno));
		if (!pid) {
			enum result result = PASS;

			make_lows(&lows);
			/* And the next one, by the same process. */
			for (i = 0; i < 3 && !result; i++)
				result = take_slot(&lows, &ways[(round + i) %
						   WAYS], round * 8 + i);
			fflush(stdout);
			_exit(result);
		}
		EXPECT(waitpid(pid, &status, 0) == pid &&
		       (!status || WEXITSTATUS(status) == SKIP),
		       "%s: ended with %#x", ways[round % WAYS].what,
		       (unsigned int)status);
		taken += !status;
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

/*
 * Growing mappings are asked about when they are made. These come to be able to
 * grow into the own slot later: moved there, or when something that was between
 * is gone. /proc/self/mem grows a mapping at an address, not at a fault's.
 */
static char *moved_there(unsigned int slot)
{
	char *low = mmap(NULL, PAGE, RW, ANON | MAP_GROWSDOWN, -1, 0);
	char *end = (char *)((slot + 1) * SLOT);

	return mremap(low, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		      end + COUNT * PAGE) == MAP_FAILED ? NULL : end;
}

/* In every second slot one, behind something else; then the own one goes on. */
static char *freed_there(unsigned int slot)
{
	unsigned int other;

	for (other = 1 + slot % 2; other < SLOTS - 1; other += 2) {
		char *start = (char *)(other * SLOT);

		map_fixed(start + COUNT * PAGE, PAGE, MAP_GROWSDOWN);
		map_fixed(start + PAGE, PAGE, 0);
	}
	slot = own_slot();
	map_fixed((char *)(slot * SLOT) + HIGH, PAGE, 0);
	slot = own_slot();
	if (!slot)
		return NULL;
	munmap((char *)((slot + 1) * SLOT) + PAGE, PAGE);
	return (char *)((slot + 1) * SLOT);
}

/* Its last page, and that at the same place of the low memory, are two. */
static enum result grow_into(char *(*prepare)(unsigned int slot), uint32_t seed)
{
	unsigned int slot = own_slot();
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	uint32_t *low = pages(COUNT), words[COUNT];
	char *end = slot ? prepare(slot) : NULL;
	off_t at = (uintptr_t)end - PAGE;
	ssize_t n;

	if (!end)
		return SKIP;
	fill(low, BYTES, seed);
	fill(words, sizeof(words), seed + 1);
	n = pwrite(mem, words, sizeof(words), at);
	if (n < 0) {
		TRY(holds(low, BYTES, seed, "low memory"));
		return PASS;
	}
	EXPECT(n == sizeof(words), "written: %zd", n);
	n = pread(mem, words, sizeof(words), at);
	EXPECT(n == sizeof(words), "read: %zd", n);
	TRY(holds(words, sizeof(words), seed + 1, "/proc/self/mem"));
	TRY(holds((void *)(end - PAGE), sizeof(words), seed + 1,
		  "the address that was written"));
	TRY(all_zero(end - PAGE + sizeof(words), PAGE - sizeof(words),
		     "what grew"));
	TRY(holds(low, BYTES, seed, "low memory"));
	EXPECT(own_slot() != slot, "something is mapped in the own slot");
	return PASS;
}

static enum result grown_into_slot(unsigned int rounds)
{
	unsigned int round, skipped = 0;

	SKIP_UNLESS(!limited(), "FCSE limits the size of processes");
	for (round = 0; round < rounds * 2; round++) {
		int status = 0;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		EXPECT(pid >= 0, "fork: %s", strerror(errno));
		if (!pid) {
			enum result result = grow_into(round % 2 ? freed_there :
						       moved_there, round);

			fflush(stdout);
			_exit(result);
		}
		EXPECT(waitpid(pid, &status, 0) == pid &&
		       (!status || WEXITSTATUS(status) == SKIP),
		       "%s: ended with %#x", round % 2 ? "freed" : "moved",
		       (unsigned int)status);
		skipped += !!status;
	}
	SKIP_UNLESS(skipped < round, "no own slot");
	return PASS;
}

const struct test own_slot_tests[] = {
	{ "left_slot", "mappings in the slot that the process itself is in",
	  left_slot, NULL },
	{ "moved_with_threads", "the same under threads that use low memory",
	  moved_with_threads, NULL },
	{ "grown_into_slot", "mappings that grow into it later",
	  grown_into_slot, NULL },
	{ NULL, NULL, NULL, NULL },
};
