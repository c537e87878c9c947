// SPDX-License-Identifier: MIT OR Apache-2.0
/* Data on its way through the kernel: pipes, sockets, splices, files, rings. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "mm_suite.h"

#define COUNT	3
#define BYTES	(COUNT * PAGE)

static enum result read_all(int fd, void *to, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = read(fd, (char *)to + done, bytes - done);

		EXPECT(n > 0, "read: %s", n ? strerror(errno) : "end of file");
		done += (size_t)n;
	}
	return PASS;
}

static enum result write_all(int fd, const void *from, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = write(fd, (const char *)from + done, bytes - done);

		EXPECT(n > 0, "write: %s", strerror(errno));
		done += (size_t)n;
	}
	return PASS;
}

/* Sends back what comes, by way of fresh pages. */
static enum result echo(struct other *other, void *arg)
{
	int fd = *(int *)arg;
	uint32_t round;

	for (;;) {
		char *at = pages(COUNT);

		TRY(child_wait(other, &round));
		if (round == UINT32_MAX)
			return PASS;
		TRY(read_all(fd, at, BYTES));
		TRY(holds(at, BYTES, round, "what came"));
		fill(at, BYTES, round + 1);
		TRY(write_all(fd, at, BYTES));
		munmap(at, BYTES);
	}
}

static enum result sockets(unsigned int rounds)
{
	char *at = pages(COUNT);
	struct other other;
	unsigned int round;
	int ends[2];

	EXPECT(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair: %s",
	       strerror(errno));
	TRY(other_start(&other, echo, &ends[1]));
	for (round = 0; round < rounds * 2; round++) {
		fill(at, BYTES, round * 3);
		TRY(other_go(&other, round * 3));
		TRY(write_all(ends[0], at, BYTES));
		TRY(read_all(ends[0], at, BYTES));
		TRY(holds(at, BYTES, round * 3 + 1, "what came back"));
	}
	TRY(other_go(&other, UINT32_MAX));
	return other_end(&other);
}

static enum result pipes(unsigned int rounds)
{
	unsigned int round;
	int ends[2];

	EXPECT(!pipe(ends), "pipe: %s", strerror(errno));
	for (round = 0; round < rounds * 4; round++) {
		/* Sizes that are not pages, into memory never touched. */
		size_t bytes = (BYTES - round * 52 % PAGE) & ~3u;
		char *from = pages(COUNT), *to = pages(COUNT);

		fill(from, bytes, round);
		TRY(write_all(ends[1], from, bytes));
		fill(from, bytes, round + 1);
		TRY(read_all(ends[0], to, bytes));
		TRY(holds(to, bytes, round, "through the pipe"));
		munmap(from, BYTES);
		munmap(to, BYTES);
	}
	return PASS;
}

/* File to pipe to file without a copy in user land. */
static enum result spliced(unsigned int rounds)
{
	int from = memory_file(BYTES, 0), to = memory_file(BYTES, 1);
	char *source = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			    from, 0);
	char *target = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, to, 0);
	unsigned int round;
	int ends[2];

	EXPECT(source != MAP_FAILED && target != MAP_FAILED && !pipe(ends),
	       "set-up: %s", strerror(errno));
	for (round = 0; round < rounds * 2; round++) {
		loff_t in = 0, out = 0;

		fill(source, BYTES, round);
		while (in < (loff_t)BYTES) {
			ssize_t n = splice(from, &in, ends[1], NULL,
					   BYTES - (size_t)in, 0);

			EXPECT(n > 0, "splice: %s", strerror(errno));
			n = splice(ends[0], NULL, to, &out, (size_t)n, 0);
			EXPECT(n > 0, "splice: %s", strerror(errno));
		}
		TRY(holds(target, BYTES, round, "spliced"));
	}
	return PASS;
}

static enum result send_file(unsigned int rounds)
{
	int fd = memory_file(BYTES, 0);
	char *source = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			    fd, 0);
	char *to = pages(COUNT);
	unsigned int round;
	int ends[2];

	EXPECT(source != MAP_FAILED && !pipe(ends), "set-up: %s",
	       strerror(errno));
	for (round = 0; round < rounds * 2; round++) {
		off_t at = 0;

		fill(source, BYTES, round);
		while (at < (off_t)BYTES)
			EXPECT(sendfile(ends[1], fd, &at, BYTES - (size_t)at) > 0,
			       "sendfile: %s", strerror(errno));
		TRY(read_all(ends[0], to, BYTES));
		TRY(holds(to, BYTES, round, "sent"));
	}
	return PASS;
}

static enum result drain(struct other *other, void *arg)
{
	char *at = pages(COUNT);
	uint32_t round;

	for (;;) {
		TRY(child_wait(other, &round));
		if (round == UINT32_MAX)
			return PASS;
		TRY(read_all(*(int *)arg, at, BYTES));
		TRY(holds(at, BYTES, round, "gifted pages"));
		TRY(child_go(other, 0));
	}
}

/* User pages lent to a pipe, read by another process and by oneself. */
static enum result lent(unsigned int rounds)
{
	char *to = pages(COUNT);
	struct other other;
	unsigned int round;
	int ends[2];

