// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * UDP packets to a peer that sends them back (`warmswitch coherence --echo`).
 * The Ethernet controller reads what is sent, and writes what comes back.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "dma_suite.h"

#define BOARD	"10.0.0.2"
#define HOST	"10.0.0.1"
#define ECHO	7
#define LARGEST	1472u
/* Lengths of one round; 16 rounds send every length. */
#define STRIDE	16u
/* Packets on their way at a time. */
#define BURST	8u
#define WAITS_S	2
#define LINK_TRIES	100
#define LINK_US		50000

/* Gives eth0 its address, and waits for the link. */
static enum result bring_up(int fd)
{
	struct ifreq request = { .ifr_name = "eth0" };
	struct sockaddr_in *address = (struct sockaddr_in *)&request.ifr_addr;
	int tries;

	address->sin_family = AF_INET;
	inet_pton(AF_INET, BOARD, &address->sin_addr);
	SKIP_UNLESS(!ioctl(fd, SIOCSIFADDR, &request), "eth0: %s", strerror(errno));
	EXPECT(!ioctl(fd, SIOCGIFFLAGS, &request), "eth0: %s", strerror(errno));
	request.ifr_flags |= IFF_UP;
	EXPECT(!ioctl(fd, SIOCSIFFLAGS, &request), "eth0: %s", strerror(errno));
	for (tries = 0; tries < LINK_TRIES; tries++) {
		if (!ioctl(fd, SIOCGIFFLAGS, &request) &&
		    request.ifr_flags & IFF_RUNNING)
			return PASS;
		usleep(LINK_US);
	}
	return say(SKIP, __FILE__, __LINE__, "eth0 has no link");
}

/* A socket that is connected to the peer, which answers. */
static enum result open_peer(int *fd)
{
	struct sockaddr_in peer = { .sin_family = AF_INET,
				    .sin_port = htons(ECHO) };
	struct timeval limit = { .tv_sec = WAITS_S };
	char byte = 0;

	*fd = socket(AF_INET, SOCK_DGRAM, 0);
	SKIP_UNLESS(*fd >= 0, "socket: %s", strerror(errno));
	TRY(bring_up(*fd));
	inet_pton(AF_INET, HOST, &peer.sin_addr);
	EXPECT(!connect(*fd, (struct sockaddr *)&peer, sizeof(peer)),
	       "connect: %s", strerror(errno));
	setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	EXPECT(send(*fd, &byte, 1, 0) == 1, "send: %s", strerror(errno));
	SKIP_UNLESS(recv(*fd, &byte, 1, 0) == 1, "no peer: %s", strerror(errno));
	return PASS;
}

static enum result packet_back(int fd, void *buffer, size_t bytes,
			       uint32_t seed)
{
	ssize_t got;

	memset(buffer, 0x55, bytes);
	got = recv(fd, buffer, LARGEST, 0);
	EXPECT(got >= 0, "packet of %zu bytes: %s", bytes, strerror(errno));
	EXPECT((size_t)got == bytes, "%zd bytes came, not %zu", got, bytes);
	return holds(buffer, bytes, seed, "packet");
}

static enum result udp_echo(unsigned int rounds)
{
	unsigned char out[LARGEST], in[LARGEST];
	unsigned int round;
	size_t bytes;
	int fd;

	TRY(open_peer(&fd));
	for (round = 0; round < rounds; round++)
		for (bytes = 1 + round % STRIDE; bytes <= LARGEST;
		     bytes += STRIDE) {
			fill(out, bytes, (uint32_t)(round + bytes));
			EXPECT(send(fd, out, bytes, 0) == (ssize_t)bytes,
			       "send: %s", strerror(errno));
			TRY(packet_back(fd, in, bytes,
					(uint32_t)(round + bytes)));
		}
	return PASS;
}

static enum result udp_burst(unsigned int rounds)
{
	unsigned char out[LARGEST], in[LARGEST];
	unsigned int round, i;
	int fd;

	TRY(open_peer(&fd));
	for (round = 0; round < rounds * STRIDE; round++) {
		for (i = 0; i < BURST; i++) {
			fill(out, LARGEST - i, round * BURST + i);
			EXPECT(send(fd, out, LARGEST - i, 0) ==
			       (ssize_t)(LARGEST - i), "send: %s",
			       strerror(errno));
		}
		for (i = 0; i < BURST; i++)
			TRY(packet_back(fd, in, LARGEST - i,
					round * BURST + i));
	}
	return PASS;
}

/* Each start of the interface allocates the rings of descriptors again. */
static enum result net_restart(unsigned int rounds)
{
	unsigned char out[LARGEST], in[LARGEST];
	unsigned int round, i;
	int fd;

	TRY(open_peer(&fd));
	for (round = 0; round < rounds; round++) {
		struct ifreq request = { .ifr_name = "eth0" };

		EXPECT(!ioctl(fd, SIOCGIFFLAGS, &request), "eth0: %s",
		       strerror(errno));
		request.ifr_flags &= ~IFF_UP;
		EXPECT(!ioctl(fd, SIOCSIFFLAGS, &request), "eth0: %s",
		       strerror(errno));
		close(fd);
		warm_pages();
		TRY(open_peer(&fd));
		for (i = 0; i < BURST; i++) {
			fill(out, LARGEST, round + i);
			EXPECT(send(fd, out, LARGEST, 0) == (ssize_t)LARGEST,
			       "send: %s", strerror(errno));
			TRY(packet_back(fd, in, LARGEST, round + i));
		}
	}
	return PASS;
}

const struct test network_tests[] = {
	{ "udp_echo", "packets of every length to a peer and back", udp_echo, NULL },
	{ "net_restart", "the interface is stopped and started",
	  net_restart, NULL },
	{ "udp_burst", "several packets on their way at a time", udp_burst, NULL },
	{ }
};
