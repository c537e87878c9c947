/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a flush costs: medians of 101 calls of madvise(MADV_DONTNEED) of one page that is
 * not there, in a mapping of 7 pages, which is flushed line by line, and in one of 16,
 * for which the whole cache of an XScale is. The lines of the others are not in the
 * cache, or clean, or dirty. A system call's time is in it.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE	4096
#define LINE	32
#define CALLS	101

enum { ABSENT, CLEAN, DIRTY };

static long now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1000000000 + at.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	return *(const long *)a < *(const long *)b ? -1 : *(const long *)a > *(const long *)b;
}

static long median(volatile char *page, int pages, int state)
{
	long took[CALLS];
	int call, i;

	for (call = 0; call < CALLS; call++) {
		for (i = PAGE; state != ABSENT && i < pages * PAGE; i += LINE) {
			(void)page[i];
			if (state == DIRTY)
				page[i] = call;
		}
		took[call] = now();
		if (madvise((void *)page, PAGE, MADV_DONTNEED))
			exit(2);
		took[call] = now() - took[call];
	}
	qsort(took, CALLS, sizeof(took[0]), compare);
	return took[CALLS / 2];
}

int main(void)
{
	static const char *states[] = { "absent", "clean", "dirty" };
	static const int sizes[] = { 7, 16 };
	int size, state;

	for (size = 0; size < 2; size++) {
		int pages = sizes[size];
		char *map = mmap(NULL, (pages + 2) * PAGE, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (map == MAP_FAILED || mprotect(map + PAGE, pages * PAGE, PROT_READ | PROT_WRITE))
			return 2;
		for (state = ABSENT; state <= DIRTY; state++)
			printf("%d pages, lines %s: %ld ns\n", pages, states[state],
			       median(map + PAGE, pages, state));
	}
	return 0;
}
