// SPDX-License-Identifier: GPL-2.0-only
/*
 * cut_beside ROUNDS [hole]
 *
 * One process reads a file by read(2). Another one stores a word by its shared mapping,
 * and is done. The first cuts the file just behind that word, in the same 32 bytes, or
 * punches a hole there. The word must stay, in the mapping and for read(2).
 *
 * In guaranteed mode the store goes past the cache, and the kernel's line of that
 * read(2) is old. Zeroing a part of it must not write the rest back.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PAGE	4096
#define WORD	512		/* the first of a line */
#define BEHIND	(4 * WORD + 4)

static int file, ask[2], answer[2];

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

/* Stores what it is asked to, or nothing, and says what is there. */
static void writer(void)
{
	volatile uint32_t *words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	uint32_t word;

	must(words != MAP_FAILED, "mmap");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ask[0], &word, sizeof(word)) == sizeof(word)) {
		if (word)
			words[WORD] = word;
		word = words[WORD];
		must(write(answer[1], &word, sizeof(word)) == sizeof(word), "write");
	}
	exit(0);
}

static uint32_t asked(uint32_t word)
{
	must(write(ask[1], &word, sizeof(word)) == sizeof(word), "write");
	must(read(answer[0], &word, sizeof(word)) == sizeof(word), "read");
	return word;
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? atoi(argv[1]) : 20, lost = 0, round;
	bool hole = argc > 2;
	static char page[PAGE];

	file = memfd_create("file", 0);
	must(file >= 0 && !ftruncate(file, PAGE), "memfd_create");
	must(!pipe(ask) && !pipe(answer), "pipe");
	if (!fork())
		writer();
	for (round = 1; round <= rounds; round++) {
		uint32_t in_mapping, in_file;

		asked(0);
		must(pread(file, page, PAGE, 0) == PAGE, "pread");
		asked(round);
		if (hole)
			must(!fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, BEHIND, 100),
			     "fallocate");
		else
			must(!ftruncate(file, BEHIND), "ftruncate");
		in_mapping = asked(0);
		must(pread(file, &in_file, sizeof(in_file), 4 * WORD) == sizeof(in_file), "pread");
		lost += in_mapping != round || in_file != round;
		must(!ftruncate(file, PAGE), "ftruncate");
	}
	printf("%u rounds, the word of the other process is lost in %u\n", rounds, lost);
	return lost != 0;
}
