/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A process of one thread preempts ksmd, the kernel thread that merges pages of equal
 * content, in the middle of its page, and stores to the page. `ksm_store ROUNDS FROM_US
 * TO_US [LINE]`, as root: it wakes up at times that wander from FROM_US to TO_US behind
 * the beginning of a scan, which takes one page of zeros, and stores to a line of it.
 * Says in how many rounds the store is lost when the scan is over.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define WORDS	(PAGE / 4)
#define LINE	8		/* words */
#define SWEEP	(64 * PAGE / 4)	/* words, more than a cache has */
#define NS	1000000000LL
#define MS	1000000LL

static int asleep, scans;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static int file(const char *name, int flags)
{
	char path[100];
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/mm/ksm/%s", name);
	fd = open(path, flags);
	must(fd >= 0, path);
	return fd;
}

static void put(int fd, int value)
{
	char text[20];

	snprintf(text, sizeof(text), "%d\n", value);
	must(pwrite(fd, text, strlen(text), 0) > 0, "write");
}

static void set(const char *name, int value)
{
	int fd = file(name, O_WRONLY);

	put(fd, value);
	close(fd);
}

static long scans_done(void)
{
	char text[32] = "";

	must(pread(scans, text, sizeof(text) - 1, 0) > 0, "read");
	return atol(text);
}

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

static void until(long long ns)
{
	struct timespec t = { ns / NS, ns % NS };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* By reading: nothing of before is in the D-cache any more. */
static void sweep(void)
{
	static volatile uint32_t words[SWEEP];
	unsigned int i;

	words[0] = 1;
	for (i = 0; i < SWEEP; i += LINE)
		(void)words[i];
}

/* Another time for its sleep wakes ksmd. */
static void begin_scan(void)
{
	static int odd;

	odd ^= 1;
	put(asleep, 1000000 + odd);
}

static void end_scan(long before)
{
	while (scans_done() == before)
		until(now() + MS);
	/* It goes to sleep. */
	until(now() + MS);
}

static bool stays(volatile uint32_t *at, volatile uint32_t *word, uint32_t value,
		  long long delay)
{
	long long start;
	unsigned int i;
	long before;

	/* What changed since the last scan is not merged yet. */
	at[0] = 1;
	for (i = 0; i < WORDS; i++)
		at[i] = 0;
	before = scans_done();
	begin_scan();
	end_scan(before);
	before = scans_done();
	sweep();
	start = now();
	begin_scan();
	until(start + delay);
	sweep();
	/* Only a read takes the line in. */
	if (*word != value)
		*word = value;
	until(start + 3 * MS);
	end_scan(before);
	return *word == value;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000, round, lost = 0;
	long long from = argc > 2 ? atoll(argv[2]) * 1000 : 0;
	long long span = (argc > 3 ? atoll(argv[3]) * 1000 : MS) - from;
	struct sched_param first = { .sched_priority = 50 };
	volatile uint32_t *at, *word;

	if (span <= 0) {
		fprintf(stderr, "usage: ksm_store ROUNDS FROM_US TO_US [LINE]\n");
		return 2;
	}
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(at != MAP_FAILED, "mmap");
	word = at + (argc > 4 ? atoi(argv[4]) % (WORDS / LINE) : 0) * LINE;
	must(!madvise((void *)at, PAGE, MADV_MERGEABLE), "madvise");
	must(!mlockall(MCL_CURRENT), "mlockall");
	set("smart_scan", 0);
	set("use_zero_pages", 1);
	set("pages_to_scan", 10);
	set("sleep_millisecs", 1000000);
	asleep = file("sleep_millisecs", O_WRONLY);
	scans = file("full_scans", O_RDONLY);
	must(!sched_setscheduler(0, SCHED_FIFO, &first), "sched_setscheduler");
	set("run", 1);
	until(now() + 200 * MS);
	for (round = 1; round <= rounds; round++)
		lost += !stays(at, word, 0x10000 + round, from + round * 102947LL % span);
	printf("%d rounds, the store is lost in %d\n", rounds, lost);
	set("run", 2);
	return lost != 0;
}
