// SPDX-License-Identifier: MIT OR Apache-2.0
/* The ways of taking memory away from a thread that writes; see race.c. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include "mm_suite.h"
#include "race.h"

#define RW	(PROT_READ | PROT_WRITE)
#define COUNT	256
#define BYTES	(COUNT * PAGE)

static void map_again(struct race_range *range)
{
	void *at = (void *)range->at;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0);

	range->at = mmap(at, range->count * PAGE, RW, flags, -1, 0);
}

static void leave(struct race_range *range)
{
	if (!range->at)
		map_again(range);
}

static bool unmap(struct race_range *range)
{
	return !munmap((void *)range->at, range->count * PAGE);
}

static bool give_up(struct race_range *range)
{
	return !madvise((void *)range->at, range->count * PAGE, MADV_DONTNEED);
}

static enum result unmap_races_writer(unsigned int rounds)
{
	struct race_range ranges[] = {
		{ .what = "munmap", .count = COUNT, .prepare = map_again,
		  .take_away = unmap },
		{ .what = "MADV_DONTNEED", .count = COUNT, .prepare = leave,
		  .take_away = give_up },
	};

	return race_for_pages(ranges, 2, rounds);
}

const struct test race_tests[] = {
	{ "unmap_races_writer", "memory given back under a thread's writes",
	  unmap_races_writer, NULL },
	{ NULL, NULL, NULL, NULL },
};
