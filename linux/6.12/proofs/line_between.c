/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Somebody has the lines of a page cleaned and invalidated, again and again. Another
 * writes to each of those lines after a while. On an XScale a line is cleaned by one
 * instruction and invalidated by the next one. Who is preempted between the two must
 * not throw away afterwards what was written to that line meanwhile.
 *
 * line_between ROUNDS [threads|gives], an ordinary user's. Two processes, or threads:
 * one reads a file that the other has mapped for writing, who takes the mapping away
 * and then writes by write(2), to the kernel's lines. Or two threads, of which one
 * gives back a page by madvise() and the other stores to the page before it. Between
 * threads no kernel flushes anything.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define WORDS	(PAGE / 4)
#define LINE	8	/* words */

static int file;
static volatile int *inside;	/* the other is in its system call */

static volatile uint32_t *page;	/* the threads' */

/* Reads a word at a time, so that nearly all of it is the flush before. */
static void *reader(void *arg)
{
	uint32_t word;

	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19);
	for (;;) {
		*inside = 1;
		if (pread(file, &word, 4, PAGE - 4) != 4)
			exit(2);
		*inside = 0;
	}
	return arg;
}

/* Gives back the page behind, for which all of the mapping is flushed. */
static void *giver(void *arg)
{
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19);
	for (;;) {
		*inside = 1;
		if (madvise((char *)page + PAGE, PAGE, MADV_DONTNEED))
			exit(2);
		*inside = 0;
	}
	return arg;
}

static void start(void *(*other)(void *), int threads)
{
	pthread_t thread;
	pid_t parent = getpid();

	if (threads) {
		if (pthread_create(&thread, NULL, other, NULL))
			exit(2);
		return;
	}
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		exit(2);
	other(NULL);
}

/* Loads before it stores: a store alone allocates no line. */
static int write_all(volatile uint32_t *mapped, uint32_t number)
{
	static uint32_t words[WORDS];
	int i;

	if (!file) {
		for (i = 0; i < WORDS; i += LINE)
			if (mapped[i] != number)
				mapped[i] = number;
		return 0;
	}
	munmap((void *)mapped, PAGE);
	if (pread(file, words, PAGE, 0) != PAGE)
		return -1;
	for (i = 0; i < WORDS; i += LINE)
		words[i] = number;
	return pwrite(file, words, PAGE, 0) == PAGE ? 0 : -1;
}

/* How many lines have another number. */
static int others(volatile uint32_t *mapped, uint32_t number)
{
	static uint32_t words[WORDS];
	int i, count = 0;

	if (file && pread(file, words, PAGE, 0) != PAGE)
		return WORDS;
	for (i = 0; i < WORDS; i += LINE)
		count += (file ? words[i] : mapped[i]) != number;
	return count;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000, round, met = 0, lost = 0;
	int gives = argc > 2 && !strcmp(argv[2], "gives");

	inside = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* Alone: for a large mapping all of the cache is flushed, in another way. */
	page = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (inside == MAP_FAILED || page == MAP_FAILED)
		return 2;
	page += WORDS;
	if (mprotect((void *)page, 2 * PAGE, PROT_READ | PROT_WRITE))
		return 2;
	if (!gives && ((file = memfd_create("file", 0)) < 0 || ftruncate(file, PAGE)))
		return 2;
	prctl(PR_SET_TIMERSLACK, 1);
	start(gives ? giver : reader, argc > 2);
	for (round = 1; round <= rounds; round++) {
		volatile uint32_t *mapped = page;
		/* Steps that have no common divisor with the other's round. */
		struct timespec pause = { 0, 150000 + round % 97 * 211 };

		if (file)
			mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		if (mapped == MAP_FAILED)
			return 2;
		mapped[1] = round;
		nanosleep(&pause, NULL);
		met += *inside;
		if (write_all(mapped, round))
			return 2;
		nanosleep(&pause, NULL);
		lost += others(mapped, round) != 0;
	}
	printf("%d rounds, %d met the other in its system call; what was written is lost in %d\n",
	       rounds, met, lost);
	return lost != 0;
}
