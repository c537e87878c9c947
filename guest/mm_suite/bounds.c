// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What one program may ask for, and what it may not do to others by it: wishes
 * for an address, all processes that there are, the kernel's log, the caches.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mm_suite.h"
#include "race.h"

#define RW		(PROT_READ | PROT_WRITE)
#define ANON		(MAP_PRIVATE | MAP_ANONYMOUS)
#define LIMIT		(32u << 20)
#define MANY		200
#define KEPT		2
#define ANOTHER		(NOBODY - 1)
#define KEPT_FOR_ANOTHER	10
#define ARM_CACHEFLUSH	0x0f0002
#define ALIGNMENT	"/proc/cpu/alignment"
#define ACCESSES	200
/* More lines than a limit of the rate lets through, less than one each. */
#define LOG_LINES	(ACCESSES / 2)
#define CONSOLE_LEVEL	8
#define QUIET		1
#define USUAL		7

/* A wish to be above 32 MB is none of a process that has room below. */
static enum result hints_are_wishes(unsigned int rounds)
{
	static const uintptr_t hints[] = {
		LIMIT, 0x40000000, 0x7ffff000, 0xb0000000, 0xbeffe000,
	};
	uint32_t *low = pages(1);
	unsigned int round, i;

	SKIP_UNLESS((uintptr_t)low < LIMIT, "no FCSE: processes begin anywhere");
	for (round = 0; round < rounds; round++)
		for (i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
			void *got = mmap((void *)hints[i], PAGE, RW, ANON, -1, 0);

			EXPECT(got != MAP_FAILED, "mmap: %s", strerror(errno));
			EXPECT((uintptr_t)got < LIMIT,
			       "with a wish for %#lx the page is at %p",
			       (unsigned long)hints[i], got);
			fill(got, PAGE, round + i);
			TRY(holds(got, PAGE, round + i, "where there was room"));
			munmap(got, PAGE);
		}
	return PASS;
}

/* An ordinary user's crowd: until fork is refused, and then it waits. */
static enum result crowd(struct other *other, void *arg)
{
	unsigned int count = 0;
	int gate[2], error = 0;
	char byte;

	(void)arg;
	ordinary_user();
	EXPECT(!pipe(gate), "pipe: %s", strerror(errno));
	while (count < MANY && !error) {
		pid_t pid = fork();

		if (!pid) {
			close(gate[1]);
			_exit(read(gate[0], &byte, 1) != 0);
		}
		if (pid < 0)
			error = errno;
		else
			count++;
	}
	TRY(child_go(other, (uint32_t)error));
	TRY(child_go(other, count));
	TRY(child_wait(other, NULL));
	close(gate[1]);
	while (wait(NULL) > 0)
		;
	return PASS;
}

/* Somebody else's processes at that time, each of which waits for the last. */
static enum result forks_all_the_same(const char *who, unsigned int wanted)
{
	unsigned int i, forked = 0;
	pid_t pids[MANY];
	int gate[2], status;
	char byte;

	EXPECT(!pipe(gate), "pipe: %s", strerror(errno));
	for (i = 0; i < wanted; i++) {
		pids[forked] = fork();
		if (!pids[forked]) {
			close(gate[1]);
			_exit(read(gate[0], &byte, 1) != 0);
		}
		forked += pids[forked] > 0;
	}
	close(gate[0]);
	close(gate[1]);
	for (i = 0; i < forked; i++)
		waitpid(pids[i], &status, 0);
	EXPECT(forked == wanted, "%s can have %u more processes, not %u", who,
	       forked, wanted);
	return PASS;
}

static enum result another_forks_all_the_same(struct other *other, void *arg)
{
	(void)other;
	(void)arg;
	EXPECT(!setgid(ANOTHER) && !setuid(ANOTHER), "setuid: %s",
	       strerror(errno));
	return forks_all_the_same("another user", KEPT_FOR_ANOTHER);
}

static enum result kept_for_root(unsigned int rounds)
{
	unsigned int round;

	SKIP_UNLESS(limited(), "no limit");
	for (round = 0; round < rounds; round++) {
		struct other other, another;
		enum result result;
		uint32_t error, count;

		TRY(other_start(&other, crowd, NULL));
		TRY(other_wait(&other, &error));
		TRY(other_wait(&other, &count));
		EXPECT(error == ENOMEM || error == EAGAIN,
		       "a user's fork after %u others: %s", (unsigned int)count,
		       strerror((int)error));
		result = forks_all_the_same("root", KEPT);
		if (result == PASS)
			result = other_start(&another,
					     another_forks_all_the_same, NULL);
		if (result == PASS)
			result = other_end(&another);
		TRY(other_go(&other, 0));
		TRY(other_end(&other));
		TRY(result);
	}
	return PASS;
}

