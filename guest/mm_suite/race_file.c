// SPDX-License-Identifier: MIT OR Apache-2.0
/* The ways of other processes to take a thread's pages; see race.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "mm_suite.h"
#include "race.h"

#define RW		(PROT_READ | PROT_WRITE)
/* As few as B can be woken in the middle of. */
#define FEW		48
#define COUNT		16
#define OUTS		8

static bool punch(struct race_range *range)
{
	return !fallocate(range->fd, FALLOC_FL_PUNCH_HOLE |
			  FALLOC_FL_KEEP_SIZE, 0, FEW * PAGE);
}

static void map_file(struct race_range *range)
{
	if (!range->at)
		range->at = mmap(NULL, FEW * PAGE, RW, MAP_SHARED, range->fd,
				 0);
}

/*
 * Whoever faults in the hole waits for its end, so B asks pagemap what is gone.
 */
static enum seen look_at_pagemap(const struct race_range *range)
{
	unsigned int i;

	if (frame_of(range->pagemap, range->at))
		return EARLY;
	for (i = range->count - LAST; i < range->count; i++)
		if (!race_inside() || !frame_of(range->pagemap, range->at +
						i * PAGE_WORDS))
			return LATE;
	return race_dirty(range) && race_inside() ? MET : LATE;
}

static enum result hole_punched_races_writer(unsigned int rounds)
{
	int file = memory_file(FEW * PAGE, 1);
	struct race_range ranges[] = {
		{ .what = "a hole punched", .count = FEW, .fd = file,
		  .prepare = map_file, .take_away = punch,
		  .meet = look_at_pagemap },
		{ .what = "a hole punched by another process", .count = FEW,
		  .fd = file, .prepare = map_file,
		  .take_away = race_by_other, .meet = look_at_pagemap },
	};
	enum result result;

	TRY(race_other_start(&ranges[0]));
	result = race_for_pages(ranges, 2, rounds);
	TRY(race_other_end());
	return result;
}

/*
 * Paged out by another process, again and again, while their owner counts in
 * them: no number is lost. Not met by time, but as often as it takes.
 */
static enum result count_in(struct other *other, void *arg)
{
	volatile uint32_t *at = arg;
	uint32_t number = 0, i;

	*at = 0;
	TRY(child_go(other, 0));
	for (;; number++)
		for (i = 1; i < COUNT * PAGE_WORDS; i += 97) {
			EXPECT(at[i] == number, "word %u is %u, not %u",
			       (unsigned int)i, (unsigned int)at[i],
			       (unsigned int)number);
			at[i] = number + 1;
			if (at[0])
				return PASS;
		}
}

static enum result paged_out_by_other(unsigned int rounds)
{
	uint32_t *at = pages(COUNT), end = 1;
	struct iovec all = { at, COUNT * PAGE };
	struct iovec local = { &end, 4 }, remote = { at, 4 };
	struct other other;
	unsigned int i;
	long out = 0;
	int fd;

	TRY(swap_on());
	TRY(other_start(&other, count_in, at));
	TRY(other_wait(&other, NULL));
	fd = (int)syscall(SYS_pidfd_open, other.pid, 0);
	EXPECT(fd >= 0, "pidfd_open: %s", strerror(errno));
	for (i = 0; i < rounds * OUTS && out >= 0; i++) {
		struct timespec nap = { 0, 100000 * (long)(i % 7 + 1) };

		out = syscall(SYS_process_madvise, fd, &all, 1, MADV_PAGEOUT,
			      0);
		nanosleep(&nap, NULL);
	}
	if (out < 0)
		kill(other.pid, SIGKILL);
	SKIP_UNLESS(out >= 0, "process_madvise: %s", strerror(errno));
	EXPECT(process_vm_writev(other.pid, &local, 1, &remote, 1, 0) == 4,
	       "process_vm_writev: %s", strerror(errno));
	return other_end(&other);
}

const struct test file_race_tests[] = {
	{ "hole_punched_races_writer", "a hole in a file under a thread's writes",
	  hole_punched_races_writer, NULL },
	{ "paged_out_by_other", "pages sent to swap under their owner's writes",
	  paged_out_by_other, NULL },
	{ NULL, NULL, NULL, NULL },
};
