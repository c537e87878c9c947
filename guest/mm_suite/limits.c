// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The limits of FCSE's guaranteed mode: as many processes as there are PIDs,
 * each below 32 MB. Other kernels have none of this, there the tests are
 * skipped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mm_suite.h"

#define FCSE	"/sys/kernel/debug/fcse/"
#define LIMIT	(32u << 20)
#define MB	(1u << 20)
#define RW	(PROT_READ | PROT_WRITE)
#define ANON	(MAP_PRIVATE | MAP_ANONYMOUS)

bool limited(void)
{
	int here;

	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	return read_number(FCSE "pids_limit") > 0 && (uintptr_t)&here < LIMIT;
}

static void wait_at(struct waiters *crowd)
{
	char byte;

	close(crowd->gate[1]);
	if (read(crowd->gate[0], &byte, 1))
		_exit(FAIL);
	_exit(PASS);
}

int fill_up(struct waiters *crowd)
{
	while (crowd->count < WAITERS) {
		pid_t pid = fork();

		if (pid < 0)
			return errno;
		if (!pid)
			wait_at(crowd);
		crowd->pids[crowd->count++] = pid;
	}
	return 0;
}

static enum result end_last(struct waiters *crowd)
{
	pid_t pid = crowd->pids[--crowd->count];
	int status = 0;

	kill(pid, SIGKILL);
	EXPECT(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
	return PASS;
}

enum result disperse(struct waiters *crowd)
{
	unsigned int i;

	close(crowd->gate[1]);
	for (i = 0; i < crowd->count; i++) {
		int status = 0;

		EXPECT(waitpid(crowd->pids[i], &status, 0) == crowd->pids[i] &&
		       !status, "process %u of the crowd: %#x", i,
		       (unsigned int)status);
	}
	return PASS;
}

/* A process of the crowd that becomes another program where one is too many. */
static enum result exec_at_limit(struct waiters *crowd)
{
	int status = 0;
	pid_t pid;

	TRY(end_last(crowd));
	pid = fork();
	EXPECT(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		execl("/bin/true", "true", NULL);
		_exit(FAIL);
	}
	EXPECT(waitpid(pid, &status, 0) == pid && !status,
	       "exec at the limit: %#x", (unsigned int)status);
	EXPECT(fill_up(crowd) == ENOMEM, "the place is not there again");
	return PASS;
}

/* The parent goes on in its memory, so exec needs one more. */
static enum result vfork_at_limit(void)
{
	volatile int error = 0;
	int status = 0;
	pid_t pid = vfork();

	EXPECT(pid >= 0, "vfork: %s", strerror(errno));
	if (!pid) {
		execl("/bin/true", "true", NULL);
		error = errno;
		_exit(0);
	}
	EXPECT(waitpid(pid, &status, 0) == pid, "waitpid");
	EXPECT(error == ENOMEM, "exec behind vfork gave %d", error);
	return PASS;
}

static enum result too_many(unsigned int rounds)
{
	unsigned int round;

	SKIP_UNLESS(limited(), "no limit");
	for (round = 0; round < rounds; round++) {
		long limit = read_number(FCSE "pids_limit");
		struct waiters crowd = { .count = 0 };
		long before = read_number(FCSE "pids");
		int error;

		EXPECT(!pipe(crowd.gate), "pipe: %s", strerror(errno));
		error = fill_up(&crowd);
		EXPECT(error == ENOMEM, "fork is refused with %d", error);
		EXPECT(before + (long)crowd.count == limit,
		       "%ld and %u processes, not %ld", before, crowd.count,
		       limit);
		EXPECT(read_number(FCSE "pids") == limit, "not all are taken");
		TRY(end_last(&crowd));
		EXPECT(fill_up(&crowd) == ENOMEM && before +
		       (long)crowd.count == limit, "no place after an exit");
		TRY(exec_at_limit(&crowd));
		TRY(vfork_at_limit());
		TRY(disperse(&crowd));
		close(crowd.gate[0]);
		EXPECT(read_number(FCSE "pids") == before, "some did not come back");
	}
	return PASS;
}

/* Dead processes that somebody holds on to do not count. */
static enum result held_by_files(unsigned int rounds)
{
	unsigned int round, i;

