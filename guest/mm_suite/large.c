// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Large processes, and more of them than there are FCSE's PIDs: what the best-
 * effort mode is for. Nothing here depends on FCSE; where it limits processes
 * the tests are skipped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mm_suite.h"

#define RW		(PROT_READ | PROT_WRITE)
#define ANON		(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
#define MB		(1u << 20)
#define FLUSHES		"/sys/kernel/debug/fcse/flushed_pid_shared"
#define CROWD		400
#define CROWD_KB	84
#define STEP		37	/* has no factor in common with CROWD */
#define COUNT		2
#define BYTES		(COUNT * PAGE)
#define THREADS		4
#define OWNERS		7

/* Where `at` is in a slot of 32 MB, with the same lines of the caches. */
static void *in_slot(const void *at, unsigned int slot)
{
	return (void *)(slot * SLOT + (uintptr_t)at % SLOT);
}

static uint32_t *map_at(void *at, size_t bytes)
{
	return mmap(at, bytes, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
}

struct crowd {
	int gate[CROWD][2];
	int back[2];
	uint32_t *words;
};

/* Answers as often as it is called, if its words are still there. */
static void in_crowd(struct crowd *crowd, unsigned int me)
{
	uint32_t seed = me, call = 0;

	fill(crowd->words, PAGE, seed);
	while (read(crowd->gate[me][0], &call, 4) == 4 && call) {
		uint32_t answer = !holds(crowd->words, PAGE, seed, "one of 400");

		seed = me + call;
		fill(crowd->words, PAGE, seed);
		if (write(crowd->back[1], &answer, 4) != 4)
			_exit(FAIL);
	}
	_exit(holds(crowd->words, PAGE, seed, "one of 400 at the end"));
}

/*
 * With FCSE most switches keep the caches, though the 400 share its PIDs: a
 * flush is good for many switches.
 */
static enum result call_crowd(struct crowd *crowd, unsigned int round)
{
	long flushes = read_number(FLUSHES);
	unsigned int i, who = round;

	for (i = 0; i < CROWD; i++, who += STEP) {
		uint32_t call = round + 1, answer = 0;

		EXPECT(write(crowd->gate[who % CROWD][1], &call, 4) == 4 &&
		       read(crowd->back[0], &answer, 4) == 4 && answer,
		       "process %u of %u", who % CROWD, CROWD);
	}
	if (flushes >= 0)
		flushes = read_number(FLUSHES) - flushes;
	EXPECT(flushes < CROWD / 2, "%ld flushes", flushes);
	return PASS;
}

static enum result four_hundred(unsigned int rounds)
{
	static struct crowd crowd;
	static pid_t pids[CROWD];
	unsigned int i;

	SKIP_UNLESS(!limited(), "FCSE limits the number of processes");
	SKIP_UNLESS(available_kb() >= CROWD * CROWD_KB, "only %ld KB are free",
		    available_kb());
	crowd.words = pages(1);
	EXPECT(!pipe(crowd.back), "pipe: %s", strerror(errno));
	for (i = 0; i < CROWD; i++) {
		EXPECT(!pipe(crowd.gate[i]), "pipe: %s", strerror(errno));
		pids[i] = fork();
		EXPECT(pids[i] >= 0, "fork %u: %s", i, strerror(errno));
		if (!pids[i])
			in_crowd(&crowd, i);
	}
	for (i = 0; i < rounds; i++)
		TRY(call_crowd(&crowd, i));
	for (i = 0; i < CROWD; i++) {
		uint32_t call = 0;
		int status = 0;

		EXPECT(write(crowd.gate[i][1], &call, 4) == 4, "gate");
		EXPECT(waitpid(pids[i], &status, 0) == pids[i] && !status,
		       "process %u ended with %#x", i, (unsigned int)status);
	}
	return PASS;
}

/* Keeps its words, at low addresses, while somebody maps its slot. */
static enum result owner(struct other *other, void *arg)
{
	uint32_t go, seed = (uint32_t)getpid();

	for (;;) {
		fill(arg, BYTES, seed);
		TRY(child_go(other, 0));
		TRY(child_wait(other, &go));
		TRY(holds(arg, BYTES, seed, "an owner's words"));
		if (!go)
			return PASS;
		seed += 1000;
	}
}

static enum result call_owners(struct other *owners)
{
	unsigned int i;

	for (i = 0; i < OWNERS; i++)
		TRY(other_go(&owners[i], 1));
	for (i = 0; i < OWNERS; i++)
		TRY(other_wait(&owners[i], NULL));
	return PASS;
}

/*
 * Maps every slot at the addresses that others have their words at, as far as
 * the caches can tell. Slot by slot, as the kernel may charge for each. The
 * others have just run when a slot is mapped; some run while one is, too.
 */
static enum result slots_of_others(unsigned int rounds)
{
	struct other owners[OWNERS];
	uint32_t *low = pages(COUNT);
	unsigned int round, slot, i;

	SKIP_UNLESS(!limited(), "FCSE limits the size of processes");
	for (i = 0; i < OWNERS; i++)
		TRY(other_start(&owners[i], owner, low));
	for (i = 0; i < OWNERS; i++)
		TRY(other_wait(&owners[i], NULL));
	for (round = 0; round < rounds; round++)
		for (slot = 1; slot < SLOTS; slot++) {
			uint32_t *high;

			TRY(call_owners(owners));
			high = map_at(in_slot(low, slot), BYTES);
			if (high == MAP_FAILED)
				continue;
			fill(low, BYTES, round);
			TRY(all_zero(high, BYTES, "fresh high pages"));
			fill(high, BYTES, slot);
			if (slot % 8 == 1)
				TRY(call_owners(owners));
			sched_yield();
			TRY(holds(high, BYTES, slot, "high pages"));
			TRY(holds(low, BYTES, round, "low pages"));
			munmap(high, BYTES);
		}
	for (i = 0; i < OWNERS; i++) {
		TRY(other_go(&owners[i], 0));
		TRY(other_end(&owners[i]));
	}
	return PASS;
}

/* The child of a large process has all of it, and each one's writes are its own. */
static enum result fork_large(unsigned int rounds)
{
	uint32_t *low = pages(COUNT), *high, *far;
	unsigned int round;

	SKIP_UNLESS(!limited(), "FCSE limits the size of processes");
	high = mmap(NULL, 256 * MB, RW, ANON, -1, 0);
	far = map_at(in_slot(low, 40), BYTES);
	EXPECT(high != MAP_FAILED && far != MAP_FAILED, "mmap: %s",
	       strerror(errno));
	for (round = 0; round < rounds * 4; round++) {
		uint32_t *middle = high + (round % 250) * (MB / 4);
		int status = 0;
		pid_t pid;

		fill(low, BYTES, round);
		fill(middle, BYTES, round + 1);
		fill(far, BYTES, round + 2);
		pid = fork();
		EXPECT(pid >= 0, "fork: %s", strerror(errno));
		if (!pid) {
			enum result result = holds(low, BYTES, round, "low") ||
				holds(middle, BYTES, round + 1, "middle") ||
				holds(far, BYTES, round + 2, "far");

			fill(far, BYTES, ~round);
			fill(middle, BYTES, ~round);
			fill(low, BYTES, ~round);
			sched_yield();
			_exit(result || holds(far, BYTES, ~round, "child"));
		}
		if (round % 2) {
			fill(far, PAGE, round + 3);
			sched_yield();
			TRY(holds(far, PAGE, round + 3, "parent"));
		}
		EXPECT(waitpid(pid, &status, 0) == pid && !status,
		       "the child ended with %#x", (unsigned int)status);
		TRY(holds(low, BYTES, round, "low, parent"));
		TRY(holds(middle, BYTES, round + 1, "middle, parent"));
	}
	return PASS;
}

/* From large to small by execve, and what was large leaves nothing behind. */
static enum result exec_small(unsigned int rounds)
{
	uint32_t *low = pages(COUNT);
	unsigned int round;

	SKIP_UNLESS(!limited(), "FCSE limits the size of processes");
	for (round = 0; round < rounds * 2; round++) {
		int status = 0;
		pid_t pid;

		fill(low, BYTES, round);
		pid = round % 4 == 3 ? vfork() : fork();
		EXPECT(pid >= 0, "fork: %s", strerror(errno));
		if (!pid && round % 4 == 3) {
			execl("/bin/true", "true", NULL);
			_exit(FAIL);
		} else if (!pid) {
			uint32_t *far = map_at(in_slot(low, 1 + round % 94),
					       BYTES);

			if (far != MAP_FAILED)
				fill(far, BYTES, round);
			fill(low, BYTES, ~round);
			execl("/bin/true", "true", NULL);
			_exit(FAIL);
		}
		EXPECT(waitpid(pid, &status, 0) == pid && !status,
		       "the program ended with %#x", (unsigned int)status);
		TRY(holds(low, BYTES, round, "the parent"));
	}
	return PASS;
}

/* Threads that share a process, which one of them makes large and small. */
struct group {
	uint32_t *low[THREADS];
	unsigned int slot;
	unsigned int rounds;
};

struct member {
	struct group *group;
	unsigned int number;
};

static void *work(void *arg)
{
	struct member *me = arg;
	uint32_t *low = me->group->low[me->number];
	unsigned int i;

	for (i = 0; i < me->group->rounds * 4; i++) {
		uint32_t *far = MAP_FAILED;

		fill(low, BYTES, i + me->number);
		if (me->number == i % THREADS)
			far = map_at(in_slot(low, me->group->slot), BYTES);
		sched_yield();
		if (far != MAP_FAILED) {
			if (all_zero(far, BYTES, "fresh high pages"))
				return me;
			fill(far, BYTES, ~i);
			sched_yield();
			if (holds(far, BYTES, ~i, "a thread's high pages"))
				return me;
			munmap(far, BYTES);
		}
		if (holds(low, BYTES, i + me->number, "a thread's low pages"))
			return me;
	}
	return NULL;
}

static enum result run_group(struct group *group)
{
	struct member members[THREADS];
	pthread_t threads[THREADS];
	pthread_attr_t attr;
	unsigned int i;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16 * PAGE);
	for (i = 0; i < THREADS; i++) {
		members[i] = (struct member){ group, i };
		EXPECT(!pthread_create(&threads[i], &attr, work, &members[i]),
		       "thread %u", i);
	}
	for (i = 0; i < THREADS; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		EXPECT(!failed, "thread %u", i);
	}
	return PASS;
}

