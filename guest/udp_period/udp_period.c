// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The FCSE paper's periodic packet transmission: a task at SCHED_FIFO 80 sends
 * a packet with sampled data to the host's port 7001 every period, by default
 * every 500 us, beside a process of lower priority, SCHED_FIFO 50, that wakes
 * every millisecond. A packet begins with its number.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 7000, HOST_PORT = 7001, PRIORITY = 80, OTHER_PRIORITY = 50, SAMPLES = 16 };
enum { PERIOD_US = 500, MAX_PERIOD_US = 1000000, OTHER_PERIOD_NS = 1000000, SECOND_NS = 1000000000 };

static void die(const char *what)
{
	fprintf(stderr, "udp_period: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void real_time(int priority)
{
	struct sched_param param = { .sched_priority = priority };

	if (mlockall(MCL_CURRENT | MCL_FUTURE) || sched_setscheduler(0, SCHED_FIFO, &param))
		die("real time");
}

/* Moves a time on by a period and sleeps until then. */
static void next_period(struct timespec *at, long period_ns)
{
	at->tv_nsec += period_ns;
	if (at->tv_nsec >= SECOND_NS) {
		at->tv_nsec -= SECOND_NS;
		at->tv_sec++;
	}
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, at, NULL) == EINTR)
		;
}

/* The process of lower priority: wakes, and notes the largest delay. */
static void __attribute__((noreturn)) other(void)
{
	long worst_ns = 0;
	struct timespec at, now;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	real_time(OTHER_PRIORITY);
	clock_gettime(CLOCK_MONOTONIC, &at);
	for (;;) {
		long late_ns;

		next_period(&at, OTHER_PERIOD_NS);
		clock_gettime(CLOCK_MONOTONIC, &now);
		late_ns = (long)(now.tv_sec - at.tv_sec) * SECOND_NS + now.tv_nsec - at.tv_nsec;

		if (late_ns > worst_ns)
			worst_ns = late_ns;
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct sockaddr_in host = { .sin_family = AF_INET, .sin_port = htons(HOST_PORT) };
	struct {
		uint16_t number;
		uint16_t sample[SAMPLES];
	} packet;
	double seconds;
	long period_us = PERIOD_US;
	struct timespec at;
	uint32_t packets;
	char *end = "";
	pid_t pid;
	int fd;

	if (argc == 4)
		period_us = strtol(argv[3], &end, 10);
	if (argc < 3 || argc > 4 || (seconds = atof(argv[1])) <= 0 || seconds > 3600 ||
	    !inet_aton(argv[2], &host.sin_addr) || *end || period_us < 1 || period_us > MAX_PERIOD_US) {
		fprintf(stderr, "usage: udp_period SECONDS HOST [PERIOD_US]\n");
		return 2;
	}
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof(here)))
		die("socket");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		other();
	real_time(PRIORITY);
	packets = (uint32_t)(seconds * 1e6 / (double)period_us);
	clock_gettime(CLOCK_MONOTONIC, &at);
	for (uint32_t n = 0; n < packets; n++) {
		next_period(&at, period_us * 1000);
		packet.number = htons((uint16_t)n);
		for (unsigned int i = 0; i < SAMPLES; i++)
			packet.sample[i] = (uint16_t)(n + i);
		if (sendto(fd, &packet, sizeof(packet), 0, (struct sockaddr *)&host, sizeof(host)) != sizeof(packet))
			die("sendto");
	}
	kill(pid, SIGKILL);
	printf("{\"guest\":\"udp_period\",\"format\":1,\"packets\":%u}\n", packets);
	return 0;
}
