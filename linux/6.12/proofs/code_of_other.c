/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Code in shared memory: one process writes it by a mapping for writing, and calls
 * cacheflush() on what it has written; another one runs it by a mapping of its own.
 * A compiler in a process of its own does that.
 *
 * code_of_other ROUNDS
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PAGE	4096
#define LINE	8	/* words */
#define LINES	127

static int question[2], answer[2];

/* Writes a function that adds the number once in each line. */
static void writer(int file)
{
	volatile uint32_t *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				     MAP_SHARED, file, 0);
	uint32_t number;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(question[0], &number, 4) == 4) {
		for (i = 0; i < LINES * LINE; i++)	/* add r0, r0, #number */
			at[i] = 0xe2800000 | (i % LINE ? 0 : number & 0x7f);
		at[i] = 0xe12fff1e;			/* bx lr */
		__builtin___clear_cache((char *)at, (char *)at + PAGE);
		write(answer[1], "", 1);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 1 ? (uint32_t)atoi(argv[1]) : 100, round, old = 0;
	int file = memfd_create("file", 0);
	uint32_t (*run)(uint32_t);
	char c;

	ftruncate(file, PAGE);
	pipe(question);
	pipe(answer);
	if (!fork())
		writer(file);
	run = (void *)mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
	for (round = 0; round < rounds; round++) {
		write(question[1], &round, 4);
		read(answer[0], &c, 1);
		old += run(0) != LINES * (round & 0x7f);
	}
	printf("old code ran in %u of %u rounds\n", old, rounds);
	return old != 0;
}
