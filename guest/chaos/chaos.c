// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * chaos SEED PROGRAM [ARGUMENT]...: runs the program, and at each edge on a pin
 * of the first GPIO another of its tasks.
 *
 * The program and all that it starts are real-time tasks of one priority, each
 * of which runs until it sleeps. The edge's interrupt wakes this one, which is
 * above them; it gives one of them, drawn from the seed, another priority, also
 * drawn: above the others as a rule, sometimes below. That is what a scheduler
 * may do to a program at any instruction at which the kernel can be preempted.
 *
 * Exit code: the program's, 128 and the signal's number when one ended it; 2
 * wrong usage or set-up. It waits for all that the program left behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/gpio.h>

enum { PIN = 7, OWN = 60, USUAL = 10, SPREAD = 5 };
/* Task numbers below the newest among which one is looked for. */
enum { NEAR = 48 };
/* Most are gone: who asked for each of them would be asked again before he is done. */
enum { TRIES = 12 };
/* Digits of a task's number, and what else the file holds. */
enum { LOADAVG = 80 };

static uint64_t state;

static void die(const char *what)
{
	fprintf(stderr, "chaos: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* Below `limit`. A linear congruential generator, of which the upper bits count. */
static unsigned int below(unsigned int limit)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)((state >> 32) * limit >> 32);
}

static int edges(void)
{
	struct gpio_v2_line_request line = {
		.offsets = { PIN },
		.consumer = "chaos",
		.num_lines = 1,
		.config.flags = GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING |
				GPIO_V2_LINE_FLAG_EDGE_FALLING,
	};
	int chip = open("/dev/gpiochip0", O_RDONLY | O_CLOEXEC);

	if (chip < 0 || ioctl(chip, GPIO_V2_GET_LINE_IOCTL, &line))
		die("/dev/gpiochip0");
	close(chip);
	if (fcntl(line.fd, F_SETFD, FD_CLOEXEC))
		die("fcntl");
	return line.fd;
}

/* The number that the newest task has. */
static pid_t newest(int loadavg)
{
	char text[LOADAVG + 1];
	ssize_t length = pread(loadavg, text, LOADAVG, 0);
	const char *last;

	if (length <= 0)
		die("/proc/loadavg");
	text[length] = 0;
	last = strrchr(text, ' ');
	return last ? atoi(last) : 0;
}

static bool set(pid_t task, int priority)
{
	struct sched_param param = { .sched_priority = priority };

	return !sched_setscheduler(task, SCHED_RR, &param);
}

/*
 * One of the program's tasks gets another priority. Every other time whoever was
 * raised goes back at the next edge: what it did meanwhile is still in the caches
 * when the one that it interrupted goes on.
 */
static void disturb(int loadavg, pid_t first)
{
	static pid_t raised;
	pid_t last = newest(loadavg), task;
	unsigned int span = (unsigned int)(last - first) + 1, tries;

	if (last < first)
		return;
	if (raised && below(2)) {
		task = raised;
		raised = 0;
		if (sched_getscheduler(task) == SCHED_RR && set(task, USUAL - 1 - (int)below(SPREAD)))
			return;
	}
	if (span > NEAR)
		span = NEAR;
	/* Who has just begun has most before him. */
	task = below(2) ? last : last - (pid_t)below(span);
	for (tries = 0; tries < span && tries < TRIES; tries++) {
		/* Others may have started tasks meanwhile: not theirs. */
		if (sched_getscheduler(task) == SCHED_RR) {
			int priority = USUAL - SPREAD + (int)below(4 * SPREAD);

			set(task, priority);
			raised = priority > USUAL ? task : 0;
			return;
		}
		task = task > last - (pid_t)span + 1 ? task - 1 : last;
	}
}

static pid_t start(char **argv)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		if (!set(0, USUAL))
			die("sched_setscheduler");
		execvp(argv[0], argv);
		die(argv[0]);
	}
	return pid;
}

/* False while there is a child left. */
static bool all_ended(pid_t first, int *result)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == first)
			*result = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
	return pid < 0;
}

static int children(void)
{
	sigset_t mask;
	int fd;

	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &mask, NULL))
		die("sigprocmask");
	fd = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		die("signalfd");
	return fd;
}

int main(int argc, char **argv)
{
	struct sched_param own = { .sched_priority = OWN };
	struct pollfd wait[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int result = 2, loadavg;
	char *end = NULL;
	pid_t first;

	if (argc > 1)
		state = strtoull(argv[1], &end, 10);
	if (argc < 3 || !end || *end) {
		fprintf(stderr, "usage: chaos SEED PROGRAM [ARGUMENT]...\n");
		return 2;
	}
	below(1);
	loadavg = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	if (loadavg < 0)
		die("/proc/loadavg");
	wait[0].fd = edges();
	wait[1].fd = children();
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) || mlockall(MCL_CURRENT) ||
	    sched_setscheduler(0, SCHED_FIFO, &own))
		die("real-time");
	first = start(argv + 2);
	for (;;) {
		struct gpio_v2_line_event events[16];
		struct signalfd_siginfo child;

		if (poll(wait, 2, -1) < 0 && errno != EINTR)
			die("poll");
		while (wait[1].revents && read(wait[1].fd, &child, sizeof(child)) > 0)
			;
		if (wait[1].revents && all_ended(first, &result))
			return result;
		if (wait[0].revents && read(wait[0].fd, events, sizeof(events)) < 0)
			die("edges");
		if (wait[0].revents)
			disturb(loadavg, first);
	}
}
