/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * migrated ROUNDS [unread], as root, on a kernel with CONFIG_COMPACTION
 *
 * One thread has all memory compacted (/proc/sys/vm/compact_memory), which moves
 * pages of this process. Another thread wakes in the middle of it. It has the kernel
 * read its pages by process_vm_readv(), and stores to them. Its stores have to be
 * there. With "unread" the kernel does not read them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define PAGES	128
/* Only one of so many stays mapped, so that there is something to compact. */
#define STEP	16
#define LEAD_NS	200000
#define SPAN_NS	20000000

static volatile uint32_t *pages[PAGES];
static struct iovec here[PAGES], there[PAGES];
static uint32_t words[PAGES];
static volatile uint32_t round_number;
static volatile long long wake_ns;
static int unread;
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
	int i;

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters))
		exit(2);
	for (;;) {
		struct timespec at;

		sem_wait(&go);
		at.tv_sec = wake_ns / 1000000000LL;
		at.tv_nsec = wake_ns % 1000000000LL;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		if (!unread)
			process_vm_readv(getpid(), here, PAGES, there, PAGES, 0);
		for (i = 0; i < PAGES; i++)
			pages[i][0] = round_number;
		sem_post(&done);
	}
	return arg;
}

static void map(void)
{
	char *area = mmap(NULL, PAGES * STEP * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	int i;

	if (area == MAP_FAILED)
		exit(2);
	for (i = 0; i < PAGES; i++, area += STEP * PAGE) {
		/* In different lines of the cache. */
		pages[i] = (void *)(area + i * 32 % PAGE);
		pages[i][0] = 0;
		here[i] = (struct iovec) { &words[i], 4 };
		there[i] = (struct iovec) { (void *)pages[i], 4 };
		munmap(area + PAGE, (STEP - 1) * PAGE);
	}
}

static uint64_t frame(int pagemap, int i)
{
	uint64_t entry = 0;

	pread(pagemap, &entry, 8, (off_t)((uintptr_t)pages[i] / PAGE * 8));
	return entry & ((1ull << 55) - 1);
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? atoi(argv[1]) : 50, moved = 0, lost = 0;
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	int compact = open("/proc/sys/vm/compact_memory", O_WRONLY);
	static uint64_t before[PAGES];
	pthread_t thread;
	int i;

	unread = argc > 2;
	sem_init(&go, 0, 0);
	sem_init(&done, 0, 0);
	if (compact < 0 || pthread_create(&thread, NULL, storer, NULL))
		return 2;
	for (round_number = 1; round_number <= rounds; round_number++) {
		long long start;

		map();
		for (i = 0; i < PAGES; i++)
			before[i] = frame(pagemap, i);
		start = now() + LEAD_NS;
		wake_ns = start + round_number * 102947LL % SPAN_NS;
		sem_post(&go);
		while (now() < start)
			;
		if (write(compact, "1", 1) != 1)
			return 2;
		sem_wait(&done);
		for (i = 0; i < PAGES; i++) {
			lost += pages[i][0] != round_number;
			moved += frame(pagemap, i) != before[i];
			munmap((void *)((uintptr_t)pages[i] & -PAGE), PAGE);
		}
	}
	printf("%u rounds, moved: %u, lost stores: %u\n", rounds, moved, lost);
	return lost != 0;
}
