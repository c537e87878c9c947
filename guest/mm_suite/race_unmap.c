// SPDX-License-Identifier: MIT OR Apache-2.0
/* The ways of taking memory away from a thread that writes; see race.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
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
static struct other cutter;
static int cutter_file;

static enum result cut_when_told(struct other *other, void *arg)
{
	uint32_t go;

	(void)arg;
	ordinary_user();
	EXPECT(!setpriority(PRIO_PROCESS, 0, 19), "nice: %s", strerror(errno));
	for (;;) {
		TRY(child_wait(other, &go));
		if (!go)
			return PASS;
		TRY(child_go(other, (uint32_t)ftruncate(cutter_file, 0)));
	}
}

static bool have_cut(struct race_range *range)
{
	uint32_t failed = 1;

	return !range->fd || (!other_go(&cutter, 1) &&
			      !other_wait(&cutter, &failed) && !failed);
}

static void cutters_private(struct race_range *range)
{
	range->fd = cutter_file;
	if (!range->at)
		range->at = mmap(NULL, range->count * PAGE, RW, MAP_PRIVATE,
				 range->fd, 0);
	(void)!ftruncate(range->fd, range->count * PAGE);
}

static enum result truncated_by_other(unsigned int rounds)
{
	struct race_range range = {
		.what = "ftruncate by another process", .count = FEW,
		.prepare = cutters_private, .take_away = have_cut,
	};
	enum result result;

	cutter_file = memfd_create("race", MFD_CLOEXEC);
	EXPECT(cutter_file > 0, "memfd_create: %s", strerror(errno));
	TRY(other_start(&cutter, cut_when_told, NULL));
	result = race_for_pages(&range, 1, rounds);
	TRY(other_go(&cutter, 0));
	TRY(other_end(&cutter));
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
