// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Ways around FCSE's rules that an adversary found, each as an ordinary user
 * might go it: a stack that is moved above the slot of its process, a page that
 * its writer has twice and its reader once. More of them: chain.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "mm_suite.h"
#include "race.h"

#define RW		(PROT_READ | PROT_WRITE)
#define ANON		(MAP_PRIVATE | MAP_ANONYMOUS)
#define MB		(1u << 20)
#define ANY_SLOT	5	/* where there is no own one */
/* No other memory shares its first-level entries. */
#define LOW		(24u * MB)
#define LOW_BYTES	(2u * MB)
#define COUNT		4
#define BYTES		(COUNT * PAGE)
#define VIEW_ROUNDS	10	/* in each round of the suite */

struct growth {
	const char *what;
	/* Something that can grow into the slot of `low`; the slot's end. */
	char *(*put)(const uint32_t *low);
	bool writes;		/* or reads */
	uint32_t seed;
	uint32_t *low;
};

static sigjmp_buf fault;

static void on_fault(int number)
{
	(void)number;
	siglongjmp(fault, 1);
}

static bool readable(const volatile uint32_t *at, uint32_t *word)
{
	if (sigsetjmp(fault, 1))
		return false;
	*word = *at;
	return true;
}

/* The one where `at`, whose words nobody else has, can be read, or any. */
static unsigned int find_slot(const uint32_t *at)
{
	unsigned int slot;
	uint32_t word;

	for (slot = 1; slot < SLOTS; slot++)
		if (readable(at + slot * (SLOT / 4), &word) && word == *at)
			return slot;
	return ANY_SLOT;
}

static char *moved_above(const uint32_t *low)
{
	char *at = mmap(NULL, PAGE, RW, ANON | MAP_GROWSDOWN, -1, 0);
	char *end = (char *)((find_slot(low) + 1) * SLOT);

	if (at == MAP_FAILED)
		return NULL;
	*at = 1;
	at = mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, end);
	return at == end ? end : NULL;
}

static char *map_there(char *at, int flags)
{
	return mmap(at, PAGE, RW, ANON | MAP_FIXED_NOREPLACE | flags, -1, 0);
}

/*
 * What was between it and the slot goes. As a process may get another slot when
 * this is made, it is made above every second one, as far as there is room, and
 * then the process has to leave its slot for one of these.
 */
static char *freed_above(const uint32_t *low)
{
	unsigned int slot = find_slot(low), other;
	char *end;

	for (other = 1 + slot % 2; other < SLOTS; other += 2) {
		map_there((char *)(other * SLOT) + PAGE, MAP_GROWSDOWN);
		map_there((char *)(other * SLOT), 0);
	}
	map_there((char *)(find_slot(low) * SLOT), 0);
	end = (char *)((find_slot(low) + 1) * SLOT);
	return munmap(end, PAGE) ? NULL : end;
}

/*
 * The kernel does it for the process, at an address: the processor would find
 * low memory there. `words` is what was written, or is read.
 */
static ssize_t use_memory(const struct growth *growth, void *words, char *at)
{
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	ssize_t n;

	if (mem < 0)
		_exit(say(FAIL, __FILE__, __LINE__, "/proc/self/mem: %s",
			  strerror(errno)));
	n = growth->writes ? pwrite(mem, words, BYTES, (uintptr_t)at) :
			     pread(mem, words, BYTES, (uintptr_t)at);
	if (n < 0 && errno != EIO && errno != EFAULT)
		_exit(say(FAIL, __FILE__, __LINE__, "%s: %s", growth->what,
			  strerror(errno)));
	close(mem);
	return n;
}

/* It grew, and is right, or has not, and only low memory can be there. */
static enum result judge_growth(const struct growth *growth, char *at)
{
	static uint32_t words[BYTES / 4];
	uint32_t word;
	ssize_t n;

	fill(words, BYTES, growth->seed + 1);
	n = use_memory(growth, words, at);
	if (n < (ssize_t)BYTES) {
		EXPECT(!readable((uint32_t *)at, &word) || word == *growth->low,
		       "%s: refused, but there is %08x", growth->what,
		       (unsigned int)word);
	} else if (growth->writes) {
		TRY(holds(at, BYTES, growth->seed + 1, growth->what));
	} else {
		TRY(all_zero(words, BYTES, growth->what));
		TRY(all_zero(at, BYTES, growth->what));
	}
	return PASS;
}

static enum result low_memory_holds(void *arg)
{
	const struct growth *growth = arg;

	return holds(growth->low, BYTES, growth->seed, "low memory");
}

