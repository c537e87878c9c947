/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A ring of blocks (TPACKET_V3) of which all are full: the kernel looks at the
 * status of the next one and drops what comes. The process gives all blocks back,
 * and another one sends: that packet has to be in the ring.
 *
 * The kernel does not flush its address before it looks at a block's status.
 *
 * block_freed ROUNDS [alone], as root; alone it sends itself, and there is no switch
 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAGE		4096
#define BLOCKS		2
#define BYTES		1500
#define PROTOCOL	0x88b5
#define SENT		8
#define NEVER_MS	60000

static int question[2], answer[2];
static bool alone;		/* this process sends, too */

/* Packets to nobody. */
static void send_them(uint32_t count)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(PROTOCOL),
		.sll_ifindex = (int)if_nametoindex("lo"),
		.sll_halen = 6,
	};
	static char packet[BYTES];
	static int fd;

	if (!fd)
		fd = socket(AF_PACKET, SOCK_RAW, 0);
	packet[12] = (char)(PROTOCOL >> 8);
	packet[13] = (char)(PROTOCOL & 0xff);
	while (count--)
		if (sendto(fd, packet, BYTES, 0, (void *)&to, sizeof(to)) != BYTES)
			exit(1);
}

/* Sends as many as it is told. */
static void sender(void)
{
	uint32_t count;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(question[0], &count, 4) == 4) {
		send_them(count);
		write(answer[1], "", 1);
	}
	_exit(0);
}

static void send_packets(uint32_t count)
{
	char c;

	if (alone) {
		send_them(count);
		return;
	}
	write(question[1], &count, 4);
	read(answer[0], &c, 1);
}

static int open_ring(void)
{
	struct sockaddr_ll from = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(PROTOCOL),
		.sll_ifindex = (int)if_nametoindex("lo"),
	};
	struct tpacket_req3 size = {
		.tp_block_size = PAGE,
		.tp_block_nr = BLOCKS,
		.tp_frame_size = 2048,
		.tp_frame_nr = BLOCKS * PAGE / 2048,
		.tp_retire_blk_tov = NEVER_MS,
	};
	int fd = socket(AF_PACKET, SOCK_RAW, 0), version = TPACKET_V3;

	if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, 4) ||
	    setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &size, sizeof(size)) ||
	    bind(fd, (void *)&from, sizeof(from)))
		exit(2);
	return fd;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100, round, met = 0, lost = 0;
	struct tpacket_stats_v3 stats;
	socklen_t size = sizeof(stats);
	char *at;
	int fd;

	alone = argc > 2;
	pipe(question);
	pipe(answer);
	if (!fork())
		sender();
	fd = open_ring();
	at = mmap(NULL, BLOCKS * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return 2;
	for (round = 0; round < rounds; round++) {
		int i, full = 0;

		send_packets(SENT);
		for (i = 0; i < BLOCKS; i++) {
			volatile struct tpacket_block_desc *block =
				(void *)(at + i * PAGE);

			full += block->hdr.bh1.block_status & TP_STATUS_USER;
			block->hdr.bh1.block_status = TP_STATUS_KERNEL;
		}
		getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size);
		send_packets(1);
		getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size);
		if (full == BLOCKS) {
			met++;
			lost += stats.tp_drops != 0;
		}
	}
	printf("%d of %d met; a packet was dropped although all blocks are free in %d\n",
	       met, rounds, lost);
	return lost != 0;
}
