// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * mm_suite: what user land can make memory management do, and whether the
 * data stays right.
 *
 * Each test moves data between two addresses of one page, or gives an address
 * other content, in one of the ways that the kernel has for it, and checks
 * every word. On a processor whose caches are addressed virtually each of
 * these ways needs a clean, an invalidate or a drain somewhere; a checker of
 * coherence that watches this program sees them all.
 *
 * Each test runs in a process of its own. Output is TAP: one line per test,
 * comments that say what was wrong, a plan. Exit codes: 0 all passed, 1 some
 * failed, 2 wrong usage. Tests marked TODO check what the kernel does not
 * promise; their failures do not count.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mm_suite.h"

#define QUICK_ROUNDS	2
#define NORMAL_ROUNDS	10
#define MAX_ROUNDS	100000
#define MAX_NAMES	16
/* Seconds that one round of one test may take, and the first one on top. */
#define ROUND_S		2
#define FIRST_S		30

struct names {
	unsigned int count;
	const char *of[MAX_NAMES];
};

struct options {
	unsigned int rounds;
	bool list;
	struct names only, skip;
};

static const struct test *const tables[] = {
	process_tests, map_tests, share_tests, code_tests, signal_tests,
	trace_tests, remote_tests, io_tests, recycled_tests, swap_tests,
	slot_tests, limit_tests, large_tests, grow_tests, pressure_tests,
	race_tests, old_code_tests, bound_tests, move_tests, reread_tests,
	own_slot_tests, border_tests, file_race_tests, leaver_tests,
	hole_tests, chain_tests, ring_tests, receive_tests, held_tests,
	ended_tests, exit_tests, behind_tests, pinned_tests,
};

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

static bool among(const struct names *names, const struct test *test)
{
	unsigned int i;

	for (i = 0; i < names->count; i++)
		if (!strcmp(names->of[i], test->name))
			return true;
	return false;
}

static bool chosen(const struct options *opt, const struct test *test)
{
	return (!opt->only.count || among(&opt->only, test)) &&
	       !among(&opt->skip, test);
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

		/* A group, so that nothing that it started outlives it. */
		setpgid(0, 0);
		alarm(FIRST_S + ROUND_S * rounds);
		result = test->run(rounds);
		fflush(stdout);
		_exit(result);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	kill(-pid, SIGKILL);
	if (WIFSIGNALED(status))
		return say(FAIL, __FILE__, __LINE__, "%s: ended by signal %d",
			   test->name, WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* One line of TAP; true when it counts as failed. */
static bool report(unsigned int number, const struct test *test,
		   enum result result)
{
	bool ok = result == PASS || result == SKIP;

	printf("%sok %u - %s", ok ? "" : "not ", number, test->name);
	if (result == SKIP)
		printf(" # SKIP see above");
	else if (test->todo)
		printf(" # TODO %s", test->todo);
	putchar('\n');
	fflush(stdout);
	return !ok && !test->todo;
}

static int usage(const char *why, const char *what)
{
	fprintf(stderr, "mm_suite: %s%s\n"
		"usage: mm_suite [--list] [--quick] [--rounds N] [--only NAME]... [--skip NAME]...\n",
		why, what);
	return 2;
}

static bool known(const char *name)
{
	const struct test *test;
	unsigned int i;

	for (i = 0; (test = test_at(i)); i++)
		if (!strcmp(test->name, name))
			return true;
	return false;
}

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
		} else if ((!strcmp(arg, "--only") || !strcmp(arg, "--skip")) &&
			   value) {
			struct names *names = arg[2] == 'o' ? &opt->only :
							      &opt->skip;

			if (!known(value))
				return usage("no such test (see --list): ",
					     value);
			if (names->count == MAX_NAMES)
				return usage("too many names: ", arg);
			names->of[names->count++] = value;
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
	int code;

	if (argc > 1 && !strcmp(argv[1], "--exec-check"))
		return exec_check(argc, argv);
	if (argc == 3 && !strcmp(argv[1], "--exec-chain"))
		return exec_chain(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "--exec-pile"))
		return exec_pile(argv[2]);
	code = parse(argc, argv, &opt);
	if (code)
		return code;
	if (!opt.list)
		printf("TAP version 13\n");
	for (i = 0; (test = test_at(i)); i++) {
		if (!chosen(&opt, test))
			continue;
		if (opt.list)
			printf("%-24s %s\n", test->name, test->what);
		else
			failed += report(++number, test,
					 run(test, opt.rounds));
	}
	if (opt.list)
		return 0;
	printf("1..%u\n", number);
	return failed != 0;
}
