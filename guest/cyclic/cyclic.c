// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * cyclic: how late a timer wakes a task, as cyclictest measures it.
 *
 * Each thread sleeps until a time (clock_nanosleep, TIMER_ABSTIME), reads the
 * clock when it runs again, and goes on to the next multiple of its interval
 * that is not over. A latency is the difference, in nanoseconds.
 *
 *   -i US       interval of the first thread (1000)
 *   -d US       how much longer that of each further thread is (500)
 *   -t N        threads (1)
 *   -a CPU      the first thread's processor; each further thread's is the next
 *   -p PRIO     SCHED_FIFO; each further thread's is one lower (0: no real time)
 *   -m          lock memory
 *   -l LOOPS    or -D SECONDS: how long (1000 loops)
 *   -h US       print a histogram of whole microseconds below US, and no samples
 *
 * While it runs, /dev/cpu_dma_latency asks for 0, as cyclictest does. SIGINT
 * ends it with what it has.
 *
 * Output: one line of JSON. "refused" says what could not be set. Exit codes: 0
 * measured, 1 a system call failed, 2 wrong usage.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS	64
#define MAX_LOOPS	10000000
#define MAX_BINS	1000000
#define SECOND_NS	1000000000ll

struct options {
	unsigned int interval_us, distance_us, threads, priority, loops, bins;
	int cpu;
	bool lock;
};

struct thread {
	pthread_t id;
	unsigned int index;
	unsigned int interval_us;
	uint32_t *ns;		/* all latencies, without a histogram */
	uint32_t *bins;
	unsigned int count, overflows;
	uint64_t max_ns, sum_ns;
	uint64_t min_ns;
};

static struct options opt = {
	.interval_us = 1000, .distance_us = 500, .threads = 1, .loops = 1000, .cpu = -1,
};
static struct thread threads[MAX_THREADS];
static volatile sig_atomic_t over;
static volatile bool no_fifo, no_cpu;

static void on_interrupt(int signal)
{
	(void)signal;
	over = 1;
}

