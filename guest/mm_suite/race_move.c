// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Pages get another address, or other content, while a thread of their process
 * is at them; see race.c. Here the process itself owns them afterwards: it lets
 * another process run, so that a kernel which empties the caches at a switch
 * has done so, and then looks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "mm_suite.h"
#include "race.h"

#define RW		(PROT_READ | PROT_WRITE)
#define ANON		(MAP_PRIVATE | MAP_ANONYMOUS)
/* One page table's, within which nothing preempts a move. */
#define TABLE		(2u << 20)
#define COUNT		256
#define BYTES		(COUNT * PAGE)
#define LONGEST_NS	5000000
/* A page that B waits for: what comes after it leaves B's lines there. */
#define LATER		(COUNT - 2 * LAST)
#define OWN		0x600d0000u
#define BLOCKS		"/dev/zram0"
#define ON_DISK		77

/* Words of one's own, written past the cache, do they stay? */
static void own_words(struct race_range *range, volatile uint32_t *at,
		      unsigned int count)
{
	unsigned int i, lost = 0;

	for (i = 0; i < count * PAGE_WORDS; i++)
		at[i] = OWN + i;
	race_sweep();
	for (i = 0; i < count * PAGE_WORDS; i++)
		lost += at[i] != OWN + i;
	range->met++;
	range->overwritten += lost != 0;
}

/*
 * mremap. Whoever faults now waits for its end, so that B cannot ask what is
 * gone: it writes, and says when. What the kernel does before it moves anything
 * takes less than half of the call.
 */
static volatile uint32_t *moved;
static int64_t move_began, move_ended, written_at;

static void at_table_end(struct race_range *range)
{
	static char *from;

	if (!from) {
		char *all = mmap(NULL, 2 * TABLE, PROT_NONE, ANON, -1, 0);
		char *end = (char *)(((uintptr_t)all + BYTES + TABLE - 1) &
				     -(uintptr_t)TABLE);

		/* All but the last pages are in one table. */
		from = end - BYTES + LAST * PAGE;
		moved = mmap(NULL, BYTES, PROT_NONE, ANON, -1, 0);
	}
	/* Empty, so that the move is the longest part of the call. */
	mmap((void *)moved, BYTES, PROT_NONE, ANON | MAP_FIXED, -1, 0);
	range->at = mmap(from, BYTES, RW, ANON | MAP_FIXED, -1, 0);
}

static bool move_by(struct race_range *range, int flags)
{
	bool ok;

	move_began = now();
	ok = mremap((void *)range->at, BYTES, BYTES,
		    MREMAP_MAYMOVE | MREMAP_FIXED | flags, moved) == moved;
	move_ended = now();
	return ok;
}

/* At its end this unmaps the old place, which flushes it once more. */
static bool move(struct race_range *range)
{
	bool ok = move_by(range, 0);

	/* Nothing else shall come to be there. */
	mmap((void *)range->at, BYTES, PROT_NONE, ANON | MAP_FIXED, -1, 0);
	return ok;
}

static bool move_and_keep(struct race_range *range)
{
	return move_by(range, MREMAP_DONTUNMAP);
}

static enum seen write_and_say_when(const struct race_range *range)
{
	unsigned int i;

	written_at = now();
	for (i = COUNT - LAST; i < COUNT; i++)
		if (!race_there(range, i))
			return LATE;
	return race_dirty(range) && race_inside() ? MET : LATE;
}

static enum result moved_words(struct race_range *range, struct other *other)
{
	if (written_at - move_began < (move_ended - move_began) / 2) {
		if (range->delay < LONGEST_NS)
			range->delay += range->delay / 16 + 1000;
		return PASS;
	}
	TRY(race_switch(other));
	own_words(range, moved + (COUNT - LAST) * PAGE_WORDS, LAST);
	return PASS;
}

static enum result mremap_races_writer(unsigned int rounds)
{
	struct race_range ranges[] = {
		{ .what = "mremap", .count = COUNT, .prepare = at_table_end,
		  .take_away = move, .meet = write_and_say_when,
		  .judge = moved_words },
		{ .what = "MREMAP_DONTUNMAP", .count = COUNT,
		  .prepare = at_table_end, .take_away = move_and_keep,
		  .meet = write_and_say_when, .judge = moved_words },
	};

	return race_for_pages(ranges, 2, rounds);
}

/*
 * UFFDIO_MOVE goes page by page, and flushes each when its turn comes. B dirties
 * pages from the last one down to the one whose turn it is.
 */
#ifndef UFFDIO_MOVE
#define UFFDIO_MOVE	_IOWR(UFFDIO, 0x05, struct uffdio_move)
struct uffdio_move {
	__u64 dst, src, len, mode;
	__s64 move;
};
#endif

static int uffd;
static unsigned int lowest;

static void to_move(struct race_range *range)
{
	if (!range->at)
		range->at = pages(COUNT);
	madvise((void *)moved, BYTES, MADV_DONTNEED);
}

