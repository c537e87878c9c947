// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What a new program finds in the caches: of the one that was there before, and
 * of the page that its first-level table is in.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mm_suite.h"

#define RW		(PROT_READ | PROT_WRITE)
#define FIXED		(MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE)
/* Below every program, in this one and in the next: as large as the cache. */
#define PLACE		((void *)0x100000)
#define COUNT		4
#define BYTES		(COUNT * PAGE)
#define MANY		128
/* A datagram that takes 16 KB with what the kernel puts behind it. */
#define TABLE		(4 * PAGE)
#define DATAGRAM	(TABLE - 1024)
/* Of a table the entries of 32 MB, and in them those of the last 8 MB. */
#define SLOT_ENTRIES	128
#define STACK_ENTRIES	96
#define SLOTS		(DATAGRAM / SLOT_ENTRIES)

static int program = -1;

static void go_on(void)
{
	char *argv[] = { "mm_suite", "--exec-fresh", NULL }, *envp[] = { NULL };

	fexecve(program, argv, envp);
}

/* mm_suite --exec-fresh: what it maps first is where the last one had data. */
int exec_fresh(void)
{
	void *at = mmap(PLACE, BYTES, RW, FIXED, -1, 0);

	if (at != PLACE)
		return say(FAIL, __FILE__, __LINE__, "mmap: %s",
			   strerror(errno));
	return all_zero(at, BYTES, "fresh pages of the new program");
}

/* Dirty lines all over the cache, and then another program. */
static void exec_dirty(void)
{
	volatile uint32_t *at = mmap(PLACE, BYTES, RW, FIXED, -1, 0);
	unsigned int i;

	if (at != PLACE)
		_exit(FAIL);
	for (i = 0; i < COUNT * PAGE_WORDS; i++)
		at[i] = i;
	/* Only a read takes the line in. */
	for (i = 0; i < COUNT * PAGE_WORDS; i += LINE / 4)
		at[i] = at[i + 1] + 1;
	go_on();
	_exit(FAIL);
}

static enum result ended(pid_t pid)
{
	int status = 0;

	EXPECT(pid > 0, "fork: %s", strerror(errno));
	EXPECT(waitpid(pid, &status, 0) == pid && !status,
	       "the new program ended with %#x", (unsigned int)status);
	return PASS;
}

static pid_t wait_at(int gate)
{
	char byte;
	pid_t pid = fork();

	if (!pid)
		_exit(read(gate, &byte, 1) != 0);
	return pid;
}

/*
 * With FCSE's guaranteed mode a program gets the PID of the one that it takes
 * the place of, when there is no other.
 */
static enum result exec_shares(unsigned int rounds)
{
	pid_t pids[MANY];
	unsigned int round, count = 0;
	int gate[2], error = ENOMEM;

	program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	EXPECT(program >= 0 && !pipe2(gate, O_CLOEXEC), "%s", strerror(errno));
	fflush(NULL);
	while (limited() && count < MANY) {
		pids[count] = wait_at(gate[0]);
		if (pids[count] < 0) {
			error = errno;
			break;
		}
		count++;
	}
	EXPECT(error == ENOMEM, "fork: %s", strerror(error));
	if (count) {
		kill(pids[--count], SIGKILL);
		waitpid(pids[count], NULL, 0);
	}
	for (round = 0; round < rounds * 4; round++) {
		pid_t pid = fork();

		if (!pid)
			exec_dirty();
		TRY(ended(pid));
	}
	return PASS;
}

/* The kernel reads one line of each slot that such a table would have. */
static enum result look(int from)
{
	unsigned int slot;
	char word[4];

	for (slot = 0; slot < SLOTS; slot++) {
		int offset = (int)(slot * SLOT_ENTRIES + STACK_ENTRIES);

		EXPECT(!setsockopt(from, SOL_SOCKET, SO_PEEK_OFF, &offset,
				   sizeof(offset)), "SO_PEEK_OFF: %s",
		       strerror(errno));
		EXPECT(recv(from, word, 4, MSG_PEEK) == 4, "peek: %s",
		       strerror(errno));
	}
	return PASS;
}

/*
 * What the kernel has just looked at and freed becomes the first-level table of
 * a new program. The old one goes on in the parent, so nothing is flushed for
 * its end.
 */
static enum result exec_recycled(unsigned int rounds)
{
	static char data[DATAGRAM];
	unsigned int round;
	int ends[2];

	program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	EXPECT(program >= 0 &&
	       !socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends),
	       "set-up: %s", strerror(errno));
	fill(data, DATAGRAM, 1);
	fflush(NULL);
	for (round = 0; round < rounds * 4; round++) {
		pid_t pid;

		EXPECT(send(ends[0], data, DATAGRAM, 0) == DATAGRAM, "send: %s",
		       strerror(errno));
		pid = vfork();
		if (!pid) {
			char byte;

			if (look(ends[1]) || recv(ends[1], &byte, 1, 0) != 1)
				_exit(FAIL);
			go_on();
			_exit(FAIL);
		}
		TRY(ended(pid));
	}
	return PASS;
}

const struct test exec_tests[] = {
	{ "exec_shares", "a program where another one has just been",
	  exec_shares, NULL },
	{ "exec_recycled", "a program's tables where the kernel has just read",
	  exec_recycled, NULL },
	{ NULL, NULL, NULL, NULL },
};
