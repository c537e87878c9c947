// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Pages that drivers and sockets enter into page tables: the kernel writes and
 * reads them by its own address, and they belong to no file.
 *
 * Plain kernels flush their own lines of these pages, at best; those of user
 * land go at the next switch, which is why there is one wherever kernel and user
 * land take turns. FCSE maps such pages past the cache when the mapping is shared,
 * and needs none.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "mm_suite.h"
#include "race.h"

#define FRAME		2048u
#define FRAMES		8u
#define RING		(FRAMES * FRAME)	/* of either direction */
#define SENT_AT		(TPACKET2_HDRLEN - sizeof(struct sockaddr_ll))
#define HEADER		14u
#define BYTES		1600u
#define PROTOCOL	0x88b5			/* for local experiments */
#define ALONE		2
#define STOP		UINT32_MAX
#define BLOCKS		2u
#define CLOSED_MS	100
#define NEVER_MS	60000

struct ring {
	int fd, sender;
	char *at;		/* frames that come, frames that go */
	unsigned int in, out;
};

static char packet[HEADER + BYTES + 2] __attribute__((aligned(4)));
static char looked_at[BYTES] __attribute__((aligned(4)));

static struct sockaddr_ll loopback(void)
{
	return (struct sockaddr_ll) {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(PROTOCOL),
		.sll_ifindex = (int)if_nametoindex("lo"),
		.sll_halen = 6,
	};
}

/* From nobody to nobody: these are the addresses of lo. */
static void make_packet(uint32_t seed)
{
	static uint32_t words[BYTES / 4];

	fill(words, BYTES, seed);
	memset(packet, 0, HEADER);
	packet[12] = (char)(PROTOCOL >> 8);
	packet[13] = (char)(PROTOCOL & 0xff);
	memcpy(packet + HEADER, words, BYTES);
}

static enum result send_packet(int fd, uint32_t seed)
{
	struct sockaddr_ll to = loopback();

	make_packet(seed);
	EXPECT(sendto(fd, packet, HEADER + BYTES, 0, (void *)&to,
		      sizeof(to)) == HEADER + BYTES,
	       "sendto: %s", strerror(errno));
	return PASS;
}

static enum result option(int fd, int name, const void *value, socklen_t size)
{
	EXPECT(!setsockopt(fd, SOL_PACKET, name, value, size), "option %d: %s",
	       name, strerror(errno));
	return PASS;
}

static enum result open_ring(struct ring *ring)
{
	struct sockaddr_ll from = loopback();
	struct tpacket_req size = {
		.tp_block_size = PAGE,
		.tp_block_nr = RING / PAGE,
		.tp_frame_size = FRAME,
		.tp_frame_nr = FRAMES,
	};
	int version = TPACKET_V2;

	*ring = (struct ring) { .fd = socket(AF_PACKET, SOCK_RAW, 0) };
	SKIP_UNLESS(ring->fd >= 0, "AF_PACKET: %s", strerror(errno));
	ring->sender = socket(AF_PACKET, SOCK_RAW, 0);
	EXPECT(ring->sender >= 0, "socket: %s", strerror(errno));
	TRY(option(ring->fd, PACKET_VERSION, &version, sizeof(version)));
	TRY(option(ring->fd, PACKET_RX_RING, &size, sizeof(size)));
	TRY(option(ring->fd, PACKET_TX_RING, &size, sizeof(size)));
	EXPECT(!bind(ring->fd, (void *)&from, sizeof(from)), "bind: %s",
	       strerror(errno));
	return PASS;
}

static void close_ring(struct ring *ring)
{
	munmap(ring->at, 2 * RING);
	close(ring->fd);
	close(ring->sender);
}

/* What came is in the next frame, which is given back. */
static enum result take_frame(struct ring *ring, uint32_t seed)
{
	char *at = ring->at + ring->in++ % FRAMES * FRAME;
	volatile struct tpacket2_hdr *head = (void *)at;

	EXPECT(head->tp_status & TP_STATUS_USER, "frame %u: status %x",
	       ring->in - 1, (unsigned int)head->tp_status);
	EXPECT(head->tp_len == HEADER + BYTES &&
	       head->tp_snaplen == HEADER + BYTES, "frame %u: %u of %u bytes",
	       ring->in - 1, (unsigned int)head->tp_snaplen,
	       (unsigned int)head->tp_len);
	memcpy(looked_at, at + head->tp_mac + HEADER, BYTES);
	TRY(holds(looked_at, BYTES, seed, "what came"));
	head->tp_status = TP_STATUS_KERNEL;
	return PASS;
}

static enum result put_frame(struct ring *ring, uint32_t seed)
{
	char *at = ring->at + RING + ring->out++ % FRAMES * FRAME;
	volatile struct tpacket2_hdr *head = (void *)at;

