/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mappings of /dev/mem, root's.
 *
 * devmem_map ROUNDS shared|private|sync	a process stores to its page, another one looks at it by a mapping
 * devmem_map MB ram				all of RAM is mapped, 256 KB at a time
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PAGE	4096
#define PIECE	(256 << 10)
#define RAM	0x20000000	/* where it begins on sam9263 */
#define WORDS	256

static int ask[2], answer[2];

static void fail(const char *what)
{
	perror(what);
	_exit(2);
}

static void look(off_t physical, const char *how)
{
	int memory = open("/dev/mem", O_RDWR | (strcmp(how, "sync") ? 0 : O_SYNC));
	int flags = strcmp(how, "private") ? MAP_SHARED : MAP_PRIVATE;
	volatile uint32_t *at = mmap(NULL, PAGE, PROT_READ, flags, memory, physical);
	uint32_t i, word, wrong;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (at == MAP_FAILED)
		fail("mmap");
	while (read(ask[0], &word, 4) == 4) {
		for (i = wrong = 0; i < WORDS; i++)
			wrong += at[i] != word + i;
		write(answer[1], &wrong, 4);
	}
	_exit(0);
}

static int map_all(int megabytes)
{
	int memory = open("/dev/mem", O_RDONLY);
	unsigned long at, end = RAM + ((unsigned long)megabytes << 20);

	for (at = RAM; at < end; at += PIECE) {
		void *piece = mmap(NULL, PIECE, PROT_READ, MAP_SHARED, memory, at);

		if (piece == MAP_FAILED)
			fail("mmap");
		munmap(piece, PIECE);
	}
	printf("all of RAM was mapped\n");
	return 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100, round, old = 0;
	const char *how = argc > 2 ? argv[2] : "shared";
	volatile uint32_t *page;
	uint64_t entry = 0;
	uint32_t i;

	if (!strcmp(how, "ram"))
		return map_all(rounds);
	pipe(ask);
	pipe(answer);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise((void *)page, PAGE, MADV_DONTFORK);
	*page = 0;
	pread(open("/proc/self/pagemap", O_RDONLY), &entry, 8, (uintptr_t)page / PAGE * 8);
	entry &= (1ull << 55) - 1;
	if (!entry)
		fail("pagemap");
	if (!fork())
		look(entry * PAGE, how);
	close(answer[1]);
	for (round = 1; round <= rounds; round++) {
		uint32_t word = round << 16, wrong;

		for (i = 0; i < WORDS; i++)
			(void)page[i];	/* a store alone goes past the cache */
		for (i = 0; i < WORDS; i++)
			page[i] = word + i;
		write(ask[1], &word, 4);
		if (read(answer[0], &wrong, 4) != 4)
			return 2;
		old += wrong != 0;
	}
	printf("%s: %d rounds, the mapping of /dev/mem shows old words in %d\n", how, rounds, old);
	return old != 0;
}
