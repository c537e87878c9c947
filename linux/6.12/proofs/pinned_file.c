// SPDX-License-Identifier: GPL-2.0-only
/*
 * A word that only the owner of a shared page stores, lost: process_vm_writev()
 * of another process hits a line that a read(2) of the file has left at the
 * kernel's address, and it goes to memory over the owner's word. Both calls are
 * kept waiting by userfaultfd. Prints the owner's word and what it should be.
 * "pinned_file self": the other process copies to itself, into its own mapping.
 * Wants a D-cache in which the line stays: --set caches.dcache_bytes=32K.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile unsigned int *shared;	/* step */
static char *gap;
static int uffd, fd, wake[2];
static char source[4096] __attribute__((aligned(4096)));
static char sink[4096];
static volatile int go;
static void *reader(void *unused)
{
	struct iovec to[2] = { { sink, 32 }, { gap + 8192, 4 } };
	while (!go) usleep(100);
	if (preadv(fd, to, 2, 0) != 36) perror("preadv");
	return NULL;
}
static unsigned long fault(void)
{
	struct uffd_msg msg;
	if (read(uffd, &msg, sizeof(msg)) != sizeof(msg)) { perror("uffd read"); exit(3); }
	return msg.arg.pagefault.address & ~4095ul;
}
static void resolve(unsigned long at)
{
	struct uffdio_copy c = { .dst = at, .src = (unsigned long)source, .len = 4096 };
	if (ioctl(uffd, UFFDIO_COPY, &c)) { perror("copy"); exit(3); }
}
static void *monitor(void *unused)
{
	unsigned long first = fault(), second, third;
	go = 1;			/* the copier waits for its source: now somebody reads the file, and does not finish */
	second = fault();
	resolve(first);		/* the copier goes on, into lines of the reader */
	third = fault();
	write(wake[1], "", 1);	/* the owner stores now */
	while (shared[0] != 2) usleep(100);
	resolve(third);
	usleep(20000);
	resolve(second);
	return NULL;
}
int main(int argc, char **argv)
{
	int self = argc > 1 && !strcmp(argv[1], "self");
	volatile unsigned int *page;
	pid_t owner = getpid(), copier;
	int status, bad;
	shared = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pipe(wake);
	fd = memfd_create("m", 0);
	ftruncate(fd, 4096);
	page = (void *)0x1000000;
	copier = fork();
	if (!copier) {
		struct uffdio_api api = { .api = UFFD_API };
		struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
		pthread_t t;
		if (self) {
			mmap((void *)page, 4096, 3, MAP_SHARED | MAP_FIXED, fd, 0);
			*page;	/* the entry is writable, and not dirty */
		}
		while (shared[0] != 9) usleep(100);
		memset(source, 0x55, sizeof(source));
		memset(sink, 0, sizeof(sink));
		gap = mmap(0, 12288, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
		if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api)) { perror("uffd"); exit(3); }
		reg.range.start = (unsigned long)gap; reg.range.len = 12288;
		if (ioctl(uffd, UFFDIO_REGISTER, &reg)) { perror("register"); exit(3); }
		pthread_create(&t, NULL, monitor, NULL);
		pthread_create(&t, NULL, reader, NULL);
		struct iovec l[2] = { { gap, 8 }, { gap + 4096, 8 } };
		struct iovec r = { (void *)(page + 2), 16 };
		ssize_t got = process_vm_writev(self ? getpid() : owner, l, 2, &r, 1, 0);
		if (got != 16) { printf("writev %d\n", (int)got); exit(3); }
		exit(0);
	}
	mmap((void *)0x1000000, 4096, 3, MAP_SHARED | MAP_FIXED, fd, 0);
	page[0] = 1; page[2] = 1;
	shared[0] = 9;
	read(wake[0], &status, 1);
	page[0] = 2;	/* nobody else ever writes this word */
	shared[0] = 2;
	waitpid(copier, &status, 0);
	bad = page[0] != 2 || page[2] != 0x55555555 || page[5] != 0x55555555;
	printf("owner's word %u, expected 2; copier's %#x %#x %#x %#x\n", page[0], page[2], page[3], page[4], page[5]);
	return status ? 3 : bad;
}