static void __attribute__((noreturn)) failed(const char *what)
{
	fprintf(stderr, "cyclic: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t in_ns(const struct timespec *t)
{
	return t->tv_sec * SECOND_NS + t->tv_nsec;
}

static void keep(struct thread *self, uint64_t late_ns)
{
	uint64_t us = late_ns / 1000;

	self->sum_ns += late_ns;
	if (late_ns > self->max_ns)
		self->max_ns = late_ns;
	if (late_ns < self->min_ns)
		self->min_ns = late_ns;
	if (self->ns)
		self->ns[self->count] = late_ns < UINT32_MAX ? (uint32_t)late_ns : UINT32_MAX;
	else if (us < opt.bins)
		self->bins[us]++;
	else
		self->overflows++;
	self->count++;
}

static void become(struct thread *self)
{
	struct sched_param param = { .sched_priority = (int)(opt.priority - self->index) };
	cpu_set_t set;

	if (opt.cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET(opt.cpu + self->index, &set);
		if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
			no_cpu = true;
	}
	if (opt.priority && pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		no_fifo = true;
}

static void *run(void *argument)
{
	struct thread *self = argument;
	const int64_t interval_ns = self->interval_us * 1000ll;
	struct timespec at, now;
	int64_t next;

	become(self);
	clock_gettime(CLOCK_MONOTONIC, &now);
	next = in_ns(&now) + interval_ns;
	while (!over && self->count < opt.loops) {
		at.tv_sec = (time_t)(next / SECOND_NS);
		at.tv_nsec = (long)(next % SECOND_NS);
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR && !over)
			;
		if (over)
			break;
		clock_gettime(CLOCK_MONOTONIC, &now);
		keep(self, (uint64_t)(in_ns(&now) - next));
		do
			next += interval_ns;
		while (next < in_ns(&now));
	}
	return NULL;
}

/* All of it is there before it is written to. */
static uint32_t *words(unsigned int count)
{
	uint32_t *all = malloc(count * sizeof(*all));

	if (!all)
		failed("memory");
	memset(all, 0, count * sizeof(*all));
	return all;
}

static const char *word(bool is)
{
	return is ? "true" : "false";
}

static void print_thread(const struct thread *t)
{
	bool first = true;

	printf("%s{\"interval_us\":%u,\"count\":%u,\"min_ns\":%llu,\"max_ns\":%llu,\"sum_ns\":%llu",
	       t->index ? "," : "", t->interval_us, t->count,
	       (unsigned long long)(t->count ? t->min_ns : 0), (unsigned long long)t->max_ns,
	       (unsigned long long)t->sum_ns);
	if (t->ns) {
		fputs(",\"ns\":[", stdout);
		for (unsigned int n = 0; n < t->count; n++)
			printf("%s%u", n ? "," : "", t->ns[n]);
		fputs("]}", stdout);
		return;
	}
	printf(",\"overflows\":%u,\"us\":[", t->overflows);
	for (unsigned int us = 0; us < opt.bins; us++) {
		if (!t->bins[us])
			continue;
		printf("%s[%u,%u]", first ? "" : ",", us, t->bins[us]);
		first = false;
	}
	fputs("]}", stdout);
}

static void number(unsigned int *to, unsigned int min, unsigned int max, int key)
{
	char *end;
	unsigned long value = strtoul(optarg, &end, 10);

	if (*end || end == optarg || value < min || value > max) {
		fprintf(stderr, "cyclic: -%c %s: not from %u to %u\n", key, optarg, min, max);
		exit(2);
	}
	*to = (unsigned int)value;
}

static void parse(int argc, char **argv)
{
	unsigned int seconds = 0, cpu;
	int c;

	while ((c = getopt(argc, argv, "i:d:t:a:p:ml:D:h:")) != -1) {
		switch (c) {
		case 'i':
			number(&opt.interval_us, 10, 1000000, c);
			break;
		case 'd':
			number(&opt.distance_us, 0, 1000000, c);
			break;
		case 't':
			number(&opt.threads, 1, MAX_THREADS, c);
			break;
		case 'a':
			number(&cpu, 0, CPU_SETSIZE - MAX_THREADS, c);
			opt.cpu = (int)cpu;
			break;
		case 'p':
			number(&opt.priority, 0, 99, c);
			break;
		case 'm':
			opt.lock = true;
			break;
		case 'l':
			number(&opt.loops, 1, MAX_LOOPS, c);
			break;
		case 'D':
			number(&seconds, 1, 86400, c);
			break;
		case 'h':
			number(&opt.bins, 1, MAX_BINS, c);
			break;
		default:
			exit(2);
		}
	}
	if (optind != argc || (opt.priority && opt.threads > opt.priority)) {
		fputs("cyclic: no word behind the options, and -p is at least -t\n", stderr);
		exit(2);
	}
	if (seconds) {
		uint64_t loops = seconds * 1000000ull / opt.interval_us;

		opt.loops = loops < MAX_LOOPS ? (unsigned int)loops : MAX_LOOPS;
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_interrupt };
	bool no_lock, no_dma;
	int32_t latency_us = 0;
	int dma;

	parse(argc, argv);
	sigaction(SIGINT, &action, NULL);
	no_lock = opt.lock && mlockall(MCL_CURRENT | MCL_FUTURE);
	dma = open("/dev/cpu_dma_latency", O_RDWR | O_CLOEXEC);
	no_dma = dma < 0 || write(dma, &latency_us, sizeof(latency_us)) != sizeof(latency_us);
	for (unsigned int n = 0; n < opt.threads; n++) {
		struct thread *t = &threads[n];

		t->index = n;
		t->interval_us = opt.interval_us + n * opt.distance_us;
		t->min_ns = UINT64_MAX;
		if (opt.bins)
			t->bins = words(opt.bins);
		else
			t->ns = words(opt.loops);
	}
	for (unsigned int n = 0; n < opt.threads; n++)
		if (pthread_create(&threads[n].id, NULL, run, &threads[n]))
			failed("a thread");
	/* All end with the first thread, as cyclictest's do. */
	pthread_join(threads[0].id, NULL);
	over = 1;
	for (unsigned int n = 1; n < opt.threads; n++)
		pthread_join(threads[n].id, NULL);
	printf("{\"guest\":\"cyclic\",\"format\":1,\"priority\":%u,", opt.priority);
	printf("\"refused\":{\"fifo\":%s,\"processor\":%s,\"memory_lock\":%s,\"cpu_dma_latency\":%s},\"threads\":[",
	       word(no_fifo), word(no_cpu), word(no_lock), word(no_dma));
	for (unsigned int n = 0; n < opt.threads; n++)
		print_thread(&threads[n]);
	puts("]}");
	return fflush(stdout) ? 1 : 0;
}
