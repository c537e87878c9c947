// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Pages with a last owner. If that was the kernel they come with lines under
 * its address, which what is done to the page next finds in the cache; a dead
 * process must not leave any.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mm_suite.h"

#define RW	(PROT_READ | PROT_WRITE)
#define COUNT	2
#define BYTES	(COUNT * PAGE)
/* What one table of the second level maps. */
#define TABLE	(2u << 20)
#define TABLES	2
/* 16 KB of data, and enough pages to get those of a dead process back. */
#define CACHE_PAGES	4
#define HEIRLOOMS	64

/*
 * What the kernel read last and gave back is the next to be allocated: pages of
 * a pipe for tables, pages of a process, which it keeps apart, for memory and
 * files.
 */
static enum result recycle(uint32_t seed)
{
	static uint32_t buffer[BYTES / 4];
	char *at = pages(COUNT);
	struct iovec remote = { at, BYTES }, local = { buffer, BYTES };
	int ends[2];

	fill(buffer, BYTES, seed);
	fill(at, BYTES, seed + 1);
	EXPECT(!pipe(ends), "pipe: %s", strerror(errno));
	EXPECT(write(ends[1], buffer, BYTES) == (ssize_t)BYTES &&
	       read(ends[0], buffer, BYTES) == (ssize_t)BYTES, "pipe: %s",
	       strerror(errno));
	TRY(holds(buffer, BYTES, seed, "through the pipe"));
	close(ends[0]);
	close(ends[1]);
	EXPECT(process_vm_readv(getpid(), &local, 1, &remote, 1, 0) ==
	       (ssize_t)BYTES, "process_vm_readv: %s", strerror(errno));
	munmap(at, BYTES);
	return PASS;
}

static enum result recycled_memory(unsigned int rounds)
{
	unsigned int round, i;

	for (round = 0; round < rounds * 8; round++) {
		volatile uint32_t *at = pages(COUNT);

		TRY(recycle(round));
		for (i = 0; i < COUNT; i++)
			at[i * PAGE_WORDS] = round;
		for (i = 0; i < COUNT; i++) {
			EXPECT(at[i * PAGE_WORDS] == round, "own word");
			TRY(all_zero((void *)(at + i * PAGE_WORDS + 1),
				     PAGE - 4, "a fresh page"));
		}
		munmap((void *)at, BYTES);
	}
	return PASS;
}

static enum result wait_only(struct other *other, void *arg)
{
	(void)arg;
	return child_wait(other, NULL);
}

/* The copy of copy on write is made in such a page. */
static enum result recycled_copy(unsigned int rounds)
{
	char *at = pages(COUNT);
	unsigned int round, i;

	for (round = 0; round < rounds * 2; round++) {
		struct other other;

		fill(at, BYTES, round);
		TRY(other_start(&other, wait_only, NULL));
		TRY(recycle(round + 9));
		for (i = 0; i < COUNT; i++)
			*(volatile uint32_t *)(at + i * PAGE) =
				word_of(round, i * PAGE_WORDS);
		TRY(holds(at, BYTES, round, "the copy"));
		TRY(other_go(&other, 0));
		TRY(other_end(&other));
	}
	return PASS;
}

/* Pages of a file, written by the kernel where it has lines. */
static enum result recycled_file(unsigned int rounds)
{
	unsigned int round;

	for (round = 0; round < rounds * 8; round++) {
		char *at;
		int fd;

		TRY(recycle(round));
		fd = memory_file(BYTES, round + 5);
		at = mmap(NULL, BYTES, RW, MAP_SHARED, fd, 0);
		EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
		TRY(holds(at, BYTES, round + 5, "a fresh file"));
		munmap(at, BYTES);
		close(fd);
	}
	return PASS;
}

static enum result recycled_text(unsigned int rounds)
{
	unsigned int round;

	for (round = 0; round < rounds * 8; round++) {
		uint32_t code[GIVE_WORDS], *at;
		int fd;

		put_give(code, round + 7);
		TRY(recycle(round));
		fd = memory_file(PAGE, round);
		EXPECT(pwrite(fd, code, sizeof(code), 512) == sizeof(code),
		       "pwrite: %s", strerror(errno));
		at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
		EXPECT(call(at + 128) == (int)round + 7, "fresh text");
		munmap(at, PAGE);
		close(fd);
	}
	return PASS;
}

/* Tables of the second level. */
static enum result recycled_tables(unsigned int rounds)
{
	unsigned int round, table, page;

