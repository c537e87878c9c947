/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A file system of our own by /dev/fuse, with one file, whose words are another number at each opening. A second
 * process reads it.
 *
 * fuse_file ROUNDS buffered	by read(2), and by a mapping
 * fuse_file ROUNDS direct	by read(2) past the page cache
 * fuse_file ROUNDS beside	the same; a thread stores meanwhile to words beside the buffer's end
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIR	"/tmp/fuse"
#define SIZE	(2 * 4096)
/* Ends in the middle of what a cache line's half has: 16 bytes. */
#define DIRECT	(2048 + 8)
#define ROOT	FUSE_ROOT_ID
#define FILE_ID	2

static int fuse, direct;
static uint32_t opened;
static char request[FUSE_MIN_READ_BUFFER + SIZE] __attribute__((aligned(8)));
static union {
	uint32_t words[(DIRECT + 64) / 4];
	char bytes[DIRECT + 64];
} to __attribute__((aligned(4096)));
static volatile int reading;

static void reply(uint64_t unique, int error, const void *data, size_t size)
{
	static char out[sizeof(struct fuse_out_header) + SIZE] __attribute__((aligned(4096)));	/* one piece */
	struct fuse_out_header *header = (void *)out;

	header->len = sizeof(*header) + size;
	header->error = error;
	header->unique = unique;
	memcpy(out + sizeof(*header), data, size);
	write(fuse, out, header->len);
}

static struct fuse_attr attributes(uint64_t node)
{
	struct fuse_attr attr = { .ino = node, .nlink = 1, .blksize = 4096 };

	attr.mode = node == ROOT ? S_IFDIR | 0755 : S_IFREG | 0644;
	attr.size = node == ROOT ? 0 : SIZE;
	return attr;
}

static void serve_read(uint64_t unique, const struct fuse_read_in *in)
{
	static uint32_t words[SIZE / 4];
	size_t i, size = in->size;

	if (in->offset >= SIZE)
		size = 0;
	else if (size > SIZE - in->offset)
		size = SIZE - in->offset;
	for (i = 0; i < size / 4; i++)
		words[i] = (opened << 16) + in->offset / 4 + i;
	if (direct)
		usleep(1000);	/* the reader's other thread runs */
	reply(unique, 0, words, size);
}

static void serve_one(struct fuse_in_header *in, void *argument)
{
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096 };
	struct fuse_entry_out entry = { .nodeid = FILE_ID, .attr = attributes(FILE_ID) };
	struct fuse_attr_out attr = { .attr = attributes(in->nodeid) };
	struct fuse_open_out open = { .open_flags = direct ? FOPEN_DIRECT_IO : 0 };

	switch (in->opcode) {
	case FUSE_INIT:
		return reply(in->unique, 0, &init, sizeof(init));
	case FUSE_LOOKUP:
		return reply(in->unique, 0, &entry, sizeof(entry));
	case FUSE_GETATTR:
		return reply(in->unique, 0, &attr, sizeof(attr));
	case FUSE_OPEN:
		opened++;
		return reply(in->unique, 0, &open, sizeof(open));
	case FUSE_READ:
		return serve_read(in->unique, argument);
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		return;
	case FUSE_RELEASE:
		return reply(in->unique, 0, NULL, 0);
	default:
		reply(in->unique, -ENOSYS, NULL, 0);
	}
}

static void serve(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fuse, request, sizeof(request)) > 0)
		serve_one((void *)request, request + sizeof(struct fuse_in_header));
	_exit(0);
}

/* Stores to the words beside the buffer while the other thread waits for its data. */
static void *store_beside(void *unused)
{
	volatile uint32_t *beside = &to.words[DIRECT / 4];

	while (reading >= 0) {
		if (reading)
			++*beside;	/* the load has the line in the cache, which a store alone goes past */
		else
			usleep(200);
	}
	return unused;
}

static int wrong_words(const volatile uint32_t *at, size_t count, uint32_t word)
{
	size_t i;
	int wrong = 0;

	for (i = 0; i < count; i++)
		wrong += at[i] != word + i;
	return wrong;
}

static int read_buffered(uint32_t word)
{
	static uint32_t words[SIZE / 4];
	int fd = open(DIR "/file", O_RDONLY), wrong;
	volatile uint32_t *map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);

	if (fd < 0 || map == MAP_FAILED) {
		perror("file");
		exit(2);
	}
	wrong = wrong_words(map, SIZE / 4, word);
	wrong += read(fd, words, SIZE) != SIZE || wrong_words(words, SIZE / 4, word);
	munmap((void *)map, SIZE);
	close(fd);
	return wrong;
}

static int read_direct(uint32_t word, int beside)
{
	int fd = open(DIR "/file", O_RDONLY), got;

	wrong_words(to.words, DIRECT / 4, 0);	/* its lines are in the cache */
	reading = beside;
	got = read(fd, to.bytes, DIRECT);
	reading = 0;
	close(fd);
	if (got != DIRECT) {
		printf("read gave %d\n", got);
		exit(2);
	}
	return wrong_words(to.words, DIRECT / 4, word);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 10, wrong = 0, round, beside;
	const char *mode = argc > 2 ? argv[2] : "buffered";
	char options[80];
	pthread_t thread;
	pid_t server;

	direct = strcmp(mode, "buffered");
	beside = !strcmp(mode, "beside");
	fuse = open("/dev/fuse", O_RDWR);
	mkdir(DIR, 0755);
	sprintf(options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (fuse < 0 || mount("fuse", DIR, "fuse", 0, options)) {
		perror("fuse");
		return 2;
	}
	server = fork();
	if (!server)
		serve();
	close(fuse);
	if (beside)
		pthread_create(&thread, NULL, store_beside, NULL);
	for (round = 1; round <= rounds; round++) {
		uint32_t word = round << 16;

		wrong += (direct ? read_direct(word, beside) : read_buffered(word)) != 0;
	}
	reading = -1;
	umount2(DIR, MNT_DETACH);
	kill(server, SIGKILL);
	printf("%s: %d rounds, words are wrong in %d\n", mode, rounds, wrong);
	return wrong != 0;
}
