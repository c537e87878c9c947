/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What others cost two processes that pass a byte to and fro, and have nothing to do with them. Prints how long a hop
 * takes with them, and with the same pages before they began; and by FCSE's debugfs how many switches flushed with them.
 * debugfs is mounted.
 *
 * bystander HOPS		there is nobody else
 * bystander HOPS uring		one registers a page of its memfd with io_uring, which pins it, and sleeps
 * bystander HOPS uring run	it registers and unregisters the page 100 times a second
 * bystander HOPS fuse		one reads a file of a FUSE server into shared memory, and gets no answer
 * bystander HOPS once		one of both has pinned a page of its own before, by process_vm_readv()
 * bystander HOPS once uring	the same, and one sleeps as above
 * bystander HOPS file		both have a file mapped; somebody who may only read it has it pinned, once
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define DIR	"/tmp/silent"

static int ask[2], answer[2], ready[2];

static void fail(const char *what)
{
	perror(what);
	_exit(2);
}

static unsigned int count(const char *name)
{
	unsigned int value = 0;
	char path[64];
	FILE *file;

	sprintf(path, "/sys/kernel/debug/fcse/%s", name);
	file = fopen(path, "r");
	if (!file)
		return 0;	/* FCSE is off, or has no such count */
	if (fscanf(file, "%u", &value) != 1)
		fail(path);
	fclose(file);
	return value;
}

static unsigned int flushed(void)
{
	return count("flushed_pinned") + count("flushed_kernels") + count("flushed_shared_written") +
	       count("flushed_pid_shared") + count("flushed_large");
}

static void *shared_page(void)
{
	int fd = memfd_create("own", 0);
	void *page;

	ftruncate(fd, PAGE);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		fail("memfd");
	return page;
}

static void uring(int run)
{
	struct io_uring_params p = { 0 };
	struct iovec page = { .iov_base = shared_page(), .iov_len = PAGE };
	int fd = syscall(SYS_io_uring_setup, 8, &p);

	if (fd < 0 || syscall(SYS_io_uring_register, fd, IORING_REGISTER_BUFFERS, &page, 1))
		fail("io_uring");
	write(ready[1], "", 1);
	while (run) {
		usleep(10000);
		if (syscall(SYS_io_uring_register, fd, IORING_UNREGISTER_BUFFERS, NULL, 0) ||
		    syscall(SYS_io_uring_register, fd, IORING_REGISTER_BUFFERS, &page, 1))
			fail("io_uring");
	}
	pause();
}

/* Answers to everything but the reading of its one file, of which it says that it is there. */
static void serve(int fuse)
{
	static char request[FUSE_MIN_READ_BUFFER] __attribute__((aligned(8)));
	struct fuse_in_header *in = (void *)request;
	static struct {
		struct fuse_out_header header;
		union {
			struct fuse_init_out init;
			struct fuse_entry_out entry;
			struct fuse_attr_out attr;
			struct fuse_open_out open;
		};
	} out;

	while (read(fuse, request, sizeof(request)) > 0) {
		struct fuse_attr attr = { .ino = in->nodeid, .nlink = 1, .blksize = PAGE, .size = PAGE };
		size_t size = 0;

		memset(&out, 0, sizeof(out));
		attr.mode = in->nodeid == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644;
		switch (in->opcode) {
		case FUSE_INIT:
			out.init = (struct fuse_init_out){ .major = FUSE_KERNEL_VERSION, .minor = 31 };
			size = sizeof(out.init);
			break;
		case FUSE_LOOKUP:
			attr.ino = 2;
			attr.mode = S_IFREG | 0644;
			out.entry = (struct fuse_entry_out){ .nodeid = 2, .attr = attr };
			size = sizeof(out.entry);
			break;
		case FUSE_GETATTR:
			out.attr = (struct fuse_attr_out){ .attr = attr };
			size = sizeof(out.attr);
			break;
		case FUSE_OPEN:
			out.open = (struct fuse_open_out){ .open_flags = FOPEN_DIRECT_IO };
			size = sizeof(out.open);
			break;
		case FUSE_READ:
			write(ready[1], "", 1);
			pause();
		default:
			out.header.error = -38;	/* ENOSYS */
		}
		out.header.unique = in->unique;
		out.header.len = sizeof(out.header) + size;
		write(fuse, &out, out.header.len);
	}
	_exit(2);
}

static void fuse(void)
{
	int fuse = open("/dev/fuse", O_RDWR), fd;
	char options[80];

	mkdir(DIR, 0755);
	sprintf(options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (fuse < 0 || mount("fuse", DIR, "fuse", 0, options))
		fail("fuse");
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(fuse);
	}
	close(fuse);
	fd = open(DIR "/file", O_RDONLY);
	if (fd < 0)
		fail("file");
	read(fd, shared_page(), PAGE);
	fail("the server has answered");
}

/* One of its own is pinned, and let go. */
static void pin_once(char *at)
{
	char to[64];
	struct iovec local = { to, sizeof(to) }, remote = { at, sizeof(to) };

	if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != sizeof(to))
		fail("process_vm_readv");
}

static char *map_to_read(void)
{
	int fd = open("/tmp/read_only", O_RDONLY);
	char *at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		fail("read_only");
	return at + !(*(volatile char *)at);
}

static void share_file(void)
{
	int fd = open("/tmp/read_only", O_RDWR | O_CREAT, 0644);	/* stays open for writing */

	write(fd, "data", 4);
	ftruncate(fd, PAGE);
	map_to_read();
}

static void reader_pins(void)
{
	pid_t reader = fork();

	if (!reader) {
		setgid(1000);
		setuid(1000);
		prctl(PR_SET_DUMPABLE, 1);
		pin_once(map_to_read());
		_exit(0);
	}
	waitpid(reader, NULL, 0);
}

static void echo(void)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ask[0], &byte, 1) == 1)
		write(answer[1], &byte, 1);
	_exit(0);
}

static long long now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void hop(int hops)
{
	char byte = 0;

	while (hops--) {
		write(ask[1], &byte, 1);
		read(answer[0], &byte, 1);
	}
}

/* One that does what the other arguments say, until it sleeps. */
static int third(char **how)
{
	char byte;

	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!strcmp(how[0], "fuse"))
			fuse();
		uring(how[1] != NULL);
	}
	close(ready[1]);
	return read(ready[0], &byte, 1) == 1;
}

int main(int argc, char **argv)
{
	int hops = argc > 1 ? atoi(argv[1]) : 100;
	int once = argc > 2 && !strcmp(argv[2], "once");
	int file = argc > 2 && !strcmp(argv[2], "file");
	unsigned int switches, flushes;
	long long before, after;
	static char own[64];
	char **how = argv + 2 + (once || file);

	pipe(ask);
	pipe(answer);
	pipe(ready);
	if (file)
		share_file();
	if (!fork())
		echo();
	hop(10);
	before = now();
	hop(hops);
	before = now() - before;
	if (once)
		pin_once(own);
	if (file)
		reader_pins();
	if (argc > 2 && how[0] && !third(how))
		return 2;
	usleep(20000);	/* it goes to sleep */
	hop(10);
	flushes = flushed();
	switches = count("switches");
	after = now();
	hop(hops);
	after = now() - after;
	switches = count("switches") - switches;
	flushes = flushed() - flushes;
	printf("switches: %u, flushed: %u, ns a hop: %lld, before: %lld\n", switches, flushes, after / hops / 2,
	       before / hops / 2);
	return 0;
}