	EXPECT(head->tp_status == TP_STATUS_AVAILABLE, "frame %u: status %x",
	       ring->out - 1, (unsigned int)head->tp_status);
	make_packet(seed);
	memcpy(at + SENT_AT, packet, HEADER + BYTES);
	head->tp_len = HEADER + BYTES;
	head->tp_status = TP_STATUS_SEND_REQUEST;
	return PASS;
}

static enum result send_frames(struct ring *ring)
{
	ssize_t sent = send(ring->fd, NULL, 0, 0);

	EXPECT(sent == HEADER + BYTES, "send: %zd, %s", sent, strerror(errno));
	return PASS;
}

/* The frame put last is ours again. */
static enum result frame_sent(const struct ring *ring)
{
	const volatile struct tpacket2_hdr *head = (void *)(ring->at + RING +
			(ring->out - 1) % FRAMES * FRAME);

	EXPECT(head->tp_status == TP_STATUS_AVAILABLE,
	       "frame %u was sent: status %x", ring->out - 1,
	       (unsigned int)head->tp_status);
	return PASS;
}

/* Puts and takes when the word is odd, and sends when it is even. */
static enum result ring_partner(struct other *other, void *arg)
{
	struct ring *ring = arg;
	uint32_t seed;

	for (;;) {
		TRY(child_wait(other, &seed));
		if (seed == STOP)
			return PASS;
		ring->out += seed % 2 ? 0 : 1;
		ring->in += seed % 2 ? 0 : 1;
		if (seed % 2)
			TRY(put_frame(ring, seed));
		else
			TRY(send_frames(ring));
		TRY(child_go(other, 0));
		TRY(child_wait(other, NULL));
		if (seed % 2) {
			TRY(frame_sent(ring));
			TRY(take_frame(ring, seed));
		}
		TRY(child_go(other, 0));
	}
}

/* One puts a frame, the other one sends it, the first one takes it. */
static enum result by_turns(struct ring *ring, struct other *other,
			    uint32_t seed)
{
	if (!(seed % 2))
		TRY(put_frame(ring, seed));
	TRY(other_go(other, seed));
	TRY(other_wait(other, NULL));
	if (seed % 2) {
		TRY(send_frames(ring));
		ring->out++;
		ring->in++;
	} else {
		TRY(frame_sent(ring));
		TRY(take_frame(ring, seed));
	}
	TRY(other_go(other, 0));
	return other_wait(other, NULL);
}

/* As the kernel has left it, without a switch since it was mapped. */
static enum result new_ring(struct ring *ring, uint32_t seed)
{
	TRY(leave_lines());
	TRY(open_ring(ring));
	TRY(send_packet(ring->sender, seed));
	ring->at = mmap(NULL, 2 * RING, PROT_READ | PROT_WRITE, MAP_SHARED,
			ring->fd, 0);
	EXPECT(ring->at != MAP_FAILED, "mmap: %s", strerror(errno));
	TRY(all_zero(ring->at + FRAME, 2 * RING - FRAME, "frames not used"));
	return take_frame(ring, seed);
}

static enum result packet_ring(unsigned int rounds)
{
	bool uncached = own_slot();
	unsigned int round, i;

	for (round = 0; round < rounds; round++) {
		struct other other;
		struct ring ring;

		TRY(new_ring(&ring, round * 64));
		TRY(other_start(&other, ring_partner, &ring));
		for (i = 1; i < 3 * FRAMES; i++)
			TRY(by_turns(&ring, &other, round * 64 + i));
		TRY(other_go(&other, STOP));
		TRY(other_end(&other));
		for (i = 0; uncached && i < ALONE * FRAMES; i++) {
			TRY(put_frame(&ring, round * 64 + i));
			TRY(send_frames(&ring));
			TRY(frame_sent(&ring));
			TRY(take_frame(&ring, round * 64 + i));
		}
		close_ring(&ring);
	}
	return PASS;
}

static enum result answer(struct other *other, void *arg)
{
	uint32_t word;

	(void)arg;
	for (;;) {
		TRY(child_wait(other, &word));
		if (word == STOP)
			return PASS;
		TRY(child_go(other, word));
	}
}

/* A ring of blocks, into which packets are put one behind the other. */
static enum result open_blocks(struct ring *ring, unsigned int closed_after_ms)
{
	struct sockaddr_ll from = loopback();
	struct tpacket_req3 size = {
		.tp_block_size = PAGE,
		.tp_block_nr = BLOCKS,
		.tp_frame_size = FRAME,
		.tp_frame_nr = BLOCKS * PAGE / FRAME,
		.tp_retire_blk_tov = closed_after_ms,
	};
	int version = TPACKET_V3;

