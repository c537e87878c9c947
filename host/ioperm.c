// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * ioperm: what I/O permissions cost a task switch on x86.
 *
 * Two tasks on one processor hand it to each other by sched_yield(). A sample
 * is the time-stamp counter's difference over one turn of the first task: its
 * port accesses, then sched_yield() until it runs again, which are two
 * switches. That the other task ran once in between is checked by a counter in
 * shared memory; a turn for which it did not is counted and is no sample.
 *
 * Cases: who has which ports. In "paper" order: none, port 0x80, port 65535
 * as well; these are had before fork(), so that both tasks share them. Then
 * iopl(3), one task alone, and both with a bitmap of their own.
 *
 * Output: one line of JSON with all samples. Exit codes: 0 measured, 1 a system
 * call failed, 2 wrong usage, 3 what could be measured was, and permissions
 * were refused: "refused" says by which call and why.
 *
 * Unlike the program of 2004 it does not switch interrupts off: since Linux
 * 5.5 iopl(3) does not allow that. The minimum leaves disturbed turns out.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_TURNS	100000
#define WARM_UP		100
#define PRIORITY	2
#define LOW_PORT	0x80
#define HIGH_PORT	65535
/* A pair that does not switch after so many turns never will. */
#define GIVE_UP		1000

static const unsigned int accesses[] = { 0, 1, 64 };

struct holding {
	const char *name;
	bool low;	/* port 0x80 */
	bool high;	/* port 65535 as well */
	bool iopl;
	bool before_fork;
	bool by_other;	/* the other task, too, when each has its own */
};

static const struct holding holdings[] = {
	{ "none", false, false, false, false, false },
	{ "port-80", true, false, false, true, false },
	{ "port-65535", true, true, false, true, false },
	{ "iopl-3", false, false, true, true, false },
	{ "one-task-80", true, false, false, false, false },
	{ "one-task-65535", true, true, false, false, false },
	{ "own-80", true, false, false, false, true },
	{ "own-65535", true, true, false, false, true },
};

/* In memory that both tasks and their parent share. */
struct shared {
	volatile uint32_t others_turns;
	volatile uint32_t ready;
	uint32_t count;
	uint32_t no_switch;
	int error;
	char call[16];
	uint64_t cycles[MAX_TURNS];
};

static struct shared *shared;
static volatile sig_atomic_t over;

