// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Memory across 32 MB: with FCSE one part of it is relocated and the other is
 * not. And the whole of the address space, as /proc shows it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "mm_suite.h"

#define RW		(PROT_READ | PROT_WRITE)
#define RWX		(RW | PROT_EXEC)
#define BORDER		((char *)(32u << 20))
/* On each side of the border; more are often the stack's. */
#define COUNT		2
#define BYTES		(2 * COUNT * PAGE)
#define START		(BORDER - COUNT * PAGE)
#define FUNCTIONS	(BYTES / LINE)
#define USER_END	0xbf000000u
#define AT_ONCE		1024	/* entries of pagemap: 4 MB */
#define SLOT_PAGES	((32u << 20) / PAGE)

struct bordering {
	enum result (*body)(unsigned int rounds);
	unsigned int rounds;
};

/* Nobody returns to what was there: the process ends here. */
static void *border_thread(void *arg)
{
	const struct bordering *bordering = arg;
	enum result result;

	munmap(START, BYTES);
	result = bordering->body(bordering->rounds);
	fflush(stdout);
	_exit(result);
}

static enum result border_child(void *arg)
{
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, border_thread, arg),
	       "pthread_create");
	pthread_join(thread, NULL);
	return FAIL;
}

/*
 * With nothing mapped at 32 MB, where the top of the stack or the page that signal
 * handlers return to may be: in a process of its own, on another stack.
 */
static enum result at_border(enum result (*body)(unsigned int rounds),
			     unsigned int rounds)
{
	struct bordering bordering = { body, rounds };

	SKIP_UNLESS(!limited(), "FCSE limits the size of processes");
	return in_child(border_child, &bordering);
}

static enum result map_across(int rights)
{
	char *at = mmap(START, BYTES, rights, MAP_PRIVATE | MAP_ANONYMOUS |
			MAP_FIXED_NOREPLACE, -1, 0);

	EXPECT(at == START, "mmap: %s", strerror(errno));
	return PASS;
}

static enum result calls_give(uint32_t *at, unsigned int base)
{
	unsigned int i;

	for (i = 0; i < FUNCTIONS; i++) {
		int got = call(at + i * (LINE / 4));

		EXPECT(got == (int)(base + i), "function %u gives %d, not %u",
		       i, got, base + i);
	}
	return PASS;
}

/* One function is in both parts, its last instruction at 32 MB. */
static enum result one_across(unsigned int value, unsigned int before)
{
	uint32_t *code = (uint32_t *)BORDER - before;
	int got;

	put_give(code, value);
	flush_code(code, GIVE_WORDS * 4);
	got = call(code);
	EXPECT(got == (int)value, "across 32 MB: %d, not %u", got, value);
	return PASS;
}

static enum result run_code_across(unsigned int rounds)
{
	uint32_t *at = (uint32_t *)START;
	unsigned int round, i;

	TRY(map_across(RWX));
	for (round = 0; round < rounds * 4; round++) {
		/* A range of lines, all of it, and what is more than lines. */
		for (i = 0; i < FUNCTIONS; i++)
			put_give(at + i * (LINE / 4), round * 999 + i);
		flush_code(round % 2 ? at : at + 1, BYTES - 4);
		TRY(calls_give(at, round * 999));
		sched_yield();
		TRY(calls_give(at, round * 999));
		for (i = 0; i <= GIVE_WORDS; i++)
			TRY(one_across(round * 7 + i, i));
	}
	return PASS;
}

static enum result code_across_32mb(unsigned int rounds)
{
	return at_border(run_code_across, rounds);
}

struct copy {
	char *at;
	uint32_t seed;
};

static enum result use_copy(void *arg)
{
	const struct copy *copy = arg;

	TRY(holds(copy->at, BYTES, copy->seed, "child"));
	fill(copy->at, BYTES, ~copy->seed);
	sched_yield();
	return holds(copy->at, BYTES, ~copy->seed, "child's own");
}

static enum result child_has(char *at, uint32_t seed)
{
	struct copy copy = { at, seed };

	TRY(in_child(use_copy, &copy));
	return holds(at, BYTES, seed, "behind the fork");
}

/* There and back, to low and to high addresses. */
static enum result move_away(uint32_t seed)
{
	char *to = seed % 2 ? pages(2 * COUNT) : (char *)0x30000000 + BYTES;
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED;

	fill(START, BYTES, seed);
	EXPECT(mremap(START, BYTES, BYTES, flags, to) == to, "mremap: %s",
	       strerror(errno));
	TRY(holds(to, BYTES, seed, "moved"));
	fill(to, BYTES, seed + 1);
	EXPECT(mremap(to, BYTES, BYTES, flags, START) == START, "mremap: %s",
	       strerror(errno));
	return holds(START, BYTES, seed + 1, "moved back");
}

/* A file's, whose pages everybody reads. */
static enum result in_file(int fd, uint32_t seed)
{
	static uint32_t got[BYTES / 4];
	char *at = mmap(START, BYTES, RW, MAP_SHARED | MAP_FIXED, fd, 0);

	EXPECT(at == START, "mmap: %s", strerror(errno));
	fill(at, BYTES, seed);
	EXPECT(!msync(at, BYTES, MS_SYNC), "msync: %s", strerror(errno));
	EXPECT(pread(fd, got, BYTES, 0) == BYTES, "pread: %s",
	       strerror(errno));
	TRY(holds(got, BYTES, seed, "read from the file"));
	fill(got, BYTES, seed + 1);
	EXPECT(pwrite(fd, got, BYTES, 0) == BYTES, "pwrite: %s",
	       strerror(errno));
	TRY(holds(at, BYTES, seed + 1, "written to the file"));
	fill(at, BYTES, seed + 2);
	munmap(at, BYTES);
	EXPECT(pread(fd, got, BYTES, 0) == BYTES, "pread: %s",
	       strerror(errno));
	return holds(got, BYTES, seed + 2, "behind munmap");
}

