// SPDX-License-Identifier: GPL-2.0-only
/*
 * pin_reused [beside], as root
 *
 * A process pins a page by io_uring, unpins it and unmaps it. A stranger gets that page, and
 * pins it. The process pins another page for a moment. Its switches must not flush from then
 * on: it has mapped nothing that is pinned. With "beside" it has a third page pinned until
 * the stranger has pinned his.
 *
 * Prints how many switches of 1,000 round trips with a third process flushed for a pinned
 * page, before and after. Exit code 1 if more than a few did.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE	4096
#define PAGES	512	/* that the stranger looks for it in */
#define TRIPS	1000
#define FEW	10
#define COUNTER	"/sys/kernel/debug/fcse/flushed_pinned"

static int ask[2], answer[2], find[2], found[2];

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static int open_ring(void)
{
	struct io_uring_params parameters = { 0 };
	int ring = syscall(SYS_io_uring_setup, 1, &parameters);

	must(ring >= 0, "io_uring_setup");
	return ring;
}

static void pin(int ring, void *page)
{
	struct iovec buffer = { page, PAGE };

	must(!syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1), "register");
}

static void unpin(int ring)
{
	must(!syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0), "unregister");
}

static char *new_pages(size_t count)
{
	char *pages = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(pages != MAP_FAILED, "mmap");
	memset(pages, 1, count * PAGE);
	return pages;
}

static uint64_t frame_of(const void *page)
{
	int map = open("/proc/self/pagemap", O_RDONLY | O_LARGEFILE);
	uint64_t entry;

	must(map >= 0, "pagemap");
	must(pread(map, &entry, 8, (uintptr_t)page / PAGE * 8) == 8, "pagemap");
	close(map);
	return entry & ((1ull << 55) - 1);
}

static void stranger(void)
{
	int ring = open_ring();
	uint64_t frame;
	char *pages;
	bool has;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(find[0], &frame, sizeof(frame)) == sizeof(frame)) {
		pages = new_pages(PAGES);
		for (i = 0, has = false; i < PAGES && !has; i++)
			if (frame_of(pages + i * PAGE) == frame) {
				pin(ring, pages + i * PAGE);
				has = true;
			}
		must(write(found[1], &has, sizeof(has)) == sizeof(has), "write");
	}
	exit(0);
}

static void third(void)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ask[0], &byte, 1) == 1)
		must(write(answer[1], &byte, 1) == 1, "write");
	exit(0);
}

static unsigned int flushed_in_trips(void)
{
	unsigned int counts[2], i, n;
	char text[32];
	int file;

	for (n = 0; n < 2; n++) {
		file = open(COUNTER, O_RDONLY);
		must(file >= 0, COUNTER);
		i = read(file, text, sizeof(text) - 1);
		text[i] = 0;
		counts[n] = atoi(text);
		close(file);
		for (i = 0; n == 0 && i < TRIPS; i++) {
			must(write(ask[1], "", 1) == 1, "write");
			must(read(answer[0], text, 1) == 1, "read");
		}
	}
	return counts[1] - counts[0];
}

int main(int argc, char **argv)
{
	bool beside = argc > 1 && !strcmp(argv[1], "beside");
	unsigned int before, after;
	uint64_t frame;
	char *page, *other;
	int ring, long_ring;
	bool has;

	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	must(!pipe(ask) && !pipe(answer) && !pipe(find) && !pipe(found), "pipe");
	if (!fork())
		third();
	if (!fork())
		stranger();
	ring = open_ring();
	long_ring = open_ring();
	other = new_pages(2);
	before = flushed_in_trips();
	if (beside)
		pin(long_ring, other + PAGE);
	page = new_pages(1);
	frame = frame_of(page);
	pin(ring, page);
	unpin(ring);
	must(!munmap(page, PAGE), "munmap");
	must(write(find[1], &frame, sizeof(frame)) == sizeof(frame), "write");
	must(read(found[0], &has, sizeof(has)) == sizeof(has), "read");
	if (beside)
		unpin(long_ring);
	pin(ring, other);
	unpin(ring);
	after = flushed_in_trips();
	printf("the stranger %s the page; %u switches flushed before, %u after\n", has ? "has" : "has not", before, after);
	return has ? after > FEW : 2;
}