	*ring = (struct ring) { .fd = socket(AF_PACKET, SOCK_RAW, 0) };
	SKIP_UNLESS(ring->fd >= 0, "AF_PACKET: %s", strerror(errno));
	ring->sender = socket(AF_PACKET, SOCK_RAW, 0);
	EXPECT(ring->sender >= 0, "socket: %s", strerror(errno));
	TRY(option(ring->fd, PACKET_VERSION, &version, sizeof(version)));
	TRY(option(ring->fd, PACKET_RX_RING, &size, sizeof(size)));
	EXPECT(!bind(ring->fd, (void *)&from, sizeof(from)), "bind: %s",
	       strerror(errno));
	return PASS;
}

static enum result map_blocks(struct ring *ring)
{
	ring->at = mmap(NULL, BLOCKS * PAGE, PROT_READ, MAP_SHARED, ring->fd, 0);
	EXPECT(ring->at != MAP_FAILED, "mmap: %s", strerror(errno));
	return PASS;
}

static void close_blocks(struct ring *ring)
{
	munmap(ring->at, BLOCKS * PAGE);
	close(ring->fd);
	close(ring->sender);
}

/* Of the seeds from this one on, so many. */
static enum result block_holds(const char *at, unsigned int count, uint32_t seed)
{
	const volatile struct tpacket_block_desc *block = (void *)at;
	unsigned int i, found = block->hdr.bh1.num_pkts;

	EXPECT(found == count, "%u packets of %u", found, count);
	at += block->hdr.bh1.offset_to_first_pkt;
	for (i = 0; i < count; i++) {
		const volatile struct tpacket3_hdr *head = (void *)at;

		EXPECT(head->tp_len == HEADER + BYTES, "packet %u: %u bytes", i,
		       (unsigned int)head->tp_len);
		memcpy(looked_at, at + head->tp_mac + HEADER, BYTES);
		TRY(holds(looked_at, BYTES, seed + i, "in the block"));
		at += head->tp_next_offset;
	}
	return PASS;
}

/* What was there before it was mapped, and what the kernel says is complete. */
static enum result packet_block(unsigned int rounds)
{
	struct other other;
	unsigned int round;

	TRY(other_start(&other, answer, NULL));
	for (round = 0; round < rounds * 2; round++) {
		const volatile struct tpacket_block_desc *block;
		struct pollfd poll_in = { .events = POLLIN };
		struct ring ring;

		TRY(empty_cache());
		TRY(leave_lines());
		TRY(open_blocks(&ring, CLOSED_MS));
		TRY(send_packet(ring.sender, round));
		TRY(map_blocks(&ring));
		TRY(block_holds(ring.at, 1, round));
		TRY(empty_cache());
		TRY(send_packet(ring.sender, round + 1));
		poll_in.fd = ring.fd;
		EXPECT(poll(&poll_in, 1, 20 * CLOSED_MS) == 1, "poll: %s",
		       strerror(errno));
		TRY(other_go(&other, 0));
		TRY(other_wait(&other, NULL));
		block = (void *)ring.at;
		EXPECT(block->hdr.bh1.block_status & TP_STATUS_USER,
		       "status %x", (unsigned int)block->hdr.bh1.block_status);
		TRY(block_holds(ring.at, 2, round));
		close_blocks(&ring);
	}
	TRY(other_go(&other, STOP));
	return other_end(&other);
}

/*
 * remap_pfn_range() flushes nothing: /dev/mem shows a page of which the kernel has
 * dirty lines, those of a block that it has not completed.
 */
static enum result device_memory(unsigned int rounds)
{
	int memory = open("/dev/mem", O_RDONLY | O_CLOEXEC);
	int pagemap = open_pagemap();
	struct other other;
	unsigned int round;

	SKIP_UNLESS(memory >= 0, "/dev/mem: %s", strerror(errno));
	TRY(other_start(&other, answer, NULL));
	for (round = 0; round < rounds * 4; round++) {
		struct ring ring;
		uint32_t frame;
		char *at;

		TRY(open_blocks(&ring, NEVER_MS));
		TRY(map_blocks(&ring));
		frame = frame_of(pagemap, ring.at);
		SKIP_UNLESS(frame, "no frame in pagemap");
		TRY(empty_cache());
		TRY(send_packet(ring.sender, round));
		at = mmap(NULL, PAGE, PROT_READ,
			  round % 2 ? MAP_PRIVATE : MAP_SHARED, memory,
			  (off_t)frame * PAGE);
		SKIP_UNLESS(at != MAP_FAILED, "mmap: %s", strerror(errno));
		TRY(other_go(&other, 0));
		TRY(other_wait(&other, NULL));
		TRY(block_holds(at, 1, round));
		munmap(at, PAGE);
		close_blocks(&ring);
	}
	TRY(other_go(&other, STOP));
	return other_end(&other);
}

const struct test ring_tests[] = {
	{ "packet_ring", "rings of a packet socket, sent to by two processes",
	  packet_ring, NULL },
	{ "packet_block", "packets before a ring is mapped, and of a full block",
	  packet_block, NULL },
	{ "device_memory", "what the kernel just wrote, by /dev/mem",
	  device_memory, NULL },
	{ NULL, NULL, NULL, NULL },
};
