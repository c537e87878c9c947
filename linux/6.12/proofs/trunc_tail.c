/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A file is cut and made longer again: what was behind the cut has to be zero. The process has stored to it by a shared
 * mapping before. An ordinary user's, one process.
 *
 * trunc_tail ROUNDS
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE	4096
#define CUT	1024

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100, round, mapped = 0, got = 0;
	int file = memfd_create("file", 0);
	volatile uint32_t *at;
	uint32_t word;

	ftruncate(file, PAGE);
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	for (round = 1; round <= rounds; round++) {
		word = at[CUT / 2];	/* into the cache: a store alone goes past it */
		at[CUT / 2] = word + round;
		ftruncate(file, CUT);
		ftruncate(file, PAGE);
		mapped += at[CUT / 2] != 0;
		pread(file, &word, 4, CUT * 2);
		got += word != 0;
	}
	printf("%d rounds, the old word is back in the mapping in %d, by read(2) in %d\n", rounds, mapped, got);
	return mapped || got;
}
