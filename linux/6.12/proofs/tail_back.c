/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * aio_complete() flushes the ring's pages with completion_lock held and interrupts
 * off, but flush_dcache_folio() of ARM's VIVT caches switches them on again: its
 * flush_dcache_mmap_unlock() is xa_unlock_irq(). A timer's interrupt that completes
 * a request there meets a tail that is half changed.
 *
 * Each round polls an eventfd and a timerfd, and makes both ready at once. Two
 * events have to come. "slot": that of the eventfd is missing, overwritten by the
 * timer's (as the tail was not yet counted); "tail": that of the timer is missing,
 * as the ring's tail went back behind it. tail_back ROUNDS, an ordinary user's.
 */
#define _GNU_SOURCE
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000, slot = 0, tail = 0, other = 0;
	int event = eventfd(0, EFD_NONBLOCK), i, late = 0;
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	long delay = argc > 2 ? atoi(argv[2]) : 20000, span = argc > 3 ? atoi(argv[3]) : 200000;

	if (setgid(1000) || setuid(1000))
		return 2;
	for (i = 0; i < rounds; i++) {
		struct timespec wait = { 0, 5000000 };
		struct itimerspec at = { .it_value.tv_nsec = delay + rand() % span };
		struct iocb poll_event = { .aio_lio_opcode = IOCB_CMD_POLL, .aio_fildes = event, .aio_buf = POLLIN, .aio_data = 1 };
		struct iocb poll_timer = { .aio_lio_opcode = IOCB_CMD_POLL, .aio_fildes = timer, .aio_buf = POLLIN, .aio_data = 2 };
		struct iocb *both[] = { &poll_event, &poll_timer };
		struct io_event got[8];
		aio_context_t context = 0;
		uint64_t one = 1;
		int n, mask = 0, k;

		if (syscall(SYS_io_setup, 8, &context)) {
			perror("io_setup");
			return 3;
		}
		(void)*(volatile int *)context;
		if (syscall(SYS_io_submit, context, 2, both) != 2) {
			perror("io_submit");
			return 3;
		}
		timerfd_settime(timer, 0, &at, NULL);
		write(event, &one, 8);
		usleep(1000);
		n = syscall(SYS_io_getevents, context, 2, 8, got, &wait);
		for (k = 0; k < n; k++)
			mask |= got[k].data;
		slot += n == 1 && mask == 2;
		tail += n == 1 && mask == 1;
		other += n != 1 && (n != 2 || mask != 3);
		late += read(timer, &one, 8) != 8;
		read(event, &one, 8);
		syscall(SYS_io_destroy, context);
	}
	printf("%d rounds: the event of the eventfd is lost in %d, that of the timer is not shown in %d; else wrong %d; timer not run %d\n",
	       rounds, slot, tail, other, late);
	return slot + tail + other != 0;
}
