// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * dma_suite: moves data between memory and devices in all the ways that a
 * program can ask for, and checks every byte that comes back.
 *
 * Bus masters read and write memory past the caches. A driver that forgets a
 * clean or an invalidate sends old data or reads old data. Each test fills
 * memory with data that depends on its position, so that stale data differs.
 *
 * Output is TAP: one line per test, comments that say what was wrong, a plan.
 * Exit codes: 0 all passed, 1 some failed, 2 wrong usage.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "dma_suite.h"

#define QUICK_ROUNDS	2
#define NORMAL_ROUNDS	16
/* Pages that stay in a D-cache of 16 KB, and the bytes of a transfer. */
#define WARM		2u
#define PIECE		256u
#define MAX_ROUNDS	100000
/* Seconds that one round of one test may take, and the first one on top. */
#define ROUND_S		4
#define FIRST_S		30

static const struct test *const tables[] = {
	serial_tests, network_tests, flash_tests, card_tests,
};

enum result say(enum result result, const char *file, int line,
		const char *fmt, ...)
{
	va_list ap;

	printf("# %s:%d: ", file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	return result;
}

static uint8_t byte_of(uint32_t seed, size_t index)
{
	uint32_t x = seed * 0x9e3779b1u + (uint32_t)(index / 4) * 0x85ebca6bu;

	x ^= x >> 15;
	x *= 0x2c1b3c6du;
	return (uint8_t)(x >> (8 * (index % 4) + (index % 4 == 0)));
}

/*
 * These caches take a line in only when it is read. Three lines of four are
 * read behind their first byte, so that later bytes make them dirty.
 */
void fill(void *at, size_t bytes, uint32_t seed)
{
	volatile uint8_t *byte = at;
	size_t i;

	for (i = 0; i < bytes; i++) {
		byte[i] = byte_of(seed, i);
		if (i % 32 == 0 && (i / 32 + seed) % 4)
			(void)byte[i];
	}
}

enum result holds(const void *at, size_t bytes, uint32_t seed, const char *what)
{
	const volatile uint8_t *byte = at;
	size_t i;

	for (i = 0; i < bytes; i++) {
		uint8_t seen = byte[i], want = byte_of(seed, i);

		EXPECT(seen == want, "%s: byte %zu of %zu is %02x, not %02x",
		       what, i, bytes, seen, want);
	}
	return PASS;
}

void warm_pages(void)
{
	unsigned char piece[PIECE] = { 0 };
	unsigned int i, have = 0;
	int ends[2];

	if (pipe(ends))
		return;
	for (i = 0; i < WARM * PAGE / PIECE; i++)
		have += write(ends[1], piece, PIECE) == PIECE;
	/* The kernel reads the pages of the pipe at its own address. */
	for (i = 1; i < have; i++)
		if (read(ends[0], piece, PIECE) != PIECE)
			break;
	close(ends[0]);
	close(ends[1]);
}

void *pages(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static const struct test *test_at(unsigned int index)
{
	unsigned int i;

	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		const struct test *test;

		for (test = tables[i]; test->name; test++)
			if (!index--)
				return test;
	}
	return NULL;
}

/* Runs it in a process of its own; gives its result, FAIL when it crashed. */
static enum result run(const struct test *test, unsigned int rounds)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return say(FAIL, __FILE__, __LINE__, "fork: %s",
			   strerror(errno));
	if (!pid) {
		enum result result;

		alarm(FIRST_S + ROUND_S * rounds);
		result = test->run(rounds);
		fflush(stdout);
		_exit(result);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		return say(FAIL, __FILE__, __LINE__, "%s: ended by signal %d",
			   test->name, WTERMSIG(status));
	return WEXITSTATUS(status);
}

static int usage(const char *why, const char *what)
{
	fprintf(stderr, "dma_suite: %s%s\n"
		"usage: dma_suite [--list] [--quick] [--rounds N] [--only NAME]\n",
		why, what);
	return 2;
}

struct options {
	unsigned int rounds;
	const char *only;
	bool list;
};

/* 0, or the exit code. */
static int parse(int argc, char **argv, struct options *opt)
{
	int i;

	for (i = 1; i < argc; i++) {
		const char *arg = argv[i];
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (!strcmp(arg, "--list")) {
			opt->list = true;
		} else if (!strcmp(arg, "--quick")) {
			opt->rounds = QUICK_ROUNDS;
		} else if (!strcmp(arg, "--rounds") && value) {
			char *end;
			long n = strtol(value, &end, 10);

			if (*end || n < 1 || n > MAX_ROUNDS)
				return usage("--rounds: not a number of rounds: ",
					     value);
			opt->rounds = (unsigned int)n;
			i++;
		} else if (!strcmp(arg, "--only") && value) {
			opt->only = value;
			i++;
		} else {
			return usage("cannot use: ", arg);
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct options opt = { .rounds = NORMAL_ROUNDS };
	unsigned int i, number = 0, failed = 0;
	const struct test *test;
	int code = parse(argc, argv, &opt);

	if (code)
		return code;
	for (i = 0; (test = test_at(i)); i++) {
		enum result result;

		if (opt.list) {
			printf("%-16s %s\n", test->name, test->what);
			continue;
		}
		if (opt.only && strcmp(opt.only, test->name))
			continue;
		result = run(test, opt.rounds);
		number++;
		failed += result != PASS && result != SKIP;
		printf("%sok %u - %s%s\n",
		       result == PASS || result == SKIP ? "" : "not ", number,
		       test->name, result == SKIP ? " # SKIP see above" : "");
		fflush(stdout);
	}
	if (opt.list)
		return 0;
	if (!number)
		return usage("no such test (see --list): ", opt.only);
	printf("1..%u\n", number);
	return failed != 0;
}