/* Several such groups at the same addresses, in each other's slots. */
static enum result large_threads(unsigned int rounds)
{
	struct group group = { .rounds = rounds };
	pid_t pids[3];
	unsigned int i;

	SKIP_UNLESS(!limited(), "FCSE limits the size of processes");
	for (i = 0; i < THREADS; i++)
		group.low[i] = pages(COUNT);
	for (i = 0; i < 3; i++) {
		group.slot = 1 + i;
		fflush(stdout);
		pids[i] = fork();
		EXPECT(pids[i] >= 0, "fork: %s", strerror(errno));
		if (!pids[i])
			_exit(run_group(&group));
	}
	for (i = 0; i < 3; i++) {
		int status = 0;

		EXPECT(waitpid(pids[i], &status, 0) == pids[i] && !status,
		       "group %u ended with %#x", i, (unsigned int)status);
	}
	return PASS;
}

/* One thread makes the process large, at a time of its choice. */
struct race {
	uint32_t *low;
	unsigned int delay;
	unsigned int slot;
};

static void *become_large(void *arg)
{
	struct race *race = arg;
	volatile unsigned int i;
	uint32_t *far;

	for (i = 0; i < race->delay; i++)
		;
	far = map_at(in_slot(race->low, race->slot), BYTES);
	if (far != MAP_FAILED)
		fill(far, BYTES, race->slot);
	return far;
}

