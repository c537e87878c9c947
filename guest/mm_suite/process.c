// SPDX-License-Identifier: MIT OR Apache-2.0
/* Processes: fork with copy on write, exec, threads, futexes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mm_suite.h"

#define COW_PAGES	6
#define DEPTH		4
#define THREADS		3
#define ARG_BYTES	9000

static enum result cow_child(struct other *other, void *data)
{
	uint32_t round;

	TRY(child_wait(other, &round));
	TRY(holds(data, COW_PAGES * PAGE, round, "child before its write"));
	fill(data, COW_PAGES * PAGE, round + 1000);
	TRY(child_go(other, 0));
	TRY(child_wait(other, NULL));
	return holds(data, COW_PAGES * PAGE, round + 1000,
		     "child after the parent's write");
}

static enum result fork_cow(unsigned int rounds)
{
	char *data = pages(COW_PAGES);
	unsigned int round;

	for (round = 0; round < rounds * 2; round++) {
		struct other other;
		unsigned int i;

		fill(data, COW_PAGES * PAGE, round);
		TRY(other_start(&other, cow_child, data));
		/* Odd rounds: the parent writes first, and at once. */
		for (i = 1; round & 1 && i < COW_PAGES; i++)
			*(volatile uint32_t *)(data + i * PAGE) = i;
		if (round & 1)
			fill(data + PAGE, PAGE, round + 5000);
		TRY(other_go(&other, round));
		if (round & 1)
			TRY(holds(data + PAGE, PAGE, round + 5000, "parent"));
		TRY(other_wait(&other, NULL));
		TRY(holds(data, PAGE, round, "parent, page left alone"));
		fill(data, COW_PAGES * PAGE, round + 2000);
		TRY(other_go(&other, 0));
		TRY(other_end(&other));
		TRY(holds(data, COW_PAGES * PAGE, round + 2000,
			  "parent after both wrote"));
	}
	return PASS;
}

/* Each generation gets a page of its own and must keep the others'. */
static enum result generation(char *data, unsigned int depth, uint32_t seed)
{
	unsigned int i;
	int status = 0;
	pid_t pid;

	fill(data + depth * PAGE, PAGE, seed + depth + 100);
	if (depth + 1 < DEPTH) {
		fflush(stdout);
		pid = fork();
		EXPECT(pid >= 0, "fork: %s", strerror(errno));
		if (!pid)
			_exit(generation(data, depth + 1, seed));
		/* Written while the child runs. */
		fill(data + depth * PAGE, PAGE / 2, seed + depth + 200);
		EXPECT(waitpid(pid, &status, 0) == pid, "waitpid");
		EXPECT(status == 0, "generation %u ended with %#x", depth + 1,
		       (unsigned int)status);
		TRY(holds(data + depth * PAGE, PAGE / 2, seed + depth + 200,
			  "own page, first half"));
	}
	for (i = 0; i < DEPTH; i++)
		if (i > depth)
			TRY(holds(data + i * PAGE, PAGE, seed + i,
				  "a page that only descendants wrote"));
	return PASS;
}

static enum result fork_generations(unsigned int rounds)
{
	char *data = pages(DEPTH);
	unsigned int round, i;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < DEPTH; i++)
			fill(data + i * PAGE, PAGE, round + i);
		TRY(generation(data, 0, round));
	}
	return PASS;
}

struct writers {
	pthread_mutex_t lock;
	volatile bool stop;
	volatile uint32_t seed[THREADS];
	char *data;
};

struct writer {
	struct writers *all;
	unsigned int index;
	pthread_t thread;
};

static void *keep_writing(void *arg)
{
	struct writer *writer = arg;
	struct writers *all = writer->all;

	while (!all->stop) {
		pthread_mutex_lock(&all->lock);
		all->seed[writer->index]++;
		fill(all->data + writer->index * PAGE, PAGE,
		     all->seed[writer->index]);
		pthread_mutex_unlock(&all->lock);
		sched_yield();
	}
	return NULL;
}

static enum result check_writers(struct writers *all, const char *what)
{
	unsigned int i;

	for (i = 0; i < THREADS; i++)
		TRY(holds(all->data + i * PAGE, PAGE, all->seed[i], what));
	return PASS;
}

static enum result fork_threads(unsigned int rounds)
{
	static struct writers all = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct writer writers[THREADS];
	unsigned int round, i;

