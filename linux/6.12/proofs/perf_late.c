/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * perf_late ROUNDS [thread], as root, on a kernel with perf events
 *
 * A process gives pages back by madvise(MADV_DONTNEED). Meanwhile interrupts of
 * perf, which take samples of it with call chains, read its memory where r11 points
 * to: behind the first flush, and before the entry is gone. Nobody else has run.
 * Then another process has a turn. The page is a new one, and has to be zero.
 *
 * With "thread" the process has a second one, which sleeps.
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE		4096
#define WORDS		(PAGE / 4)
#define PAGES		16
#define PERIOD_NS	50000

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void *sleeper(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* With a frame pointer of our choice. */
static long give_back(volatile void *start, size_t size, volatile void *frame)
{
	register long r0 asm("r0") = (long)start;
	register long r1 asm("r1") = (long)size;
	register long r2 asm("r2") = MADV_DONTNEED;
	register long r7 asm("r7") = SYS_madvise;

	asm volatile("push {r11}\n\tmov r11, %4\n\tsvc 0\n\tpop {r11}"
		     : "+r"(r0)
		     : "r"(r1), "r"(r2), "r"(r7), "r"(frame)
		     : "memory");
	return r0;
}

static void other_process(int from, int to)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(from, &byte, 1) == 1)
		if (write(to, &byte, 1) != 1)
			break;
	_exit(0);
}

static int sampled(unsigned int rounds, int to, int from)
{
	volatile uint32_t *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile uint32_t *frame = pages + (PAGES - 1) * WORDS + WORDS / 2;
	unsigned int round, i, old = 0;
	char byte = 0;

	if (pages == MAP_FAILED)
		die("mmap");
	for (round = 1; round <= rounds; round++) {
		for (i = 0; i < PAGES; i++)
			pages[i * WORDS] = round;
		for (i = 1; i <= 3; i++)
			frame[-(int)i] = 0x600d0000 + round;
		if (give_back(pages, PAGES * PAGE, frame))
			die("madvise");
		if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
			die("pipe");
		old += frame[-1] != 0;
	}
	printf("%u rounds, old words in %u\n", rounds, old);
	fflush(stdout);
	return old != 0;
}

static void take_samples(pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = PERIOD_NS,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN,
		.exclude_callchain_kernel = 1,
	};
	FILE *percent = fopen("/proc/sys/kernel/perf_cpu_time_max_percent", "w");

	if (!percent || fputs("0", percent) < 0 || fclose(percent))
		die("perf_cpu_time_max_percent");
	if (syscall(SYS_perf_event_open, &attr, pid, -1, -1, 0) < 0)
		die("perf_event_open");
}

int main(int argc, char **argv)
{
	int to[2], from[2], start[2], status;
	pthread_t thread;
	char byte = 0;
	pid_t pid;

	if (pipe(to) || pipe(from) || pipe(start))
		die("pipe");
	if (!fork())
		other_process(to[0], from[1]);
	pid = fork();
	if (!pid) {
		if (read(start[0], &byte, 1) != 1 ||
		    (argc > 2 && pthread_create(&thread, NULL, sleeper, NULL)))
			die("begin");
		_exit(sampled(argc > 1 ? atoi(argv[1]) : 200, to[1], from[0]));
	}
	take_samples(pid);
	if (write(start[1], &byte, 1) != 1)
		die("pipe");
	waitpid(pid, &status, 0);
	return status != 0;
}
