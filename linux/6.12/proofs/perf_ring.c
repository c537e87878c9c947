/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ring buffer of a perf event. A process touches a fresh page; the kernel writes a
 * record with the page's address to the ring. Does the process that has the ring mapped see
 * the record, and does the kernel see that the process has taken it?
 *
 * perf_ring ROUNDS           the touching process is another one
 * perf_ring ROUNDS self      one process, no switch
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE	4096

struct sample {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr;
};

static int ask[2], answer[2];
static volatile struct perf_event_mmap_page *control;
static volatile unsigned char *ring;
static int lost;

static uint32_t touch_fresh(volatile char *page)
{
	*page = 1;
	madvise((void *)page, PAGE, MADV_DONTNEED);
	return (uint32_t)(uintptr_t)page;
}

static void toucher(volatile char *page)
{
	uint32_t word;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ask[0], &word, 4) == 4) {
		word = touch_fresh(page);
		write(answer[1], &word, 4);
	}
	_exit(0);
}

static int open_ring(pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_ADDR,
	};
	int fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1, 0);

	if (fd < 0) {
		perror("perf_event_open");
		exit(2);
	}
	control = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (control == MAP_FAILED) {
		perror("mmap of the ring");
		exit(2);
	}
	ring = (volatile unsigned char *)control + PAGE;
	return fd;
}

/* Takes all records that it sees, and says how many are of a fault at this address. */
static int take(uint32_t addr)
{
	uint32_t head = control->data_head, tail = control->data_tail;
	int found = 0;

	while (tail != head) {
		struct sample sample = { 0 };
		size_t size, i;

		for (i = 0; i < sizeof(sample); i++)
			((unsigned char *)&sample)[i] = ring[(tail + i) % PAGE];
		size = sample.header.size;
		if (!size || size > head - tail) {
			tail = head;	/* an old header: nothing behind it can be found */
			break;
		}
		lost += sample.header.type == PERF_RECORD_LOST;
		found += sample.header.type == PERF_RECORD_SAMPLE &&
			 (uint32_t)sample.addr == addr;
		tail += size;
	}
	control->data_tail = tail;
	return found;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100, self = argc > 2, round, unseen = 0;
	volatile char *page;
	pid_t pid = 0;

	pipe(ask);
	pipe(answer);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!self) {
		pid = fork();
		if (!pid)
			toucher(page);
	}
	open_ring(pid);
	for (round = 0; round < rounds; round++) {
		uint32_t addr = round;

		if (self) {
			addr = touch_fresh(page);
		} else {
			write(ask[1], &addr, 4);
			read(answer[0], &addr, 4);
		}
		unseen += take(addr) != 1;
	}
	printf("%d rounds, the record is not seen in %d; records of lost ones: %d\n", rounds, unseen, lost);
	return unseen || lost;
}
