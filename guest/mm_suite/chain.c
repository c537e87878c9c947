// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A way around FCSE's limit of processes that an adversary found: memory that
 * outlives the execve() which gives its process other memory.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "mm_suite.h"
#include "race.h"

#define CHAIN		20
#define LEADER_US	20000
#define NAP_NS		100000
#define STRINGS		24	/* a page each; 128 KB always go */
#define LINK		0xc0ffeeu
#define PIDS_LIMIT	"/sys/kernel/debug/fcse/pids_limit"

/* Of all processes of the board those that have memory. */
static unsigned int processes(void)
{
	DIR *proc = opendir("/proc");
	unsigned int count = 0;
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		char path[64];

		/* Not "self". */
		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		snprintf(path, sizeof(path), "/proc/%.16s/status",
			 entry->d_name);
		count += named_number(path, "VmSize") > 0;
	}
	if (proc)
		closedir(proc);
	return count;
}

/* What goes on from program to program. */
static struct chain {
	int gate, back, program, way, count;
} chain;

static void report(uint32_t word)
{
	if (write(chain.back, &word, 4) != 4)
		_exit(FAIL);
}

static int wait_at_gate(void *arg)
{
	char byte;

	(void)arg;
	_exit(read(chain.gate, &byte, 1) != 0);
}

/* Of CHAIN links; gives an errno. */
static int next_link(char **envp)
{
	char text[64], *argv[] = { "mm_suite", "--exec-chain", text, NULL };

	snprintf(text, sizeof(text), "%d %d %d %d %d", chain.gate, chain.back,
		 chain.program, chain.way, chain.count + 1);
	fexecve(chain.program, argv, envp);
	return errno;
}

/* The address space goes on in a process that has no other. */
static bool keep_memory(void)
{
	static char stack[4 * PAGE] __attribute__((aligned(8)));

	return clone(wait_at_gate, stack + sizeof(stack), CLONE_VM | SIGCHLD,
		     NULL) > 0;
}

static void *without_leader(void *arg)
{
	char *envp[] = { NULL };

	(void)arg;
	usleep(LEADER_US);
	report((uint32_t)(keep_memory() ? next_link(envp) : errno));
	_exit(PASS);
}

/* The leader goes, and what the thread does next it does as the last one. */
static enum result leave_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, without_leader, NULL))
		return FAIL;
	/* This thread alone. */
	syscall(SYS_exit, 0);
	return FAIL;
}

/* As soon as execve() has read the first of the strings. */
static void *keep_meanwhile(void *arg)
{
	struct timespec nap = { 0, NAP_NS };
	unsigned char read = 0;

	prctl(PR_SET_TIMERSLACK, 1);
	while (!mincore(arg, PAGE, &read) && !read)
		nanosleep(&nap, NULL);
	keep_memory();
	return NULL;
}

/* The new address space is there while the strings are copied, last one first. */
static enum result copy_strings(void)
{
	static char string[PAGE];
	char *envp[STRINGS + 2] = { NULL }, *last = pages(1);
	pthread_t thread;
	unsigned int i;

	memset(string, 'x', PAGE - 1);
	for (i = 0; i < STRINGS; i++)
		envp[i] = string;
	envp[STRINGS] = last;
	if (pthread_create(&thread, NULL, keep_meanwhile, last))
		return FAIL;
	report((uint32_t)next_link(envp));
	return PASS;
}

static const struct {
	const char *what;
	enum result (*go_on)(void);
} links[] = {
	{ "threads without a leader", leave_thread },
	{ "clone() while execve() copies", copy_strings },
};

#define LINKS ((int)(sizeof(links) / sizeof(links[0])))

/* mm_suite --exec-chain "GATE BACK PROGRAM WAY COUNT" */
int exec_chain(const char *text)
{
	if (sscanf(text, "%d %d %d %d %d", &chain.gate, &chain.back,
		   &chain.program, &chain.way, &chain.count) != 5 ||
	    chain.way >= LINKS)
		return FAIL;
	report(LINK);
	if (chain.count > CHAIN) {
		report(0);
		return PASS;
	}
	return links[chain.way].go_on();
}

/* An ordinary user's crowd, as large as may be, and then the first link. */
static enum result users_crowd(struct other *other, void *arg)
{
	struct waiters users = { .gate = { other->to_child[0], -1 } };
	char *envp[] = { NULL };

	(void)arg;
	ordinary_user();
	chain.gate = other->to_child[0];
	chain.back = other->to_parent[1];
	TRY(child_go(other, (uint32_t)fill_up(&users)));
	report((uint32_t)next_link(envp));
	return PASS;
}

/* With those that root may have on top. */
static enum result most_processes(unsigned int *there)
{
	struct waiters rest = { .count = 0 };
	int error;

	EXPECT(!pipe(rest.gate), "pipe: %s", strerror(errno));
	error = fill_up(&rest);
	*there = processes();
	TRY(disperse(&rest));
	close(rest.gate[0]);
	EXPECT(error == ENOMEM, "root's fork: %s", strerror(error));
	return PASS;
}

/* Until it cannot go on; how many there may be then. */
static enum result follow_chain(struct other *other, unsigned int *there)
{
	unsigned int count = 0;
	uint32_t word;
	int status;

	TRY(other_wait(other, &word));
	EXPECT(word == ENOMEM || word == EAGAIN, "a user's fork: %s",
	       strerror((int)word));
	do {
		TRY(other_wait(other, &word));
		count += word == LINK;
	} while (word == LINK);
	EXPECT(waitpid(other->pid, &status, 0) == other->pid && !status,
	       "the chain ended with %#x", (unsigned int)status);
	TRY(most_processes(there));
	say(PASS, __FILE__, __LINE__, "%s: %u links, then %u processes",
	    links[chain.way].what, count, *there);
	EXPECT(word == ENOMEM, "the chain of programs ended with: %s",
	       strerror((int)word));
	/* The first one was alone in its memory. */
	EXPECT(count, "no execve() at the limit");
	return PASS;
}

static enum result shared_at_limit(unsigned int rounds)
{
	unsigned int round, there = 0, limit;
	enum result result = PASS;
	struct other other;

	SKIP_UNLESS(limited(), "no limit");
	limit = (unsigned int)read_number(PIDS_LIMIT);
	/* What the chain leaves behind is this process's, and waited for. */
	EXPECT(!prctl(PR_SET_CHILD_SUBREAPER, 1), "prctl: %s", strerror(errno));
	/* A second of the board's time each. */
	for (round = 0; round < rounds && !result; round++) {
		chain.way = (int)round % LINKS;
		chain.program = open("/proc/self/exe", O_RDONLY);
		EXPECT(chain.program >= 0, "open: %s", strerror(errno));
		TRY(other_start(&other, users_crowd, NULL));
		result = follow_chain(&other, &there);
		close(other.to_child[1]);
		close(other.to_parent[0]);
		close(chain.program);
		while (wait(NULL) > 0)
			;
		EXPECT(there <= limit,
		       "%u processes where %u PIDs are", there, limit);
	}
	return result;
}

const struct test chain_tests[] = {
	{ "shared_at_limit", "memory that outlives its execve() at the limit of PIDs",
	  shared_at_limit, NULL },
	{ NULL, NULL, NULL, NULL },
};
