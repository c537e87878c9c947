// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The user's side of the latency driver (linux/modules/uio_latency), as in the
 * PREEMPT_RT paper: waits for an interrupt, answers by writing to the device,
 * and counts the interrupts for which it came too late. The driver's threads
 * run at SCHED_FIFO 99, this task at 98. For instruments, pin 0 of the port
 * PORT (guest/shared/pins.h) is high while it waits and answers, and pin 4
 * changes its level with each answer.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "pins.h"

enum { IRQ_PRIORITY = 99, TASK_PRIORITY = 98 };
enum { SERVING = 1 << 0, ANSWERED = 1 << 4 };

static volatile sig_atomic_t over;

static void on_alarm(int signal)
{
	(void)signal;
	over = 1;
}

static void die(const char *what)
{
	fprintf(stderr, "uio_latency: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void set_priority(int pid, int priority)
{
	struct sched_param param = { .sched_priority = priority };

	if (sched_setscheduler(pid, SCHED_FIFO, &param))
		die("sched_setscheduler");
}

/* Threads named irq/N-uio_latency and irq/N-s-uio_latency; how many. */
static int raise_interrupt_threads(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int raised = 0;

	if (!proc)
		die("/proc");
	while ((entry = readdir(proc))) {
		char path[280], name[32] = "";
		int pid = atoi(entry->d_name);
		FILE *comm;

		if (pid <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		comm = fopen(path, "r");
		if (!comm)
			continue;
		if (fgets(name, sizeof(name), comm) && !strncmp(name, "irq/", 4) && strstr(name, "uio_")) {
			set_priority(pid, IRQ_PRIORITY);
			raised++;
		}
		fclose(comm);
	}
	closedir(proc);
	return raised;
}

/* So that the next read() ends when the time is over. */
static void end_after(double seconds)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct itimerspec when = {
		.it_value = { .tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (time_t)seconds) * 1e9) },
		/* Again, should the first come between the test and the read(). */
		.it_interval = { .tv_nsec = 100000000 },
	};
	timer_t timer;

	if (sigaction(SIGALRM, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &when, NULL))
		die("timer");
}

int main(int argc, char **argv)
{
	uint32_t events = 0, first = 0, wakes = 0, missed = 0;
	int32_t any = 1;
	double seconds;
	int fd, threads;

	if (argc < 2 || argc > 3 || (seconds = atof(argv[1])) <= 0) {
		fprintf(stderr, "usage: uio_latency SECONDS [PORT]\n");
		return 2;
	}
	if (argc == 3)
		pins_open("uio_latency", argv[2], SERVING | ANSWERED);
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		die("mlockall");
	fd = open("/dev/uio0", O_RDWR);
	if (fd < 0)
		die("/dev/uio0");
	threads = raise_interrupt_threads();
	set_priority(0, TASK_PRIORITY);
	end_after(seconds);
	pins_set(SERVING, 1);
	while (!over) {
		uint32_t before = events;

		if (read(fd, &events, sizeof(events)) != sizeof(events)) {
			if (errno == EINTR)
				continue;
			die("read");
		}
		if (write(fd, &any, sizeof(any)) != sizeof(any))
			die("write");
		pins_set(ANSWERED, ~wakes & 1);
		if (wakes++ == 0)
			first = events;
		else
			missed += events - before - 1;
	}
	pins_set(SERVING, 0);
	printf("{\"guest\":\"uio_latency\",\"format\":1,\"interrupts\":%u,\"wakes\":%u,\"missed\":%u,\"irq_threads\":%d}\n",
	       wakes ? events - first + 1 : 0, wakes, missed, threads);
	return 0;
}
