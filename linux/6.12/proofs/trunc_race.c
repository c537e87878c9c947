/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * trunc_race ROUNDS FROM_US TO_US cut|hole, as root for SCHED_FIFO
 *
 * One thread cuts a file inside a page, or punches a hole that ends inside one.
 * Another thread wakes FROM_US to TO_US behind the call's begin. It stores through
 * a mapping to a word that stays, in the line where the cut is; it never touches
 * what is cut off. Then the old words behind the cut have to be gone, and the
 * thread's store has to be there.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define WORDS	(PAGE / 4)
#define LEAD_NS	100000

static volatile uint32_t *page;
static volatile uint32_t round_number;
static volatile long long wake_ns;
static unsigned int stays, goes;	/* words of one line */
static sem_t go, done;

static long long now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void *storer(void *arg)
{
	struct sched_param parameters = { 50 };

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters))
		exit(2);
	for (;;) {
		struct timespec at;

		sem_wait(&go);
		at.tv_sec = wake_ns / 1000000000LL;
		at.tv_nsec = wake_ns % 1000000000LL;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		(void)page[stays];
		page[stays] = round_number;
		sem_post(&done);
	}
	return arg;
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? atoi(argv[1]) : 1000, old = 0, lost = 0;
	long long from = (argc > 2 ? atoi(argv[2]) : 0) * 1000LL;
	long long to = (argc > 3 ? atoi(argv[3]) : 200) * 1000LL;
	int hole = argc > 4 && !strcmp(argv[4], "hole");
	int file = memfd_create("file", 0);
	pthread_t thread;

	/* The hole is the second page but for its last word. */
	stays = hole ? WORDS - 1 : 256;
	goes = hole ? WORDS - 4 : 258;
	if (file < 0 || ftruncate(file, 2 * PAGE))
		return 2;
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file,
		    hole ? PAGE : 0);
	if (page == MAP_FAILED || mlockall(MCL_CURRENT))
		return 2;
	sem_init(&go, 0, 0);
	sem_init(&done, 0, 0);
	if (pthread_create(&thread, NULL, storer, NULL))
		return 2;
	for (round_number = 1; round_number <= rounds; round_number++) {
		long long start;
		uint32_t word;

		(void)page[goes];
		page[goes] = 0xabc00000 + round_number;
		start = now() + LEAD_NS;
		wake_ns = start + from +
			  (to > from ? round_number * 102947LL % (to - from) : 0);
		sem_post(&go);
		while (now() < start)
			;
		if (hole ? fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     PAGE, PAGE - 4) :
			   ftruncate(file, (stays + 1) * 4))
			return 2;
		sem_wait(&done);
		if (ftruncate(file, 2 * PAGE) ||
		    pread(file, &word, 4, goes * 4 + (hole ? PAGE : 0)) != 4)
			return 2;
		old += page[goes] || word;
		lost += page[stays] != round_number;
	}
	printf("%u rounds, old words back in %u, stores lost in %u\n", rounds, old,
	       lost);
	return old || lost;
}
