// SPDX-License-Identifier: MIT OR Apache-2.0
/* Pages that leave and come back: zram as block device and swap, KSM. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "mm_suite.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT	21
#endif

#define ZRAM		"/dev/zram0"
#define ZRAM_SYS	"/sys/block/zram0/"
#define ZRAM_BYTES	"33554432"
#define ZRAM_PAGES	(33554432 / PAGE)
#define COUNT		8
#define BYTES		(COUNT * PAGE)
#define KSM		"/sys/kernel/mm/ksm/"
#define KSM_WAIT_MS	5000

/* A fresh, empty zram of a known size. */
enum result zram_fresh(void)
{
	SKIP_UNLESS(!access(ZRAM_SYS "disksize", W_OK), ZRAM ": %s",
		    strerror(errno));
	swapoff(ZRAM);
	TRY(write_text(ZRAM_SYS "reset", "1"));
	return write_text(ZRAM_SYS "disksize", ZRAM_BYTES);
}

enum result swap_on(void)
{
	uint32_t header[PAGE_WORDS] = { 0 };
	int fd;

	TRY(zram_fresh());
	/* The kernel's header of a swap area, version 1. */
	header[256] = 1;
	header[257] = ZRAM_PAGES - 1;
	memcpy((char *)header + PAGE - 10, "SWAPSPACE2", 10);
	fd = open(ZRAM, O_WRONLY | O_CLOEXEC);
	EXPECT(fd >= 0, ZRAM ": %s", strerror(errno));
	EXPECT(write(fd, header, PAGE) == PAGE && !fsync(fd), ZRAM ": %s",
	       strerror(errno));
	close(fd);
	EXPECT(!swapon(ZRAM, 0), "swapon: %s", strerror(errno));
	return PASS;
}

/* Pages of ours that are in the swap. */
static long swapped_out(void)
{
	return named_number("/proc/self/status", "VmSwap") / (long)(PAGE / 1024);
}

static enum result out(void *at, size_t bytes)
{
	EXPECT(!madvise(at, bytes, MADV_PAGEOUT), "MADV_PAGEOUT: %s",
	       strerror(errno));
	return PASS;
}

static enum result swap_private(unsigned int rounds)
{
	char *at = pages(COUNT);
	unsigned int round;
	long most = 0, now;

	TRY(swap_on());
	for (round = 0; round < rounds; round++) {
		fill(at, BYTES, round);
		TRY(out(at, BYTES));
		now = swapped_out();
		most = now > most ? now : most;
		TRY(holds(at, BYTES, round, "come back, read"));
		TRY(out(at, BYTES));
		/* Come back by a write this time. */
		fill(at, PAGE, round + 1);
		TRY(holds(at, PAGE, round + 1, "come back, written"));
		fill(at + PAGE, BYTES - PAGE, round + 2);
	}
	EXPECT(most >= COUNT / 2, "only %ld pages went out", most);
	EXPECT(!swapoff(ZRAM), "swapoff: %s", strerror(errno));
	return PASS;
}

static enum result swap_child(struct other *other, void *at)
{
	uint32_t round;

	TRY(child_wait(other, &round));
	TRY(holds(at, BYTES, round, "the child, from the swap"));
	fill(at, BYTES / 2, round + 40);
	TRY(out(at, BYTES));
	return holds(at, BYTES / 2, round + 40, "the child's own");
}

/* Out before the fork: both bring the same slots in. */
static enum result swap_forked(unsigned int rounds)
{
	char *at = pages(COUNT);
	unsigned int round;

	TRY(swap_on());
	for (round = 0; round < rounds; round++) {
		struct other other;

		fill(at, BYTES, round);
		TRY(out(at, BYTES));
		TRY(other_start(&other, swap_child, at));
		TRY(other_go(&other, round));
		TRY(holds(at, BYTES, round, "the parent, from the swap"));
		fill(at, BYTES, round + 80);
		TRY(other_end(&other));
		TRY(holds(at, BYTES, round + 80, "the parent's own"));
	}
	EXPECT(!swapoff(ZRAM), "swapoff: %s", strerror(errno));
	return PASS;
}

/* tmpfs pages go out by another path. */
static enum result swap_shared(unsigned int rounds)
{
	int fd = memory_file(BYTES, 0);
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unsigned int round;

	EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
	TRY(swap_on());
	for (round = 0; round < rounds; round++) {
		static char buffer[BYTES];

		fill(at, BYTES, round);
		TRY(out(at, BYTES));
		TRY(holds(at, BYTES, round, "come back"));
		TRY(out(at, BYTES));
		EXPECT(pread(fd, buffer, BYTES, 0) == BYTES, "pread");
		TRY(holds(buffer, BYTES, round, "read from the swap"));
	}
	EXPECT(!swapoff(ZRAM), "swapoff: %s", strerror(errno));
	return PASS;
}

