// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A memory card without a file system. The tests overwrite it from its start.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "dma_suite.h"

#define DEVICE	"/dev/mmcblk0"
#define LARGEST	(4 * PAGE)
#define AREAS	32u

static enum result open_card(int *fd, int flags)
{
	*fd = open(DEVICE, O_RDWR | flags);
	SKIP_UNLESS(*fd >= 0, DEVICE ": %s", strerror(errno));
	return PASS;
}

static enum result write_at(int fd, off_t at, const void *from, size_t bytes)
{
	EXPECT(pwrite(fd, from, bytes, at) == (ssize_t)bytes,
	       "write of %zu bytes at %ld: %s", bytes, (long)at,
	       strerror(errno));
	return PASS;
}

static enum result read_at(int fd, off_t at, void *to, size_t bytes)
{
	EXPECT(pread(fd, to, bytes, at) == (ssize_t)bytes,
	       "read of %zu bytes at %ld: %s", bytes, (long)at,
	       strerror(errno));
	return PASS;
}

/* Writes all dirty pages of the device, and forgets its pages. */
static enum result forget_pages(int fd)
{
	EXPECT(!fsync(fd), "fsync: %s", strerror(errno));
	EXPECT(!ioctl(fd, BLKFLSBUF, 0), "BLKFLSBUF: %s", strerror(errno));
	return PASS;
}

static off_t area(unsigned int round)
{
	return (off_t)(round % AREAS) * LARGEST;
}

/*
 * O_DIRECT from and to dirty user memory at sectors of a page. Offsets inside
 * a line are tried as well: a kernel moves the data or refuses it.
 */
static enum result card_direct(unsigned int rounds)
{
	static const size_t inside[] = { 0, 4, 16, 28, 31 };
	unsigned char *out = pages(LARGEST + PAGE);
	unsigned char *in = pages(LARGEST + PAGE);
	unsigned int round, i;
	int fd;

	TRY(open_card(&fd, O_DIRECT));
	EXPECT(out && in, "no memory");
	for (round = 0; round < rounds; round++)
		for (i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
			size_t at = round % 8 * SECTOR + inside[i];
			size_t bytes = (1 + (round + i) % 7) * SECTOR;
			uint32_t seed = round * 8 + i;

			fill(out + at, bytes, seed);
			fill(in, LARGEST, ~seed);
			if (pwrite(fd, out + at, bytes, area(round)) < 0 &&
			    errno == EINVAL && inside[i])
				continue;
			TRY(write_at(fd, area(round), out + at, bytes));
			TRY(read_at(fd, area(round), in + at, bytes));
			TRY(holds(in + at, bytes, seed, "O_DIRECT"));
		}
	return PASS;
}

/* O_DIRECT into and out of memory that is mapped at two addresses. */
static enum result card_twice(unsigned int rounds)
{
	int memory = memfd_create("twice", 0);
	unsigned char *at[2];
	unsigned int round;
	int fd, i;

	TRY(open_card(&fd, O_DIRECT));
	EXPECT(memory >= 0 && !ftruncate(memory, LARGEST), "memfd: %s",
	       strerror(errno));
	for (i = 0; i < 2; i++) {
		at[i] = mmap(NULL, LARGEST, PROT_READ | PROT_WRITE, MAP_SHARED,
			     memory, 0);
		EXPECT(at[i] != MAP_FAILED, "mmap: %s", strerror(errno));
	}
	for (round = 0; round < rounds; round++) {
		fill(at[round % 2], LARGEST, round);
		TRY(write_at(fd, area(round), at[1 - round % 2], LARGEST));
		fill(at[1 - round % 2], LARGEST, ~round);
		TRY(read_at(fd, area(round), at[round % 2], LARGEST));
		for (i = 0; i < 2; i++)
			TRY(holds(at[i], LARGEST, round, "two mappings"));
	}
	return PASS;
}

