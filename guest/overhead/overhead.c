// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * overhead: what switches cost two tasks that work, beside the switch itself, by
 * the formula of the paper of 2007.
 *
 *   overhead [-g PORT] [-n PIECES] [-k KB] [-s NUMBERS] [-r SAMPLES] FIRST SECOND TURNS...
 *   overhead -i [the same options] WORK INTERRUPTS...
 *
 * Two processes do PIECES pieces of work each, on KB of data, FIRST and SECOND
 * being sort (of NUMBERS), deflate, aes, crc, or spin, which needs no data. They hand the processor to each other by a
 * pipe: in TURNS turns each, of equal size, which is 2 * TURNS - 1 switches
 * until all is done. The time is from the first piece to the last one's end.
 * "hop" is a switch without work: many turns of no piece at all.
 *
 * With R the time in 1 turn each (1 switch), R' that in more, n switches and C
 * a hop, the indirect overhead is I = R' - (R - C) - n C.
 *
 * With -i, one process works, and INTERRUPTS timers expire meanwhile: see
 * interrupts.c.
 *
 * With -g PORT, pin 0 of this port (guest/shared/pins.h) is high while what
 * takes the last of TURNS, or INTERRUPTS, is measured.
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

#include "overhead.h"

#define MAX_PIECES	100000
#define MAX_KB		1024
#define HOPS		1000

/* In memory of both. */
struct shared {
	uint64_t end_ns;
	/* The turn that the second one is given is its last. */
	uint32_t last;
	uint32_t sums;
};

const struct work *works[2];
unsigned int pieces = 64, kb = 16, samples = 11;
unsigned int turns[MAX_TURNS], turn_count;

static struct shared *shared;
static int there[2], back[2];
static unsigned int numbers = 512;
static uint64_t times_ns[MAX_TURNS][MAX_SAMPLES];

void __attribute__((noreturn)) failed(const char *what)
{
	fprintf(stderr, "overhead: %s: %s\n", what, strerror(errno));
	exit(1);
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint32_t do_pieces(const struct work *work, unsigned int count)
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
		if (shared->last)
			pin_set(0);
		give(back[1], count);
	}
	_exit(0);
}

/* Until the second process has done its last piece; with pin 0 high until then, if `pin` is. */
static uint64_t time_of(unsigned int turns_each, unsigned int pieces_each, int pin)
{
	uint64_t start = now_ns();
	unsigned int count;

	pin_set(pin);
	for (unsigned int n = 0; n < turns_each; n++) {
		shared->sums += do_pieces(works[0], pieces_each);
		shared->last = n + 1 == turns_each;
		give(there[1], pieces_each);
		if (read(back[0], &count, sizeof(count)) != sizeof(count))
			failed("read");
	}
	return shared->end_ns - start;
}

void print_times(const uint64_t *times)
{
	for (unsigned int n = 0; n < samples; n++)
		printf("%s%llu", n ? "," : "", (unsigned long long)times[n]);
}

static unsigned int number(const char *text, unsigned int min, unsigned int max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || end == text || value < min || value > max) {
		fprintf(stderr, "overhead: \"%s\" is not from %u to %u\n", text, min, max);
		exit(2);
	}
	return (unsigned int)value;
}

static void __attribute__((noreturn)) usage(void)
{
	fprintf(stderr,
		"usage: overhead [-g PORT] [-n PIECES] [-k KB] [-s NUMBERS] [-r SAMPLES] FIRST SECOND TURNS...\n"
		"       overhead -i [the same options] WORK INTERRUPTS...\n"
		"works are sort, deflate, aes, crc, spin; TURNS divide PIECES, and 1 is among them; INTERRUPTS are up to %d\n",
		MAX_INTERRUPTS);
	exit(2);
}

static void parse_works(char **names, int count)
{
	for (int n = 0; n < count; n++) {
		works[n] = work_find(names[n]);
		if (!works[n])
			usage();
	}
}

/* Words behind WORK. */
static void parse_interrupts(char **words, int count)
{
	if (count < 1 || count > MAX_TURNS)
		usage();
	for (int n = 0; n < count; n++)
		turns[turn_count++] = number(words[n], 0, MAX_INTERRUPTS);
}

/* Whether it is about interrupts. */
static int parse(int argc, char **argv)
{
	unsigned int ones = 0;
	int c, interrupts = 0;

	while ((c = getopt(argc, argv, "g:in:k:r:s:")) != -1) {
		if (c == 'i')
			interrupts = 1;
		else if (c == 'g')
			pin_open(optarg);
		else if (c == 's')
			numbers = number(optarg, 1, SORTED_MAX);
		else if (c == 'n')
			pieces = number(optarg, 1, MAX_PIECES);
		else if (c == 'k')
			kb = number(optarg, 1, MAX_KB);
		else if (c == 'r')
			samples = number(optarg, 1, MAX_SAMPLES);
		else
			usage();
	}
	if (argc - optind < (interrupts ? 2 : 3) || argc - optind - 2 > MAX_TURNS)
		usage();
	parse_works(argv + optind, interrupts ? 1 : 2);
	if (interrupts) {
		parse_interrupts(argv + optind + 1, argc - optind - 1);
		return 1;
	}
	for (int n = optind + 2; n < argc; n++) {
		turns[turn_count] = number(argv[n], 1, pieces);
		if (pieces % turns[turn_count])
			usage();
		ones += turns[turn_count++] == 1;
	}
	if (!ones)
		usage();
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t hops_ns[MAX_SAMPLES];
	int interrupts = parse(argc, argv);
	pid_t pid;

	work_prepare(kb * 1024u, numbers);
	if (interrupts)
		return interrupts_measure();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || pipe(there) || pipe(back))
		failed("memory or a pipe");
	pid = fork();
	if (pid < 0)
		failed("fork");
	if (pid == 0)
		second();
	/* Once round to warm up. */
	time_of(1, pieces, 0);
	for (unsigned int s = 0; s < samples; s++) {
		for (unsigned int t = 0; t < turn_count; t++)
			times_ns[t][s] = time_of(turns[t], pieces / turns[t], t + 1 == turn_count);
		hops_ns[s] = time_of(HOPS, 0, 0);
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
