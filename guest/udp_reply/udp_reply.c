// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The FCSE paper's packet reply: waits for command packets on UDP port 7000,
 * updates a state of its own and sends a status packet back, at SCHED_FIFO 50,
 * for some seconds. A command begins with a number, which the reply repeats.
 * When it is ready it sends a packet to the host's port 7001.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

enum { PORT = 7000, HOST_PORT = 7001, PRIORITY = 50, STATE_WORDS = 64 };

static void die(const char *what)
{
	fprintf(stderr, "udp_reply: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct sockaddr_in host = { .sin_family = AF_INET, .sin_port = htons(HOST_PORT) };
	struct sched_param param = { .sched_priority = PRIORITY };
	struct timeval patience = { .tv_usec = 100000 };
	static uint8_t packet[1472];
	static uint32_t state[STATE_WORDS];
	unsigned int replies = 0;
	double seconds, end;
	int fd;

	if (argc != 3 || (seconds = atof(argv[1])) <= 0 || !inet_aton(argv[2], &host.sin_addr)) {
		fprintf(stderr, "usage: udp_reply SECONDS HOST\n");
		return 2;
	}
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof(here)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		die("socket");
	if (mlockall(MCL_CURRENT | MCL_FUTURE) || sched_setscheduler(0, SCHED_FIFO, &param))
		die("real time");
	if (sendto(fd, "ready", 5, 0, (struct sockaddr *)&host, sizeof(host)) != 5)
		die("sendto");
	end = now() + seconds;
	while (now() < end) {
		struct sockaddr_in from;
		socklen_t size = sizeof(from);
		ssize_t length = recvfrom(fd, packet, sizeof(packet), 0, (struct sockaddr *)&from, &size);

		if (length < 2) {
			if (length >= 0 || errno == EAGAIN)
				continue;
			die("recvfrom");
		}
		for (ssize_t n = 2; n < length; n++)
			state[n % STATE_WORDS] += packet[n];
		/* Behind the number: the state, as much of it as the command was long. */
		if (length > 2) {
			size_t most = (size_t)length - 2;

			memcpy(packet + 2, state, most < sizeof(state) ? most : sizeof(state));
		}
		if (sendto(fd, packet, (size_t)length, 0, (struct sockaddr *)&from, size) != length)
			die("sendto");
		replies++;
	}
	printf("{\"guest\":\"udp_reply\",\"format\":1,\"replies\":%u}\n", replies);
	return 0;
}
