// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * net: the other end of the FCSE paper's programs, with the kernel's time stamps.
 *
 *   net reply ADDRESS SECONDS HZ BYTES SEED
 *	asks udp_reply at ADDRESS, port 7000: from a question's leaving to its
 *	answer's arrival. Questions come at HZ with a jitter of a tenth, by SEED.
 *   net period SECONDS
 *	takes udp_period's packets: from one's arrival to the next one's, when
 *	their numbers follow each other.
 *
 * It waits up to 3 s for the other program. Stamps are the network card's where
 * it has been told to make them (hwstamp_ctl), else the kernel's. "stamps" says which:
 * "hardware", "software", or "mixed"; each time is of two stamps of one kind.
 * SIGINT ends it with what it has.
 *
 * Output: one line of JSON with all times in nanoseconds. Exit codes: 0
 * measured, 1 a system call failed or nobody answered, 2 wrong usage.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 7000, OUR_PORT = 7001, WAIT_MS = 3000, ANSWER_MS = 100 };
#define MAX_TIMES	4000000
#define SECOND_NS	1000000000ll

/* What the kernel and the card say of a packet; 0 where they say nothing. */
struct stamps {
	int64_t software_ns, hardware_ns;
};

static int fd;
static uint8_t packet[1472];
static int64_t *times_ns;
static unsigned int count;
static unsigned int by_hardware;
static volatile sig_atomic_t over;

static void on_interrupt(int signal)
{
	(void)signal;
	over = 1;
}

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "net: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t in_ns(const struct timespec *t)
{
	return t->tv_sec * SECOND_NS + t->tv_nsec;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return in_ns(&t);
}

/* A packet, or with MSG_ERRQUEUE the stamp of one that has left. */
static ssize_t take(int flags, struct stamps *stamps)
{
	union {
		char bytes[512];
		struct cmsghdr aligned;
	} control;
	struct iovec data = { .iov_base = packet, .iov_len = sizeof(packet) };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t length = recvmsg(fd, &message, flags | MSG_DONTWAIT);

	memset(stamps, 0, sizeof(*stamps));
	if (length < 0)
		return length;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		struct scm_timestamping all;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPING)
			continue;
		memcpy(&all, CMSG_DATA(c), sizeof(all));
		stamps->software_ns = in_ns(&all.ts[0]);
		stamps->hardware_ns = in_ns(&all.ts[2]);
	}
	return length;
}

static bool wait_for(short events, int ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };

	return poll(&poll_fd, 1, ms) > 0;
}

static void keep(const struct stamps *from, const struct stamps *to)
{
	int64_t ns;

	if (from->hardware_ns && to->hardware_ns) {
		ns = to->hardware_ns - from->hardware_ns;
		by_hardware++;
	} else if (from->software_ns && to->software_ns) {
		ns = to->software_ns - from->software_ns;
	} else {
		return;
	}
	/* The clock of these stamps may have been set. */
	if (ns >= 0 && count < MAX_TIMES)
		times_ns[count++] = ns;
}

/* The stamp of the packet that has just left; on a card it may take a while. */
static void sent(struct stamps *stamps)
{
	struct stamps one;
	int64_t end = now_ns() + 2000000;

	memset(stamps, 0, sizeof(*stamps));
	do {
		while (take(MSG_ERRQUEUE, &one) >= 0) {
			if (one.software_ns)
				stamps->software_ns = one.software_ns;
			if (one.hardware_ns)
				stamps->hardware_ns = one.hardware_ns;
		}
	} while (!stamps->software_ns && !stamps->hardware_ns && now_ns() < end);
}

/* Whether an answer with that number came. */
static bool answered(uint16_t number, struct stamps *stamps)
{
	int64_t end = now_ns() + ANSWER_MS * 1000000ll;

	while (now_ns() < end && !over) {
		uint16_t got;

		if (take(0, stamps) < 2) {
			wait_for(POLLIN, 1);
			continue;
		}
		memcpy(&got, packet, sizeof(got));
		if (ntohs(got) == number)
			return true;
	}
	return false;
}

