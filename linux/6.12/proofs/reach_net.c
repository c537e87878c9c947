/* SPDX-License-Identifier: GPL-2.0-only */
/* Sockets' ways of reach.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	4096UL
#define RW	(PROT_READ | PROT_WRITE)

void rings(void);
void filters(void);

/* A packet socket's ring, whose blocks are of several pages. */
void rings(void)
{
	struct tpacket_req size = { 4 * PAGE, 2, 2048, 16 };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), n;

	for (n = 0; n < 2; n++) {
		int kind = n ? PACKET_TX_RING : PACKET_RX_RING;
		char *at;

		if (setsockopt(fd, SOL_PACKET, kind, &size, sizeof(size)))
			printf("# ring: %s\n", strerror(errno));
		at = mmap(NULL, 8 * PAGE, RW, MAP_SHARED, fd, 0);
		if (at == MAP_FAILED)
			printf("# ring: %s\n", strerror(errno));
		else
			memset(at, 1, 8 * PAGE);
		send(fd, NULL, 0, MSG_DONTWAIT);
		madvise(at + 2 * PAGE, PAGE, MADV_DONTNEED);
		munmap(at, 8 * PAGE);
		size.tp_block_size = 0;
		size.tp_block_nr = size.tp_frame_nr = 0;
		setsockopt(fd, SOL_PACKET, kind, &size, sizeof(size));
		size = (struct tpacket_req){ 4 * PAGE, 2, 2048, 16 };
	}
	close(fd);
}

/* Filters of sockets are kept in vmalloc()'s memory, are read-only, and are run by a process that knows nothing of them. */
void filters(void)
{
	static int pairs[450][2];
	struct sock_filter all[] = { { BPF_RET | BPF_K, 0, 0, 0xffff } };
	struct sock_fprog program = { 1, all };
	struct rlimit open_files = { 1024, 1024 };
	int n, round, go[2];
	char byte = 0;

	setrlimit(RLIMIT_NOFILE, &open_files);
	pipe(go);
	for (n = 0; n < 450; n++)
		socketpair(AF_UNIX, SOCK_DGRAM, 0, pairs[n]);
	if (!fork()) {
		read(go[0], &byte, 1);
		for (n = 0; n < 450; n++)
			send(pairs[n][1], &byte, 1, MSG_DONTWAIT);
		_exit(0);
	}
	for (round = 0; round < 12; round++)
		for (n = 0; n < 450; n++)
			if (setsockopt(pairs[n][0], SOL_SOCKET, SO_ATTACH_FILTER,
				       &program, sizeof(program)) && !n && !round)
				printf("# filter: %s\n", strerror(errno));
	write(go[1], &byte, 1);
	wait(NULL);
}
