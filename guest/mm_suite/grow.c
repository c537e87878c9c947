// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Processes of 1 to 256 MB that grow and shrink while they pass data on, in
 * shared memory, pipes and a file; all that is passed on or kept is checked.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "mm_suite.h"

#define RW		(PROT_READ | PROT_WRITE)
#define MB		(1u << 20)
#define PROCESSES	6
#define TOKENS		2
#define BLOCKS		(PROCESSES * TOKENS)
#define REGIONS		4
#define TOUCHED		6
#define END		UINT32_MAX
/* Time of a round; --rounds 1500 makes 5 minutes. */
#define ROUND_MS	200

/* Some pages of much address space. */
struct region {
	uint32_t *at;
	size_t bytes;
	unsigned int count;
	uint32_t page[TOUCHED];
	uint32_t seed[TOUCHED];
};

struct process {
	unsigned int number;
	uint32_t random;
	struct region region[REGIONS];
	int from, to, file;
	uint32_t *shared;
};

struct token {
	uint32_t number;
	uint32_t seed;
	uint32_t words[62];
};

static uint32_t any(struct process *p, uint32_t below)
{
	p->random = p->random * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)p->random * below) >> 32);
}

static enum result check(const struct region *region, const char *what)
{
	unsigned int i;

	for (i = 0; i < region->count; i++)
		TRY(holds(region->at + region->page[i] * PAGE_WORDS, PAGE,
			  region->seed[i], what));
	return PASS;
}

static void touch(struct process *p, struct region *region)
{
	unsigned int i, which;
	uint32_t page = any(p, (uint32_t)(region->bytes / PAGE));

	for (which = 0; which < region->count; which++)
		if (region->page[which] == page)
			break;
	if (which == TOUCHED)
		which = any(p, TOUCHED);
	else if (which == region->count)
		region->count++;
	i = which;
	region->page[i] = page;
	region->seed[i] = any(p, 1u << 31);
	fill(region->at + page * PAGE_WORDS, PAGE, region->seed[i]);
}

static enum result map(struct process *p, struct region *region)
{
	region->bytes = MB << any(p, 9);
	region->count = 0;
	region->at = mmap(NULL, region->bytes, RW, MAP_PRIVATE | MAP_ANONYMOUS |
			  MAP_NORESERVE, -1, 0);
	EXPECT(region->at != MAP_FAILED, "%zu MB: %s", region->bytes / MB,
	       strerror(errno));
	return PASS;
}

/* Pages beyond the new end are gone. */
static enum result resize(struct process *p, struct region *region)
{
	size_t bytes = MB << any(p, 9);
	unsigned int i, kept = 0;
	void *at = mremap(region->at, region->bytes, bytes, MREMAP_MAYMOVE);

	EXPECT(at != MAP_FAILED, "mremap to %zu MB: %s", bytes / MB,
	       strerror(errno));
	region->at = at;
	region->bytes = bytes;
	for (i = 0; i < region->count; i++)
		if (region->page[i] < bytes / PAGE) {
			region->page[kept] = region->page[i];
			region->seed[kept++] = region->seed[i];
		}
	region->count = kept;
	return check(region, "a region that was resized");
}

/* A child that has all of it, too. */
static enum result use_copy(void *arg)
{
	struct process *p = arg;
	unsigned int i;

	for (i = 0; i < REGIONS; i++) {
		if (!p->region[i].at)
			continue;
		TRY(check(&p->region[i], "a child"));
		touch(p, &p->region[i]);
	}
	return PASS;
}

static enum result change(struct process *p)
{
	struct region *region = &p->region[any(p, REGIONS)];

	if (any(p, 24) == 0)
		return in_child(use_copy, p);
	if (!region->at) {
		TRY(map(p, region));
		touch(p, region);
		return PASS;
	}
	TRY(check(region, "a region"));
	switch (any(p, 4)) {
	case 0:
		munmap(region->at, region->bytes);
		region->at = NULL;
		return PASS;
	case 1:
		return resize(p, region);
	default:
		touch(p, region);
		return PASS;
	}
}

