// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * fork() copies a page that is pinned at once, while it can still be written. A
 * thread stores a number in that page, then in one that lies below it, and lets
 * another process run. The lower page becomes read-only before the pinned one is
 * copied: a child that has the number there has to have it in the copy, too.
 *
 * A round is met when the child finds that the thread wrote behind the beginning
 * of the fork. Needs root: the thread comes in by its priority.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "mm_suite.h"

#define BELOW		300	/* pages that fork goes through on the way */
#define PERIOD_NS	250000
#define TRIES		20
#define WRITER		20
#define READER		10
#define AT_CHILD	1
#define OLD_COPY	2

static struct {
	volatile uint32_t *low, *pinned;
	void *nowhere;		/* no page: who writes there waits */
	int ends[2];
} fork_of;

static bool real_time(int priority)
{
	struct sched_param param = { .sched_priority = priority };

	return !sched_setscheduler(0, SCHED_FIFO, &param);
}

/* The kernel has the page pinned until the page comes that it copies to. */
static void *pin(void *arg)
{
	struct iovec local = { fork_of.nowhere, 4 };
	struct iovec remote = { (void *)fork_of.pinned, 4 };

	process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	return arg;
}

static void *count_up(void *arg)
{
	uint32_t number = 0;

	real_time(WRITER);
	for (;;) {
		struct timespec period = { 0, PERIOD_NS };

		number++;
		/* Only a read takes the line in. */
		*fork_of.pinned += number - *fork_of.pinned;
		*fork_of.low = number;
		if (write(fork_of.ends[1], "", 1) != 1)
			return arg;
		nanosleep(&period, NULL);
	}
}

/* Another process, which runs when the thread has written. */
static void run_between(void)
{
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	real_time(READER);
	close(fork_of.ends[1]);
	while (read(fork_of.ends[0], &c, 1) == 1)
		;
	_exit(0);
}

static enum result set_up(void)
{
	uint32_t *at = pages(BELOW + 2);
	pthread_t thread;
	unsigned int i;
	int faults;
	pid_t pid;

	for (i = 0; i < BELOW + 2; i++)
		at[i * PAGE_WORDS] = 1;
	fork_of.low = at + BELOW * PAGE_WORDS;
	fork_of.pinned = at + (BELOW + 1) * PAGE_WORDS;
	EXPECT(!pipe(fork_of.ends), "pipe: %s", strerror(errno));
	pid = fork();
	EXPECT(pid >= 0, "fork: %s", strerror(errno));
	if (!pid)
		run_between();
	/* Its own again. */
	*fork_of.low = *fork_of.pinned = 0;
	fork_of.nowhere = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TRY(await_faults(fork_of.nowhere, 1, 0, &faults));
	EXPECT(small_thread(&thread, pin, NULL), "thread: %s",
	       strerror(errno));
	/* It waits when the fault is told of. */
	EXPECT(read(faults, (char [64]){ 0 }, 64) > 0, "userfaultfd: %s",
	       strerror(errno));
	EXPECT(small_thread(&thread, count_up, NULL), "thread: %s",
	       strerror(errno));
	return PASS;
}

static enum result fork_once(unsigned int *met, unsigned int *bad)
{
	uint32_t before = *fork_of.low;
	int status = 0;
	pid_t pid = fork();

	EXPECT(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		uint32_t low = *fork_of.low, pinned = *fork_of.pinned;

		_exit((low > before ? AT_CHILD : 0) |
		      (pinned < low ? OLD_COPY : 0));
	}
	EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status),
	       "the child ended by a signal");
	*met += (WEXITSTATUS(status) & AT_CHILD) != 0;
	*bad += (WEXITSTATUS(status) & OLD_COPY) != 0;
	return PASS;
}

static enum result fork_pinned(unsigned int rounds)
{
	unsigned int met = 0, bad = 0, try;

	SKIP_UNLESS(real_time(1), "real-time: %s", strerror(errno));
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
	TRY(set_up());
	for (try = 0; try < rounds * TRIES && met < rounds; try++) {
		struct timespec pause = { 0, 1000000 };

		TRY(fork_once(&met, &bad));
		nanosleep(&pause, NULL);
	}
	say(PASS, __FILE__, __LINE__, "%u tries, %u met, %u with an old copy",
	    try, met, bad);
	EXPECT(met == rounds, "only %u met", met);
	EXPECT(!bad, "an old copy in %u of %u rounds", bad, met);
	return PASS;
}

const struct test pinned_tests[] = {
	{ "fork_pinned", "a fork of a page that is pinned and written",
	  fork_pinned, NULL },
	{ NULL, NULL, NULL, NULL },
};
