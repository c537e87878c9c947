// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * More processes than FCSE has PIDs, some of them large for a while, and so
 * little memory that their pages leave for zram and come back all the time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mm_suite.h"

#define RW		(PROT_READ | PROT_WRITE)
#define MB		(1u << 20)
#define MOVES		"/sys/kernel/debug/fcse/moved"
#define CROWD		100
#define STEP		37	/* has no factor in common with CROWD */
#define COUNT		16
/* Of a page that much is written: it has to compress. */
#define PART		256
/* Of 6 MB that the crowd has and some of others this much has to go, in kB. */
#define SQUEEZED_KB	4096
/* By which memory becomes less, and the pages that the crowd has to miss. */
#define TAKEN		(256 * 1024)
#define MISSED		(4 * CROWD)

struct crowd {
	int gate[CROWD][2];
	int back[2];
};

static enum result parts_hold(const char *at, unsigned int from, uint32_t seed)
{
	unsigned int i;

	for (i = from; i < COUNT; i += 2)
		TRY(holds(at + i * PAGE, PART, seed + i, "one of the crowd"));
	return PASS;
}

static void fill_parts(char *at, unsigned int from, uint32_t seed)
{
	unsigned int i;

	for (i = from; i < COUNT; i += 2)
		fill(at + i * PAGE, PART, seed + i);
}

static bool grows(unsigned int me)
{
	return me % 3 == 0;
}

/*
 * Large from one call to the next: at a place that another slot has, too, and
 * half of them in their own slot, which they lose by that.
 */
static enum result grow_or_shrink(char *low, char **high, unsigned int me)
{
	unsigned int own = me % 2 ? own_slot() : 0;
	void *at = low + (own ? own : 1 + me % 90) * SLOT;

	if (*high) {
		TRY(holds(*high, PART, me, "high pages"));
		EXPECT(!munmap(*high, PAGE), "munmap: %s", strerror(errno));
		*high = NULL;
		return PASS;
	}
	*high = mmap(at, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS |
		     MAP_FIXED_NOREPLACE, -1, 0);
	/* Not all slots are free in a process that was laid out high. */
	if (*high == MAP_FAILED)
		*high = pages(1);
	fill(*high, PART, me);
	return PASS;
}

/* Answers as often as it is called, if half of its words are still there. */
static enum result in_crowd(struct crowd *crowd, unsigned int me)
{
	uint32_t call = 0, seed[2] = { me, me };
	char *low = pages(COUNT), *high = NULL;

	fill_parts(low, 0, me);
	fill_parts(low, 1, me);
	while (read(crowd->gate[me][0], &call, 4) == 4 && call) {
		unsigned int half = call % 2;

		TRY(parts_hold(low, half, seed[half]));
		seed[half] = me + call * 1000;
		fill_parts(low, half, seed[half]);
		if (grows(me))
			TRY(grow_or_shrink(low, &high, me));
		EXPECT(write(crowd->back[1], &me, 4) == 4, "no way back");
	}
	TRY(parts_hold(low, 0, seed[0]));
	return parts_hold(low, 1, seed[1]);
}

/* Memory that cannot be swapped; it goes with the process. */
static enum result take_memory(void)
{
	EXPECT(mmap(NULL, TAKEN, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED,
		    -1, 0) != MAP_FAILED, "no memory: %s", strerror(errno));
	return PASS;
}

static long swapped_in(void)
{
	return named_number("/proc/vmstat", "pswpin");
}

/*
 * Until the kernel swaps. What goes out stays in the swap cache as long as
 * there is room: that the crowd misses its pages takes more, see call_all.
 */
static enum result take_free_memory(void)
{
	long free = named_number("/proc/meminfo", "SwapFree");
	long steps = named_number("/proc/meminfo", "MemTotal") / (TAKEN / 1024);

	while (free - named_number("/proc/meminfo", "SwapFree") < SQUEEZED_KB) {
		EXPECT(steps-- > 0, "all is taken, nothing goes out");
		TRY(take_memory());
	}
	return PASS;
}

static enum result call_one(struct crowd *crowd, unsigned int who, uint32_t call)
{
	uint32_t answer = CROWD;

	EXPECT(write(crowd->gate[who][1], &call, 4) == 4 &&
	       read(crowd->back[0], &answer, 4) == 4 && answer == who,
	       "process %u of %u", who, CROWD);
	return PASS;
}

/* Memory becomes less until the crowd misses enough of its pages. */
static enum result call_all(struct crowd *crowd, unsigned int round, long in)
{
	unsigned int i, who = round % CROWD;

	for (i = 0; i < CROWD; i++, who = (who + STEP) % CROWD) {
		if (i % 4 == 0 && swapped_in() - in < MISSED)
			TRY(take_memory());
		TRY(call_one(crowd, who, round + 1));
	}
	return PASS;
}

static enum result begin(struct crowd *crowd, pid_t *pids)
{
	unsigned int i;

	EXPECT(!pipe(crowd->back), "pipe: %s", strerror(errno));
	for (i = 0; i < CROWD; i++) {
		EXPECT(!pipe(crowd->gate[i]), "pipe: %s", strerror(errno));
		fflush(stdout);
		pids[i] = fork();
		EXPECT(pids[i] >= 0, "fork %u: %s", i, strerror(errno));
		if (!pids[i]) {
			enum result result;

			/* One that dies is seen at once: nobody else answers. */
			result = in_crowd(crowd, i);
			i = CROWD;
			if (result)
				write(crowd->back[1], &i, 4);
			fflush(stdout);
			_exit(result);
		}
	}
	return PASS;
}

static enum result end(struct crowd *crowd, const pid_t *pids)
{
	unsigned int i;

	for (i = 0; i < CROWD; i++) {
		uint32_t call = 0;
		int status = 0;

		EXPECT(write(crowd->gate[i][1], &call, 4) == 4, "gate");
		EXPECT(waitpid(pids[i], &status, 0) == pids[i] && !status,
		       "process %u ended with %#x", i, (unsigned int)status);
	}
	return PASS;
}

/*
 * A test that cannot miss what it is for: pages were missed and came back, and
 * where FCSE counts its moves there were some.
 */
static enum result crowd_under_pressure(unsigned int rounds)
{
	static struct crowd crowd;
	static pid_t pids[CROWD];
	long in, moves;
	unsigned int i;

	SKIP_UNLESS(!limited(), "FCSE limits the number of processes");
	TRY(swap_on());
	moves = read_number(MOVES);
	TRY(begin(&crowd, pids));
	TRY(take_free_memory());
	in = swapped_in();
	for (i = 0; i < rounds + rounds % 2; i++)
		TRY(call_all(&crowd, i, in));
	TRY(end(&crowd, pids));
	in = swapped_in() - in;
	EXPECT(in >= MISSED, "only %ld pages came back", in);
	if (moves >= 0) {
		moves = read_number(MOVES) - moves;
		EXPECT(moves >= CROWD / 8, "only %ld moves", moves);
	}
	return PASS;
}

const struct test pressure_tests[] = {
	{ "crowd_under_pressure", "100 processes, some large, in little memory",
	  crowd_under_pressure, NULL },
	{ NULL, NULL, NULL, NULL },
};
