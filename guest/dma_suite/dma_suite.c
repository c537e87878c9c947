// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * dma_suite: moves data between memory and devices in all the ways that a
 * program can ask for, and checks every byte that comes back.
 *
 * Bus masters read and write memory past the caches. A driver that forgets a
 * clean or an invalidate sends old data or reads old data. Each test fills
 * memory with data that depends on its position, so that stale data differs.
 *
 * guest/shared/suite.h describes output and exit codes.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>
#include "dma_suite.h"

/* Pages that stay in a D-cache of 16 KB, and the bytes of a transfer. */
#define WARM		2u
#define PIECE		256u

static const struct test *const tables[] = {
	serial_tests, network_tests, flash_tests, card_tests,
};

static uint8_t byte_of(uint32_t seed, size_t index)
{
	uint32_t x = seed * 0x9e3779b1u + (uint32_t)(index / 4) * 0x85ebca6bu;

	x ^= x >> 15;
	x *= 0x2c1b3c6du;
	return (uint8_t)(x >> (8 * (index % 4) + (index % 4 == 0)));
}

/*
 * These caches take a line in only when it is read. Three lines of four are
 * read behind their first byte, so that later bytes make them dirty.
 */
void fill(void *at, size_t bytes, uint32_t seed)
{
	volatile uint8_t *byte = at;
	size_t i;

	for (i = 0; i < bytes; i++) {
		byte[i] = byte_of(seed, i);
		if (i % 32 == 0 && (i / 32 + seed) % 4)
			(void)byte[i];
	}
}

enum result holds(const void *at, size_t bytes, uint32_t seed, const char *what)
{
	const volatile uint8_t *byte = at;
	size_t i;

	for (i = 0; i < bytes; i++) {
		uint8_t seen = byte[i], want = byte_of(seed, i);

		EXPECT(seen == want, "%s: byte %zu of %zu is %02x, not %02x",
		       what, i, bytes, seen, want);
	}
	return PASS;
}

void warm_pages(void)
{
	unsigned char piece[PIECE] = { 0 };
	unsigned int i, have = 0;
	int ends[2];

	if (pipe(ends))
		return;
	for (i = 0; i < WARM * PAGE / PIECE; i++)
		have += write(ends[1], piece, PIECE) == PIECE;
	/* The kernel reads the pages of the pipe at its own address. */
	for (i = 1; i < have; i++)
		if (read(ends[0], piece, PIECE) != PIECE)
			break;
	close(ends[0]);
	close(ends[1]);
}

void *pages(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

int main(int argc, char **argv)
{
	const struct suite suite = {
		.name = "dma_suite",
		.tables = tables,
		.table_count = sizeof(tables) / sizeof(tables[0]),
		.normal_rounds = 16,
		.round_s = 4,
	};

	return suite_main(&suite, argc, argv);
}