	for (round = 0; round < rounds * 8; round++) {
		char *all = mmap(NULL, (TABLES + 1) * TABLE, RW,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				 -1, 0);
		char *at = (char *)(((uintptr_t)all + TABLE - 1) & -TABLE);

		EXPECT(all != MAP_FAILED, "mmap: %s", strerror(errno));
		for (table = 0; table < TABLES; table++) {
			TRY(recycle(round));
			for (page = 0; page < 512; page += 97)
				*(volatile uint32_t *)(at + table * TABLE +
						       page * PAGE) = page + 1;
		}
		for (table = 0; table < TABLES; table++)
			for (page = 0; page < 512; page++) {
				uint32_t want = page % 97 ? 0 : page + 1;
				uint32_t seen = *(volatile uint32_t *)
					(at + table * TABLE + page * PAGE);

				EXPECT(seen == want, "page %u has %u, not %u",
				       page, (unsigned int)seen,
				       (unsigned int)want);
			}
		munmap(all, (TABLES + 1) * TABLE);
	}
	return PASS;
}

/* One page, read alone from an empty cache: its lines are there to the end. */
static enum result recycled_table(unsigned int rounds)
{
	static uint32_t buffer[PAGE_WORDS];
	unsigned int round, page;

	for (round = 0; round < rounds * 2; round++) {
		char *all = mmap(NULL, 2 * TABLE, RW,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				 -1, 0);
		char *at = (char *)(((uintptr_t)all + TABLE - 1) & -TABLE);
		int ends[2];

		EXPECT(all != MAP_FAILED, "mmap: %s", strerror(errno));
		fill(buffer, PAGE, round);
		EXPECT(!pipe(ends) && write(ends[1], buffer, PAGE) == PAGE,
		       "pipe: %s", strerror(errno));
		TRY(empty_cache());
		EXPECT(read(ends[0], buffer, PAGE) == PAGE, "pipe: %s",
		       strerror(errno));
		close(ends[0]);
		close(ends[1]);
		for (page = 0; page < 512; page++)
			EXPECT(!*(volatile uint32_t *)(at + page * PAGE),
			       "page %u is not zero", page);
		munmap(all, 2 * TABLE);
	}
	return PASS;
}

/* Dirty lines all over the cache, and then no owner. */
static void die_dirty(void)
{
	volatile uint32_t *at = pages(CACHE_PAGES);
	size_t i;

	for (i = 0; i < CACHE_PAGES * PAGE_WORDS; i += LINE / 4) {
		at[i] = i;
		at[i + 1] = at[i] + 1;
	}
	_exit(PASS);
}

/*
 * What a process left dirty must not be written back over what its pages hold
 * then: zeros of the next owner, who empties the cache before it looks.
 */
static enum result dead_lines(unsigned int rounds)
{
	unsigned int round, i;

	for (round = 0; round < rounds; round++) {
		int status = 0;
		char *at = mmap(NULL, HEIRLOOMS * PAGE, RW,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		pid_t pid;

		EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
		fflush(stdout);
		pid = fork();
		EXPECT(pid >= 0, "fork: %s", strerror(errno));
		if (!pid)
			die_dirty();
		EXPECT(waitpid(pid, &status, 0) == pid && !status,
		       "the child ended with %#x", (unsigned int)status);
		for (i = 0; i < HEIRLOOMS; i++)
			*(volatile uint32_t *)(at + i * PAGE) = 0;
		TRY(empty_cache());
		TRY(all_zero(at, HEIRLOOMS * PAGE, "fresh pages"));
		munmap(at, HEIRLOOMS * PAGE);
	}
	return PASS;
}

const struct test recycled_tests[] = {
	{ "recycled_memory", "fresh memory from the kernel's pages",
	  recycled_memory, NULL },
	{ "recycled_copy", "copy on write into the kernel's pages",
	  recycled_copy, NULL },
	{ "recycled_file", "files in the kernel's pages", recycled_file, NULL },
	{ "recycled_text", "text in the kernel's pages", recycled_text, NULL },
	{ "recycled_tables", "page tables in the kernel's pages",
	  recycled_tables, NULL },
	{ "recycled_table", "one page table in a page just read",
	  recycled_table, NULL },
	{ "dead_lines", "dirty lines of a process that is gone", dead_lines,
	  NULL },
	{ NULL, NULL, NULL, NULL },
};