static enum result use_range_across(unsigned int rounds)
{
	int fd = memory_file(BYTES, 0);
	unsigned int round;
	char *at = START;

	TRY(map_across(RW));
	for (round = 0; round < rounds * 4; round++) {
		fill(at, BYTES, round);
		EXPECT(!mprotect(at, BYTES, PROT_READ) &&
		       !mprotect(at, BYTES, RW), "mprotect: %s",
		       strerror(errno));
		TRY(child_has(at, round));
		TRY(move_away(round));
		/* Fresh pages there have nothing of the old ones. */
		EXPECT(!madvise(at, BYTES, MADV_DONTNEED), "madvise: %s",
		       strerror(errno));
		TRY(all_zero(at, BYTES, "fresh"));
		fill(at, BYTES, round);
		munmap(at, BYTES);
		TRY(map_across(RW));
		TRY(all_zero(at, BYTES, "mapped again"));
		TRY(in_file(fd, round));
		TRY(map_across(RW));
		TRY(all_zero(at, BYTES, "in place of the file"));
	}
	return PASS;
}

static enum result flush_range_across(unsigned int rounds)
{
	return at_border(use_range_across, rounds);
}

/* Pages that have an entry, from page `from` to `to`. */
static enum result entries(int pagemap, size_t from, size_t to,
			   unsigned int *count)
{
	static uint64_t entry[AT_ONCE];
	size_t page, i;

	*count = 0;
	for (page = from; page < to; page += AT_ONCE) {
		size_t n = to - page < AT_ONCE ? to - page : AT_ONCE;
		off_t place = (off_t)(page * sizeof(entry[0]));

		EXPECT(pread(pagemap, entry, n * sizeof(entry[0]), place) ==
		       (ssize_t)(n * sizeof(entry[0])), "pagemap at %#zx: %s",
		       page * PAGE, strerror(errno));
		for (i = 0; i < n; i++)
			*count += entry[i] != 0;
	}
	return PASS;
}

#ifdef PAGEMAP_SCAN
static enum result scan(int pagemap, uintptr_t from, uintptr_t to,
			unsigned int *count)
{
	static struct page_region found[256];
	struct pm_scan_arg arg = {
		.size = sizeof(arg), .start = from, .end = to,
		.vec = (uintptr_t)found, .vec_len = 256,
		.category_anyof_mask = PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
		.return_mask = PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
	};
	int i, n = ioctl(pagemap, PAGEMAP_SCAN, &arg);

	*count = 0;
	EXPECT(n >= 0, "PAGEMAP_SCAN: %s", strerror(errno));
	for (i = 0; i < n; i++)
		*count += (unsigned int)((found[i].end - found[i].start) / PAGE);
	return PASS;
}
#else
static enum result scan(int pagemap, uintptr_t from, uintptr_t to,
			unsigned int *count)
{
	return entries(pagemap, from / PAGE, to / PAGE, count);
}
#endif

static enum result nothing_in(int pagemap, unsigned int slot)
{
	unsigned int listed, scanned;
	unsigned char resident;
	void *at = (void *)((slot * SLOT_PAGES + 16) * PAGE);

	TRY(entries(pagemap, slot * SLOT_PAGES, (slot + 1) * SLOT_PAGES,
		    &listed));
	TRY(scan(pagemap, slot * SLOT_PAGES * PAGE,
		 (slot + 1) * SLOT_PAGES * PAGE, &scanned));
	EXPECT(!listed && !scanned, "slot %u has %u pages by pagemap, %u by PAGEMAP_SCAN",
	       slot, listed, scanned);
	EXPECT(mincore(at, PAGE, &resident) && errno == ENOMEM,
	       "mincore finds something in slot %u", slot);
	EXPECT(mprotect(at, PAGE, PROT_READ) && errno == ENOMEM,
	       "mprotect finds something in slot %u", slot);
	return PASS;
}

static enum result pagemap_of_all(unsigned int rounds)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	unsigned int round, own, low, all, scanned;

	for (round = 0; round < rounds; round++) {
		uint32_t *at = pages(COUNT);

		fill(at, COUNT * PAGE, round);
		own = own_slot();
		if (own)
			TRY(nothing_in(pagemap, own));
		TRY(entries(pagemap, 0, SLOT_PAGES, &low));
		TRY(entries(pagemap, 0, USER_END / PAGE, &all));
		TRY(scan(pagemap, 0, USER_END / PAGE * PAGE, &scanned));
		EXPECT(all >= COUNT && scanned >= COUNT, "%u and %u pages", all,
		       scanned);
		/* With FCSE nothing is above yet. */
		EXPECT(!own || all == low, "%u pages, below 32 MB %u", all, low);
		TRY(holds(at, COUNT * PAGE, round, "behind the look"));
	}
	return PASS;
}

const struct test border_tests[] = {
	{ "code_across_32mb", "code written and run across 32 MB",
	  code_across_32mb, NULL },
	{ "flush_range_across", "data across 32 MB, moved, forked, given back",
	  flush_range_across, NULL },
	{ "pagemap_of_all", "pagemap of the whole address space",
	  pagemap_of_all, NULL },
	{ NULL, NULL, NULL, NULL },
};
