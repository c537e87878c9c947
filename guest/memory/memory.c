// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * memory: what a load waits for, over the size of what is loaded, and bandwidth.
 *
 *   memory [-m MAX_KB] [-l STRIDE] [-r SAMPLES] [-t MS] [-s SEED]
 *
 * Latency: a chain through all lines of a working set, each line once, in
 * random order (Sattolo's algorithm, SEED), so that no load begins before the
 * one before it is done and no prefetcher knows what comes. A sample follows it for at
 * least MS milliseconds. TLB misses are in it: pages are the system's.
 *
 * Bandwidth: reading every word, memset() and memcpy() over as much, copy
 * within the working set; in MB (10^6 bytes) a second, of what is read, written
 * or copied.
 *
 * Output: one line of JSON. SIGINT ends it with the sizes it has. Exit codes: 0
 * measured, 1 a system call failed, 2 wrong usage.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MIN_KB		1u
#define LIMIT_KB	(1u << 20)
#define MAX_SAMPLES	64

/* Loads, and bytes, between two looks at the clock, which takes 5 us on an ARM9. */
#define CHUNK		65536
#define BETWEEN		(1u << 20)

static unsigned int max_kb = 32 * 1024, stride = 64, samples = 5, ms = 5, seed = 1;
static volatile sig_atomic_t over;
static char *buffer;
static volatile uintptr_t sink;

static void on_interrupt(int signal)
{
	(void)signal;
	over = 1;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint32_t random_below(uint32_t *state, uint32_t limit)
{
	*state = *state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)*state * limit >> 32);
}

static void **line(size_t n)
{
	return (void **)(buffer + n * stride);
}

/* Each line holds the address of the next; the only cycle goes through all. */
static void make_chain(size_t count)
{
	uint32_t state = seed;

	for (size_t n = 0; n < count; n++)
		*line(n) = line(n);
	for (size_t n = count - 1; n > 0; n--) {
		size_t other = random_below(&state, (uint32_t)n);
		void *swap = *line(n);

		*line(n) = *line(other);
		*line(other) = swap;
	}
}

/* Nanoseconds a load. */
static double latency(size_t bytes)
{
	size_t count = bytes / stride, loads = 0;
	void **at = line(0);
	uint64_t start, ns;

	/* Once around to warm up. */
	for (size_t n = 0; n < count; n++)
		at = *at;
	start = now_ns();
	do {
		for (int n = 0; n < CHUNK / 8; n++) {
			at = *at;
			at = *at;
			at = *at;
			at = *at;
			at = *at;
			at = *at;
			at = *at;
			at = *at;
		}
		loads += CHUNK;
		ns = now_ns() - start;
	} while (ns < ms * 1000000ull);
	sink = (uintptr_t)at;
	return (double)ns / (double)loads;
}

static void read_all(size_t bytes)
{
	const unsigned long *at = (const void *)buffer, *end = (const void *)(buffer + bytes);
	unsigned long sum = 0;

	for (; at < end; at += 8)
		sum += at[0] + at[1] + at[2] + at[3] + at[4] + at[5] + at[6] + at[7];
	sink = sum;
}

static void write_all(size_t bytes)
{
	memset(buffer, 0x5a, bytes);
}

static void copy_half(size_t bytes)
{
	memcpy(buffer, buffer + bytes / 2, bytes / 2);
}

/* MB a second of a pass that moves `moved` bytes. */
static double bandwidth(void (*pass)(size_t), size_t bytes, size_t moved)
{
	uint64_t start, ns, passes = 0;

	pass(bytes);
	start = now_ns();
	do {
		/* Small ones several times between two looks at the clock. */
		for (size_t done = 0; done < BETWEEN; done += bytes, passes++) {
			pass(bytes);
			__asm__ volatile("" : : : "memory");
		}
		ns = now_ns() - start;
	} while (ns < ms * 1000000ull);
	return (double)passes * (double)moved * 1e3 / (double)ns;
}

static void print(const char *key, const double *values)
{
	printf(",\"%s\":[", key);
	for (unsigned int n = 0; n < samples; n++)
		printf("%s%.3f", n ? "," : "", values[n]);
	putchar(']');
}

static void size(unsigned int kb, int first)
{
	size_t bytes = kb * 1024ul;
	double ns[MAX_SAMPLES], reading[MAX_SAMPLES], writing[MAX_SAMPLES], copying[MAX_SAMPLES];

	make_chain(bytes / stride);
	for (unsigned int n = 0; n < samples; n++)
		ns[n] = latency(bytes);
	for (unsigned int n = 0; n < samples; n++) {
		reading[n] = bandwidth(read_all, bytes, bytes);
		writing[n] = bandwidth(write_all, bytes, bytes);
		copying[n] = bandwidth(copy_half, bytes, bytes / 2);
	}
	printf("%s{\"kb\":%u", first ? "" : ",", kb);
	print("load_ns", ns);
	print("read_mb_s", reading);
	print("write_mb_s", writing);
	print("copy_mb_s", copying);
	putchar('}');
}

static unsigned int number(int key, unsigned int min, unsigned int max)
{
	char *end;
	unsigned long value = strtoul(optarg, &end, 10);

	if (*end || end == optarg || value < min || value > max) {
		fprintf(stderr, "memory: -%c %s: not from %u to %u\n", key, optarg, min, max);
		exit(2);
	}
	return (unsigned int)value;
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "m:l:r:t:s:")) != -1) {
		switch (c) {
		case 'm':
			max_kb = number(c, MIN_KB, LIMIT_KB);
			break;
		case 'l':
			stride = number(c, sizeof(void *), 1024);
			break;
		case 'r':
			samples = number(c, 1, MAX_SAMPLES);
			break;
		case 't':
			ms = number(c, 1, 10000);
			break;
		case 's':
			seed = number(c, 0, UINT32_MAX);
			break;
		default:
			exit(2);
		}
	}
	if (optind != argc || stride & (stride - 1)) {
		fputs("usage: memory [-m MAX_KB] [-l STRIDE] [-r SAMPLES] [-t MS] [-s SEED], STRIDE a power of two\n", stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_interrupt };

	parse(argc, argv);
	sigaction(SIGINT, &action, NULL);
	buffer = mmap(NULL, max_kb * 1024ul, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffer == MAP_FAILED) {
		fprintf(stderr, "memory: %u KB: %s\n", max_kb, strerror(errno));
		return 1;
	}
	memset(buffer, 1, max_kb * 1024ul);
	printf("{\"guest\":\"memory\",\"format\":1,\"stride\":%u,\"seed\":%u,\"ms\":%u,\"sizes\":[", stride, seed, ms);
	/* 1, 2, 3, 4, 6, 8 ... KB. */
	for (unsigned int kb = MIN_KB; kb <= max_kb && !over; kb *= 2) {
		size(kb, kb == MIN_KB);
		if (kb > 1 && kb * 3 / 2 <= max_kb && !over)
			size(kb * 3 / 2, 0);
	}
	printf("],\"interrupted\":%s}\n", over ? "true" : "false");
	return fflush(stdout) ? 1 : 0;
}