static bool move_by_uffd(struct race_range *range)
{
	struct uffdio_move arg;
	size_t done = 0;

	while (done < BYTES) {
		arg = (struct uffdio_move){ (uintptr_t)moved + done,
			(uintptr_t)range->at + done, BYTES - done, 0, 0 };
		if (ioctl(uffd, UFFDIO_MOVE, &arg) &&
		    (errno != EAGAIN || arg.move < 0))
			return false;
		done += (size_t)arg.move;
	}
	return true;
}

static enum seen write_backwards(const struct race_range *range)
{
	unsigned int i, line;

	for (i = COUNT; i && race_there(range, i - 1); i--)
		for (line = 0; line < PAGE / LINE; line += 4) {
			volatile uint32_t *word = range->at + line *
				(LINE / 4) + (i - 1) * PAGE_WORDS;

			word[2] = word[1] + 1;
			word[5] = INTRUDER;
		}
	lowest = i;
	if (!i)
		return EARLY;
	return i < COUNT && race_inside() ? MET : LATE;
}

static enum result page_moved(struct race_range *range, struct other *other)
{
	TRY(race_switch(other));
	/* B may have been at the page before, and seen it go. */
	own_words(range, moved + (lowest - 1) * PAGE_WORDS, 2);
	return PASS;
}

static enum result uffd_moves(unsigned int rounds)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct race_range range = {
		.what = "UFFDIO_MOVE", .count = COUNT, .prepare = to_move,
		.take_away = move_by_uffd, .meet = write_backwards,
		.judge = page_moved,
	};

	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	SKIP_UNLESS(uffd >= 0, "userfaultfd: %s", strerror(errno));
	EXPECT(!ioctl(uffd, UFFDIO_API, &api), "UFFDIO_API: %s",
	       strerror(errno));
	moved = pages(COUNT);
	area.range.start = (uintptr_t)moved;
	area.range.len = BYTES;
	EXPECT(!ioctl(uffd, UFFDIO_REGISTER, &area), "register: %s",
	       strerror(errno));
	SKIP_UNLESS(area.ioctls >> 5 & 1, "no UFFDIO_MOVE");
	return race_for_pages(&range, 1, rounds);
}

/*
 * O_DIRECT. The kernel has got the pages and flushed them, and B reads them
 * before the data comes; what it took into the cache is old then.
 */
static void old_words(struct race_range *range)
{
	unsigned int i;

	if (!range->at)
		range->at = pages(range->count);
	for (i = 0; i < range->count * PAGE_WORDS; i++)
		range->at[i] = ~range->seed;
}

static bool read_direct(struct race_range *range)
{
	return pread(range->fd, (void *)range->at, BYTES, 0) == (ssize_t)BYTES;
}

static enum seen look_too_early(const struct race_range *range)
{
	unsigned int i, line;

	if (race_there(range, LATER))
		return EARLY;
	for (i = COUNT - LAST; i < COUNT; i++) {
		if (!race_there(range, i))
			return LATE;
		for (line = 0; line < PAGE / LINE; line++)
			(void)range->at[i * PAGE_WORDS + line * (LINE / 4)];
	}
	return race_inside() ? MET : LATE;
}

static enum result data_came(struct race_range *range, struct other *other)
{
	unsigned int i, old = 0;

	TRY(race_switch(other));
	for (i = (COUNT - LAST) * PAGE_WORDS; i < COUNT * PAGE_WORDS; i++)
		old += range->at[i] != ON_DISK + i / PAGE_WORDS;
	range->met++;
	range->overwritten += old != 0;
	return PASS;
}

static enum result direct_races_reader(unsigned int rounds)
{
	struct race_range range = {
		.what = "O_DIRECT", .count = COUNT, .prepare = old_words,
		.take_away = read_direct, .meet = look_too_early,
		.judge = data_came,
	};
	uint32_t *data = pages(COUNT), i;

	/* Pages of one word each are not read, but made. */
	for (i = 0; i < COUNT * PAGE_WORDS; i++)
		data[i] = ON_DISK + i / PAGE_WORDS;
	TRY(zram_fresh());
	range.fd = open(BLOCKS, O_RDWR | O_DIRECT | O_CLOEXEC);
	EXPECT(range.fd >= 0, BLOCKS ": %s", strerror(errno));
	EXPECT(pwrite(range.fd, data, BYTES, 0) == (ssize_t)BYTES,
	       BLOCKS ": %s", strerror(errno));
	munmap(data, BYTES);
	return race_for_pages(&range, 1, rounds);
}

const struct test move_tests[] = {
	{ "mremap_races_writer", "pages moved under a thread's writes",
	  mremap_races_writer, NULL },
	{ "uffd_moves", "pages moved by UFFDIO_MOVE under a thread's writes",
	  uffd_moves, NULL },
	{ "direct_races_reader", "O_DIRECT into pages that a thread looks at",
	  direct_races_reader, NULL },
	{ NULL, NULL, NULL, NULL },
};