static void __attribute__((noreturn, format(printf, 2, 3)))
die(int code, const char *fmt, ...)
{
	va_list ap;

	fputs("ioperm: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(code);
}

static void on_interrupt(int signal)
{
	(void)signal;
	over = 1;
}

/* Later instructions do not begin before it, and it waits for earlier ones. */
static inline uint64_t cycles_now(void)
{
	uint32_t low, high;

	asm volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

static inline void access_ports(unsigned int count)
{
	while (count--)
		inb(LOW_PORT);
}

/* Nothing to undo: each case has processes of its own. */
static bool take(const struct holding *h)
{
	const char *call = NULL;

	if (h->iopl && iopl(3))
		call = "iopl";
	else if (h->low && ioperm(LOW_PORT, 1, 1))
		call = "ioperm";
	else if (h->high && ioperm(HIGH_PORT, 1, 1))
		call = "ioperm";
	if (!call)
		return true;
	shared->error = errno;
	strcpy(shared->call, call);
	return false;
}

static void __attribute__((noreturn))
other(const struct holding *h, unsigned int count)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (h->by_other && !take(h))
		_exit(1);
	/* Who has no permission makes no access. */
	if (!h->before_fork && !h->by_other)
		count = 0;
	shared->ready = 1;
	for (;;) {
		access_ports(count);
		shared->others_turns++;
		sched_yield();
	}
}

/* One turn; 0 when the other task did not run exactly once. */
static uint64_t turn(unsigned int count)
{
	uint32_t before = shared->others_turns;
	uint64_t start = cycles_now();

	access_ports(count);
	sched_yield();
	return shared->others_turns - before == 1 ? cycles_now() - start : 0;
}

/* The first task, a child of the program's. */
static int pair(const struct holding *h, unsigned int count, uint32_t turns)
{
	pid_t pid;
	int status;

	if (h->before_fork && !take(h))
		return 3;
	pid = fork();
	if (pid < 0)
		return 1;
	if (pid == 0)
		other(h, count);
	if (!h->before_fork && !take(h)) {
		kill(pid, SIGKILL);
		return 3;
	}
	while (!shared->ready) {
		sched_yield();
		if (waitpid(pid, &status, WNOHANG) == pid)
			return shared->error ? 3 : 1;
	}
	for (unsigned int n = 0; n < WARM_UP; n++)
		turn(count);
	while (shared->count < turns && !over) {
		uint64_t cycles = turn(count);

		if (cycles)
			shared->cycles[shared->count++] = cycles;
		else if (++shared->no_switch > GIVE_UP && !shared->count)
			break;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}

/* A case in processes of its own; what became of it. */
static int measure(const struct holding *h, unsigned int count, uint32_t turns)
{
	int status;
	pid_t pid;

	shared->others_turns = shared->ready = 0;
	shared->count = shared->no_switch = 0;
	shared->error = 0;
	pid = fork();
	if (pid < 0)
		die(1, "fork: %s", strerror(errno));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(pair(h, count, turns));
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die(1, "wait: %s", strerror(errno));
	if (!WIFEXITED(status))
		die(1, "%s: ended by signal %d", h->name, WTERMSIG(status));
	return WEXITSTATUS(status);
}

static void print_case(const struct holding *h, unsigned int count, bool first)
{
	printf("%s{\"case\":\"%s\",\"accesses\":%u,\"no_switch\":%u,\"cycles\":[",
	       first ? "" : ",", h->name, count, shared->no_switch);
	for (uint32_t n = 0; n < shared->count; n++)
		printf("%s%llu", n ? "," : "", (unsigned long long)shared->cycles[n]);
	fputs("]}", stdout);
}

/* All cases; the first refusal is kept in *error and call. */
static void cases(uint32_t turns, int *error, char *call)
{
	bool first = true;

	for (unsigned int n = 0; n < sizeof(holdings) / sizeof(*holdings); n++) {
		const struct holding *h = &holdings[n];
		bool any = h->low || h->iopl;

		for (unsigned int a = 0; a < sizeof(accesses) / sizeof(*accesses); a++) {
			int ended;

			if ((accesses[a] && !any) || over)
				continue;
			ended = measure(h, accesses[a], turns);
			if (ended == 3) {
				if (!*error)
					strcpy(call, shared->call);
				*error = *error ? *error : shared->error;
				break;
			}
			if (ended)
				die(1, "%s: a system call failed", h->name);
			print_case(h, accesses[a], first);
			first = false;
		}
	}
}

int main(int argc, char **argv)
{
	struct sched_param param = { .sched_priority = PRIORITY };
	struct sigaction action = { .sa_handler = on_interrupt };
	unsigned long turns = 0;
	char *end, call[16] = "";
	int error = 0;
	bool fifo;

	if (argc == 2)
		turns = strtoul(argv[1], &end, 10);
	if (turns < 1 || turns > MAX_TURNS || *end)
		die(2, "usage: ioperm TURNS (1 to %d); the processor by taskset", MAX_TURNS);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (shared == MAP_FAILED)
		die(1, "memory: %s", strerror(errno));
	sigaction(SIGINT, &action, NULL);
	fifo = !sched_setscheduler(0, SCHED_FIFO, &param);
	printf("{\"guest\":\"ioperm\",\"format\":1,\"policy\":\"%s\",\"turns\":%lu,\"cases\":[",
	       fifo ? "fifo" : "other", turns);
	fflush(stdout);
	cases((uint32_t)turns, &error, call);
	fputs("],\"refused\":", stdout);
	if (error)
		printf("{\"call\":\"%s\",\"error\":\"%s\"}", call, strerrorname_np(error));
	else
		fputs("null", stdout);
	printf(",\"interrupted\":%s}\n", over ? "true" : "false");
	if (fflush(stdout))
		return 1;
	return error ? 3 : 0;
}