	all.data = pages(THREADS);
	for (i = 0; i < THREADS; i++) {
		fill(all.data + i * PAGE, PAGE, 0);
		writers[i] = (struct writer){ .all = &all, .index = i };
		EXPECT(!pthread_create(&writers[i].thread, NULL, keep_writing,
				       &writers[i]), "thread");
	}
	for (round = 0; round < rounds * 2; round++) {
		int status = 0;
		pid_t pid;

		pthread_mutex_lock(&all.lock);
		pid = fork();
		if (!pid) {
			enum result result = check_writers(&all, "the copy");

			fflush(stdout);
			_exit(result);
		}
		pthread_mutex_unlock(&all.lock);
		EXPECT(pid > 0, "fork: %s", strerror(errno));
		sched_yield();
		EXPECT(waitpid(pid, &status, 0) == pid && !status,
		       "the child ended with %#x", (unsigned int)status);
	}
	all.stop = true;
	for (i = 0; i < THREADS; i++)
		pthread_join(writers[i].thread, NULL);
	return check_writers(&all, "after the threads");
}

static enum result vfork_writes(unsigned int rounds)
{
	char *data = pages(2);
	volatile unsigned int round;

	for (round = 0; round < rounds; round++) {
		int status = 0;
		pid_t pid;

		fill(data, PAGE, round);
		pid = vfork();
		if (!pid) {
			fill(data, PAGE, round + 10);
			_exit(0);
		}
		EXPECT(pid > 0, "vfork: %s", strerror(errno));
		TRY(holds(data, PAGE, round + 10, "what the child left"));
		EXPECT(waitpid(pid, &status, 0) == pid && !status, "child");
	}
	return PASS;
}

/* mm_suite --exec-check SEED TEXT: the text must be what the seed gives. */
static void make_arg(char *text, uint32_t seed)
{
	unsigned int i;

	for (i = 0; i < ARG_BYTES; i++)
		text[i] = (char)('a' + word_of(seed, i) % 26);
	text[ARG_BYTES] = 0;
}

/* Big and initialized: pages of the file, copied on the first write. */
static uint32_t exec_data[2 * PAGE_WORDS] = { 1, 2, 3 };
static uint32_t exec_bss[2 * PAGE_WORDS];

int exec_check(int argc, char **argv)
{
	static char want[ARG_BYTES + 1];
	const char *home = getenv("MM_SUITE");
	uint32_t seed;
	size_t i;

	if (argc != 4 || !home)
		return FAIL;
	seed = (uint32_t)strtoul(argv[2], NULL, 10);
	make_arg(want, seed);
	if (strcmp(want, argv[3]) || strcmp(want, home))
		return FAIL;
	if (exec_data[0] != 1 || exec_data[1] != 2 || exec_data[2] != 3)
		return FAIL;
	for (i = 3; i < 2 * PAGE_WORDS; i++)
		if (((volatile uint32_t *)exec_data)[i])
			return FAIL;
	if (all_zero(exec_bss, sizeof(exec_bss), "bss after exec"))
		return FAIL;
	/* Into the next program's memory none of this may leak. */
	fill(exec_data, sizeof(exec_data), seed);
	fill(exec_bss, sizeof(exec_bss), seed);
	return holds(exec_data, sizeof(exec_data), seed, "data after exec");
}

static enum result exec_file(int fd, uint32_t seed)
{
	static char text[ARG_BYTES + 1], variable[ARG_BYTES + 32];
	char number[16];
	char *argv[] = { "mm_suite", "--exec-check", number, text, NULL };
	char *envp[] = { variable, NULL };
	int status = 0;
	pid_t pid;

	make_arg(text, seed);
	snprintf(number, sizeof(number), "%u", (unsigned int)seed);
	snprintf(variable, sizeof(variable), "MM_SUITE=%s", text);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		fexecve(fd, argv, envp);
		_exit(126);
	}
	EXPECT(pid > 0, "fork: %s", strerror(errno));
	EXPECT(waitpid(pid, &status, 0) == pid && !status,
	       "the new program ended with %#x", (unsigned int)status);
	return PASS;
}

static enum result exec_arguments(unsigned int rounds)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	unsigned int round;

	EXPECT(fd >= 0, "/proc/self/exe: %s", strerror(errno));
	for (round = 0; round < rounds; round++)
		TRY(exec_file(fd, round));
	return PASS;
}

