// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Memory that somebody holds: he reads /proc/PID/cmdline, which anybody may, into
 * a page that does not come. With FCSE that takes no PID away when the process
 * ends, and keeps it from no execve().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mm_suite.h"

#define LENGTH	64	/* of what is read of a command line */

struct reading {
	int fd;
	char *into;
	pthread_t thread;
};

static void *read_into(void *arg)
{
	struct reading *reading = arg;

	return (void *)read(reading->fd, reading->into, LENGTH);
}

/* Comes back when the reader has the memory, and waits for its page. */
static enum result hold(int faults, struct reading *reading, pid_t pid)
{
	struct uffd_msg msg;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	reading->fd = open(path, O_RDONLY | O_CLOEXEC);
	EXPECT(reading->fd >= 0, "%s: %s", path, strerror(errno));
	EXPECT(small_thread(&reading->thread, read_into, reading),
	       "pthread_create");
	EXPECT(read(faults, &msg, sizeof(msg)) == sizeof(msg) &&
	       msg.event == UFFD_EVENT_PAGEFAULT, "%s was read", path);
	return PASS;
}

/* Is told whose memory to hold; 0 ends it. */
static enum result reader(struct other *other, void *arg)
{
	static struct reading readings[WAITERS];
	char *at = pages(WAITERS);
	unsigned int i;
	uint32_t pid;
	int faults;

	(void)arg;
	TRY(await_faults(at, WAITERS, 0, &faults));
	for (i = 0; i < WAITERS; i++) {
		TRY(child_go(other, 0));
		TRY(child_wait(other, &pid));
		if (!pid)
			break;
		readings[i].into = at + i * PAGE;
		TRY(hold(faults, &readings[i], (pid_t)pid));
	}
	return PASS;
}

static enum result hold_other(struct other *other, pid_t pid)
{
	TRY(other_go(other, (uint32_t)pid));
	return pid ? other_wait(other, NULL) : other_end(other);
}

static enum result held_when_ended(unsigned int rounds)
{
	struct other other;
	unsigned int i;

	/* More rounds show no more. */
	(void)rounds;
	SKIP_UNLESS(has_userfaultfd(), "no userfaultfd");
	TRY(other_start(&other, reader, NULL));
	TRY(other_wait(&other, NULL));
	for (i = 0; i < WAITERS - 1; i++) {
		pid_t pid = fork();

		EXPECT(pid >= 0, "fork, with %u ended ones held: %s", i,
		       strerror(errno));
		if (!pid) {
			pause();
			_exit(FAIL);
		}
		TRY(hold_other(&other, pid));
		kill(pid, SIGKILL);
		EXPECT(waitpid(pid, NULL, 0) == pid, "waitpid: %s",
		       strerror(errno));
	}
	return hold_other(&other, 0);
}

/* Waits for a byte, and becomes another program. */
static enum result changing(int gate)
{
	char byte;

	EXPECT(read(gate, &byte, 1) == 1, "the gate is gone");
	execl("/bin/true", "true", NULL);
	return say(FAIL, __FILE__, __LINE__, "execve: %s", strerror(errno));
}

static enum result held_in_execve(unsigned int rounds)
{
	unsigned int round;

	SKIP_UNLESS(limited(), "no limit");
	SKIP_UNLESS(has_userfaultfd(), "no userfaultfd");
	for (round = 0; round < rounds; round++) {
		struct waiters crowd = { .count = 0 };
		struct other other;
		int gate[2], status = 0;
		pid_t pid;

		EXPECT(!pipe(gate), "pipe: %s", strerror(errno));
		fflush(stdout);
		pid = fork();
		EXPECT(pid >= 0, "fork: %s", strerror(errno));
		if (!pid)
			_exit(changing(gate[0]));
		TRY(other_start(&other, reader, NULL));
		TRY(other_wait(&other, NULL));
		TRY(hold_other(&other, pid));
		EXPECT(!pipe(crowd.gate), "pipe: %s", strerror(errno));
		EXPECT(fill_up(&crowd) == ENOMEM, "no limit was met");
		EXPECT(write(gate[1], "", 1) == 1, "write: %s", strerror(errno));
		EXPECT(waitpid(pid, &status, 0) == pid && !status,
		       "execve at the limit, while its command line is read: %#x",
		       (unsigned int)status);
		TRY(disperse(&crowd));
		TRY(hold_other(&other, 0));
		close(gate[0]);
		close(gate[1]);
	}
	return PASS;
}

const struct test held_tests[] = {
	{ "held_when_ended", "processes that end while their memory is held",
	  held_when_ended, NULL },
	{ "held_in_execve", "execve at the limit while the memory is held",
	  held_in_execve, NULL },
	{ NULL, NULL, NULL, NULL },
};