	SKIP_UNLESS(limited(), "no limit");
	for (round = 0; round < rounds; round++) {
		struct waiters crowd = { .count = 0 };
		unsigned int count;
		char path[32];

		EXPECT(!pipe(crowd.gate), "pipe: %s", strerror(errno));
		fill_up(&crowd);
		for (i = 0; i < crowd.count; i++) {
			snprintf(path, sizeof(path), "/proc/%d/maps",
				 (int)crowd.pids[i]);
			EXPECT(open(path, O_RDONLY | O_CLOEXEC) >= 0, "%s: %s",
			       path, strerror(errno));
		}
		count = crowd.count;
		while (crowd.count)
			TRY(end_last(&crowd));
		EXPECT(fill_up(&crowd) == ENOMEM && crowd.count == count,
		       "%u again, not %u", crowd.count, count);
		TRY(disperse(&crowd));
		for (i = 3; i < 2 * WAITERS; i++)
			close(i);
	}
	return PASS;
}

static enum result refused(void *at, size_t bytes, int flags)
{
	void *got = mmap(at, bytes, RW, ANON | flags, -1, 0);

	EXPECT(got == MAP_FAILED && errno == ENOMEM,
	       "%zu bytes at %p are mapped at %p, or with %d", bytes, at, got,
	       errno);
	return PASS;
}

static enum result too_large(unsigned int rounds)
{
	unsigned int round;

	SKIP_UNLESS(limited(), "no limit");
	for (round = 0; round < rounds; round++) {
		uint8_t *at = pages(1), *hint, *end = sbrk(0);

		TRY(refused(NULL, LIMIT, 0));
		TRY(refused((void *)LIMIT, PAGE, MAP_FIXED));
		TRY(refused((void *)(LIMIT - PAGE), 2 * PAGE, MAP_FIXED));
		TRY(refused((void *)0x40000000, PAGE, MAP_FIXED));
		TRY(refused((void *)0xbe000000, PAGE, MAP_FIXED));
		/* A wish is none. */
		hint = mmap((void *)0x40000000, PAGE, RW, ANON, -1, 0);
		EXPECT(hint < (uint8_t *)LIMIT, "mapped at %p", hint);
		EXPECT(mremap(at, PAGE, LIMIT, MREMAP_MAYMOVE) == MAP_FAILED &&
		       errno == ENOMEM, "mremap gave %d", errno);
		EXPECT(mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			      (void *)0x40000000) == MAP_FAILED &&
		       errno == ENOMEM, "mremap gave %d", errno);
		EXPECT(sbrk(LIMIT) == (void *)-1 && errno == ENOMEM &&
		       sbrk(0) == end, "the break moved");
		/* Nothing was lost by it. */
		fill(at, PAGE, round);
		TRY(holds(at, PAGE, round, "behind refusals"));
		munmap(at, PAGE);
		munmap(hint, PAGE);
	}
	return PASS;
}

/* As much as there is room for, and all of it is one's own. */
static enum result all_there_is(unsigned int rounds)
{
	unsigned int round;

	SKIP_UNLESS(limited(), "no limit");
	for (round = 0; round < rounds; round++) {
		uint8_t *at[32];
		unsigned int count = 0, i;

		while (count < 32) {
			at[count] = mmap(NULL, MB, RW, ANON, -1, 0);
			if (at[count] == MAP_FAILED)
				break;
			for (i = 0; i < MB; i += 32 * PAGE)
				fill(at[count] + i, LINE, count + i);
			count++;
		}
		EXPECT(count >= 20, "only %u MB", count);
		while (count--) {
			for (i = 0; i < MB; i += 32 * PAGE)
				TRY(holds(at[count] + i, LINE, count + i, "1 MB"));
			munmap(at[count], MB);
		}
	}
	return PASS;
}

/* Each form of executable; the programs themselves look at where they are. */
static enum result forms(unsigned int rounds)
{
	static const char *const names[] = {
		"/guest/layout-static", "/guest/layout-dynamic",
		"/guest/layout-dynamic-pie", "/guest/bare_pie",
	};
	unsigned int round, i;

	SKIP_UNLESS(!access(names[0], X_OK), "they are not installed");
	for (round = 0; round < rounds; round++)
		for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			int status = 0;
			pid_t pid = fork();

			EXPECT(pid >= 0, "fork: %s", strerror(errno));
			if (!pid) {
				dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
				execl(names[i], names[i],
				      limited() ? "limited" : NULL, NULL);
				_exit(FAIL);
			}
			EXPECT(waitpid(pid, &status, 0) == pid && !status,
			       "%s ended with %#x", names[i],
			       (unsigned int)status);
		}
	return PASS;
}

const struct test limit_tests[] = {
	{ "too_many", "a process more than there are PIDs", too_many, NULL },
	{ "held_by_files", "open files of dead processes", held_by_files, NULL },
	{ "too_large", "mappings at and beyond 32 MB", too_large, NULL },
	{ "forms", "static and dynamic programs, PIE and not", forms, NULL },
	{ "all_there_is", "32 MB, as far as there is room", all_there_is, NULL },
	{ NULL, NULL, NULL, NULL },
};