/* Text that was just written to a file, then executed. */
static enum result exec_fresh_text(unsigned int rounds)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	unsigned int round;

	EXPECT(from >= 0, "/proc/self/exe: %s", strerror(errno));
	for (round = 0; round < rounds; round++) {
		int to = memfd_create("program", MFD_CLOEXEC);
		off_t at = 0;

		EXPECT(to >= 0, "memfd: %s", strerror(errno));
		while (sendfile(to, from, &at, 1 << 20) > 0)
			;
		TRY(exec_file(to, round + 50));
		close(to);
	}
	return PASS;
}

static __thread uint32_t tls[64];

struct ring {
	pthread_barrier_t barrier;
	unsigned int rounds;
	char *data;
};

struct member {
	struct ring *ring;
	unsigned int index;
	pthread_t thread;
};

static void *turn(void *arg)
{
	struct member *member = arg;
	struct ring *ring = member->ring;
	enum result result = PASS;
	unsigned int round;

	fill(tls, sizeof(tls), member->index);
	for (round = 0; round < ring->rounds; round++) {
		unsigned int next = (member->index + 1) % THREADS;

		fill(ring->data + member->index * PAGE, PAGE,
		     round * THREADS + member->index);
		pthread_barrier_wait(&ring->barrier);
		result |= holds(ring->data + next * PAGE, PAGE,
				round * THREADS + next, "the neighbour's page");
		result |= holds(tls, sizeof(tls), member->index, "TLS");
		pthread_barrier_wait(&ring->barrier);
	}
	return (void *)(uintptr_t)result;
}

static enum result threads_tls(unsigned int rounds)
{
	struct ring ring = { .rounds = rounds * 2, .data = pages(THREADS) };
	struct member members[THREADS];
	unsigned int i;

	pthread_barrier_init(&ring.barrier, NULL, THREADS);
	for (i = 0; i < THREADS; i++) {
		members[i] = (struct member){ .ring = &ring, .index = i };
		EXPECT(!pthread_create(&members[i].thread, NULL, turn,
				       &members[i]), "thread");
	}
	for (i = 0; i < THREADS; i++) {
		void *result;

		pthread_join(members[i].thread, &result);
		EXPECT(!result, "thread %u", i);
	}
	return PASS;
}

static long futex(volatile uint32_t *word, int op, uint32_t value)
{
	return syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

/* Waits until the word has its lowest bit as wanted. */
static void until(volatile uint32_t *word, uint32_t parity)
{
	uint32_t now;

	while (((now = *word) & 1) != parity)
		futex(word, FUTEX_WAIT, now);
}

static enum result futex_child(struct other *other, void *arg)
{
	volatile uint32_t *word = arg;
	unsigned int i, turns;

	TRY(child_wait(other, &turns));
	for (i = 0; i < turns; i++) {
		until(word, 1);
		EXPECT(word[8] == *word, "turn %u: data %u behind word %u", i,
		       (unsigned int)word[8], (unsigned int)*word);
		word[8] = *word + 1;
		++*word;
		futex(word, FUTEX_WAKE, 1);
	}
	return PASS;
}

static enum result futex_processes(unsigned int rounds)
{
	unsigned int i, turns = rounds * 4;
	volatile uint32_t *word;
	struct other other;

	word = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	EXPECT(word != MAP_FAILED, "mmap: %s", strerror(errno));
	TRY(other_start(&other, futex_child, (void *)word));
	TRY(other_go(&other, turns));
	for (i = 0; i < turns; i++) {
		word[8] = *word + 1;
		++*word;
		futex(word, FUTEX_WAKE, 1);
		until(word, 0);
		EXPECT(word[8] == *word, "turn %u: data %u behind word %u", i,
		       (unsigned int)word[8], (unsigned int)*word);
	}
	return other_end(&other);
}

const struct test process_tests[] = {
	{ "fork_cow", "parent and child write the same pages", fork_cow, NULL },
	{ "fork_generations", "four generations, each with its copies",
	  fork_generations, NULL },
	{ "fork_threads", "fork while threads write", fork_threads, NULL },
	{ "vfork_writes", "a vfork child writes the parent's memory",
	  vfork_writes, NULL },
	{ "exec_arguments", "exec with arguments of several pages",
	  exec_arguments, NULL },
	{ "exec_fresh_text", "exec of a program that was just written",
	  exec_fresh_text, NULL },
	{ "threads_tls", "threads hand pages around; thread-local data",
	  threads_tls, NULL },
	{ "futex_processes", "two processes on one futex", futex_processes, NULL },
	{ NULL, NULL, NULL, NULL },
};
