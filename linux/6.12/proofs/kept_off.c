/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long the fair server and real-time throttling keep a SCHED_FIFO task off, which never sleeps, while a common task
 * wants the core. Root's.
 *
 * kept_off SECONDS
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define GAP_US	1000	/* interrupts take less */

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

static void common(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		;
}

int main(int argc, char **argv)
{
	uint64_t length = (argc > 1 ? atoi(argv[1]) : 3) * 1000000ull, begin, last, all = 0, longest = 0;
	struct sched_param first = { .sched_priority = 50 };
	int times = 0;

	if (!fork())
		common();
	if (sched_setscheduler(0, SCHED_FIFO, &first)) {
		perror("sched_setscheduler");
		return 2;
	}
	begin = last = now_us();
	while (last - begin < length) {
		uint64_t now = now_us(), gap = now - last;

		last = now;
		if (gap < GAP_US)
			continue;
		times++;
		all += gap;
		if (gap > longest)
			longest = gap;
	}
	printf("kept off %d times, %llu us in all, longest %llu us\n", times,
	       (unsigned long long)all, (unsigned long long)longest);
	return 0;
}
