/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the tests of dma_suite share: results and patterns. */
#ifndef DMA_SUITE_H
#define DMA_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE	4096u
#define SECTOR	512u

enum result { PASS = 0, FAIL = 1, SKIP = 77 };

/* Each test runs in a process of its own, with one or more rounds. */
struct test {
	const char *name;
	const char *what;
	enum result (*run)(unsigned int rounds);
};

/* One table per file, ended by an entry without a name. */
extern const struct test network_tests[], flash_tests[];
extern const struct test card_tests[], serial_tests[];

/* Prints why, as a comment in the TAP; gives its first argument. */
enum result say(enum result result, const char *file, int line,
		const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#define EXPECT(condition, ...)						\
	do {								\
		if (!(condition))					\
			return say(FAIL, __FILE__, __LINE__, __VA_ARGS__); \
	} while (0)
#define NEEDS(condition, ...)						\
	do {								\
		if (!(condition))					\
			return say(SKIP, __FILE__, __LINE__, __VA_ARGS__); \
	} while (0)
#define TRY(call)							\
	do {								\
		enum result tried_ = (call);				\
									\
		if (tried_ != PASS)					\
			return tried_;					\
	} while (0)

/*
 * Fills memory with bytes that depend on their position and on the seed. Some
 * lines are dirty in the D-cache behind it, and the others are in memory.
 */
void fill(void *at, size_t bytes, uint32_t seed);
/* Compares memory with what fill() wrote. */
enum result holds(const void *at, size_t bytes, uint32_t seed,
		  const char *what);
/*
 * Leaves free pages whose lines are in the D-cache at the kernel's address. A
 * store hits such a line and makes it dirty, while a store that misses goes
 * past the D-cache to memory. The kernel allocates these pages next.
 */
void warm_pages(void);
/* Memory that begins at a page, or NULL. */
void *pages(size_t bytes);

#endif