/* What the one before has left: in the pipe, in shared memory, in the file. */
static enum result take(struct process *p, const struct token *token)
{
	unsigned int before = (p->number + PROCESSES - 1) % PROCESSES;
	unsigned int block = before * TOKENS + token->number;
	uint32_t got[PAGE_WORDS];

	TRY(holds(token->words, sizeof(token->words), token->seed, "the pipe"));
	TRY(holds(p->shared + block * PAGE_WORDS, PAGE, token->seed,
		  "shared memory"));
	EXPECT(pread(p->file, got, PAGE, block * PAGE) == PAGE, "read");
	return holds(got, PAGE, token->seed + 1, "the file");
}

static enum result leave(struct process *p, struct token *token)
{
	unsigned int block = p->number * TOKENS + token->number;
	uint32_t words[PAGE_WORDS];

	token->seed = any(p, 1u << 31);
	fill(token->words, sizeof(token->words), token->seed);
	fill(p->shared + block * PAGE_WORDS, PAGE, token->seed);
	fill(words, PAGE, token->seed + 1);
	EXPECT(pwrite(p->file, words, PAGE, block * PAGE) == PAGE, "write");
	return PASS;
}

static long ms_since(const struct timespec *begin)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - begin->tv_sec) * 1000 +
	       (now.tv_nsec - begin->tv_nsec) / 1000000;
}

/* The first one ends it, when it is time. */
static enum result pass_on(struct process *p, long ms)
{
	struct timespec begin;
	unsigned int ended = 0;
	struct token token;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	while (ended < TOKENS) {
		EXPECT(read(p->from, &token, sizeof(token)) == sizeof(token),
		       "process %u: no token", p->number);
		if (token.number == END) {
			ended++;
		} else {
			TRY(take(p, &token));
			TRY(change(p));
			TRY(leave(p, &token));
			if (!p->number && ms_since(&begin) > ms)
				token.number = END;
		}
		if (token.number == END && !p->number && ended)
			continue;
		EXPECT(write(p->to, &token, sizeof(token)) == sizeof(token),
		       "process %u: cannot pass on", p->number);
	}
	return PASS;
}

static enum result begin_ring(int pipes[PROCESSES][2], struct process *last)
{
	unsigned int i;

	last->number = PROCESSES - 1;
	for (i = 0; i < TOKENS; i++) {
		struct token token = { .number = i };

		TRY(leave(last, &token));
		EXPECT(write(pipes[0][1], &token, sizeof(token)) ==
		       sizeof(token), "the first token");
	}
	return PASS;
}

static enum result grow_and_shrink(unsigned int rounds)
{
	struct process p = { .file = memory_file(BLOCKS * PAGE, 0) };
	int pipes[PROCESSES][2];
	pid_t pids[PROCESSES];
	unsigned int i;

	SKIP_UNLESS(!limited(), "FCSE limits the size of processes");
	p.shared = mmap(NULL, BLOCKS * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	EXPECT(p.shared != MAP_FAILED, "mmap: %s", strerror(errno));
	for (i = 0; i < PROCESSES; i++)
		EXPECT(!pipe(pipes[i]), "pipe: %s", strerror(errno));
	TRY(begin_ring(pipes, &p));
	fflush(stdout);
	for (i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		EXPECT(pids[i] >= 0, "fork: %s", strerror(errno));
		if (pids[i])
			continue;
		p.number = i;
		p.random = i * 7919 + rounds;
		p.from = pipes[i][0];
		p.to = pipes[(i + 1) % PROCESSES][1];
		_exit(pass_on(&p, (long)rounds * ROUND_MS));
	}
	for (i = 0; i < PROCESSES; i++) {
		int status = 0;
		pid_t pid = wait(&status);

		/* The others wait for the one that failed. */
		EXPECT(pid > 0 && !status, "a process ended with %#x",
		       (unsigned int)status);
	}
	return PASS;
}

const struct test grow_tests[] = {
	{ "grow_and_shrink", "processes of 1 to 256 MB that pass data on",
	  grow_and_shrink, NULL },
	{ NULL, NULL, NULL, NULL },
};
