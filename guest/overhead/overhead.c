// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * overhead: what switches cost two tasks that work, beside the switch itself, by
 * the formula of the paper of 2007.
 *
 *   overhead [-n PIECES] [-k KB] [-r SAMPLES] FIRST SECOND TURNS...
 *
 * Two processes do PIECES pieces of work each, on KB of data, FIRST and SECOND
 * being sort, deflate, aes or crc. They hand the processor to each other by a
 * pipe: in TURNS turns each, of equal size, which is 2 * TURNS - 1 switches
 * until all is done. The time is from the first piece to the last one's end.
 * "hop" is a switch without work: many turns of no piece at all.
 *
 * With R the time in 1 turn each (1 switch), R' that in more, n switches and C
 * a hop, the indirect overhead is I = R' - (R - C) - n C.
 *
 * Whoever calls it sees to it that both run on one processor. Output: one line
 * of JSON, times in nanoseconds. Samples of all numbers of turns are taken in
 * rotation. Exit codes: 0 measured, 1 a system call failed, 2 wrong usage.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

#define MAX_TURNS	16
#define MAX_SAMPLES	64
#define MAX_PIECES	100000
#define MAX_KB		1024
#define HOPS		1000

/* In memory of both. */
struct shared {
	uint64_t end_ns;
	uint32_t sums;
};

static struct shared *shared;
static const struct work *works[2];
static int there[2], back[2];
static unsigned int pieces = 64, kb = 16, samples = 11;
static unsigned int turns[MAX_TURNS], turn_count;
static uint64_t times_ns[MAX_TURNS][MAX_SAMPLES];

static void __attribute__((noreturn)) failed(const char *what)
{
	fprintf(stderr, "overhead: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint32_t do_pieces(const struct work *work, unsigned int count)
{
	uint32_t sum = 0;

	while (count--)
		sum += work->piece();
	return sum;
}

static void give(int fd, unsigned int count)
{
	if (write(fd, &count, sizeof(count)) != sizeof(count))
		failed("write");
}

/* The second process: as many pieces as it is told, until there is nobody left. */
static void __attribute__((noreturn)) second(void)
{
	unsigned int count;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(there[1]);
	while (read(there[0], &count, sizeof(count)) == sizeof(count)) {
		shared->sums += do_pieces(works[1], count);
		shared->end_ns = now_ns();
		give(back[1], count);
	}
	_exit(0);
}

/* Until the second process has done its last piece. */
static uint64_t time_of(unsigned int turns_each, unsigned int pieces_each)
{
	uint64_t start = now_ns();
	unsigned int count;

	for (unsigned int n = 0; n < turns_each; n++) {
		shared->sums += do_pieces(works[0], pieces_each);
		give(there[1], pieces_each);
		if (read(back[0], &count, sizeof(count)) != sizeof(count))
			failed("read");
	}
	return shared->end_ns - start;
}

static void print_times(const uint64_t *times)
{
	for (unsigned int n = 0; n < samples; n++)
		printf("%s%llu", n ? "," : "", (unsigned long long)times[n]);
}

static unsigned int number(const char *text, unsigned int max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || end == text || value < 1 || value > max) {
		fprintf(stderr, "overhead: \"%s\" is not from 1 to %u\n", text, max);
		exit(2);
	}
	return (unsigned int)value;
}

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: overhead [-n PIECES] [-k KB] [-r SAMPLES] FIRST SECOND TURNS...\n"
	      "works are sort, deflate, aes, crc; TURNS divide PIECES, and 1 is among them\n", stderr);
	exit(2);
}

static void parse(int argc, char **argv)
{
	unsigned int ones = 0;
	int c;

	while ((c = getopt(argc, argv, "n:k:r:")) != -1) {
		if (c == 'n')
			pieces = number(optarg, MAX_PIECES);
		else if (c == 'k')
			kb = number(optarg, MAX_KB);
		else if (c == 'r')
			samples = number(optarg, MAX_SAMPLES);
		else
			usage();
	}
	if (argc - optind < 3 || argc - optind - 2 > MAX_TURNS)
		usage();
	for (int n = 0; n < 2; n++) {
		works[n] = work_find(argv[optind + n]);
		if (!works[n])
			usage();
	}
	for (int n = optind + 2; n < argc; n++) {
		turns[turn_count] = number(argv[n], pieces);
		if (pieces % turns[turn_count])
			usage();
		ones += turns[turn_count++] == 1;
	}
	if (!ones)
		usage();
}

int main(int argc, char **argv)
{
	uint64_t hops_ns[MAX_SAMPLES];
	pid_t pid;

	parse(argc, argv);
	work_prepare(kb * 1024u);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || pipe(there) || pipe(back))
		failed("memory or a pipe");
	pid = fork();
	if (pid < 0)
		failed("fork");
	if (pid == 0)
		second();
	/* Once round to warm up. */
	time_of(1, pieces);
	for (unsigned int s = 0; s < samples; s++) {
		for (unsigned int t = 0; t < turn_count; t++)
			times_ns[t][s] = time_of(turns[t], pieces / turns[t]);
		hops_ns[s] = time_of(HOPS, 0);
	}
	close(there[1]);
	waitpid(pid, NULL, 0);
	printf("{\"guest\":\"overhead\",\"format\":1,\"first\":\"%s\",\"second\":\"%s\",\"pieces\":%u,\"kb\":%u,\"sums\":%lu,",
	       works[0]->name, works[1]->name, pieces, kb, (unsigned long)shared->sums);
	printf("\"hops\":%u,\"hops_ns\":[", 2 * HOPS - 1);
	print_times(hops_ns);
	fputs("],\"turns\":[", stdout);
	for (unsigned int t = 0; t < turn_count; t++) {
		printf("%s{\"switches\":%u,\"ns\":[", t ? "," : "", 2 * turns[t] - 1);
		print_times(times_ns[t]);
		fputs("]}", stdout);
	}
	puts("]}");
	return fflush(stdout) ? 1 : 0;
}