	EXPECT(!pipe(ends), "pipe: %s", strerror(errno));
	TRY(other_start(&other, drain, &ends[0]));
	for (round = 0; round < rounds * 2; round++) {
		char *from = pages(COUNT);
		struct iovec vector = { from, BYTES };

		fill(from, BYTES, round);
		EXPECT(vmsplice(ends[1], &vector, 1, 0) == (ssize_t)BYTES,
		       "vmsplice: %s", strerror(errno));
		if (round & 1) {
			TRY(read_all(ends[0], to, BYTES));
			TRY(holds(to, BYTES, round, "lent to oneself"));
		} else {
			TRY(other_go(&other, round));
			TRY(other_wait(&other, NULL));
		}
		TRY(holds(from, BYTES, round, "still ours"));
		munmap(from, BYTES);
	}
	TRY(other_go(&other, UINT32_MAX));
	return other_end(&other);
}

/* Lent pages that the owner changes before they are read. */
static enum result lent_and_changed(unsigned int rounds)
{
	char *from = pages(COUNT), *to = pages(COUNT);
	struct iovec vector = { from, BYTES };
	unsigned int round;
	int ends[2];

	EXPECT(!pipe(ends), "pipe: %s", strerror(errno));
	for (round = 0; round < rounds; round++) {
		fill(from, BYTES, round);
		EXPECT(vmsplice(ends[1], &vector, 1, 0) == (ssize_t)BYTES,
		       "vmsplice: %s", strerror(errno));
		fill(from, BYTES, round + 70);
		TRY(read_all(ends[0], to, BYTES));
		TRY(holds(to, BYTES, round + 70, "changed while lent"));
	}
	return PASS;
}

/* read(2) into pages that do not exist yet, or are shared copy on write. */
static enum result read_into(unsigned int rounds)
{
	int fd = memory_file(BYTES, 5);
	unsigned int round;

	for (round = 0; round < rounds; round++) {
		char *at = pages(COUNT);
		struct other other;

		EXPECT(pread(fd, at, BYTES, 0) == BYTES, "pread");
		TRY(holds(at, BYTES, 5, "read into fresh pages"));
		fill(at, BYTES, round);
		TRY(other_start(&other, drain, &fd));
		EXPECT(pread(fd, at, BYTES, 0) == BYTES, "pread");
		TRY(holds(at, BYTES, 5, "read into shared pages"));
		TRY(other_go(&other, UINT32_MAX));
		TRY(other_end(&other));
		munmap(at, BYTES);
	}
	return PASS;
}

/* The start of the ring that aio shares with user land. */
struct aio_ring {
	uint32_t id, nr, head, tail, magic;
};

static enum result aio(unsigned int rounds)
{
	int fd = memory_file(BYTES, 9);
	aio_context_t context = 0;
	volatile struct aio_ring *ring;
	unsigned int round;

	SKIP_UNLESS(!syscall(SYS_io_setup, 8, &context), "io_setup: %s",
		    strerror(errno));
	ring = (volatile struct aio_ring *)(uintptr_t)context;
	EXPECT(ring->magic == 0xa10a10a1, "the ring's magic is %08x",
	       (unsigned int)ring->magic);
	for (round = 0; round < rounds * 2; round++) {
		char *at = pages(COUNT);
		struct iocb request = {
			.aio_lio_opcode = IOCB_CMD_PREAD,
			.aio_fildes = (uint32_t)fd,
			.aio_buf = (uintptr_t)at,
			.aio_nbytes = BYTES,
			.aio_data = round,
		};
		struct iocb *list = &request;
		struct io_event event = { .data = UINT32_MAX };
		uint32_t tail = ring->tail;

		EXPECT(syscall(SYS_io_submit, context, 1, &list) == 1,
		       "io_submit: %s", strerror(errno));
		EXPECT(ring->tail != tail, "the ring's tail stays %u",
		       (unsigned int)tail);
		EXPECT(syscall(SYS_io_getevents, context, 1, 1, &event, NULL) == 1,
		       "io_getevents: %s", strerror(errno));
		EXPECT(event.data == round && event.res == BYTES, "event %u",
		       (unsigned int)event.data);
		EXPECT(ring->head == ring->tail, "head %u, tail %u",
		       (unsigned int)ring->head, (unsigned int)ring->tail);
		TRY(holds(at, BYTES, 9, "read"));
		munmap(at, BYTES);
	}
	return PASS;
}

const struct test io_tests[] = {
	{ "pipes", "odd sizes through a pipe", pipes, NULL },
	{ "sockets", "to another process and back by a socket", sockets, NULL },
	{ "spliced", "file to pipe to file, both mapped", spliced, NULL },
	{ "send_file", "sendfile of a mapped file", send_file, NULL },
	{ "lent", "vmsplice, read by another and by oneself", lent, NULL },
	{ "lent_and_changed", "a page changed after vmsplice", lent_and_changed,
	  "vmsplice asks that lent pages are left alone" },
	{ "read_into", "read into fresh and into shared pages", read_into, NULL },
	{ "aio", "the ring of asynchronous input", aio, NULL },
	{ NULL, NULL, NULL, NULL },
};
