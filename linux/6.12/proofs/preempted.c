/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One thread has the kernel change an entry of a page table. Another one, of higher
 * priority, comes in between the flush of the caches, the change and the flush of the
 * TLB. A lock keeps it out, but on PREEMPT_RT. `preempted MODE ROUNDS`, as root:
 *
 *   copy    a page is copied on write, and the other reads it meanwhile: its lines
 *           must not go back to the page that another process has
 *   enter   a file's pages are entered, and the other reads them before the kernel
 *           has flushed what it wrote
 *   alias   a shared page is entered at a second address, and the other reads there
 *           what is dirty under the first
 *   move    pages are moved by mremap(), and the other writes at the old address and
 *           reads at the new one
 *
 * The other wakes up at times that wander through the call. A round is met when the
 * call was neither over nor yet begun.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define WORDS	(PAGE / 4)
#define LINE	8		/* words */
#define RW	(PROT_READ | PROT_WRITE)
#define TABLE	(1 << 20)	/* what one page table maps is not smaller */
#define PAGES	64		/* that are moved */
#define FILE_PAGES 2		/* what the kernel has of them fits into the cache */
#define LOOKED_AT 32		/* of these, one a round */
#define SWEEP	(64 * PAGE / 4)	/* words, more than a cache has */
#define NS	1000000000LL
#define FIRST_NS 200000		/* until the call begins */

struct mode {
	const char *name;
	void (*prepare)(uint32_t round);
	/* What the other does first, so that its entries are in the TLB. */
	void (*warm)(uint32_t round);
	void (*call)(uint32_t round);
	/* What it does in the middle: false, and something is wrong. */
	bool (*meet)(uint32_t round);
	/* Behind the call. */
	bool (*judge)(uint32_t round);
};

static volatile uint32_t *at, *elsewhere;
static int file, look[2];
static pid_t child;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static void *map(void *where, size_t bytes, int flags, int fd)
{
	void *mapped = mmap(where, bytes, RW, flags, fd, 0);

	must(mapped != MAP_FAILED, "mmap");
	return mapped;
}

static volatile uint32_t *anonymous(size_t bytes)
{
	return map(NULL, bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* Reads until nothing of before is in the D-cache. */
static void sweep(void)
{
	static volatile uint32_t words[SWEEP];
	unsigned int i;

	words[0] = 1;
	for (i = 0; i < SWEEP; i += LINE)
		(void)words[i];
}

/* Only a read takes the line in. */
static void dirty(volatile uint32_t *words, unsigned int count, uint32_t value)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (words[i] != value)
			words[i] = value;
}

static bool all_are(volatile uint32_t *words, unsigned int count, uint32_t value)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (words[i] != value)
			return false;
	return true;
}

/* copy: a child has the page, too, and looks at it when it is told. */
static void share_with_child(uint32_t round)
{
	char byte;

	if (!at)
		at = anonymous(PAGE);
	dirty(at, WORDS, round);
	child = fork();
	must(child >= 0, "fork");
	if (child)
		return;
	if (read(look[0], &byte, 1) != 1)
		_exit(2);
	sweep();
	_exit(!all_are(at, WORDS, round));
}

static void copy_on_write(uint32_t round)
{
	at[0] = ~round;
}

static bool read_lines(uint32_t round)
{
	unsigned int i;

	for (i = 0; i < WORDS; i += LINE)
		(void)at[i + 1];
	(void)round;
	return true;
}

static bool child_has_its_own(uint32_t round)
{
	int status;

	dirty(at, WORDS, ~round);
	sweep();
	must(write(look[1], "", 1) == 1, "write");
	must(waitpid(child, &status, 0) == child, "waitpid");
	return !status && all_are(at, WORDS, ~round);
}

/* enter: pages that the kernel has dirty lines of. */
static void write_file(uint32_t round)
{
	static uint32_t words[WORDS];
	unsigned int i;

	for (i = 0; i < WORDS; i++)
		words[i] = round;
	if (at)
		munmap((void *)at, FILE_PAGES * PAGE);
	sweep();
	for (i = 0; i < FILE_PAGES; i++) {
		static uint32_t old[WORDS];

		must(pread(file, old, PAGE, i * PAGE) == PAGE, "pread");
		must(pwrite(file, words, PAGE, i * PAGE) == PAGE, "pwrite");
	}
	at = map((void *)at, FILE_PAGES * PAGE, MAP_PRIVATE, file);
}

static void read_file(uint32_t round)
{
	(void)round;
	(void)at[0];
}

static bool file_is_new(uint32_t round)
{
	unsigned int i;

	for (i = FILE_PAGES * WORDS; i; i -= LINE)
		if (at[i - 1] != round)
			return false;
	return true;
}

/* alias: a page that is dirty under its first address. */
static void map_twice(uint32_t round)
{
	if (at) {
		munmap((void *)at, PAGE);
		munmap((void *)elsewhere, PAGE);
	}
	at = map(NULL, PAGE, MAP_SHARED, file);
	elsewhere = map(NULL, PAGE, MAP_SHARED, file);
	dirty(at, WORDS, round);
}

