// SPDX-License-Identifier: MIT OR Apache-2.0
/* The ways of taking memory away from a thread that writes; see race.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "mm_suite.h"
#include "race.h"

#define RW	(PROT_READ | PROT_WRITE)
#define COUNT	256
/* As few as B can be woken in the middle of: the file's own pages go, too. */
#define FEW	48

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

/* Of a file, whose size and pages others change. */
static void map_file(struct race_range *range, int flags)
{
	if (range->at)
		return;
	range->fd = memfd_create("race", MFD_CLOEXEC);
	range->at = mmap(NULL, range->count * PAGE, RW, flags, range->fd, 0);
}

static void file_private(struct race_range *range)
{
	map_file(range, MAP_PRIVATE);
	(void)!ftruncate(range->fd, range->count * PAGE);
}

static void file_shared(struct race_range *range)
{
	map_file(range, MAP_SHARED);
	(void)!ftruncate(range->fd, range->count * PAGE);
}

static bool cut(struct race_range *range)
{
	return !ftruncate(range->fd, 0);
}

static enum result truncate_races_writer(unsigned int rounds)
{
	struct race_range ranges[] = {
		{ .what = "ftruncate, private mapping", .count = FEW,
		  .prepare = file_private, .take_away = cut },
		{ .what = "ftruncate, shared mapping", .count = FEW,
		  .prepare = file_shared, .take_away = cut },
	};

	return race_for_pages(ranges, 2, rounds);
}

/* Another process does it, with a file of this one. */
static void map_private(struct race_range *range)
{
	if (!range->at)
		range->at = mmap(NULL, range->count * PAGE, RW, MAP_PRIVATE,
				 range->fd, 0);
	(void)!ftruncate(range->fd, range->count * PAGE);
}

static enum result truncated_by_other(unsigned int rounds)
{
	struct race_range range = {
		.what = "ftruncate by another process", .count = FEW,
		.prepare = map_private, .take_away = race_by_other,
		.fd = memfd_create("race", MFD_CLOEXEC),
	};
	struct race_range theirs = { .take_away = cut, .fd = range.fd };
	enum result result;

	EXPECT(range.fd > 0, "memfd_create: %s", strerror(errno));
	TRY(race_other_start(&theirs));
	result = race_for_pages(&range, 1, rounds);
	TRY(race_other_end());
	return result;
}

const struct test race_tests[] = {
	{ "unmap_races_writer", "memory given back under a thread's writes",
	  unmap_races_writer, NULL },
	{ "truncate_races_writer", "a file shortened under a thread's writes",
	  truncate_races_writer, NULL },
	{ "truncated_by_other", "the same by another process",
	  truncated_by_other, NULL },
	{ NULL, NULL, NULL, NULL },
};
