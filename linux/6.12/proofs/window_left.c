/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Three threads of one process, an ordinary user's; each gives back a page of a mapping
 * of its own of 64 KB by madvise(MADV_DONTNEED), for which an XScale's whole data cache
 * is cleaned by allocating lines of one of two windows, by turns. The first is preempted
 * in it by the second, the second in it by the third. The third's window is the first's,
 * whose lines are still there and evict nothing. Afterwards it finds its old words where
 * there must be zeros.
 *
 * window_left ROUNDS [file]. With "file" it writes a new page to a file instead, which gets
 * the page that was given back, and looks at that later: the old words are in the file.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define SIZE	(16 * PAGE)
#define LINE	8	/* words */

static volatile int inside1, inside2;
static struct timespec at;
static pthread_barrier_t go;

static volatile uint32_t *map(void)
{
	char *m = mmap(NULL, SIZE + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (m == MAP_FAILED || mprotect(m + PAGE, SIZE, PROT_READ | PROT_WRITE))
		exit(2);
	return (void *)(m + PAGE);
}

static void be_nice(int n)
{
	prctl(PR_SET_TIMERSLACK, 1);
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), n);
}

static void after(long ns)
{
	struct timespec t = at;

	t.tv_nsec += ns;
	while (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void *first(void *arg)
{
	volatile uint32_t *m = map();

	be_nice(19);
	for (;;) {
		inside1 = 1;
		madvise((void *)m, PAGE, MADV_DONTNEED);
		inside1 = 0;
	}
	return arg;
}

static void *second(void *arg)
{
	volatile uint32_t *m = map();

	be_nice(10);
	for (;;) {
		pthread_barrier_wait(&go);
		after(1000000);
		inside2 = 1;
		madvise((void *)m, PAGE, MADV_DONTNEED);
		inside2 = 0;
	}
	return arg;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000, round, i, met = 0, bad = 0, lines = 0;
	volatile uint32_t *m = map();
	int file = argc > 2 ? memfd_create("file", 0) : -1;
	static uint32_t words[PAGE / 4];
	uint32_t sum = 0;
	pthread_t t;

	pthread_barrier_init(&go, NULL, 2);
	prctl(PR_SET_TIMERSLACK, 1);
	if (pthread_create(&t, NULL, first, NULL) || pthread_create(&t, NULL, second, NULL))
		return 2;
	for (round = 1; round <= rounds; round++) {
		int old = 0;

		m[0] = round;		/* has a page */
		m[SIZE / 8] = round;
		clock_gettime(CLOCK_MONOTONIC, &at);
		pthread_barrier_wait(&go);
		after(1000000 + 15000 + round % 211 * 701);
		met += inside1 && inside2;
		for (i = 0; i < PAGE / 4; i += LINE) {
			sum += m[i];
			m[i] = 0x10000 + round;
		}
		if (madvise((void *)m, PAGE, MADV_DONTNEED))
			return 2;
		if (file >= 0) {
			memset(words, 0x55, PAGE);
			if (pwrite(file, words, PAGE, 0) != PAGE)
				return 2;
			nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
			if (pread(file, words, PAGE, 0) != PAGE || ftruncate(file, 0))
				return 2;
		}
		for (i = 0; i < PAGE / 4; i += LINE)
			old += file >= 0 ? words[i] != 0x55555555 : m[i] != 0;
		bad += old != 0;
		lines += old;
	}
	printf("%d rounds, %d met both others in their system calls; old words in %d (%d lines)\n",
	       rounds, met, bad, lines);
	return bad != 0 || sum == 1;
}
