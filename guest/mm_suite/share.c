// SPDX-License-Identifier: MIT OR Apache-2.0
/* One page at several addresses: shared memory, files and their mappings. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>
#include "mm_suite.h"

#define RW	(PROT_READ | PROT_WRITE)
#define COUNT	3
/* Odd, so that the pages of two views, one behind the other, have other sets of the TLB. */
#define WIDE	33

/* Answers each round: finds it at its address, leaves round + 1. */
static enum result answer(struct other *other, void *at)
{
	uint32_t round;

	for (;;) {
		TRY(child_wait(other, &round));
		if (round == UINT32_MAX)
			return PASS;
		TRY(holds(at, COUNT * PAGE, round, "the child's view"));
		fill(at, COUNT * PAGE, round + 1);
		TRY(child_go(other, 0));
	}
}

static enum result ask(struct other *other, void *at, unsigned int rounds)
{
	unsigned int round;

	for (round = 0; round < rounds * 2; round++) {
		fill(at, COUNT * PAGE, round * 7);
		TRY(other_go(other, round * 7));
		TRY(other_wait(other, NULL));
		TRY(holds(at, COUNT * PAGE, round * 7 + 1, "the parent's view"));
	}
	TRY(other_go(other, UINT32_MAX));
	return other_end(other);
}

static enum result shared_memory(unsigned int rounds)
{
	struct other other;
	void *at = mmap(NULL, COUNT * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
	TRY(other_start(&other, answer, at));
	return ask(&other, at, rounds);
}

/* Maps the file a second time, so that the two processes' addresses differ. */
static enum result answer_elsewhere(struct other *other, void *arg)
{
	void *at = mmap(NULL, COUNT * PAGE, RW, MAP_SHARED, *(int *)arg, 0);

	EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
	return answer(other, at);
}

static enum result shared_file(unsigned int rounds)
{
	int fd = memory_file(COUNT * PAGE, 0);
	void *at = mmap(NULL, COUNT * PAGE, RW, MAP_SHARED, fd, 0);
	struct other other;

	EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
	TRY(other_start(&other, answer_elsewhere, &fd));
	return ask(&other, at, rounds);
}

/* Writes at one address, reads at the others, in turn. */
static enum result aliases(char *const *at, unsigned int views,
			   unsigned int rounds)
{
	unsigned int round, i;

	for (round = 0; round < rounds * 2; round++) {
		volatile uint32_t *one = (uint32_t *)at[round % views];
		volatile uint32_t *two = (uint32_t *)at[(round + 1) % views];

		fill(at[round % views], COUNT * PAGE, round);
		for (i = 0; i < views; i++)
			TRY(holds(at[i], COUNT * PAGE, round, "the other view"));
		/* Word by word, so that no other work lies between. */
		for (i = 0; i < 64; i++) {
			one[i] = round + i;
			EXPECT(two[i] == round + i, "word %u of the other view", i);
			two[i] = round - i;
			EXPECT(one[i] == round - i, "word %u and back", i);
		}
	}
	return PASS;
}

static enum result alias_file(unsigned int rounds)
{
	int fd = memory_file(COUNT * PAGE, 0);
	char *at[3];
	unsigned int i;

	for (i = 0; i < 3; i++) {
		at[i] = mmap(NULL, COUNT * PAGE, RW, MAP_SHARED, fd, 0);
		EXPECT(at[i] != MAP_FAILED, "mmap: %s", strerror(errno));
	}
	return aliases(at, 3, rounds);
}

/* The second view comes when the first already has dirty lines. */
static enum result alias_late(unsigned int rounds)
{
	unsigned int round;