/* The page cache: written, forgotten, and read by read() and by a mapping. */
static enum result card_cached(unsigned int rounds)
{
	unsigned char *out = pages(LARGEST), *in = pages(LARGEST);
	unsigned int round;
	int fd;

	TRY(open_card(&fd, 0));
	EXPECT(out && in, "no memory");
	for (round = 0; round < rounds; round++) {
		unsigned char *mapped;

		fill(out, LARGEST, round);
		warm_pages();
		TRY(write_at(fd, area(round), out, LARGEST));
		TRY(forget_pages(fd));
		mapped = mmap(NULL, LARGEST, PROT_READ, MAP_SHARED, fd,
			      area(round));
		EXPECT(mapped != MAP_FAILED, "mmap: %s", strerror(errno));
		TRY(holds(mapped, LARGEST, round, "mapping"));
		EXPECT(!munmap(mapped, LARGEST), "munmap");
		TRY(forget_pages(fd));
		TRY(read_at(fd, area(round), in, LARGEST));
		TRY(holds(in, LARGEST, round, "page cache"));
	}
	return PASS;
}

/* A shared mapping: stores, write-back by fsync, and O_DIRECT reads. */
static enum result card_mapped(unsigned int rounds)
{
	unsigned char *in = pages(LARGEST), *mapped;
	unsigned int round;
	int fd, direct;

	TRY(open_card(&fd, 0));
	TRY(open_card(&direct, O_DIRECT));
	EXPECT(in, "no memory");
	for (round = 0; round < rounds; round++) {
		mapped = mmap(NULL, LARGEST, PROT_READ | PROT_WRITE, MAP_SHARED,
			      fd, area(round));
		EXPECT(mapped != MAP_FAILED, "mmap: %s", strerror(errno));
		fill(mapped, LARGEST, round + 7);
		EXPECT(!msync(mapped, LARGEST, MS_SYNC), "msync: %s",
		       strerror(errno));
		TRY(read_at(direct, area(round), in, LARGEST));
		TRY(holds(in, LARGEST, round + 7, "mapping by msync"));
		EXPECT(!munmap(mapped, LARGEST), "munmap");
	}
	return PASS;
}

/* Code of the card is paged in and executed. */
static enum result card_code(unsigned int rounds)
{
	static uint32_t code[PAGE / 4] __attribute__((aligned(4096)));
	unsigned int round, i;
	int fd, direct;

	TRY(open_card(&fd, 0));
	TRY(open_card(&direct, O_DIRECT));
	for (round = 0; round < rounds; round++) {
		void *mapped;

		/* mov r0, #round; bx lr: a function in each line. */
		for (i = 0; i < PAGE / 4; i += 8) {
			code[i] = 0xe3a00000u | (round * 3 + i / 8) % 256;
			code[i + 1] = 0xe12fff1eu;
		}
		TRY(write_at(direct, area(0), code, PAGE));
		TRY(forget_pages(fd));
		mapped = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE,
			      fd, area(0));
		EXPECT(mapped != MAP_FAILED, "mmap: %s", strerror(errno));
		for (i = 0; i < PAGE / 4; i += 8) {
			unsigned int (*function)(void);
			unsigned int want = (round * 3 + i / 8) % 256;
			unsigned int seen;
			const void *at = (char *)mapped + 4 * i;

			memcpy(&function, &at, sizeof(function));
			seen = function();
			EXPECT(seen == want, "code gave %u, not %u", seen,
			       want);
		}
		EXPECT(!munmap(mapped, PAGE), "munmap");
	}
	return PASS;
}

const struct test card_tests[] = {
	{ "card_direct", "O_DIRECT at sectors of a page and inside a line",
	  card_direct, NULL },
	{ "card_twice", "O_DIRECT with memory that is mapped twice",
	  card_twice, NULL },
	{ "card_cached", "the page cache, forgotten between write and read",
	  card_cached, NULL },
	{ "card_mapped", "stores to a shared mapping, read by O_DIRECT",
	  card_mapped, NULL },
	{ "card_code", "code that is paged in and executed", card_code, NULL },
	{ }
};
