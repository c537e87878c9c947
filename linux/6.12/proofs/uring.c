/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * io_uring: a file's page is written by pwrite(2) and read by a request, whose result is looked at. The rings and the
 * array of requests are memory of the kernel that the process has mapped.
 *
 * uring ROUNDS read|fixed|write [switch]
 *	fixed: into a registered buffer, which the kernel has pinned
 *	switch: another process runs before each call of the kernel and before the result is looked at
 */
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE	4096
#define WORDS	(PAGE / 4)
#define TRIES	5

static int ask[2], answer[2], switches;
static int uring, file;
static volatile uint32_t *sq_tail, *sq_array, *cq_head, *cq_tail;
static uint32_t sq_mask, cq_mask;
static volatile struct io_uring_cqe *cqes;
static struct io_uring_sqe *sqes;
static uint32_t buffer[WORDS] __attribute__((aligned(PAGE)));
static uint32_t plain[WORDS] __attribute__((aligned(PAGE)));

static void other(void)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ask[0], &byte, 1) == 1)
		write(answer[1], &byte, 1);
	_exit(0);
}

static void let_run(void)
{
	char byte = 0;

	write(ask[1], &byte, 1);
	read(answer[0], &byte, 1);
}

static void *mapped(size_t size, off_t at)
{
	void *to = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, uring, at);

	if (to == MAP_FAILED) {
		perror("mmap of a ring");
		exit(2);
	}
	return to;
}

static void set_up(void)
{
	struct io_uring_params p = { 0 };
	struct iovec registered = { buffer, PAGE };
	char *sq, *cq;

	uring = syscall(SYS_io_uring_setup, 8, &p);
	if (uring < 0) {
		perror("io_uring_setup");
		exit(2);
	}
	sq = mapped(p.sq_off.array + p.sq_entries * 4, IORING_OFF_SQ_RING);
	cq = mapped(p.cq_off.cqes + p.cq_entries * sizeof(*cqes), IORING_OFF_CQ_RING);
	sqes = mapped(p.sq_entries * sizeof(*sqes), IORING_OFF_SQES);
	sq_tail = (void *)(sq + p.sq_off.tail);
	sq_array = (void *)(sq + p.sq_off.array);
	sq_mask = *(uint32_t *)(sq + p.sq_off.ring_mask);
	cq_head = (void *)(cq + p.cq_off.head);
	cq_tail = (void *)(cq + p.cq_off.tail);
	cq_mask = *(uint32_t *)(cq + p.cq_off.ring_mask);
	cqes = (void *)(cq + p.cq_off.cqes);
	if (syscall(SYS_io_uring_register, uring, IORING_REGISTER_BUFFERS, &registered, 1)) {
		perror("IORING_REGISTER_BUFFERS");
		exit(2);
	}
}

/* Puts a request into the ring and calls; says whether the kernel took one. */
static int submitted(int opcode, uint32_t number)
{
	uint32_t at = *sq_tail & sq_mask;

	memset(&sqes[at], 0, sizeof(sqes[at]));
	sqes[at].opcode = opcode;
	sqes[at].fd = file;
	sqes[at].addr = (uintptr_t)buffer;
	sqes[at].len = PAGE;
	sqes[at].user_data = number;
	sq_array[at] = at;
	++*sq_tail;
	if (switches)
		let_run();
	return syscall(SYS_io_uring_enter, uring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1;
}

/* Is there a result, and that of this request? */
static int completed(uint32_t number)
{
	volatile struct io_uring_cqe *cqe;
	int right;

	if (switches)
		let_run();
	if (*cq_tail == *cq_head)
		return 0;
	cqe = &cqes[*cq_head & cq_mask];
	right = cqe->user_data == number && cqe->res == PAGE;
	*cq_head = *cq_tail;
	return right;
}

static int wrong_words(const uint32_t *at, uint32_t word)
{
	int i, wrong = 0;

	for (i = 0; i < WORDS; i++)
		wrong += at[i] != word + i;
	return wrong;
}

static void fill(uint32_t *at, uint32_t word)
{
	int i;

	for (i = 0; i < WORDS; i++)
		at[i] = word + i;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 10, round, untaken = 0, unseen = 0, old = 0;
	const char *mode = argc > 2 ? argv[2] : "read";
	int writes = !strcmp(mode, "write");
	int opcode = writes ? IORING_OP_WRITE : !strcmp(mode, "fixed") ? IORING_OP_READ_FIXED : IORING_OP_READ;

	switches = argc > 3;
	pipe(ask);
	pipe(answer);
	if (!fork())
		other();
	file = memfd_create("file", 0);
	ftruncate(file, PAGE);
	set_up();
	for (round = 1; round <= rounds; round++) {
		uint32_t word = round << 16;
		int tries;

		fill(writes ? buffer : plain, word);
		if (!writes) {
			wrong_words(buffer, 0);		/* its lines are in the cache */
			pwrite(file, plain, PAGE, 0);
		}
		for (tries = 0; tries < TRIES && !submitted(opcode, round); tries++)
			let_run();
		untaken += tries > 0;
		unseen += !completed(round);
		if (writes)
			pread(file, plain, PAGE, 0);
		old += wrong_words(writes ? plain : buffer, word) != 0;
	}
	printf("%s: %d rounds, the request is not taken in %d, its result not seen in %d, the data old in %d\n",
	       mode, rounds, untaken, unseen, old);
	return untaken || unseen || old;
}
