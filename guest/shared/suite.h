/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A suite of tests that prints TAP: one line per test, comments that say what
 * was wrong, a plan. Exit codes: 0 all passed, 1 some failed, 2 wrong usage.
 * Tests marked TODO check what the kernel does not promise; their failures do
 * not count.
 */
#ifndef SUITE_H
#define SUITE_H

enum result { PASS = 0, FAIL = 1, SKIP = 77 };

/*
 * A test works with any number of rounds of at least one, in a process of its
 * own, so that it may crash and need not tidy up what the kernel tidies up.
 */
struct test {
	const char *name;
	const char *what;
	enum result (*run)(unsigned int rounds);
	/* Why it may fail: the kernel does not promise what it checks. */
	const char *todo;
};

struct suite {
	const char *name;
	/* Tables of tests, each ended by an entry without a name. */
	const struct test *const *tables;
	unsigned int table_count;
	unsigned int normal_rounds;
	/* Seconds that one round of one test may take. */
	unsigned int round_s;
};

/* Runs the tests that the arguments ask for. Returns the exit code. */
int suite_main(const struct suite *suite, int argc, char **argv);

/* Prints why, as a comment in the TAP; gives its first argument. */
enum result say(enum result result, const char *file, int line,
		const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#define EXPECT(condition, ...)						\
	do {								\
		if (!(condition))					\
			return say(FAIL, __FILE__, __LINE__, __VA_ARGS__); \
	} while (0)

#define SKIP_UNLESS(condition, ...)					\
	do {								\
		if (!(condition))					\
			return say(SKIP, __FILE__, __LINE__, __VA_ARGS__); \
	} while (0)

/* Passes on what is not PASS. */
#define TRY(expression)							\
	do {								\
		enum result tried_ = (expression);			\
									\
		if (tried_ != PASS)					\
			return tried_;					\
	} while (0)

#endif