static void enter_alias(uint32_t round)
{
	(void)round;
	(void)elsewhere[0];
}

static bool alias_is_new(uint32_t round)
{
	unsigned int i;

	for (i = WORDS; i; i -= LINE)
		if (elsewhere[i - 1] != round)
			return false;
	return true;
}

/* move: from one range to another one and back. */
static void to_be_moved(uint32_t round)
{
	static char *all;
	unsigned int i;

	if (!all) {
		all = mmap(NULL, 4 * TABLE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		must(all != MAP_FAILED, "mmap");
		all = (char *)(((uintptr_t)all + TABLE - 1) & -(uintptr_t)TABLE);
	}
	at = map(all, PAGES * PAGE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
	elsewhere = (volatile uint32_t *)(all + TABLE);
	munmap((void *)elsewhere, PAGES * PAGE);
	for (i = 0; i < PAGES; i++)
		at[i * WORDS] = ~round;
}

/* Which page: the kernel's own TLB entries push some out. */
static unsigned int of_page(uint32_t round)
{
	return round % LOOKED_AT * WORDS;
}

static void touch(uint32_t round)
{
	(void)at[of_page(round)];
}

static void move(uint32_t round)
{
	(void)round;
	must(mremap((void *)at, PAGES * PAGE, PAGES * PAGE,
		    MREMAP_MAYMOVE | MREMAP_FIXED, (void *)elsewhere) == elsewhere, "mremap");
}

static sigjmp_buf gone;

static void on_fault(int number)
{
	(void)number;
	siglongjmp(gone, 1);
}

static bool written_is_moved(uint32_t round)
{
	unsigned int i = of_page(round);

	/* Who faults waits for the end of the call. */
	if (sigsetjmp(gone, 1))
		return true;
	dirty(at + i, 1, round);
	return elsewhere[i] == round;
}

static const struct mode modes[] = {
	{ "copy", share_with_child, NULL, copy_on_write, read_lines, child_has_its_own },
	{ "enter", write_file, NULL, read_file, file_is_new, NULL },
	{ "alias", map_twice, NULL, enter_alias, alias_is_new, NULL },
	{ "move", to_be_moved, touch, move, written_is_moved, NULL },
};

static const struct mode *mode;
static sem_t ready, go, done;
static struct timespec wake;
static uint32_t number;
static volatile bool inside, met, right;

static void *other(void *arg)
{
	for (;;) {
		sem_wait(&go);
		if (mode->warm)
			mode->warm(number);
		sem_post(&ready);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL);
		met = inside;
		right = !met || mode->meet(number);
		sem_post(&done);
	}
	return arg;
}

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * NS + time.tv_nsec;
}

static struct timespec time_of(long long ns)
{
	return (struct timespec){ ns / NS, ns % NS };
}

/* One round; *alone is the shortest time that the call took without the other. */
static bool round_of(uint32_t round, long long *alone)
{
	long long start, end, early = FIRST_NS / 2;
	bool ok = true;

	number = round;
	mode->prepare(round);
	start = now() + 2 * FIRST_NS;
	wake = time_of(start - early + (long long)round * 7919 % (*alone + *alone / 2 + early));
	sem_post(&go);
	sem_wait(&ready);
	while (now() < start)
		;
	inside = true;
	mode->call(round);
	inside = false;
	end = now();
	sem_wait(&done);
	if (!met && (!*alone || end - start < *alone))
		*alone = end - start;
	if (mode->judge)
		ok = mode->judge(round);
	return ok && right;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 1000, all_met = 0, wrong = 0, round;
	struct sched_param first = { .sched_priority = 50 };
	long long alone = 0;
	pthread_attr_t attr;
	pthread_t thread;

	for (mode = modes; argc > 1 && strcmp(mode->name, argv[1]); mode++)
		if (mode == modes + sizeof(modes) / sizeof(*modes) - 1)
			argc = 1;
	if (argc < 2) {
		fprintf(stderr, "usage: preempted copy|enter|alias|move [ROUNDS]\n");
		return 2;
	}
	file = memfd_create("file", 0);
	must(file >= 0 && !ftruncate(file, FILE_PAGES * PAGE), "memfd_create");
	must(!pipe(look), "pipe");
	must(!mlockall(MCL_CURRENT), "mlockall");
	signal(SIGSEGV, on_fault);
	sem_init(&ready, 0, 0);
	sem_init(&go, 0, 0);
	sem_init(&done, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &first);
	must(!pthread_create(&thread, &attr, other, NULL), "pthread_create");
	for (round = 1; round <= rounds; round++) {
		wrong += !round_of((uint32_t)round, &alone);
		all_met += met;
	}
	printf("%s: %d rounds, %d met the call (%lld us), wrong in %d\n", mode->name,
	       rounds, all_met, alone / 1000, wrong);
	return wrong != 0;
}
