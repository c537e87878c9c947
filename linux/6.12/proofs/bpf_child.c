/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mapped BPF array, and a child. An ordinary user's, where BPF is.
 *
 * bpf_child ROUNDS inherited	the child has the mapping by fork(); another child sets words by bpf(2), and both look
 * bpf_child ROUNDS late	a new child maps the array when the words have been set
 */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS	128

static int array, ask[2], answer[2];

static void fail(const char *what)
{
	perror(what);
	_exit(2);
}

static void at_key(int command, uint32_t key, uint32_t *value)
{
	union bpf_attr attr = { .map_fd = array };

	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)value;
	if (syscall(SYS_bpf, command, &attr, sizeof(attr)))
		fail("bpf");
}

static volatile uint32_t *map(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, array, 0);

	if (at == MAP_FAILED)
		fail("mmap");
	return at;
}

static void set(uint32_t first)
{
	uint32_t i, value;

	for (i = 0; i < WORDS; i++)
		at_key(BPF_MAP_LOOKUP_ELEM, i, &value);	/* the kernel has lines */
	for (i = 0; i < WORDS; i++) {
		value = first + i;
		at_key(BPF_MAP_UPDATE_ELEM, i, &value);
	}
}

/* In the mapping a word is 8 bytes from the next one. */
static uint32_t old_words(volatile uint32_t *values, uint32_t first)
{
	uint32_t i, old = 0;

	for (i = 0; i < WORDS; i++)
		old += values[2 * i] != first + i;
	return old;
}

static void look_and_store(volatile uint32_t *values)
{
	uint32_t i, first, old;

	while (read(ask[0], &first, 4) == 4) {
		old = old_words(values, first);
		for (i = 0; i < WORDS; i++)
			values[2 * i] = ~(first + i);
		write(answer[1], &old, 4);
	}
	_exit(0);
}

static int set_and_look(int rounds)
{
	int round, looker = 0, setter = 0;
	uint32_t i, value, old, wrong;

	for (round = 1; round <= rounds; round++) {
		uint32_t first = round << 16;

		set(first);
		write(ask[1], &first, 4);
		if (read(answer[0], &old, 4) != 4)
			return 2;
		looker += old != 0;
		for (i = wrong = 0; i < WORDS; i++) {
			at_key(BPF_MAP_LOOKUP_ELEM, i, &value);
			wrong += value != ~(first + i);
		}
		setter += wrong != 0;
	}
	printf("%d rounds, words are old in the mapping in %d, for bpf(2) in %d\n", rounds, looker, setter);
	return looker || setter;
}

static int inherited(int rounds)
{
	volatile uint32_t *values = map();
	int status = 0;
	pid_t setter;

	values[0] = 1;
	if (!fork()) {
		close(ask[1]);
		look_and_store(values);
	}
	setter = fork();
	if (!setter) {
		munmap((void *)values, 4096);
		status = set_and_look(rounds);
		fflush(stdout);
		_exit(status);
	}
	close(ask[1]);
	waitpid(setter, &status, 0);
	return WEXITSTATUS(status);
}

static int late(int rounds)
{
	int round, wrong = 0;
	uint32_t first, old;

	for (round = 1; round <= rounds; round++) {
		if (!fork()) {
			read(ask[0], &first, 4);
			old = old_words(map(), first);
			write(answer[1], &old, 4);
			_exit(0);
		}
		usleep(20000);
		first = round << 16;
		set(first);
		write(ask[1], &first, 4);
		if (read(answer[0], &old, 4) != 4)
			return 2;
		wait(NULL);
		wrong += old != 0;
	}
	printf("%d rounds, words are old in %d\n", rounds, wrong);
	return wrong != 0;
}

int main(int argc, char **argv)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY };
	int rounds = argc > 1 ? atoi(argv[1]) : 20;

	attr.key_size = attr.value_size = 4;
	attr.max_entries = WORDS;
	attr.map_flags = BPF_F_MMAPABLE;
	array = syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	if (array < 0)
		fail("BPF_MAP_CREATE");
	pipe(ask);
	pipe(answer);
	return argc > 2 && !strcmp(argv[2], "late") ? late(rounds) : inherited(rounds);
}
