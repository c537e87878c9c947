/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ring of asynchronous input, whose events a process takes out by itself, as
 * fio and Seastar do: it stores to the ring's head. The kernel looks at the head
 * when io_submit() finds no request left, and does not flush its address before or
 * behind it. A completion by another process then writes to the same line.
 *
 * ring_head ROUNDS [alone]; alone it completes itself, and there is no switch
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The start of the ring; behind it are the events. */
struct ring {
	uint32_t id, nr, head, tail;
};

static int question[2], answer[2], event;
static bool alone;

static void partner(void)
{
	uint64_t one = 1;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(question[0], &c, 1) == 1) {
		if (c)
			write(event, &one, 8);
		write(answer[1], "", 1);
	}
	_exit(0);
}

static void ask(char signal)
{
	uint64_t one = 1;
	char c;

	if (alone) {
		if (signal)
			write(event, &one, 8);
		return;
	}
	write(question[1], &signal, 1);
	read(answer[0], &c, 1);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100, round, back = 0, full = 0;
	int file = memfd_create("file", 0);
	char buffer[4];
	struct iocb poll_it = { .aio_lio_opcode = IOCB_CMD_POLL, .aio_buf = POLLIN };
	struct iocb read_it = {
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_fildes = (uint32_t)file,
		.aio_buf = (uintptr_t)buffer,
		.aio_nbytes = sizeof(buffer),
	};
	struct iocb *poll_one = &poll_it, *read_one = &read_it;
	aio_context_t context = 0;
	volatile struct ring *ring;

	alone = argc > 2;
	pwrite(file, "1234", 4, 0);
	event = eventfd(0, 0);
	poll_it.aio_fildes = (uint32_t)event;
	pipe(question);
	pipe(answer);
	if (!fork())
		partner();
	if (syscall(SYS_io_setup, 64, &context))
		return 2;
	ring = (void *)(uintptr_t)context;
	for (round = 0; round < rounds; round++) {
		uint64_t count;
		uint32_t head;

		if (syscall(SYS_io_submit, context, 1, &poll_one) != 1)
			return 3;
		while (syscall(SYS_io_submit, context, 1, &read_one) == 1)
			;
		if (errno != EAGAIN)
			return 4;
		/* All of them. */
		head = ring->tail;
		ring->head = head;
		ask(1);
		back += ring->head != head;
		ring->head = ring->tail;
		read(event, &count, 8);
	}
	for (round = 0; round < rounds; round++) {
		while (syscall(SYS_io_submit, context, 1, &read_one) == 1)
			;
		ring->head = ring->tail;
		ask(0);
		full += syscall(SYS_io_submit, context, 1, &read_one) != 1;
		ring->head = ring->tail;
	}
	printf("the head went back in %d, and the empty ring was full in %d of %d rounds\n",
	       back, full, rounds);
	return back || full;
}
