/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Android's binder: one process sends words to another, which answers with others. The kernel copies each message into
 * pages that the receiver has mapped.
 *
 * binder_words ROUNDS
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/android/binder.h>
#include <linux/android/binderfs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIR	"/tmp/binder"
#define WORDS	256
#define REPLY	0x80000000u

/* What a process says, packed as the kernel reads it. */
struct said {
	uint32_t free_command;
	binder_uintptr_t free;
	uint32_t command;
	struct binder_transaction_data data;
} __attribute__((packed));

static int binder;

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static void make_device(void)
{
	struct binderfs_device device = { .name = "words" };
	int control;

	mkdir(DIR, 0755);
	if (mount("binder", DIR, "binder", 0, ""))
		fail("mount of binderfs");
	control = open(DIR "/binder-control", O_RDWR);
	if (control < 0 || ioctl(control, BINDER_CTL_ADD, &device))
		fail("BINDER_CTL_ADD");
	close(control);
}

static void open_device(void)
{
	binder = open(DIR "/words", O_RDWR);
	if (binder < 0 || mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE, binder, 0) == MAP_FAILED)
		fail("binder");
}

static void write_read(const void *out, size_t size, void *in, size_t room, size_t *got)
{
	struct binder_write_read both = {
		.write_size = size, .write_buffer = (uintptr_t)out,
		.read_size = room, .read_buffer = (uintptr_t)in,
	};

	if (ioctl(binder, BINDER_WRITE_READ, &both))
		fail("BINDER_WRITE_READ");
	if (got)
		*got = both.read_consumed;
}

/* Says this, and waits for the next message. */
static struct binder_transaction_data say_and_wait(const void *out, size_t size)
{
	struct binder_transaction_data message;
	char in[256];
	size_t got, at;

	for (;; out = NULL, size = 0) {
		write_read(out, size, in, sizeof(in), &got);
		for (at = 0; at < got;) {
			uint32_t command;

			memcpy(&command, in + at, 4);
			at += 4;
			if (command == BR_TRANSACTION || command == BR_REPLY) {
				memcpy(&message, in + at, sizeof(message));
				return message;
			}
			if (command == BR_DEAD_REPLY || command == BR_FAILED_REPLY) {
				printf("a message failed\n");
				exit(2);
			}
			at += _IOC_SIZE(command);
		}
	}
}

/* Gives the message's buffer back and says the next words. */
static struct binder_transaction_data say_words(uint32_t command, binder_uintptr_t give_back, const uint32_t *words)
{
	struct said said = { .free_command = BC_FREE_BUFFER, .free = give_back, .command = command };
	size_t skip = give_back ? 0 : offsetof(struct said, command);

	said.data.data_size = WORDS * 4;
	said.data.data.ptr.buffer = (uintptr_t)words;
	return say_and_wait((char *)&said + skip, sizeof(said) - skip);
}

static int wrong_words(const struct binder_transaction_data *message, uint32_t word)
{
	const volatile uint32_t *at = (void *)(uintptr_t)message->data.ptr.buffer;
	int i, wrong = message->data_size != WORDS * 4;

	for (i = 0; i < WORDS; i++)
		wrong += at[i] != word + i;
	return wrong;
}

static void fill(uint32_t *at, uint32_t word)
{
	int i;

	for (i = 0; i < WORDS; i++)
		at[i] = word + i;
}

/* Answers each message, and tells in its first word whether it was right. */
static void serve(int ready)
{
	struct binder_transaction_data message;
	uint32_t words[WORDS], enter = BC_ENTER_LOOPER, round;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_device();
	if (ioctl(binder, BINDER_SET_CONTEXT_MGR, 0))
		fail("BINDER_SET_CONTEXT_MGR");
	write(ready, "", 1);
	message = say_and_wait(&enter, 4);
	for (round = 1;; round++) {
		int wrong = wrong_words(&message, round << 16);

		fill(words, REPLY | round << 16);
		words[0] = wrong != 0;
		message = say_words(BC_REPLY, message.data.ptr.buffer, words);
	}
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 1 ? atoi(argv[1]) : 100, round, words[WORDS];
	struct binder_transaction_data message = { 0 };
	int ready[2], received = 0, answered = 0;
	char byte;

	make_device();
	pipe(ready);
	if (!fork())
		serve(ready[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		return 2;
	open_device();
	for (round = 1; round <= rounds; round++) {
		const volatile uint32_t *first;

		fill(words, round << 16);
		message = say_words(BC_TRANSACTION, message.data.ptr.buffer, words);
		first = (void *)(uintptr_t)message.data.ptr.buffer;
		received += *first != 0;
		answered += wrong_words(&message, REPLY | round << 16) > 1;
	}
	printf("%u rounds, the receiver sees old words in %d, the sender in %d\n", rounds, received, answered);
	return received || answered;
}