static unsigned int ask(struct sockaddr_in *there, double seconds, double hz, size_t bytes, uint32_t seed)
{
	int64_t next = now_ns(), end = next + (int64_t)(seconds * 1e9);
	unsigned int asked = 0;

	while (next < end && !over) {
		struct timespec at = { .tv_sec = next / SECOND_NS, .tv_nsec = next % SECOND_NS };
		uint16_t number = htons((uint16_t)asked);
		struct stamps from, to, old;

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		/* Late answers to questions before this one. */
		while (take(0, &old) >= 0)
			;
		memset(packet, 0, bytes);
		memcpy(packet, &number, sizeof(number));
		if (sendto(fd, packet, bytes, 0, (struct sockaddr *)there, sizeof(*there)) != (ssize_t)bytes)
			die("sendto");
		sent(&from);
		if (answered((uint16_t)asked++, &to))
			keep(&from, &to);
		seed = seed * 1664525u + 1013904223u;
		/* Between 0.9 and 1.1 of the interval. */
		next += (int64_t)(1e9 / hz * (0.9 + 0.2 * (seed / 4294967296.0)));
	}
	return asked;
}

static unsigned int listen_to(double seconds)
{
	int64_t end = now_ns() + (int64_t)(seconds * 1e9);
	struct stamps last = { 0 }, stamps;
	unsigned int packets = 0;
	uint16_t before = 0;

	while (now_ns() < end && !over) {
		uint16_t number;

		if (take(0, &stamps) < 2) {
			/* The other program has ended. */
			if (!wait_for(POLLIN, ANSWER_MS) && packets)
				break;
			continue;
		}
		memcpy(&number, packet, sizeof(number));
		number = ntohs(number);
		if (packets++ && number == (uint16_t)(before + 1))
			keep(&last, &stamps);
		before = number;
		last = stamps;
	}
	return packets;
}

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: net reply ADDRESS SECONDS HZ BYTES SEED\n       net period SECONDS\n", stderr);
	exit(2);
}

static double number(const char *text, double min, double max)
{
	char *end;
	double value = strtod(text, &end);

	if (*end || end == text || !(value >= min && value <= max)) {
		fprintf(stderr, "net: \"%s\" is not from %g to %g\n", text, min, max);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	const int flags = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE |
			  SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE |
			  SOF_TIMESTAMPING_RAW_HARDWARE | SOF_TIMESTAMPING_OPT_TSONLY;
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(OUR_PORT) };
	struct sockaddr_in there = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct sigaction action = { .sa_handler = on_interrupt };
	bool is_reply = argc == 7 && !strcmp(argv[1], "reply");
	unsigned int packets;
	double seconds;

	if (!is_reply && (argc != 3 || strcmp(argv[1], "period")))
		usage();
	if (is_reply && !inet_aton(argv[2], &there.sin_addr))
		usage();
	seconds = number(argv[is_reply ? 3 : 2], 0.1, 86400);
	sigaction(SIGINT, &action, NULL);
	times_ns = malloc(MAX_TIMES * sizeof(*times_ns));
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (!times_ns || fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof(here)))
		die("UDP port 7001");
	if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)))
		die("SO_TIMESTAMPING");
	wait_for(POLLIN, WAIT_MS);
	if (is_reply)
		packets = ask(&there, seconds, number(argv[4], 0.1, 100000), (size_t)number(argv[5], 2, sizeof(packet)),
			      (uint32_t)number(argv[6], 0, UINT32_MAX));
	else
		packets = listen_to(seconds);
	if (!count) {
		fprintf(stderr, "net: %u packets, and no time: is the other program there?\n", packets);
		return 1;
	}
	printf("{\"guest\":\"net\",\"format\":1,\"packets\":%u,\"stamps\":\"%s\",\"ns\":[", packets,
	       !by_hardware ? "software" : by_hardware == count ? "hardware" : "mixed");
	for (unsigned int n = 0; n < count; n++)
		printf("%s%lld", n ? "," : "", (long long)times_ns[n]);
	puts("]}");
	return fflush(stdout) ? 1 : 0;
}