static enum result grow_above(void *arg)
{
	struct sigaction action = { .sa_handler = on_fault };
	struct rlimit stack = { 2 * SLOT, 2 * SLOT };
	struct growth *growth = arg;
	char *start, *end;

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	growth->low = mmap((void *)LOW, LOW_BYTES, RW, ANON, -1, 0);
	EXPECT(growth->low != MAP_FAILED && !setrlimit(RLIMIT_STACK, &stack),
	       "low memory: %s", strerror(errno));
	ordinary_user();
	prctl(PR_SET_DUMPABLE, 1);
	fill(growth->low, BYTES, growth->seed);
	end = growth->put(growth->low);
	EXPECT(end, "%s: %s", growth->what, strerror(errno));
	start = end - SLOT + (uintptr_t)growth->low % SLOT;
	TRY(judge_growth(growth, start));
	TRY(low_memory_holds(growth));
	TRY(in_child(low_memory_holds, growth));
	TRY(low_memory_holds(growth));
	EXPECT(!munmap(start, (size_t)(end - start)), "munmap: %s",
	       strerror(errno));
	TRY(empty_cache());
	return low_memory_holds(growth);
}

/* Complaints since `log` was read last. */
static enum result no_complaint(int log)
{
	char line[1024];
	ssize_t n;

	while ((n = read(log, line, sizeof(line) - 1)) > 0 || errno == EPIPE) {
		line[n > 0 ? n : 0] = 0;
		EXPECT(!strstr(line, "BUG:") && !strstr(line, "Bad page"),
		       "the kernel says: %s", line);
	}
	return PASS;
}

static enum result grows_to_slot(unsigned int rounds)
{
	static struct growth growths[] = {
		{ .what = "moved there, written", .put = moved_above,
		  .writes = true },
		{ .what = "moved there, read", .put = moved_above },
		{ .what = "freed there, written", .put = freed_above,
		  .writes = true },
		{ .what = "freed there, read", .put = freed_above },
	};
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	enum result result = PASS;
	unsigned int round, i;

	SKIP_UNLESS(!limited(), "FCSE limits the size of processes");
	EXPECT(log >= 0 && lseek(log, 0, SEEK_END) >= 0, "/dev/kmsg: %s",
	       strerror(errno));
	/* One that fails does not hide what the others do. */
	for (round = 0; round < rounds && !result; round++)
		for (i = 0; i < sizeof(growths) / sizeof(growths[0]); i++) {
			growths[i].seed = round * 8 + i;
			if (in_child(grow_above, &growths[i]) ||
			    no_complaint(log))
				result = FAIL;
		}
	return result;
}

/* Each of its views is good for what the other wrote. */
static enum result write_twice(struct other *other, void *arg)
{
	int fd = *(int *)arg;
	volatile uint32_t *one = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
	volatile uint32_t *two = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
	uint32_t word;

	EXPECT(one != MAP_FAILED && two != MAP_FAILED, "mmap: %s",
	       strerror(errno));
	ordinary_user();
	*one = 0;
	*two = 0;
	*one = 0;
	for (;;) {
		TRY(child_go(other, 0));
		TRY(child_wait(other, &word));
		if (!word)
			return PASS;
		*(word % 2 ? one : two) = word;
	}
}

static enum result two_views(unsigned int rounds)
{
	int fd = memory_file(PAGE, 1);
	volatile uint32_t *view = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
	uint32_t round, before, after, stale = 0;
	struct other other;

	EXPECT(view != MAP_FAILED, "mmap: %s", strerror(errno));
	TRY(other_start(&other, write_twice, &fd));
	ordinary_user();
	TRY(other_wait(&other, NULL));
	for (round = 1; round <= rounds * VIEW_ROUNDS; round++) {
		before = *view;
		TRY(other_go(&other, round));
		TRY(other_wait(&other, NULL));
		after = *view;
		if (after != round && !stale++)
			say(FAIL, __FILE__, __LINE__,
			    "read %u, before it %u; the other one wrote %u",
			    (unsigned int)after, (unsigned int)before,
			    (unsigned int)round);
	}
	TRY(other_go(&other, 0));
	TRY(other_end(&other));
	EXPECT(!stale, "%u of %u rounds stale", (unsigned int)stale,
	       rounds * VIEW_ROUNDS);
	return PASS;
}

const struct test hole_tests[] = {
	{ "grows_to_slot", "a stack above the slot that the process itself is in",
	  grows_to_slot, NULL },
	{ "two_views", "a page that its writer has twice, its reader once",
	  two_views, NULL },
	{ NULL, NULL, NULL, NULL },
};
