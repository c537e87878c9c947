// SPDX-License-Identifier: MIT OR Apache-2.0
/* The ways of taking memory away from a thread that writes; see race.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "mm_suite.h"
#include "race.h"

#define RW	(PROT_READ | PROT_WRITE)
#define COUNT	256
/* As few as B can be woken in the middle of: the file's own pages go, too. */
#define FEW	48
#define SETTLE_US	1000

static void map_again(struct race_range *range)
{
	void *at = (void *)range->at;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0);

	range->at = mmap(at, range->count * PAGE, RW, flags, -1, 0);
}

static void leave(struct race_range *range)
{
	if (!range->at)
		map_again(range);
}

static bool unmap(struct race_range *range)
{
	return !munmap((void *)range->at, range->count * PAGE);
}

static bool give_up(struct race_range *range)
{
	return !madvise((void *)range->at, range->count * PAGE, MADV_DONTNEED);
}

static enum result unmap_races_writer(unsigned int rounds)
{
	struct race_range ranges[] = {
		{ .what = "munmap", .count = COUNT, .prepare = map_again,
		  .take_away = unmap },
		{ .what = "MADV_DONTNEED", .count = COUNT, .prepare = leave,
		  .take_away = give_up },
	};

	return race_for_pages(ranges, 2, rounds);
}

/* Of a file, whose size and pages others change. */
static void map_file(struct race_range *range, int flags)
{
	if (range->at)
		return;
	range->fd = memfd_create("race", MFD_CLOEXEC);
	range->at = mmap(NULL, range->count * PAGE, RW, flags, range->fd, 0);
}

static void file_private(struct race_range *range)
{
	map_file(range, MAP_PRIVATE);
	(void)!ftruncate(range->fd, range->count * PAGE);
}

static void file_shared(struct race_range *range)
{
	map_file(range, MAP_SHARED);
	(void)!ftruncate(range->fd, range->count * PAGE);
}

static bool cut(struct race_range *range)
{
	return !ftruncate(range->fd, 0);
}

static enum result truncate_races_writer(unsigned int rounds)
{
	struct race_range ranges[] = {
		{ .what = "ftruncate, private mapping", .count = FEW,
		  .prepare = file_private, .take_away = cut },
		{ .what = "ftruncate, shared mapping", .count = FEW,
		  .prepare = file_shared, .take_away = cut },
	};

	return race_for_pages(ranges, 2, rounds);
}

/* Another process does it, with a file of this one. */
static void map_private(struct race_range *range)
{
	if (!range->at)
		range->at = mmap(NULL, range->count * PAGE, RW, MAP_PRIVATE,
				 range->fd, 0);
	(void)!ftruncate(range->fd, range->count * PAGE);
}

static enum result truncated_by_other(unsigned int rounds)
{
	struct race_range range = {
		.what = "ftruncate by another process", .count = FEW,
		.prepare = map_private, .take_away = race_by_other,
		.fd = memfd_create("race", MFD_CLOEXEC),
	};
	struct race_range theirs = { .take_away = cut, .fd = range.fd };
	enum result result;

	EXPECT(range.fd > 0, "memfd_create: %s", strerror(errno));
	TRY(race_other_start(&theirs));
	result = race_for_pages(&range, 1, rounds);
	TRY(race_other_end());
	return result;
}

/*
 * Each round has a process of its own, whose first thread is B, and is gone when
 * A's call returns.
 */
static struct {
	/* Comes back by the pipe: who writes shared memory is flushed behind. */
	struct race_range range;
	int back[2];
	struct other *other;
	sem_t begin;
	volatile int there;	/* the kernel clears it */
} leaver;

static void *take_away_alone(void *arg)
{
	struct race_range *range = &leaver.range;
	enum result result = PASS;
	bool ok;

	(void)arg;
	/* A thread's own, on Linux: B comes in when it wakes up. */
	setpriority(PRIO_PROCESS, 0, 19);
	while (sem_wait(&leaver.begin))
		;
	ok = race_take_away(range);
	if (!ok)
		_exit(say(FAIL, __FILE__, __LINE__, "%s: %s", range->what,
			  strerror(errno)));
	if (leaver.there)
		range->seen = LATE;
	if (range->seen == MET)
		result = range->judge(range, leaver.other);
	if (write(leaver.back[1], range, sizeof(*range)) != sizeof(*range))
		result = FAIL;
	_exit(result);
}

static enum result write_and_leave(void *arg)
{
	struct race_range *range = &leaver.range;
	struct timespec delay = { 0, range->delay };
	pthread_attr_t attr;
	pthread_t thread;

	(void)arg;
	range->pagemap = open_pagemap();
	ordinary_user();
	race_prepare(range);
	sem_init(&leaver.begin, 0, 0);
	leaver.there = 1;
	syscall(SYS_set_tid_address, &leaver.there);
	prctl(PR_SET_TIMERSLACK, 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16 * PAGE);
	EXPECT(!pthread_create(&thread, &attr, take_away_alone, NULL),
	       "thread");
	/* Nobody runs, and the scheduler has no debts when A begins. */
	usleep(SETTLE_US);
	sem_post(&leaver.begin);
	nanosleep(&delay, NULL);
	range->seen = range->meet(range);
	/* This thread alone. */
	syscall(SYS_exit, 0);
	return FAIL;
}

static enum result leave_by(unsigned long flags, struct race_range *range,
			    struct other *other)
{
	leaver.range = *range;
	leaver.other = other;
	TRY(in_clone(flags, write_and_leave, NULL));
	EXPECT(read(leaver.back[0], range, sizeof(*range)) == sizeof(*range),
	       "what came of the round: %s", strerror(errno));
	return PASS;
}

static enum result vforked(struct race_range *range, struct other *other)
{
	return leave_by(CLONE_VFORK | SIGCHLD, range, other);
}

static enum result forked(struct race_range *range, struct other *other)
{
	return leave_by(SIGCHLD, range, other);
}

static void map_anew(struct race_range *range)
{
	range->at = pages(range->count);
}

static enum result vforked_leaver(unsigned int rounds)
{
	struct race_range ranges[] = {
		{ .what = "CLONE_VFORK, MADV_DONTNEED", .count = COUNT,
		  .prepare = map_anew, .take_away = give_up, .round = vforked },
		{ .what = "CLONE_VFORK, munmap", .count = COUNT,
		  .prepare = map_anew, .take_away = unmap, .round = vforked },
		{ .what = "fork, MADV_DONTNEED", .count = COUNT,
		  .prepare = map_anew, .take_away = give_up, .round = forked },
	};

	EXPECT(!pipe(leaver.back), "pipe: %s", strerror(errno));
	return race_for_pages(ranges, 3, rounds);
}

const struct test race_tests[] = {
	{ "unmap_races_writer", "memory given back under a thread's writes",
	  unmap_races_writer, NULL },
	{ "truncate_races_writer", "a file shortened under a thread's writes",
	  truncate_races_writer, NULL },
	{ "truncated_by_other", "the same by another process",
	  truncated_by_other, NULL },
	{ "vforked_leaver", "a child of CLONE_VFORK under a thread that leaves it",
	  vforked_leaver, NULL },
	{ NULL, NULL, NULL, NULL },
};