	for (round = 0; round < rounds * 2; round++) {
		int fd = memory_file(COUNT * PAGE, round);
		char *one, *two;

		one = mmap(NULL, COUNT * PAGE, RW, MAP_SHARED, fd, 0);
		EXPECT(one != MAP_FAILED, "mmap: %s", strerror(errno));
		fill(one, COUNT * PAGE, round + 1);
		two = mmap(NULL, COUNT * PAGE, RW, MAP_SHARED, fd, 0);
		EXPECT(two != MAP_FAILED, "mmap: %s", strerror(errno));
		TRY(holds(two, COUNT * PAGE, round + 1, "the late view"));
		fill(two, COUNT * PAGE, round + 2);
		TRY(holds(one, COUNT * PAGE, round + 2, "the early view"));
		munmap(two, COUNT * PAGE);
		fill(one, COUNT * PAGE, round + 3);
		TRY(holds(one, COUNT * PAGE, round + 3, "alone again"));
		munmap(one, COUNT * PAGE);
		close(fd);
	}
	return PASS;
}

/* Of many pages one view is used, the other comes, the first is used again. */
static enum result alias_wide(unsigned int rounds)
{
	unsigned int round, i;

	for (round = 0; round < rounds; round++) {
		int fd = memory_file(WIDE * PAGE, round);
		volatile uint32_t *view[2];

		for (i = 0; i < 2; i++) {
			view[i] = mmap(NULL, WIDE * PAGE, RW, MAP_SHARED, fd, 0);
			EXPECT(view[i] != MAP_FAILED, "mmap: %s",
			       strerror(errno));
		}
		for (i = 0; i < WIDE * PAGE_WORDS; i += PAGE_WORDS) {
			view[0][i] = round + 1;
			EXPECT(view[0][i] == round + 1, "the view alone");
			view[1][i] = round + 2;
			EXPECT(view[0][i] == round + 2, "the other's word");
			view[0][i] = round + 3;
			EXPECT(view[1][i] == round + 3, "the first one's word");
		}
		munmap((void *)view[0], WIDE * PAGE);
		munmap((void *)view[1], WIDE * PAGE);
		close(fd);
	}
	return PASS;
}

static enum result alias_sysv(unsigned int rounds)
{
	int id = shmget(IPC_PRIVATE, COUNT * PAGE, IPC_CREAT | 0600);
	struct other other;
	char *at[2];

	SKIP_UNLESS(id >= 0, "shmget: %s", strerror(errno));
	at[0] = shmat(id, NULL, 0);
	at[1] = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	EXPECT(at[0] != (void *)-1 && at[1] != (void *)-1, "shmat: %s",
	       strerror(errno));
	TRY(aliases(at, 2, rounds));
	EXPECT(!shmdt(at[0]), "shmdt: %s", strerror(errno));
	TRY(other_start(&other, answer, at[1]));
	return ask(&other, at[1], rounds);
}

static enum result shared_posix(unsigned int rounds)
{
	int fd = shm_open("/mm_suite", O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct other other;
	void *at;

	SKIP_UNLESS(fd >= 0, "shm_open: %s", strerror(errno));
	shm_unlink("/mm_suite");
	EXPECT(!ftruncate(fd, COUNT * PAGE), "ftruncate: %s", strerror(errno));
	at = mmap(NULL, COUNT * PAGE, RW, MAP_SHARED, fd, 0);
	EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
	TRY(other_start(&other, answer_elsewhere, &fd));
	return ask(&other, at, rounds);
}

/* The child writes what the parent may only read. */
static enum result read_only_view(unsigned int rounds)
{
	int fd = memory_file(COUNT * PAGE, 0);
	const char *view = mmap(NULL, COUNT * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	struct other other;
	unsigned int round;

	EXPECT(view != MAP_FAILED, "mmap: %s", strerror(errno));
	TRY(other_start(&other, answer_elsewhere, &fd));
	for (round = 0; round < rounds * 2; round++) {
		TRY(holds(view, COUNT * PAGE, round, "the read-only view"));
		TRY(other_go(&other, round));
		TRY(other_wait(&other, NULL));
	}
	TRY(holds(view, COUNT * PAGE, round, "the read-only view"));
	TRY(other_go(&other, UINT32_MAX));
	return other_end(&other);
}

static enum result put_file(int fd, uint32_t seed)
{
	static uint32_t buffer[COUNT * PAGE_WORDS];

	fill(buffer, sizeof(buffer), seed);
	EXPECT(pwrite(fd, buffer, sizeof(buffer), 0) == sizeof(buffer),
	       "pwrite: %s", strerror(errno));
	return PASS;
}

static enum result file_has(int fd, uint32_t seed, const char *what)
{
	static uint32_t buffer[COUNT * PAGE_WORDS];

