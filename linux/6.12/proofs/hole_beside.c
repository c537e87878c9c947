// SPDX-License-Identifier: GPL-2.0-only
/*
 * hole_beside ROUNDS [unread], as root (SCHED_FIFO)
 *
 * One process punches a hole into a file. Another one wakes during that call. It reads the
 * word behind the hole by /proc/self/mem, and stores to it by its shared mapping. The word
 * must stay. With "unread" the second one only stores.
 *
 * In guaranteed mode the store goes past the cache. The read comes after the flush that the
 * kernel makes before it zeroes. So the kernel's line has the old word, the zeroes go into
 * that line, and the flush after the zeroing writes it back whole.
 *
 * The time from the beginning of the call to the wake-up changes each round. A round meets
 * the zeroing if the second process finds the first word of the hole zero and the last one
 * not. A store after the flush and before the first zero is lost as well.
 */
#define _FILE_OFFSET_BITS 64	/* addresses are offsets in /proc/self/mem */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define SECOND	1000000000LL
#define HOLE	4072			/* bytes */
#define BESIDE	(HOLE / 4)		/* words: in the hole's last line */
#define LAST	(BESIDE - 1)
#define AHEAD	3000000			/* ns: time for the second one to fall asleep */
#define FIRST	20000			/* ns from the call to the wake-up */
#define SPAN	60000
#define STEP	100

struct wake {
	int64_t at;
	uint32_t word;
};

static int file, ask[2], answer[2];

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

static volatile uint32_t *mapping(void)
{
	uint32_t *words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, PAGE);

	must(words != MAP_FAILED, "mmap");
	return words;
}

/* Answers whether it woke during the zeroing. */
static void writer(bool reads)
{
	struct sched_param first = { .sched_priority = 50 };
	volatile uint32_t *words = mapping();
	int memory = open("/proc/self/mem", O_RDONLY);
	struct wake wake;
	uint32_t old;
	char met;

	must(memory >= 0, "/proc/self/mem");
	must(!sched_setscheduler(0, SCHED_FIFO, &first), "sched_setscheduler");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ask[0], &wake, sizeof(wake)) == sizeof(wake)) {
		struct timespec at = { wake.at / SECOND, wake.at % SECOND };

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		met = !words[0] && words[LAST];
		if (reads)
			must(pread(memory, &old, sizeof(old), (uintptr_t)&words[BESIDE]) == sizeof(old), "pread");
		words[BESIDE] = wake.word;
		must(write(answer[1], &met, 1) == 1, "write");
	}
	exit(0);
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? atoi(argv[1]) : 600, met = 0, lost = 0, round;
	volatile uint32_t *words;

	file = memfd_create("file", 0);
	must(file >= 0 && !ftruncate(file, 2 * PAGE), "memfd_create");
	must(!pipe(ask) && !pipe(answer), "pipe");
	if (!fork())
		writer(argc <= 2);
	close(answer[1]);
	words = mapping();
	for (round = 0; round < rounds; round++) {
		struct wake wake = { .word = round + 1 };
		char in_zeroing;

		words[0] = 1;
		words[LAST] = 1;
		wake.at = now() + AHEAD;
		must(write(ask[1], &wake, sizeof(wake)) == sizeof(wake), "write");
		while (now() < wake.at - FIRST - round * STEP % SPAN)
			;
		must(!fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, HOLE), "fallocate");
		must(read(answer[0], &in_zeroing, 1) == 1, "read");
		met += in_zeroing;
		lost += words[BESIDE] != wake.word;
	}
	printf("%u rounds, %u met the zeroing, %u stores lost\n", rounds, met, lost);
	return lost ? 1 : met ? 0 : 2;
}
