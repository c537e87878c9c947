// SPDX-License-Identifier: MIT OR Apache-2.0
/* Serial flash behind the MTD character device: reads and writes by SPI. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "dma_suite.h"

#define DEVICE	"/dev/mtd0"
#define LARGEST	3001u
/* Bytes from one area of a round to the next. */
#define AREA	8192u
#define AREAS	16u

static enum result open_flash(int *fd)
{
	*fd = open(DEVICE, O_RDWR);
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
	memset(to, 0x55, bytes);
	EXPECT(pread(fd, to, bytes, at) == (ssize_t)bytes,
	       "read of %zu bytes at %ld: %s", bytes, (long)at,
	       strerror(errno));
	return PASS;
}

static off_t area(unsigned int round)
{
	return (off_t)(round % AREAS) * AREA;
}

/* Odd offsets and lengths, read whole and in pieces. */
static enum result flash_odd(unsigned int rounds)
{
	static const size_t lengths[] = { 1, 31, 33, 64, 527, 1057, LARGEST };
	unsigned char out[LARGEST], in[LARGEST];
	unsigned int round, i;
	int fd;

	TRY(open_flash(&fd));
	for (round = 0; round < rounds; round++)
		for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			uint32_t seed = round * 16 + i;
			off_t at = area(round) + seed % 37;
			size_t bytes = lengths[i];

			fill(out, bytes, seed);
			TRY(write_at(fd, at, out, bytes));
			TRY(read_at(fd, at, in, bytes));
			TRY(holds(in, bytes, seed, "flash"));
		}
	return PASS;
}

/*
 * Two areas are read in turns. The driver reads each of them into the same
 * memory, in which lines of the other area may be left.
 */
static enum result flash_turns(unsigned int rounds)
{
	unsigned char out[LARGEST], in[LARGEST];
	unsigned int round, turn;
	int fd;

	TRY(open_flash(&fd));
	for (turn = 0; turn < 2; turn++) {
		fill(out, LARGEST, turn);
		TRY(write_at(fd, area(turn) + 3, out, LARGEST));
	}
	for (round = 0; round < rounds; round++)
		for (turn = 0; turn < 2; turn++) {
			TRY(read_at(fd, area(turn) + 3, in, LARGEST));
			TRY(holds(in, LARGEST, turn, "flash in turns"));
		}
	return PASS;
}

const struct test flash_tests[] = {
	{ "flash_odd", "flash at odd offsets and of odd lengths", flash_odd, NULL },
	{ "flash_turns", "two areas of the flash, read in turns", flash_turns, NULL },
	{ }
};