	memset(buffer, 0, sizeof(buffer));
	EXPECT(pread(fd, buffer, sizeof(buffer), 0) == sizeof(buffer),
	       "pread: %s", strerror(errno));
	return holds(buffer, sizeof(buffer), seed, what);
}

/* write(2) and read(2) against a shared mapping of the same process. */
static enum result shared_and_write(unsigned int rounds)
{
	int fd = memory_file(COUNT * PAGE, 0);
	char *at = mmap(NULL, COUNT * PAGE, RW, MAP_SHARED, fd, 0);
	unsigned int round;

	EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
	for (round = 0; round < rounds * 2; round++) {
		TRY(put_file(fd, round * 3));
		TRY(holds(at, COUNT * PAGE, round * 3, "after write"));
		fill(at, COUNT * PAGE, round * 3 + 1);
		TRY(file_has(fd, round * 3 + 1, "read after a store"));
		/* Part of a page, with dirty lines around. */
		fill(at, PAGE, round * 3 + 2);
		EXPECT(pwrite(fd, "mm_suite", 8, 64) == 8, "pwrite");
		EXPECT(!memcmp(at + 64, "mm_suite", 8), "8 bytes by write");
		TRY(holds(at, 64, round * 3 + 2, "before the 8 bytes"));
	}
	return PASS;
}

static enum result write_child(struct other *other, void *arg)
{
	uint32_t seed;

	TRY(child_wait(other, &seed));
	TRY(put_file(*(int *)arg, seed));
	return child_go(other, 0);
}

/* Untouched pages of a private mapping are the file's, whoever writes it. */
static enum result private_and_write(unsigned int rounds)
{
	int fd = memory_file(COUNT * PAGE, 0);
	unsigned int round;

	for (round = 0; round < rounds; round++) {
		struct other other;
		char *at = mmap(NULL, COUNT * PAGE, RW, MAP_PRIVATE, fd, 0);

		EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
		TRY(holds(at, COUNT * PAGE, round, "as mapped"));
		fill(at + PAGE, PAGE, round + 500);
		TRY(other_start(&other, write_child, &fd));
		TRY(other_go(&other, round + 1));
		TRY(other_wait(&other, NULL));
		TRY(holds(at, PAGE, round + 1, "untouched page"));
		TRY(holds(at + PAGE, PAGE, round + 500, "own page"));
		TRY(other_end(&other));
		munmap(at, COUNT * PAGE);
		TRY(file_has(fd, round + 1, "the file"));
	}
	return PASS;
}

static enum result private_own_write(unsigned int rounds)
{
	int fd = memory_file(COUNT * PAGE, 0);
	char *at = mmap(NULL, COUNT * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	unsigned int round;

	EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
	for (round = 0; round < rounds; round++) {
		TRY(holds(at, COUNT * PAGE, round, "untouched pages"));
		TRY(put_file(fd, round + 1));
	}
	return PASS;
}

/* A private copy of a page that is dirty under its shared address. */
static enum result private_of_shared(unsigned int rounds)
{
	int fd = memory_file(COUNT * PAGE, 0);
	char *at = mmap(NULL, COUNT * PAGE, RW, MAP_SHARED, fd, 0);
	unsigned int round, i;

	EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
	for (round = 0; round < rounds * 2; round++) {
		char *copy;

		fill(at, COUNT * PAGE, round);
		copy = mmap(NULL, COUNT * PAGE, RW, MAP_PRIVATE, fd, 0);
		EXPECT(copy != MAP_FAILED, "mmap: %s", strerror(errno));
		/* The first access is a write: copied before it is mapped. */
		for (i = 0; i < COUNT; i++)
			*(volatile uint32_t *)(copy + i * PAGE) =
				word_of(round, i * PAGE_WORDS);
		TRY(holds(copy, COUNT * PAGE, round, "the private copy"));
		TRY(holds(at, COUNT * PAGE, round, "the shared view"));
		munmap(copy, COUNT * PAGE);
	}
	return PASS;
}

static enum result truncated(unsigned int rounds)
{
	unsigned int round;

