// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What is left of processes that have ended, or never began, and whose
 * mm_struct somebody keeps: with FCSE it takes no PID away, is no load on those
 * that go on, and is nobody to share a PID with.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mm_suite.h"
#include "race.h"

#define PILE		300
#define REFUSED		50	/* attempts, of which the shortest counts */
#define FAILED		200	/* more than there are PIDs */
#define DEAD		282	/* three to each PID that is not 0 */
#define LIVE		3
#define FEW		8
#define NICEST		19

/* --- a pile of them, all with one PID --- */

static long refused_us(void)
{
	long least = LONG_MAX;
	unsigned int i;

	for (i = 0; i < REFUSED; i++) {
		int64_t from = now();
		pid_t pid = fork();
		long us = (long)((now() - from) / 1000);

		if (!pid)
			_exit(PASS);
		if (pid > 0)
			return -1;
		if (us < least)
			least = us;
	}
	return least;
}

static int next_of_pile(int back, bool keeps, int count)
{
	char text[48], *argv[] = { "mm_suite", "--exec-pile", text, NULL };
	char *envp[] = { NULL };

	snprintf(text, sizeof(text), "%d %d %d", back, keeps, count);
	execve("/proc/self/exe", argv, envp);
	return errno;
}

/* mm_suite --exec-pile "BACK KEEPS COUNT" */
int exec_pile(const char *text)
{
	int back, keeps, count;
	uint32_t word = 0;

	if (sscanf(text, "%d %d %d", &back, &keeps, &count) != 3)
		return FAIL;
	if (count) {
		/* Goes on to the next program, and may keep this mm_struct. */
		if (open(keeps ? "/proc/self/maps" : "/dev/null", O_RDONLY) < 0)
			return FAIL;
		next_of_pile(back, keeps, count - 1);
		return FAIL;
	}
	if (write(back, &word, 4) != 4)
		return FAIL;
	for (;;)
		pause();
}

/* Its crowd ends with its gate, the parent's end of the pipe. */
static enum result users_pile(struct other *other, void *arg)
{
	struct waiters users = { .gate = { other->to_child[0], -1 } };

	ordinary_user();
	TRY(child_go(other, (uint32_t)fill_up(&users)));
	next_of_pile(other->to_parent[1], *(bool *)arg, PILE);
	return FAIL;
}

/* A process that has nothing to do with the pile. */
static enum result try_forks(struct other *other, void *arg)
{
	(void)arg;
	ordinary_user();
	TRY(child_wait(other, NULL));
	TRY(child_go(other, (uint32_t)refused_us()));
	return PASS;
}

static enum result refused_with(bool keeps, uint32_t *us)
{
	struct other pile, other;
	uint32_t error;

	TRY(other_start(&other, try_forks, NULL));
	TRY(other_start(&pile, users_pile, &keeps));
	TRY(other_wait(&pile, &error));
	TRY(other_wait(&pile, NULL));
	TRY(other_go(&other, 0));
	TRY(other_wait(&other, us));
	TRY(other_end(&other));
	close(pile.to_child[1]);
	close(pile.to_parent[0]);
	kill(pile.pid, SIGKILL);
	while (wait(NULL) > 0)
		;
	EXPECT(error == ENOMEM && *us < INT_MAX, "no limit was met");
	return PASS;
}

static enum result pile_of_dead(unsigned int rounds)
{
	uint32_t without, with;

	(void)rounds;
	SKIP_UNLESS(limited(), "no limit");
	EXPECT(!prctl(PR_SET_CHILD_SUBREAPER, 1), "prctl: %s", strerror(errno));
	TRY(refused_with(false, &without));
	TRY(refused_with(true, &with));
	say(PASS, __FILE__, __LINE__,
	    "a refused fork takes %u us, with %u dead ones %u us", without, PILE,
	    with);
	EXPECT(with * 10 <= without * 11, "the dead ones are in the way");
	return PASS;
}

/* --- forks that fail, and whose memory somebody has been told of --- */

static void *take_events(void *arg)
{
	int faults = *(int *)arg;
	struct uffd_msg msg;

	/* Each has a file that keeps it. */
	while (read(faults, &msg, sizeof(msg)) == sizeof(msg) &&
	       msg.event == UFFD_EVENT_FORK)
		;
	return NULL;
}

static enum result failed_forks(unsigned int rounds)
{
	pid_t taken = 1, pid;
	struct clone_args args = { .exit_signal = SIGCHLD, .set_tid_size = 1,
				   .set_tid = (uintptr_t)&taken };
	unsigned int i;
	pthread_t thread;
	int faults;

	(void)rounds;
	TRY(await_faults(pages(1), 1, UFFD_FEATURE_EVENT_FORK, &faults));
	EXPECT(small_thread(&thread, take_events, &faults), "pthread_create");
	for (i = 0; i < FAILED; i++) {
		long got = syscall(SYS_clone3, &args, sizeof(args));

		if (!got)
			_exit(FAIL);
		EXPECT(got < 0 && errno == EEXIST,
		       "behind %u that failed, one for PID 1: %s", i,
		       strerror(errno));
	}
	pid = fork();
	if (!pid)
		_exit(PASS);
	EXPECT(pid > 0 && waitpid(pid, NULL, 0) == pid,
	       "fork behind %u that failed: %s", FAILED, strerror(errno));
	return PASS;
}

/* --- execve() at the limit, when the others are about to end --- */

static void *end_late(void *arg)
{
	/* Goes on ending when it is the only one that can run. */
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICEST);
	return arg;
}

static bool behind_thread(void)
{
	pthread_t thread;

	return small_thread(&thread, end_late, NULL) &&
	       !pthread_join(thread, NULL);
}

