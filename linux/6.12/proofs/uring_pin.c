/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What one process costs all others: it registers a page of its memfd with io_uring, which pins it, and sleeps; two
 * others pass a byte to and fro. Prints the counts of FCSE's debugfs for that time. debugfs is mounted.
 *
 * uring_pin HOPS [no]
 *	no: nothing is registered
 */
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE	4096

static int ask[2], answer[2], ready[2];

static unsigned int count(const char *name)
{
	unsigned int value = 0;
	char path[64];
	FILE *file;

	sprintf(path, "/sys/kernel/debug/fcse/%s", name);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%u", &value) != 1) {
		perror(path);
		exit(2);
	}
	fclose(file);
	return value;
}

static void pinner(void)
{
	int fd = memfd_create("own", 0);
	struct io_uring_params p = { 0 };
	struct iovec page = { .iov_len = PAGE };
	int uring;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ftruncate(fd, PAGE);
	page.iov_base = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uring = syscall(SYS_io_uring_setup, 8, &p);
	if (uring < 0 || syscall(SYS_io_uring_register, uring, IORING_REGISTER_BUFFERS, &page, 1)) {
		perror("io_uring");
		_exit(2);
	}
	write(ready[1], "", 1);
	pause();
}

static void echo(void)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ask[0], &byte, 1) == 1)
		write(answer[1], &byte, 1);
	_exit(0);
}

int main(int argc, char **argv)
{
	int hops = argc > 1 ? atoi(argv[1]) : 100, i;
	unsigned int switches = 0, flushed = 0;
	char byte;

	pipe(ask);
	pipe(answer);
	pipe(ready);
	if (argc < 3) {
		if (!fork())
			pinner();
		close(ready[1]);
		if (read(ready[0], &byte, 1) != 1)
			return 2;
	}
	if (!fork())
		echo();
	for (i = -10; i < hops; i++) {
		if (!i) {
			switches = count("switches");
			flushed = count("flushed_pinned");
		}
		write(ask[1], &byte, 1);
		read(answer[0], &byte, 1);
	}
	switches = count("switches") - switches;
	flushed = count("flushed_pinned") - flushed;
	printf("%u switches, %u flushed for pinned pages\n", switches, flushed);
	return flushed * 2 > switches;
}