	for (round = 0; round < rounds; round++) {
		int fd = memory_file(COUNT * PAGE, round);
		char *at = mmap(NULL, COUNT * PAGE, RW, MAP_SHARED, fd, 0);

		EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
		fill(at, COUNT * PAGE, round + 1);
		EXPECT(!ftruncate(fd, PAGE + 128), "ftruncate");
		TRY(holds(at, PAGE, round + 1, "kept"));
		TRY(all_zero(at + PAGE + 128, PAGE - 128, "behind the end"));
		EXPECT(!ftruncate(fd, COUNT * PAGE), "ftruncate");
		TRY(all_zero(at + PAGE + 128, (COUNT - 1) * PAGE - 128,
			     "cut off and made longer again"));
		munmap(at, COUNT * PAGE);
		close(fd);
	}
	return PASS;
}

static enum result hole_punched(unsigned int rounds)
{
	int fd = memory_file(COUNT * PAGE, 0);
	char *at = mmap(NULL, COUNT * PAGE, RW, MAP_SHARED, fd, 0);
	unsigned int round;

	EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
	for (round = 0; round < rounds; round++) {
		fill(at, COUNT * PAGE, round);
		EXPECT(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				  PAGE / 2, PAGE), "fallocate: %s",
		       strerror(errno));
		TRY(holds(at, PAGE / 2, round, "before the hole"));
		TRY(all_zero(at + PAGE / 2, PAGE, "the hole"));
	}
	return PASS;
}

/*
 * The kernel looks at a mapped page, the mapping is written and goes away; by
 * then nothing says that the kernel's look was too early.
 */
static enum result unmapped_and_read(unsigned int rounds)
{
	int fd = memory_file(PAGE, 0);
	uint32_t got[PAGE_WORDS];
	unsigned int round;

	for (round = 0; round < rounds * 2; round++) {
		uint32_t *at = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);

		EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
		fill(at, PAGE, round * 2);
		EXPECT(pread(fd, got, PAGE, 0) == PAGE, "read");
		TRY(holds(got, PAGE, round * 2, "read while mapped"));
		fill(at, PAGE, round * 2 + 1);
		munmap(at, PAGE);
		EXPECT(pread(fd, got, PAGE, 0) == PAGE, "read");
		TRY(holds(got, PAGE, round * 2 + 1, "read when unmapped"));
	}
	return PASS;
}

const struct test share_tests[] = {
	{ "shared_memory", "shared anonymous memory, in turns", shared_memory,
	  NULL },
	{ "shared_file", "a file mapped by two processes", shared_file, NULL },
	{ "shared_posix", "POSIX shared memory", shared_posix, NULL },
	{ "alias_file", "three views of a file in one process", alias_file,
	  NULL },
	{ "alias_late", "a second view of dirty pages", alias_late, NULL },
	{ "alias_wide", "two views of many pages, in turns", alias_wide, NULL },
	{ "alias_sysv", "System V memory attached twice", alias_sysv, NULL },
	{ "read_only_view", "a view of what another process writes",
	  read_only_view, NULL },
	{ "shared_and_write", "write(2), read(2) and a shared mapping",
	  shared_and_write, NULL },
	{ "unmapped_and_read", "read(2) before and behind a mapping's end",
	  unmapped_and_read, "Linux does not flush what read(2) looked at" },
	{ "private_and_write", "another process writes a file mapped privately",
	  private_and_write, NULL },
	{ "private_own_write", "write(2) of a file that is mapped privately",
	  private_own_write, "POSIX leaves open what a private mapping sees" },
	{ "private_of_shared", "a private copy of a page dirty elsewhere",
	  private_of_shared,
	  "Linux copies a page without a flush of its other addresses" },
	{ "truncated", "a mapped file is cut and made longer", truncated, NULL },
	{ "hole_punched", "a hole in a mapped file", hole_punched,
	  "Linux zeroes a part of a page without a flush before it" },
	{ NULL, NULL, NULL, NULL },
};