/* Of other processes' lines nobody is told "done". */
static enum result flush_beyond(unsigned int rounds)
{
	static const struct {
		uintptr_t from, to;
	} ranges[] = {
		{ LIMIT, LIMIT + PAGE }, { LIMIT - PAGE, LIMIT + PAGE },
		{ LIMIT - LINE, LIMIT + LINE }, { 3 * LIMIT, 3 * LIMIT + LINE },
		{ 0xbeffe000, 0xbefff000 },
	};
	uint32_t *at = pages(1);
	unsigned int round, i;

	SKIP_UNLESS(limited(), "addresses above 32 MB are its own");
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
			EXPECT(syscall(ARM_CACHEFLUSH, ranges[i].from,
				       ranges[i].to, 0) == -1 &&
			       (errno == EFAULT || errno == EINVAL),
			       "cacheflush from %#lx to %#lx has worked",
			       (unsigned long)ranges[i].from,
			       (unsigned long)ranges[i].to);
		EXPECT(!syscall(ARM_CACHEFLUSH, at, (char *)at + PAGE, 0) &&
		       !syscall(ARM_CACHEFLUSH, LIMIT - PAGE, LIMIT, 0),
		       "cacheflush below: %s", strerror(errno));
	}
	return PASS;
}

static sigjmp_buf fault;

static void on_fault(int number)
{
	(void)number;
	siglongjmp(fault, 1);
}

/* Where else the page at `at` can be read: in its own slot, if it has one. */
static uint32_t *own_alias(uint32_t *at)
{
	static volatile unsigned int slot;

	for (slot = 1; slot < SLOTS; slot++) {
		volatile uint32_t *alias = at + slot * (LIMIT / 4);

		if (!sigsetjmp(fault, 1) && *alias == *at)
			return (uint32_t *)alias;
	}
	return at;
}

static enum result misaligned(struct other *other, void *arg)
{
	struct sigaction action = { .sa_handler = on_fault };
	uint32_t *at = pages(1);
	char *alias;
	unsigned int i;

	(void)arg;
	ordinary_user();
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	fill(at, PAGE, 3);
	alias = (char *)own_alias(at) + 2;
	TRY(child_go(other, alias != (char *)at + 2));
	for (i = 0; i < ACCESSES; i++)
		if (!sigsetjmp(fault, 1)) {
			register char *from asm("r4") = alias;

			asm volatile("ldmia %0, {r2, r3}"
				     : : "r"(from) : "r2", "r3", "memory");
		}
	return PASS;
}

static unsigned int log_lines(int log)
{
	unsigned int lines = 0;
	char line[1024];
	ssize_t n;

	while ((n = read(log, line, sizeof(line))) > 0 || errno == EPIPE)
		lines++;
	return lines;
}

/* The kernel mends it, or it does not, but it does not speak of it each time. */
static enum result quiet_fixups(unsigned int rounds)
{
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct other other;
	unsigned int lines;
	uint32_t alias;

	(void)rounds;
	SKIP_UNLESS(log >= 0, "/dev/kmsg: %s", strerror(errno));
	SKIP_UNLESS(!access(ALIGNMENT, W_OK), "no fixups");
	EXPECT(lseek(log, 0, SEEK_END) >= 0, "/dev/kmsg: %s", strerror(errno));
	klogctl(CONSOLE_LEVEL, NULL, QUIET);
	TRY(write_text(ALIGNMENT, "2"));
	TRY(other_start(&other, misaligned, NULL));
	TRY(other_wait(&other, &alias));
	TRY(other_end(&other));
	write_text(ALIGNMENT, "0");
	klogctl(CONSOLE_LEVEL, NULL, USUAL);
	lines = log_lines(log);
	say(PASS, __FILE__, __LINE__, "%u lines in the log for %u accesses%s",
	    lines, ACCESSES, alias ? " in the own slot" : "");
	EXPECT(lines < LOG_LINES, "a user filled the log");
	return PASS;
}

const struct test bound_tests[] = {
	{ "hints_are_wishes", "mmap with wishes above 32 MB", hints_are_wishes,
	  NULL },
	{ "kept_for_root", "a user's processes leave room for root and others",
	  kept_for_root, NULL },
	{ "flush_beyond", "cacheflush of what is not one's own", flush_beyond,
	  NULL },
	{ "quiet_fixups", "misaligned accesses and the kernel's log",
	  quiet_fixups, NULL },
	{ NULL, NULL, NULL, NULL },
};
