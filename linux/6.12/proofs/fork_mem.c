/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fork_mem TRIES, as root
 *
 * A process maps /dev/mem over a large area of its own. Another of its threads
 * forks while that area is being taken away: the child's address space is copied
 * before the mapping is there, its mappings behind it. Then a third process stores
 * to a page of its own, again and again, and the child looks at it by /dev/mem.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define AREA	(2 << 20)
#define WORDS	64
#define STORES	20
#define LEAD_NS	1000000
#define SPAN_NS	3000000
/* In the area before it is mapped. */
#define OWN	0xaaaaaaaa
#define EARLY	UINT32_MAX

static int ask[2], answer[2];
static volatile uint32_t *area;
static off_t phys;
static long long start, delay_ns;
static pthread_barrier_t both;

static void die(const char *what)
{
	perror(what);
	_exit(2);
}

static long long now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void look(void)
{
	struct sched_param usual = { 0 };
	uint32_t word, wrong, i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sched_setscheduler(0, SCHED_OTHER, &usual);
	while (read(ask[0], &word, 4) == 4 && word) {
		for (i = wrong = 0; i < WORDS; i++)
			wrong += area[i] != word + i;
		if (area[0] == OWN)
			wrong = EARLY;
		if (write(answer[1], &wrong, 4) != 4)
			break;
	}
	_exit(0);
}

static void *forker(void *arg)
{
	struct sched_param parameters = { 50 };
	struct timespec at;
	pid_t child;

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters))
		die("SCHED_FIFO");
	pthread_barrier_wait(&both);
	at.tv_sec = (start + delay_ns) / 1000000000LL;
	at.tv_nsec = (start + delay_ns) % 1000000000LL;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	child = fork();
	if (!child)
		look();
	waitpid(child, NULL, 0);
	return arg;
}

static void mapper(void)
{
	int mem = open("/dev/mem", O_RDWR);
	pthread_t thread;

	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (mem < 0 || area == MAP_FAILED)
		die("/dev/mem");
	area[0] = OWN;
	pthread_barrier_init(&both, NULL, 2);
	if (pthread_create(&thread, NULL, forker, NULL))
		die("pthread_create");
	start = now() + LEAD_NS;
	pthread_barrier_wait(&both);
	while (now() < start)
		;
	if (mmap((void *)area, AREA, PROT_READ, MAP_SHARED | MAP_FIXED, mem,
		 phys) == MAP_FAILED)
		die("mmap");
	pthread_join(thread, NULL);
	_exit(0);
}

/* Stores, and what the child saw of them: whether it was forked too early, or words that are old. */
static uint32_t seen(volatile uint32_t *page, uint32_t try)
{
	uint32_t word, wrong, old = 0, i, k;

	for (k = 1; k <= STORES; k++) {
		word = (try * STORES + k) << 12;
		for (i = 0; i < WORDS; i++)
			(void)page[i];
		for (i = 0; i < WORDS; i++)
			page[i] = word + i;
		if (write(ask[1], &word, 4) != 4 || read(answer[0], &wrong, 4) != 4)
			die("the child");
		if (wrong == EARLY)
			return EARLY;
		old += wrong;
	}
	return old;
}

int main(int argc, char **argv)
{
	unsigned int tries = argc > 1 ? atoi(argv[1]) : 20, try, have = 0, old = 0;
	volatile uint32_t *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	uint64_t frame = 0;
	uint32_t found;

	if (page == MAP_FAILED || madvise((void *)page, PAGE, MADV_DONTFORK))
		die("a page");
	*page = 1;
	pread(pagemap, &frame, 8, (off_t)((uintptr_t)page / PAGE * 8));
	phys = (off_t)((frame & ((1ull << 55) - 1)) * PAGE);
	for (try = 1; try <= tries; try++) {
		pid_t child;

		if (!phys || pipe(ask) || pipe(answer))
			die("begin");
		delay_ns = try * 102947LL % SPAN_NS;
		child = fork();
		if (!child)
			mapper();
		close(answer[1]);
		close(ask[0]);
		usleep(20000);
		found = seen(page, try);
		have += found != EARLY;
		old += found != EARLY && found;
		found = 0;
		write(ask[1], &found, 4);
		close(ask[1]);
		close(answer[0]);
		waitpid(child, NULL, 0);
	}
	printf("%u tries, children with the mapping: %u, with old words: %u\n", tries,
	       have, old);
	return old != 0;
}