/* The kernel reads the pages through its own address. */
static enum result look(char *at, unsigned int way)
{
	static char seen[PAGE];
	struct iovec remote = { at, PAGE }, local = { seen, PAGE };
	int fd, ends[2];
	ssize_t n;

	if (way == 0) {
		n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	} else if (way == 1) {
		fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
		n = pread64(fd, seen, PAGE, (off64_t)(uintptr_t)at);
		close(fd);
	} else {
		EXPECT(!pipe(ends), "pipe: %s", strerror(errno));
		n = vmsplice(ends[1], &remote, 1, 0);
		EXPECT(n == (ssize_t)PAGE && read(ends[0], seen, PAGE) == (ssize_t)PAGE,
		       "vmsplice: %s", strerror(errno));
		close(ends[0]);
		close(ends[1]);
	}
	EXPECT(n == (ssize_t)PAGE, "looked at %zd bytes: %s", n, strerror(errno));
	EXPECT(!memcmp(seen, at, PAGE), "the kernel sees other data");
	return PASS;
}

/*
 * Then the owner writes them, and they go out: what goes must be the new. One
 * page, so that the kernel's lines of it are still in the cache.
 */
static enum result swap_looked(unsigned int rounds, unsigned int way)
{
	char *at = pages(1);
	unsigned int round;

	TRY(swap_on());
	for (round = 0; round < rounds; round++) {
		fill(at, PAGE, round);
		TRY(look(at, way));
		fill(at, PAGE, round + 20);
		TRY(out(at, PAGE));
		TRY(holds(at, PAGE, round + 20, "looked at, changed, swapped"));
	}
	EXPECT(!swapoff(ZRAM), "swapoff: %s", strerror(errno));
	return PASS;
}

static enum result swap_looked_vm(unsigned int rounds)
{
	return swap_looked(rounds, 0);
}

static enum result swap_looked_mem(unsigned int rounds)
{
	return swap_looked(rounds, 1);
}

static enum result swap_looked_lent(unsigned int rounds)
{
	return swap_looked(rounds, 2);
}

/* swapoff brings everything back. */
static enum result swap_emptied(unsigned int rounds)
{
	char *at = pages(COUNT);
	unsigned int round;

	for (round = 0; round < rounds; round++) {
		TRY(swap_on());
		fill(at, BYTES, round);
		TRY(out(at, BYTES));
		EXPECT(!swapoff(ZRAM), "swapoff: %s", strerror(errno));
		TRY(holds(at, BYTES, round, "after swapoff"));
	}
	return PASS;
}

/* The block device reads and writes user pages without the page cache. */
static enum result direct(unsigned int rounds)
{
	unsigned int round;
	char *at;
	int fd;

	TRY(zram_fresh());
	fd = open(ZRAM, O_RDWR | O_DIRECT | O_CLOEXEC);
	EXPECT(fd >= 0, ZRAM ": %s", strerror(errno));
	at = pages(COUNT);
	for (round = 0; round < rounds * 2; round++) {
		fill(at, BYTES, round);
		EXPECT(pwrite(fd, at, BYTES, round * PAGE) == BYTES, "write: %s",
		       strerror(errno));
		fill(at, BYTES, round + 30);
		TRY(holds(at, BYTES, round + 30, "own store"));
		EXPECT(pread(fd, at, BYTES, round * PAGE) == BYTES, "read: %s",
		       strerror(errno));
		TRY(holds(at, BYTES, round, "read back"));
	}
	return PASS;
}

/* The same through the page cache, mapped. */
static enum result block_mapped(unsigned int rounds)
{
	unsigned int round;
	char *at;
	int fd;

	TRY(zram_fresh());
	fd = open(ZRAM, O_RDWR | O_CLOEXEC);
	EXPECT(fd >= 0, ZRAM ": %s", strerror(errno));
	for (round = 0; round < rounds; round++) {
		static char buffer[BYTES];

		at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
		fill(at, BYTES, round);
		EXPECT(!msync(at, BYTES, MS_SYNC), "msync: %s", strerror(errno));
		fill(at, PAGE, round + 1);
		munmap(at, BYTES);
		EXPECT(!fsync(fd), "fsync: %s", strerror(errno));
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		EXPECT(pread(fd, buffer, BYTES, 0) == BYTES, "read: %s",
		       strerror(errno));
		TRY(holds(buffer, PAGE, round + 1, "first page from the disk"));
	}
	return PASS;
}

/* read(2), then a store through the mapping: what is on the disk? */
static enum result block_looked(unsigned int rounds)
{
	unsigned int round;
	char *at, *seen = pages(1);
	int fd, direct_fd;

