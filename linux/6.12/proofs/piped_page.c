/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A page that a pipe refers to, by vmsplice() without SPLICE_F_GIFT, and once more
 * by tee(). Another process reads it from the first pipe, its owner changes it, and
 * the other one reads it from the second pipe: the kernel's address is not flushed
 * before that.
 *
 * piped_page ROUNDS [shared]
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE	4096
#define WORDS	(PAGE / 4)

static int question[2], answer[2], pipes[2][2];

/* Reads a page from the pipe that it is told, and says how many words it has. */
static void reader(void)
{
	static uint32_t page[WORDS];
	uint32_t ask[2], found;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(question[0], ask, sizeof(ask)) == sizeof(ask)) {
		found = 0;
		read(pipes[ask[0]][0], page, PAGE);
		for (i = 0; i < WORDS; i++)
			found += page[i] == ask[1];
		write(answer[1], &found, 4);
	}
	_exit(0);
}

static uint32_t found_in(uint32_t which, uint32_t word)
{
	uint32_t ask[2] = { which, word }, found;

	write(question[1], ask, sizeof(ask));
	read(answer[0], &found, 4);
	return found;
}

static void fill(volatile uint32_t *at, uint32_t word)
{
	int i;

	for (i = 0; i < WORDS; i++)
		at[i] = word;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100, flags, file, round;
	int first = 0, old = 0, mixed = 0;
	volatile uint32_t *at;

	pipe(question);
	pipe(answer);
	pipe(pipes[0]);
	pipe(pipes[1]);
	file = memfd_create("file", 0);
	ftruncate(file, PAGE);
	flags = argc > 2 ? MAP_SHARED : MAP_PRIVATE;
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags, file, 0);
	fill(at, 0);
	if (!fork())
		reader();
	for (round = 0; round < rounds; round++) {
		struct iovec all = { (void *)at, PAGE };
		uint32_t found;

		fill(at, 2 * round);
		if (vmsplice(pipes[0][1], &all, 1, 0) != PAGE ||
		    tee(pipes[0][0], pipes[1][1], PAGE, 0) != PAGE)
			return 2;
		first += found_in(0, 2 * round) != WORDS;
		fill(at, 2 * round + 1);
		found = found_in(1, 2 * round + 1);
		old += found == 0;
		mixed += found && found != WORDS;
	}
	printf("first pipe wrong in %d; second one: all old in %d, old and new in %d of %d rounds\n",
	       first, old, mixed, rounds);
	return first || old || mixed;
}
