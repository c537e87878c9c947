/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checks that a process sees what a device wrote to its pinned page while the process read that page. The buffer is
 * registered with io_uring, which pins it. The process prints its physical address and reads it for a while, so that the
 * cache has the old words. Meanwhile whoever runs the board writes new words to memory, as DMA does. Then the process
 * takes the registration back, lets another process run, and reads the buffer again. Exit code 1 if a word is old.
 *
 * dma_peeked
 */
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define WORDS	(PAGE / 4)
#define OLD	0x01010101u
#define LOOK_MS	200

static int ask[2], answer[2];
static volatile uint32_t buffer[WORDS] __attribute__((aligned(PAGE)));

static void must(int right, const char *what)
{
	if (!right) {
		perror(what);
		exit(2);
	}
}

static void other(void)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ask[0], &byte, 1) == 1)
		must(write(answer[1], &byte, 1) == 1, "write");
	_exit(0);
}

static void let_run(void)
{
	char byte = 0;

	must(write(ask[1], &byte, 1) == 1, "write");
	must(read(answer[0], &byte, 1) == 1, "read");
}

static unsigned long physical(const volatile void *at)
{
	int map = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry;
	off_t where = (uintptr_t)at / PAGE * sizeof(entry);

	must(map >= 0 && pread(map, &entry, sizeof(entry), where) == sizeof(entry), "/proc/self/pagemap");
	close(map);
	return (unsigned long)(entry & ((1ull << 55) - 1)) * PAGE;
}

static int old(void)
{
	int i, words = 0;

	for (i = 0; i < WORDS; i++)
		words += buffer[i] == OLD;
	return words;
}

static double ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(void)
{
	struct io_uring_params p = { 0 };
	struct iovec registered = { (void *)buffer, PAGE };
	int uring, before, after, i;
	double end;

	must(!pipe(ask) && !pipe(answer), "pipe");
	if (!fork())
		other();
	for (i = 0; i < WORDS; i++)
		buffer[i] = OLD;
	uring = syscall(SYS_io_uring_setup, 1, &p);
	must(uring >= 0, "io_uring_setup");
	must(!syscall(SYS_io_uring_register, uring, IORING_REGISTER_BUFFERS, &registered, 1), "IORING_REGISTER_BUFFERS");
	printf("looking at %#lx\n", physical(buffer));
	fflush(stdout);
	for (end = ms() + LOOK_MS; ms() < end;)
		before = old();
	must(!syscall(SYS_io_uring_register, uring, IORING_UNREGISTER_BUFFERS, NULL, 0), "IORING_UNREGISTER_BUFFERS");
	let_run();
	after = old();
	printf("old while it looked: %d\nold after a switch: %d\n", before, after);
	return after != 0;
}
