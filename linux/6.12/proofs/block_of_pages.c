/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A ring of frames (TPACKET_V2) whose blocks are so large that they are of single
 * pages, by vmalloc(). The kernel writes and reads it at these addresses, and
 * flushes others: those of the pages in its direct mapping.
 *
 * Another process sends packets, one at a time; this one takes each out and gives
 * its frame back.
 *
 * block_of_pages ROUNDS, as root
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BLOCK		(8 << 20)	/* more than the largest of the buddies */
#define FRAME		((1 << 20) + 1696)	/* in other sets of the cache than pages begin */
#define FRAMES		(BLOCK / FRAME)
#define BYTES		200
#define HEADER		16
#define PROTOCOL	0x88b5

static int question[2], answer[2];

static struct sockaddr_ll loopback(void)
{
	return (struct sockaddr_ll) {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(PROTOCOL),
		.sll_ifindex = (int)if_nametoindex("lo"),
		.sll_halen = 6,
	};
}

static void sender(void)
{
	struct sockaddr_ll to = loopback();
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	char packet[BYTES] = { 0 };
	uint32_t number;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	packet[12] = (char)(PROTOCOL >> 8);
	packet[13] = (char)(PROTOCOL & 0xff);
	while (read(question[0], &number, 4) == 4) {
		for (i = HEADER; i + 4 <= BYTES; i += 4)
			memcpy(packet + i, &number, 4);
		if (sendto(fd, packet, BYTES, 0, (void *)&to, sizeof(to)) != BYTES)
			_exit(1);
		write(answer[1], "", 1);
	}
	_exit(0);
}

static void send_packet(uint32_t number)
{
	char c;

	write(question[1], &number, 4);
	read(answer[0], &c, 1);
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 1 ? (uint32_t)atoi(argv[1]) : 100, round, at_frame = 0, last = 0;
	int late = 0, never = 0, wrong = 0;
	struct sockaddr_ll from = loopback();
	struct tpacket_req size = {
		.tp_block_size = BLOCK,
		.tp_block_nr = 1,
		.tp_frame_size = FRAME,
		.tp_frame_nr = FRAMES,
	};
	int fd, version = TPACKET_V2;
	char *at;

	pipe(question);
	pipe(answer);
	if (!fork())
		sender();
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, 4) ||
	    setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &size, sizeof(size)) ||
	    bind(fd, (void *)&from, sizeof(from))) {
		perror("ring");
		return 2;
	}
	at = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return 2;
	for (round = 0; round < rounds; round++) {
		char *frame = at + at_frame * FRAME;
		volatile struct tpacket2_hdr *head = (void *)frame;
		int tries = 0;
		uint32_t got;
		bool bad;
		int i;

		send_packet(round);
		while (!(head->tp_status & TP_STATUS_USER) && tries < 50) {
			struct timespec ms = { 0, 1000000 };

			nanosleep(&ms, NULL);
			tries++;
		}
		late += tries > 0 && tries < 50;
		never += tries == 50;
		if (tries == 50)
			continue;
		/* Newer than the one before, and the same to its end. */
		memcpy(&got, frame + head->tp_mac + HEADER, 4);
		bad = round && got <= last;
		for (i = HEADER; i + 4 <= BYTES; i += 4)
			bad |= memcmp(frame + head->tp_mac + i, &got, 4) != 0;
		wrong += bad;
		last = got;
		head->tp_status = TP_STATUS_KERNEL;
		at_frame = (at_frame + 1) % FRAMES;
	}
	printf("%u packets: %d seen late, %d not within 50 ms, %d with old data\n",
	       rounds, late, never, wrong);
	return late || never || wrong;
}
