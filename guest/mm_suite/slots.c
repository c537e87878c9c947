// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Address spaces beside each other: what is another process's stays there,
 * before and after its end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mm_suite.h"

#define RW		(PROT_READ | PROT_WRITE)
#define COUNT		2
#define VICTIMS		5
#define THREADS		16
#define SMALL_STACK	(64 * 1024)

static sigjmp_buf resume;
static void *volatile fault_address;

static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	fault_address = info->si_addr;
	siglongjmp(resume, 1);
}

enum attack { READ, WRITE, RUN, ATTACKS };

/* Goes through, or the handler comes back. */
static bool attack(enum attack how, uintptr_t at, uint32_t *got)
{
	volatile uint32_t *word = (uint32_t *)at;

	if (sigsetjmp(resume, 1))
		return false;
	if (how == READ)
		*got = *word;
	else if (how == WRITE)
		*word = 0xdead0000;
	else
		*got = (uint32_t)call((void *)at);
	return true;
}

/* Its words are in cache and TLB when it has looked at them. */
static enum result victim(struct other *other, void *arg)
{
	uint32_t *at = arg;
	uint32_t seed, go;

	TRY(child_wait(other, &seed));
	fill(at, COUNT * PAGE, seed);
	/* Code that another one might try to run. */
	put_give(at + COUNT * PAGE_WORDS, 7);
	flush_code(at + COUNT * PAGE_WORDS, PAGE);
	do {
		TRY(holds(at, COUNT * PAGE, seed, "a victim's words"));
		EXPECT(call(at + COUNT * PAGE_WORDS) == 7, "a victim's code");
		TRY(child_go(other, 0));
		TRY(child_wait(other, &go));
	} while (go);
	return holds(at, COUNT * PAGE, seed, "a victim's words at the end");
}

/* Every address of the slot that a victim may have something at. */
static enum result attack_slot(unsigned int slot, uint32_t *own,
			       unsigned int *alias)
{
	unsigned int page;
	enum attack how;

	for (page = 0; page <= COUNT; page++) {
		uint32_t *mine = own + page * PAGE_WORDS;
		uintptr_t at = (uintptr_t)mine + (slot << SLOT_SHIFT);

		for (how = READ; how < ATTACKS; how++) {
			uint32_t got = 0;

			fault_address = NULL;
			if (!attack(how, at, &got)) {
				EXPECT(fault_address == (void *)at,
				       "the fault was at %p, not at %#lx",
				       fault_address, (unsigned long)at);
				continue;
			}
			/* One's own memory has that address, too. */
			EXPECT(!*alias || *alias == slot,
			       "slots %u and %u go through", *alias, slot);
			*alias = slot;
			EXPECT(how != WRITE || mine[0] == 0xdead0000,
			       "slot %u could be written", slot);
			EXPECT(how != READ || got == mine[0],
			       "slot %u could be read: %#x", slot,
			       (unsigned int)got);
			EXPECT(how != RUN || got == 9,
			       "slot %u could be run", slot);
			put_give(mine, 9);
			flush_code(mine, PAGE);
		}
	}
	return PASS;
}

/* The slot by which a process sees its own memory, or 0. */
static unsigned int alias_of(uint32_t *own)
{
	unsigned int slot;
	uint32_t got;

	for (slot = 1; slot < SLOTS; slot++)
		if (attack(READ, (uintptr_t)own + (slot << SLOT_SHIFT), &got))
			return slot;
	return 0;
}

/* Without a handler the attacker dies of it, except in its own slot. */
static enum result dies(enum attack how, unsigned int slot, uint32_t *own)
{
	uint32_t got;
	int status = 0;
	pid_t pid = fork();

	EXPECT(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		bool mine = slot == alias_of(own);

		signal(SIGSEGV, SIG_DFL);
		if (mine)
			raise(SIGSEGV);
		attack(how, (uintptr_t)own + (slot << SLOT_SHIFT), &got);
		_exit(0);
	}
	EXPECT(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV,
	       "attack %d on slot %u ended with %#x", how, slot,
	       (unsigned int)status);
	return PASS;
}

static enum result wake(struct other *victims, uint32_t word)
{
	unsigned int i;

	for (i = 0; i < VICTIMS; i++) {
		TRY(other_go(&victims[i], word));
		if (word)
			TRY(other_wait(&victims[i], NULL));
	}
	return PASS;
}

