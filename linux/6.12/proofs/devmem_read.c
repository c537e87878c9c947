/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A process stores to its memory, and another one, root's, reads the same memory from /dev/mem.
 *
 * devmem_read ROUNDS
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PAGE	4096
#define WORDS	(PAGE / 4)

static int ask[2], answer[2];

/* Says how many words of the page are not as they should be. */
static void reader(off_t physical)
{
	static uint32_t words[WORDS];
	int mem = open("/dev/mem", O_RDONLY);
	uint32_t word, wrong;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ask[0], &word, 4) == 4) {
		wrong = pread(mem, words, PAGE, physical) != PAGE;
		for (i = 0; i < WORDS; i++)
			wrong += words[i] != word + i;
		write(answer[1], &wrong, 4);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100, round, old = 0, maps, i;
	volatile uint32_t *page;
	uint64_t entry = 0;

	pipe(ask);
	pipe(answer);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise((void *)page, PAGE, MADV_DONTFORK);
	*page = 0;
	maps = open("/proc/self/pagemap", O_RDONLY);
	pread(maps, &entry, 8, (uintptr_t)page / PAGE * 8);
	entry &= (1ull << 55) - 1;
	if (!entry) {
		printf("the page's address is not told: root only\n");
		return 2;
	}
	if (!fork())
		reader(entry * PAGE);
	for (round = 1; round <= rounds; round++) {
		uint32_t word = round << 16, wrong;

		for (i = 0; i < WORDS; i++)
			page[i] = word + i;
		write(ask[1], &word, 4);
		read(answer[0], &wrong, 4);
		old += wrong != 0;
	}
	printf("%d rounds, /dev/mem gives old words in %d\n", rounds, old);
	return old != 0;
}
