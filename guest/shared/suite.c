// SPDX-License-Identifier: MIT OR Apache-2.0
/* The program around a suite of tests: options, a process for each test, TAP. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suite.h"

#define QUICK_ROUNDS	2
#define MAX_ROUNDS	100000
#define MAX_NAMES	16
/* Seconds that a test may take besides its rounds. */
#define FIRST_S		30

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

struct names {
	unsigned int count;
	const char *of[MAX_NAMES];
};

struct options {
	unsigned int rounds;
	bool list;
	struct names only, skip;
};

static const struct test *test_at(const struct suite *suite, unsigned int index)
{
	unsigned int i;

	for (i = 0; i < suite->table_count; i++) {
		const struct test *test;

		for (test = suite->tables[i]; test->name; test++)
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
static enum result run(const struct suite *suite, const struct test *test,
		       unsigned int rounds)
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
		alarm(FIRST_S + suite->round_s * rounds);
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

static int usage(const struct suite *suite, const char *why, const char *what)
{
	fprintf(stderr, "%s: %s%s\n"
		"usage: %s [--list] [--quick] [--rounds N] [--only NAME]... [--skip NAME]...\n",
		suite->name, why, what, suite->name);
	return 2;
}

static bool known(const struct suite *suite, const char *name)
{
	const struct test *test;
	unsigned int i;

	for (i = 0; (test = test_at(suite, i)); i++)
		if (!strcmp(test->name, name))
			return true;
	return false;
}

static int add_name(const struct suite *suite, struct names *names,
		    const char *name)
{
	if (!known(suite, name))
		return usage(suite, "no such test (see --list): ", name);
	if (names->count == MAX_NAMES)
		return usage(suite, "too many names: ", name);
	names->of[names->count++] = name;
	return 0;
}

static int set_rounds(const struct suite *suite, struct options *opt,
		      const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*end || n < 1 || n > MAX_ROUNDS)
		return usage(suite, "--rounds: not a number of rounds: ", text);
	opt->rounds = (unsigned int)n;
	return 0;
}

static bool any_chosen(const struct suite *suite, const struct options *opt)
{
	const struct test *test;
	unsigned int i;

	for (i = 0; (test = test_at(suite, i)); i++)
		if (chosen(opt, test))
			return true;
	return false;
}

/* 0, or the exit code. */
static int parse(const struct suite *suite, int argc, char **argv,
		 struct options *opt)
{
	int i, code = 0;

	for (i = 1; i < argc && !code; i++) {
		const char *arg = argv[i];
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (!strcmp(arg, "--list"))
			opt->list = true;
		else if (!strcmp(arg, "--quick"))
			opt->rounds = QUICK_ROUNDS;
		else if (!value)
			code = usage(suite, "cannot use: ", arg);
		else if (i++, !strcmp(arg, "--rounds"))
			code = set_rounds(suite, opt, value);
		else if (!strcmp(arg, "--only"))
			code = add_name(suite, &opt->only, value);
		else if (!strcmp(arg, "--skip"))
			code = add_name(suite, &opt->skip, value);
		else
			code = usage(suite, "cannot use: ", arg);
	}
	if (!code && !any_chosen(suite, opt))
		code = usage(suite, "no test is left to run", "");
	return code;
}

int suite_main(const struct suite *suite, int argc, char **argv)
{
	struct options opt = { .rounds = suite->normal_rounds };
	unsigned int i, number = 0, failed = 0;
	const struct test *test;
	int code = parse(suite, argc, argv, &opt);

	if (code)
		return code;
	if (!opt.list)
		printf("TAP version 13\n");
	for (i = 0; (test = test_at(suite, i)); i++) {
		if (!chosen(&opt, test))
			continue;
		if (opt.list)
			printf("%-24s %s\n", test->name, test->what);
		else
			failed += report(++number, test,
					 run(suite, test, opt.rounds));
	}
	if (!opt.list)
		printf("1..%u\n", number);
	return failed != 0;
}