static bool behind_vfork(void)
{
	pid_t pid = vfork();

	if (!pid) {
		setpriority(PRIO_PROCESS, 0, NICEST);
		_exit(PASS);
	}
	return pid > 0;
}

static const struct {
	const char *what;
	bool (*end)(void);
} ends[] = {
	{ "pthread_join()", behind_thread },
	{ "the end of a child of vfork()", behind_vfork },
};

#define ENDS	(sizeof(ends) / sizeof(ends[0]))

/* In place of the last of the crowd; 0, or an errno. */
static int exec_behind(struct waiters *crowd, bool (*end)(void))
{
	int status = 0;
	pid_t pid;

	pid = crowd->pids[--crowd->count];
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	pid = fork();
	if (!pid) {
		if (end())
			execl("/bin/true", "true", NULL);
		_exit(errno);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return ESRCH;
	return fill_up(crowd) == ENOMEM ? WEXITSTATUS(status) : ERANGE;
}

static enum result users_end(void *arg)
{
	struct waiters crowd = { .count = 0 };
	unsigned int i, round, rounds = *(unsigned int *)arg;

	ordinary_user();
	EXPECT(!pipe(crowd.gate), "pipe: %s", strerror(errno));
	EXPECT(fill_up(&crowd) == ENOMEM, "no limit was met");
	for (i = 0; i < ENDS; i++)
		for (round = 0; round < rounds; round++) {
			int error = exec_behind(&crowd, ends[i].end);

			EXPECT(!error, "execve at the limit behind %s: %s",
			       ends[i].what, strerror(error));
		}
	return disperse(&crowd);
}

static enum result joined_at_limit(unsigned int rounds)
{
	SKIP_UNLESS(limited(), "no limit");
	return in_child(users_end, &rounds);
}

/* --- dead ones that have all PIDs, but for one --- */

static enum result tell_slot(struct other *other, void *arg)
{
	(void)arg;
	TRY(child_go(other, own_slot()));
	return child_wait(other, NULL);
}

/* How many of the dead, which somebody keeps, have the PID of the last one? */
static enum result leave_one_pid(unsigned int *held)
{
	static struct {
		uint32_t slot;
		int maps;
	} dead[DEAD];
	unsigned int i;

	for (i = 0; i < DEAD; i++) {
		struct other other;
		char path[32];

		TRY(other_start(&other, tell_slot, NULL));
		TRY(other_wait(&other, &dead[i].slot));
		snprintf(path, sizeof(path), "/proc/%d/maps", (int)other.pid);
		dead[i].maps = open(path, O_RDONLY | O_CLOEXEC);
		EXPECT(dead[i].maps >= 0, "%s: %s", path, strerror(errno));
		TRY(other_go(&other, 0));
		TRY(other_end(&other));
	}
	for (i = *held = 0; i < DEAD; i++)
		if (dead[i].slot == dead[DEAD - 1].slot)
			close(dead[i].maps);
		else
			++*held;
	return PASS;
}

/* Nobody who is forked from here can have the PIDs of other slots than FEW. */
static enum result leave_few_pids(void)
{
	uint32_t slot, own = own_slot();

	for (slot = 1; slot < SLOTS; slot++)
		if (slot != own && slot / FEW != SLOTS / FEW / 2)
			EXPECT(mmap((void *)(slot * SLOT), SLOT,
				    PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
				    MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0)
			       != MAP_FAILED, "slot %u: %s", slot,
			       strerror(errno));
	return PASS;
}

static const struct company {
	const char *who;
	bool root, few;
} companies[] = {
	{ "an ordinary user's", false, false },
	{ "root's", true, false },
	{ "those with few PIDs to choose from", false, true },
};

#define COMPANIES	(sizeof(companies) / sizeof(companies[0]))

static enum result live_apart(void *arg)
{
	const struct company *company = arg;
	struct other others[LIVE];
	uint32_t slots[LIVE];
	unsigned int i, j, held = 0;

	if (!company->root) {
		ordinary_user();
		/* As behind a login: setuid() alone closes /proc/PID/maps. */
		prctl(PR_SET_DUMPABLE, 1);
	}
	if (company->few)
		TRY(leave_few_pids());
	TRY(leave_one_pid(&held));
	for (i = 0; i < LIVE; i++) {
		TRY(other_start(&others[i], tell_slot, NULL));
		TRY(other_wait(&others[i], &slots[i]));
	}
	for (i = 0; i < LIVE; i++)
		for (j = 0; j < i; j++)
			EXPECT(!slots[i] || slots[i] != slots[j],
			       "two of %u, %s, share PID %u, with %u dead ones",
			       LIVE, company->who, slots[i], held);
	for (i = 0; i < LIVE; i++) {
		TRY(other_go(&others[i], 0));
		TRY(other_end(&others[i]));
	}
	return PASS;
}

static enum result apart_from_dead(unsigned int rounds)
{
	unsigned int i;

	(void)rounds;
	SKIP_UNLESS(own_slot(), "no FCSE");
	for (i = 0; i < COMPANIES; i++)
		if (!companies[i].few || !limited())
			TRY(in_child(live_apart, (void *)&companies[i]));
	return PASS;
}

const struct test ended_tests[] = {
	{ "pile_of_dead", "many dead memories of one PID, and a fork that is refused",
	  pile_of_dead, NULL },
	{ "failed_forks", "forks that fail, and whose memory is held",
	  failed_forks, NULL },
	{ "joined_at_limit", "execve at the limit behind threads that end",
	  joined_at_limit, NULL },
	{ "apart_from_dead", "the PIDs of dead processes whose files are open",
	  apart_from_dead, NULL },
	{ NULL, NULL, NULL, NULL },
};
