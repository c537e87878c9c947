/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ways through memory management that no test of mm_suite takes, for
 * `warmswitch coverage` (docs/log/REACHED.md). It checks nothing; a way
 * that is not there is skipped. Root's, with swap on.
 *
 * arm-linux-gnueabi-gcc -O2 -pthread -o reach reach.c reach_net.c
 * reach [NAME...]
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	4096UL
#define RW	(PROT_READ | PROT_WRITE)
#define ANON	(MAP_PRIVATE | MAP_ANONYMOUS)
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT	21
#endif
#define POISON		_IOWR(UFFDIO, 0x08, struct poison)
#define MOVE		_IOWR(UFFDIO, 0x05, struct move)
#define FEATURE_POISON	(1 << 14)
#define FEATURE_MOVE	(1 << 16)

/* Of reach_net.c. */
void rings(void);
void filters(void);

struct poison { struct uffdio_range range; uint64_t mode; int64_t updated; };
struct move { uint64_t dst, src, len, mode; int64_t moved; };

static char *pages(size_t count)
{
	return mmap(NULL, count * PAGE, RW, ANON, -1, 0);
}

static int memory(size_t count)
{
	int fd = memfd_create("reach", 0);

	ftruncate(fd, count * PAGE);
	return fd;
}

static unsigned int touch(volatile char *at, size_t count, bool write)
{
	unsigned int sum = 0;
	size_t n;

	for (n = 0; n < count; n++) {
		if (write)
			at[n * PAGE] = (char)n;
		sum += at[n * PAGE];
	}
	return sum;
}

/* Pages that are free to go: dirty ones, read ones, ones on the swap. */
static void freed(void)
{
	char *at = pages(64);

	touch(at, 64, true);
	madvise(at, 32 * PAGE, MADV_PAGEOUT);
	madvise(at, 64 * PAGE, MADV_FREE);
	touch(at, 64, false);
	madvise(at, 64 * PAGE, MADV_COLD);
	madvise(at, 64 * PAGE, MADV_PAGEOUT);
	munmap(at, 64 * PAGE);
}

/* One file many times in a row: `count` pages at once. */
static char *many(size_t count)
{
	size_t each = 512, n;
	int fd = memory(each);
	char *at = mmap(NULL, (count + each) * PAGE, PROT_NONE, ANON, -1, 0);

	for (n = 0; n < count; n += each) {
		size_t left = count - n < each ? count - n : each;

		mmap(at + n * PAGE, left * PAGE, RW, MAP_SHARED | MAP_FIXED, fd, 0);
		touch(at + n * PAGE, left, true);
	}
	close(fd);
	return at;
}

/* More than the gather takes, by munmap, by the end, and just so many that tables do not fit. */
static void gathered(void)
{
	size_t count;

	for (count = 8960; count < 9216; count += 12) {
		bool unmaps = count > 9150;

		if (!fork()) {
			char *at = many(count);

			if (unmaps)
				munmap(at, count * PAGE);
			_exit(0);
		}
		wait(NULL);
	}
	if (!fork()) {
		munmap(many(12000), 12000 * PAGE);
		_exit(0);
	}
	wait(NULL);
	if (!fork()) {
		many(12000);
		_exit(0);
	}
	wait(NULL);
}

static int faults(void *at, size_t length, uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	struct uffdio_register range = {
		.range = { (uintptr_t)at, length },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &range))
		printf("# userfaultfd %llx: %s\n", (unsigned long long)features,
		       strerror(errno));
	return fd;
}

/* Copies from what is not there yet, zeroes and poison, in memory of both kinds. */
static void filled(void)
{
	char *to[2] = {
		pages(4),
		mmap(NULL, 4 * PAGE, RW, MAP_SHARED, memory(4), 0),
	};
	int kind;

	for (kind = 0; kind < 2; kind++) {
		char *from = mmap(NULL, PAGE, RW, MAP_SHARED, memory(1), 0);
		int fd = faults(to[kind], 4 * PAGE, FEATURE_POISON);
		uintptr_t at = (uintptr_t)to[kind];
		struct uffdio_copy copy = { .dst = at, .src = (uintptr_t)from, .len = PAGE };
		struct uffdio_zeropage zero = { .range = { at + PAGE, PAGE } };
		struct poison poison = { .range = { at + 2 * PAGE, PAGE } };

		ioctl(fd, UFFDIO_COPY, &copy);
		touch(from, 1, true);
		copy.dst += 3 * PAGE;
		ioctl(fd, UFFDIO_COPY, &copy);
		ioctl(fd, UFFDIO_ZEROPAGE, &zero);
		if (ioctl(fd, POISON, &poison))
			printf("# poison: %s\n", strerror(errno));
		touch(to[kind], 2, true);
		mprotect(to[kind], 4 * PAGE, PROT_READ);
		if (!fork())
			_exit(0);
		wait(NULL);
		madvise(to[kind], 4 * PAGE, MADV_FREE);
		close(fd);
		munmap(to[kind], 4 * PAGE);
	}
}