static enum result foreign_slots(unsigned int rounds)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO };
	struct other victims[VICTIMS];
	uint32_t *own = pages(COUNT + 1);
	unsigned int round, slot, i, alias = 0;
	enum attack how;
	int here;

	SKIP_UNLESS((uintptr_t)&here < SLOT, "the process is above 32 MB");
	for (i = 0; i < VICTIMS; i++) {
		TRY(other_start(&victims[i], victim, own));
		TRY(other_go(&victims[i], i + 1));
		TRY(other_wait(&victims[i], NULL));
	}
	action.sa_sigaction = on_fault;
	sigaction(SIGSEGV, &action, NULL);
	for (i = 0; i <= COUNT; i++) {
		put_give(own + i * PAGE_WORDS, 9);
		flush_code(own + i * PAGE_WORDS, PAGE);
	}
	for (round = 0; round < rounds; round++)
		for (slot = 1; slot < SLOTS; slot++) {
			if (slot % 8 == 1)
				TRY(wake(victims, 1));
			TRY(attack_slot(slot, own, &alias));
		}
	for (slot = 1; slot < SLOTS; slot++) {
		if (slot % 8 == 1)
			TRY(wake(victims, 1));
		for (how = READ; how < ATTACKS; how++)
			TRY(dies(how, slot, own));
	}
	TRY(wake(victims, 0));
	for (i = 0; i < VICTIMS; i++)
		TRY(other_end(&victims[i]));
	return PASS;
}

/*
 * One process after another, at the same addresses. What its predecessor had
 * there it finds neither where nothing is mapped nor in fresh pages.
 */
static enum result successor(uint32_t *hole, unsigned int round)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO };
	enum attack how;
	enum result result;
	uint32_t got, *at;

	action.sa_sigaction = on_fault;
	sigaction(SIGSEGV, &action, NULL);
	for (how = READ; how < ATTACKS; how++)
		EXPECT(!attack(how, (uintptr_t)hole, &got),
		       "attack %d on what was another one's went through", how);
	at = mmap(hole, COUNT * PAGE, RW | PROT_EXEC,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	EXPECT(at == hole, "mmap: %s", strerror(errno));
	result = all_zero(at, COUNT * PAGE, "fresh pages");
	fill(at, COUNT * PAGE, round);
	put_give(at, round);
	flush_code(at, PAGE);
	EXPECT(call(at) == (int)(round & 0xffff), "own code");
	return result;
}

static enum result successors(unsigned int rounds)
{
	uint32_t *hole = pages(COUNT);
	unsigned int round;

	munmap(hole, COUNT * PAGE);
	for (round = 0; round < rounds * 20; round++) {
		int status = 0;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		EXPECT(pid >= 0, "fork: %s", strerror(errno));
		if (!pid) {
			enum result result = successor(hole, round);

			fflush(stdout);
			_exit(result);
		}
		EXPECT(waitpid(pid, &status, 0) == pid && !status,
		       "process %u ended with %#x", round, (unsigned int)status);
	}
	return PASS;
}

/* Processes come and go, some become other programs; 100 in a round. */
static enum result churn(unsigned int rounds)
{
	uint32_t *at = pages(COUNT);
	unsigned int i;

	for (i = 0; i < rounds * 100; i++) {
		int status = 0;
		pid_t pid;

		fill(at, LINE * 2, i);
		pid = i % 5 == 4 ? vfork() : fork();
		EXPECT(pid >= 0, "fork %u: %s", i, strerror(errno));
		if (!pid && i % 5 >= 3) {
			execl("/bin/true", "true", NULL);
			_exit(1);
		} else if (!pid) {
			enum result result = holds(at, LINE * 2, i, "a child");

			fill(at, PAGE, ~i);
			_exit(result);
		}
		EXPECT(waitpid(pid, &status, 0) == pid && !status,
		       "process %u ended with %#x", i, (unsigned int)status);
		TRY(holds(at, LINE * 2, i, "the parent"));
	}
	return PASS;
}

static enum result answer_attached(struct other *other, void *arg)
{
	uint32_t *at = shmat(*(int *)arg, NULL, 0);
	uint32_t round;

	EXPECT(at != (void *)-1, "shmat: %s", strerror(errno));
	for (;;) {
		TRY(child_wait(other, &round));
		if (round == UINT32_MAX)
			return PASS;
		TRY(holds(at, COUNT * PAGE, round, "attached by the child"));
		fill(at, COUNT * PAGE, round + 1);
		TRY(child_go(other, 0));
	}
}

static enum result shared_sysv(unsigned int rounds)
{
	int id = shmget(IPC_PRIVATE, COUNT * PAGE, IPC_CREAT | 0600);
	struct other other;
	unsigned int round;
	uint32_t *at;

	EXPECT(id >= 0, "shmget: %s", strerror(errno));
	/* Elsewhere than in the child. */
	pages(3);
	TRY(other_start(&other, answer_attached, &id));
	at = shmat(id, NULL, 0);
	EXPECT(at != (void *)-1, "shmat: %s", strerror(errno));
	shmctl(id, IPC_RMID, NULL);
	for (round = 0; round < rounds * 2; round++) {
		fill(at, COUNT * PAGE, round * 3);
		TRY(other_go(&other, round * 3));
		TRY(other_wait(&other, NULL));
		TRY(holds(at, COUNT * PAGE, round * 3 + 1,
			  "attached by the parent"));
	}
	TRY(other_go(&other, UINT32_MAX));
	return other_end(&other);
}

static void *use_stack(void *arg)
{
	uint32_t words[SMALL_STACK / 8];
	uint32_t seed = (uint32_t)(uintptr_t)arg;

	fill(words, sizeof(words), seed);
	sched_yield();
	return (void *)(uintptr_t)holds(words, sizeof(words), seed, "a stack");
}