/* The other one forks at that time. Parent and child must have both parts. */
static enum result fork_and_grow(struct race *race)
{
	pthread_t thread;
	int status = 0;
	void *far;
	pid_t pid;

	fill(race->low, BYTES, race->delay);
	EXPECT(!pthread_create(&thread, NULL, become_large, race), "thread");
	if (race->delay % 2)
		sched_yield();
	pid = fork();
	EXPECT(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		uint32_t *mine;

		TRY(holds(race->low, BYTES, race->delay, "low, child"));
		fill(race->low, BYTES, ~race->delay);
		/* Where the parent may or may not have had something yet. */
		mine = in_slot(race->low, race->slot);
		munmap(mine, BYTES);
		EXPECT(map_at(mine, BYTES) == mine, "the child's own");
		TRY(all_zero(mine, BYTES, "fresh pages, child"));
		fill(mine, BYTES, 5);
		sched_yield();
		TRY(holds(mine, BYTES, 5, "high, child"));
		return holds(race->low, BYTES, ~race->delay, "low, child, later");
	}
	pthread_join(thread, &far);
	EXPECT(waitpid(pid, &status, 0) == pid && !status,
	       "the child ended with %#x", (unsigned int)status);
	EXPECT(far != MAP_FAILED, "mmap");
	TRY(holds(race->low, BYTES, race->delay, "low, parent"));
	return holds(far, BYTES, race->slot, "high, parent");
}

static enum result fork_races_move(unsigned int rounds)
{
	struct race race = { .low = pages(COUNT) };
	unsigned int round;

	SKIP_UNLESS(!limited(), "FCSE limits the size of processes");
	for (round = 0; round < rounds * 8; round++) {
		int status = 0;
		pid_t pid;

		race.delay = word_of(round, 0) % 8192;
		race.slot = 2 + round % 80;
		fflush(stdout);
		pid = fork();
		EXPECT(pid >= 0, "fork: %s", strerror(errno));
		if (!pid)
			_exit(fork_and_grow(&race));
		EXPECT(waitpid(pid, &status, 0) == pid && !status,
		       "round %u ended with %#x", round, (unsigned int)status);
	}
	return PASS;
}

const struct test large_tests[] = {
	{ "four_hundred", "400 processes, called in an odd order",
	  four_hundred, NULL },
	{ "slots_of_others", "mappings that look like others' to the caches",
	  slots_of_others, NULL },
	{ "fork_large", "fork of a large process", fork_large, NULL },
	{ "exec_small", "execve from large to small", exec_small, NULL },
	{ "large_threads", "threads of large processes", large_threads, NULL },
	{ "fork_races_move", "fork while another thread makes it large",
	  fork_races_move, NULL },
	{ NULL, NULL, NULL, NULL },
};