/* Moves pages of zeros and pages on the swap. */
static void moved(void)
{
	char *from = pages(4), *to = pages(4);
	int fd = faults(to, 4 * PAGE, FEATURE_MOVE);
	struct move move = {
		.dst = (uintptr_t)to, .src = (uintptr_t)from, .len = 2 * PAGE,
	};

	touch(from, 2, false);
	if (ioctl(fd, MOVE, &move))
		printf("# move of zeros: %s\n", strerror(errno));
	touch(from + 2 * PAGE, 2, true);
	madvise(from + 2 * PAGE, 2 * PAGE, MADV_PAGEOUT);
	move.dst += 2 * PAGE;
	move.src += 2 * PAGE;
	if (ioctl(fd, MOVE, &move))
		printf("# move from swap: %s\n", strerror(errno));
	close(fd);
}

/* mprotect that fails in the middle. */
static void refused(void)
{
	char *at = pages(4);
	int fd = open("/proc/self/exe", O_RDONLY);
	char *file = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);

	touch(at, 4, true);
	munmap(at + 2 * PAGE, PAGE);
	mprotect(at, 4 * PAGE, PROT_READ);
	mprotect(file, PAGE, RW);
	close(fd);
}

/* Device memory: a mapping that the driver refuses, a private copy of it. */
static void device(void)
{
	int fd = open("/dev/mem", O_RDWR);
	char *at = mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, (off_t)0xfffff000);

	at = mmap(NULL, 2 * PAGE, RW, MAP_PRIVATE, fd, (off_t)0x1000000);
	if (at == MAP_FAILED)
		printf("# /dev/mem: %s\n", strerror(errno));
	else
		touch(at, 2, true);
	close(fd);
}

/* A file that is mapped for writing, spliced where the page cache is the file system's own. */
static void spliced(void)
{
	int ends[2], fd;
	loff_t from = 0;
	char *at;

	mkdir("/tmp/ramfs", 0700);
	mount("none", "/tmp/ramfs", "ramfs", 0, NULL);
	fd = open("/tmp/ramfs/file", O_RDWR | O_CREAT, 0600);
	ftruncate(fd, 4 * PAGE);
	at = mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
	touch(at, 4, true);
	pipe(ends);
	if (splice(fd, &from, ends[1], NULL, 4 * PAGE, 0) < 0)
		printf("# splice: %s\n", strerror(errno));
	close(fd);
}

/* Makes others leave memory. */
static void crowd(void)
{
	size_t all = (size_t)sysconf(_SC_PHYS_PAGES);

	if (!fork()) {
		touch(pages(all), all, true);
		_exit(0);
	}
	wait(NULL);
}

/* Pages that were merged go out and come back by two addresses. */
static void merged(void)
{
	char *at = pages(64);
	int fd = open("/sys/kernel/mm/ksm/run", O_WRONLY);

	memset(at, 7, 64 * PAGE);
	madvise(at, 64 * PAGE, MADV_MERGEABLE);
	write(fd, "1", 1);
	sleep(6);
	write(fd, "0", 1);
	crowd();
	crowd();
	touch(at, 64, false);
	touch(at, 64, true);
	close(fd);
}

/* Shared memory that nobody wrote, and that has to make room. */
static void allotted(void)
{
	int fd = memfd_create("reach", 0);
	char *at;

	if (fallocate(fd, 0, 0, 8 << 20))
		printf("# fallocate: %s\n", strerror(errno));
	crowd();
	at = mmap(NULL, 8 << 20, RW, MAP_SHARED, fd, 0);
	touch(at, (8 << 20) / PAGE, false);
	madvise(at, 8 << 20, MADV_PAGEOUT);
	close(fd);
}