static enum result small_stacks(unsigned int rounds)
{
	pthread_t threads[THREADS];
	pthread_attr_t attr;
	unsigned int round;
	uintptr_t i;

	pthread_attr_init(&attr);
	EXPECT(!pthread_attr_setstacksize(&attr, SMALL_STACK), "stack size");
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < THREADS; i++)
			EXPECT(!pthread_create(&threads[i], &attr, use_stack,
					       (void *)(i + round)),
			       "thread %lu", (unsigned long)i);
		for (i = 0; i < THREADS; i++) {
			void *result;

			pthread_join(threads[i], &result);
			EXPECT(!result, "thread %lu", (unsigned long)i);
		}
	}
	return PASS;
}

/* Down to what the limit allows, and then beyond. */
static enum result stack_limit(unsigned int rounds)
{
	unsigned int round;

	for (round = 0; round < rounds; round++) {
		struct rlimit limit;
		int status = 0;
		pid_t pid = fork();

		EXPECT(pid >= 0, "fork: %s", strerror(errno));
		if (!pid) {
			volatile char *here = (char *)&limit;
			size_t done;

			getrlimit(RLIMIT_STACK, &limit);
			signal(SIGSEGV, SIG_DFL);
			if (limit.rlim_cur > 8u << 20)
				_exit(FAIL);
			for (done = PAGE; done < limit.rlim_cur - 16 * PAGE;
			     done += PAGE) {
				here[-(ptrdiff_t)done] = 1;
				if (here[-(ptrdiff_t)done - 1])
					_exit(FAIL);
			}
			if (write(STDOUT_FILENO, "", 0))
				_exit(FAIL);
			for (;; done += PAGE)
				here[-(ptrdiff_t)done] = 1;
		}
		EXPECT(waitpid(pid, &status, 0) == pid, "waitpid");
		EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV,
		       "the deep one ended with %#x", (unsigned int)status);
	}
	return PASS;
}

/* What was dirty in the cache of a process that crashed is in its core. */
static enum result core_dumped(unsigned int rounds)
{
	static const struct rlimit any = { RLIM_INFINITY, RLIM_INFINITY };
	static uint32_t words[PAGE_WORDS] __attribute__((aligned(PAGE)));
	unsigned int round;

	EXPECT(!chdir("/tmp"), "/tmp: %s", strerror(errno));
	TRY(write_text("/proc/sys/kernel/core_pattern", "core"));
	setrlimit(RLIMIT_CORE, &any);
	for (round = 0; round < rounds; round++) {
		uint32_t got[PAGE_WORDS];
		bool found = false;
		int status = 0, fd;
		pid_t pid;

		unlink("core");
		pid = fork();
		EXPECT(pid >= 0, "fork: %s", strerror(errno));
		if (!pid) {
			fill(words, PAGE, round + 77);
			raise(SIGABRT);
			_exit(0);
		}
		EXPECT(waitpid(pid, &status, 0) == pid, "waitpid");
		EXPECT(WIFSIGNALED(status) && WCOREDUMP(status),
		       "no core: %#x", (unsigned int)status);
		fd = open("core", O_RDONLY | O_CLOEXEC);
		EXPECT(fd >= 0, "core: %s", strerror(errno));
		while (!found && read(fd, got, PAGE) == PAGE)
			found = got[0] == word_of(round + 77, 0) &&
				got[1] == word_of(round + 77, 1);
		close(fd);
		EXPECT(found, "the page is not in the core");
		TRY(holds(got, PAGE, round + 77, "the core"));
	}
	unlink("core");
	return PASS;
}

/* No address of the kernel's memory is a process's. */
static enum result kernel_closed(unsigned int rounds)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO };
	unsigned int round, i;

	action.sa_sigaction = on_fault;
	sigaction(SIGSEGV, &action, NULL);
	for (round = 0; round < rounds; round++)
		for (i = 0; i < 16; i++) {
			uintptr_t at = 0xc0000000 + i * (4u << 20);
			uint32_t got;

			EXPECT(!attack(READ, at, &got), "%#lx could be read",
			       (unsigned long)at);
		}
	return PASS;
}

const struct test slot_tests[] = {
	{ "foreign_slots", "other processes' slots: read, written, run",
	  foreign_slots, NULL },
	{ "kernel_closed", "the kernel's memory, read", kernel_closed,
	  "Linux leaves it open on ARMv5 without CONFIG_CPU_SW_DOMAIN_PAN" },
	{ "successors", "one process after another, same addresses",
	  successors, NULL },
	{ "churn", "fork, exec, exit, over and over", churn, NULL },
	{ "shared_sysv", "System V memory of two processes", shared_sysv, NULL },
	{ "small_stacks", "threads with small stacks", small_stacks, NULL },
	{ "stack_limit", "a stack up to its limit", stack_limit, NULL },
	{ "core_dumped", "the core of a process that crashed", core_dumped,
	  NULL },
	{ NULL, NULL, NULL, NULL },
};
