// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * One work, and timer interrupts in place of switches: as many timers expire
 * while it works as it is told, in equal distances, and wake nobody. All runs
 * make the same system calls; timers that are not to expire expire in an hour.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "overhead.h"

#define HOUR_NS		3600000000000u

static int timers[MAX_INTERRUPTS];

static void set(int timer, uint64_t at_ns)
{
	struct itimerspec at = {
		.it_value = { .tv_sec = (time_t)(at_ns / 1000000000u), .tv_nsec = (long)(at_ns % 1000000000u) }
	};

	if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL))
		failed("timerfd_settime");
}

/* How many of the timers have expired. */
static unsigned int expired(void)
{
	unsigned int count = 0;
	uint64_t times;

	for (int n = 0; n < MAX_INTERRUPTS; n++)
		count += read(timers[n], &times, sizeof(times)) == sizeof(times);
	return count;
}

/* The time for all pieces, of which `lasting_ns` is expected. */
static uint64_t time_with(unsigned int interrupts, uint64_t lasting_ns, uint32_t *sum, int pin)
{
	/* Behind what it takes to set them all. */
	uint64_t begun = now_ns() + 10000000u, start, end;

	for (unsigned int n = 0; n < MAX_INTERRUPTS; n++)
		set(timers[n], begun + (n < interrupts ? lasting_ns / (interrupts + 1) * (n + 1) : HOUR_NS));
	do
		start = now_ns();
	while (start < begun);
	pin_set(pin);
	*sum += do_pieces(works[0], pieces);
	end = now_ns();
	pin_set(0);
	return end - start;
}

int interrupts_measure(void)
{
	static uint64_t times_ns[MAX_TURNS][MAX_SAMPLES];
	static unsigned int met[MAX_TURNS][MAX_SAMPLES];
	uint32_t sum = 0;
	uint64_t lasting;

	for (int n = 0; n < MAX_INTERRUPTS; n++) {
		timers[n] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
		if (timers[n] < 0)
			failed("timerfd_create");
	}
	/* Once to warm up, once to know how long it takes. */
	time_with(0, 0, &sum, 0);
	lasting = time_with(0, 0, &sum, 0);
	for (unsigned int s = 0; s < samples; s++) {
		for (unsigned int t = 0; t < turn_count; t++) {
			times_ns[t][s] = time_with(turns[t], lasting, &sum, 1);
			met[t][s] = expired();
		}
	}
	printf("{\"guest\":\"overhead\",\"format\":1,\"work\":\"%s\",\"pieces\":%u,\"kb\":%u,\"sums\":%" PRIu32 ",\"interrupts\":[",
	       works[0]->name, pieces, kb, sum);
	for (unsigned int t = 0; t < turn_count; t++) {
		printf("%s{\"asked\":%u,\"expired\":[", t ? "," : "", turns[t]);
		for (unsigned int s = 0; s < samples; s++)
			printf("%s%u", s ? "," : "", met[t][s]);
		fputs("],\"ns\":[", stdout);
		print_times(times_ns[t]);
		fputs("]}", stdout);
	}
	puts("]}");
	return fflush(stdout) ? 1 : 0;
}