/* A page that parent and child have is written to a device by its pages. */
static void unshared(void)
{
	int fd = open("/dev/zram0", O_RDWR | O_DIRECT);
	char *at = pages(4);
	pid_t child;

	touch(at, 4, true);
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	if (pwrite(fd, at, 4 * PAGE, 0) < 0)
		printf("# direct: %s\n", strerror(errno));
	kill(child, SIGKILL);
	wait(NULL);
	close(fd);
}

static char *volatile fresh;
static volatile bool over;

static void *holder(void *large)
{
	while (!over) {
		mprotect(large, 2000 * PAGE, PROT_READ);
		mprotect(large, 2000 * PAGE, RW);
	}
	return NULL;
}

static void *writer(void *unused)
{
	char *seen = NULL;

	(void)unused;
	while (!over) {
		char *now = fresh;

		if (now && now != seen)
			touch(now, 256, true);
		seen = now;
	}
	return NULL;
}

/* Threads that wait for one page at once. */
static void crowded(void)
{
	char *large = pages(2000), *both[2] = { pages(256), pages(256) };
	pthread_t threads[3];
	pthread_attr_t small;
	int n;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	touch(large, 2000, true);
	pthread_create(&threads[0], &small, holder, large);
	pthread_create(&threads[1], &small, writer, NULL);
	pthread_create(&threads[2], &small, writer, NULL);
	for (n = 0; n < 40; n++) {
		madvise(both[n % 2], 256 * PAGE, MADV_DONTNEED);
		fresh = both[n % 2];
		usleep(100000);
	}
	over = true;
	for (n = 0; n < 3; n++)
		pthread_join(threads[n], NULL);
}

/* Reads another process's memory, and never gets to the end of it. */
static void reader(pid_t of, uintptr_t at)
{
	char name[32], *to = pages(1);
	int fd;

	faults(to, PAGE, 0);
	snprintf(name, sizeof(name), "/proc/%d/mem", of);
	fd = open(name, O_RDONLY);
	pread(fd, to, PAGE, (off_t)at);
	_exit(0);
}

/* Leaves a process behind that has a page pinned for good, without which FCSE does not look at what the kernel unmaps. */
static void pin(void)
{
	char *from = pages(1), *to = pages(1);
	struct iovec local = { to, PAGE }, remote = { from, PAGE };

	if (fork()) {
		sleep(1);
		return;
	}
	setsid();
	touch(from, 1, true);
	faults(to, PAGE, 0);
	process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	_exit(0);
}

/* A process that has too much is ended while its memory is held: it is taken before that. */
static void ended(void)
{
	char *first = pages(1);
	pid_t victim, other;

	touch(first, 1, true);
	victim = fork();
	if (!victim) {
		int fd = open("/proc/self/oom_score_adj", O_WRONLY);
		char *at;

		write(fd, "1000", 4);
		sleep(1);
		for (;;) {
			at = pages(256);
			if (at == MAP_FAILED)
				pause();
			touch(at, 256, true);
		}
	}
	other = fork();
	if (!other)
		reader(victim, (uintptr_t)first);
	sleep(8);
	kill(victim, SIGKILL);
	kill(other, SIGKILL);
	while (wait(NULL) > 0)
		;
}

static const struct {
	const char *name;
	void (*run)(void);
} ways[] = {
	{ "pin", pin },
	{ "freed", freed }, { "gathered", gathered }, { "filled", filled },
	{ "moved", moved }, { "refused", refused }, { "device", device },
	{ "spliced", spliced }, { "merged", merged }, { "allotted", allotted },
	{ "filters", filters }, { "rings", rings }, { "crowded", crowded },
	{ "unshared", unshared }, { "ended", ended },
};

int main(int argc, char **argv)
{
	size_t n;
	int i;

	setbuf(stdout, NULL);
	for (n = 0; n < sizeof(ways) / sizeof(*ways); n++) {
		bool wanted = argc < 2 && n;

		for (i = 1; i < argc; i++)
			wanted |= !strcmp(argv[i], ways[n].name);
		if (!wanted)
			continue;
		printf("%s\n", ways[n].name);
		if (!fork()) {
			ways[n].run();
			_exit(0);
		}
		wait(&i);
		if (i)
			printf("# %s ended with %x\n", ways[n].name, i);
	}
	return 0;
}