	TRY(zram_fresh());
	fd = open(ZRAM, O_RDWR | O_CLOEXEC);
	direct_fd = open(ZRAM, O_RDONLY | O_DIRECT | O_CLOEXEC);
	EXPECT(fd >= 0 && direct_fd >= 0, ZRAM ": %s", strerror(errno));
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
	for (round = 0; round < rounds; round++) {
		fill(at, PAGE, round);
		EXPECT(pread(fd, seen, PAGE, 0) == (ssize_t)PAGE, "read: %s",
		       strerror(errno));
		TRY(holds(seen, PAGE, round, "read"));
		fill(at, PAGE, round + 10);
		EXPECT(!msync(at, PAGE, MS_SYNC), "msync: %s", strerror(errno));
		EXPECT(pread(direct_fd, seen, PAGE, 0) == (ssize_t)PAGE,
		       "read: %s", strerror(errno));
		TRY(holds(seen, PAGE, round + 10, "the disk"));
	}
	return PASS;
}

static long shared_pages(void)
{
	return read_number(KSM "pages_sharing");
}

static void sleep_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* Equal pages become one; a write parts them again. */
static enum result merged(unsigned int rounds)
{
	unsigned int round, i;
	char *at = pages(COUNT);

	SKIP_UNLESS(!access(KSM "run", W_OK), "KSM: %s", strerror(errno));
	TRY(write_text(KSM "sleep_millisecs", "1"));
	TRY(write_text(KSM "pages_to_scan", "64"));
	TRY(write_text(KSM "run", "1"));
	EXPECT(!madvise(at, BYTES, MADV_MERGEABLE), "MADV_MERGEABLE: %s",
	       strerror(errno));
	for (round = 0; round < (rounds + 1) / 2; round++) {
		unsigned int waited = 0;

		for (i = 0; i < COUNT; i++)
			fill(at + i * PAGE, PAGE, round);
		while (shared_pages() < COUNT - 1 && waited < KSM_WAIT_MS) {
			sleep_ms(10);
			waited += 10;
		}
		EXPECT(shared_pages() >= COUNT / 2, "only %ld pages merged",
		       shared_pages());
		for (i = 0; i < COUNT; i++)
			TRY(holds(at + i * PAGE, PAGE, round, "merged"));
		fill(at + PAGE, PAGE, round + 60);
		TRY(holds(at, PAGE, round, "the first, still merged"));
		TRY(holds(at + PAGE, PAGE, round + 60, "parted by a write"));
		TRY(holds(at + 2 * PAGE, PAGE, round, "the third"));
		fill(at, BYTES, round + 90);
	}
	TRY(write_text(KSM "run", "2"));
	return write_text(KSM "run", "0");
}

/* Equal pages that keep being written while the kernel compares them. */
static enum result merged_busy(unsigned int rounds)
{
	unsigned int round, i;
	char *at = pages(COUNT);

	SKIP_UNLESS(!access(KSM "run", W_OK), "KSM: %s", strerror(errno));
	TRY(write_text(KSM "sleep_millisecs", "1"));
	TRY(write_text(KSM "pages_to_scan", "64"));
	TRY(write_text(KSM "run", "1"));
	EXPECT(!madvise(at, BYTES, MADV_MERGEABLE), "MADV_MERGEABLE: %s",
	       strerror(errno));
	for (round = 0; round < rounds * 8; round++) {
		for (i = 0; i < COUNT; i++)
			fill(at + i * PAGE + PAGE / 2, PAGE / 2, round / 4);
		for (i = 0; i < COUNT; i++)
			((volatile uint32_t *)at)[i * PAGE_WORDS + 40 + i] = round;
		sleep_ms(1);
		for (i = 0; i < COUNT; i++)
			TRY(holds(at + i * PAGE + PAGE / 2, PAGE / 2, round / 4,
				  "busy"));
		for (i = 0; i < COUNT; i++)
			EXPECT(((volatile uint32_t *)at)[i * PAGE_WORDS + 40 + i] ==
			       round, "page %u lost a store", i);
	}
	TRY(write_text(KSM "run", "2"));
	return write_text(KSM "run", "0");
}

/* zram reads by the kernel's address, whose lines of the look are still there. */
#define LOOKED	"Linux reads what goes out by lines of an earlier look"

const struct test swap_tests[] = {
	{ "direct", "O_DIRECT on zram", direct, NULL },
	{ "block_mapped", "a mapped block device", block_mapped, NULL },
	{ "block_looked", "read(2), a store, then msync", block_looked, LOOKED },
	{ "swap_private", "pages out to zram and back", swap_private, NULL },
	{ "swap_forked", "swapped pages of parent and child", swap_forked, NULL },
	{ "swap_shared", "shared memory out to zram and back", swap_shared,
	  NULL },
	{ "swap_emptied", "swapoff", swap_emptied, NULL },
	{ "swap_looked_vm", "process_vm_readv, a store, then out to zram",
	  swap_looked_vm, LOOKED },
	{ "swap_looked_mem", "/proc/self/mem, a store, then out to zram",
	  swap_looked_mem, LOOKED },
	{ "swap_looked_lent", "vmsplice, a store, then out to zram",
	  swap_looked_lent, LOOKED },
	{ "merged_busy", "pages written while KSM compares them", merged_busy,
	  NULL },
	{ "merged", "KSM merges, a write parts", merged, NULL },
	{ NULL, NULL, NULL, NULL },
};
