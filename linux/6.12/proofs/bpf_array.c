/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A BPF array that is mapped: one process sets its values by bpf(2), the other one looks at the mapping; and the other
 * way round.
 *
 * bpf_array ROUNDS [self]
 *	self: one process, no switch
 */
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE	4096
#define WORDS	(PAGE / 4)

static int ask[2], answer[2], array;

static void at_key(int command, uint32_t key, uint32_t *value)
{
	union bpf_attr attr = { .map_fd = array };

	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)value;
	if (syscall(SYS_bpf, command, &attr, sizeof(attr))) {
		perror("bpf");
		exit(2);
	}
}

/* Looks at what was stored by the mapping, sets all, and says how many were old. */
static uint32_t look_and_set(uint32_t word)
{
	uint32_t i, value, old = 0;

	for (i = 0; i < WORDS; i++) {
		at_key(BPF_MAP_LOOKUP_ELEM, i, &value);
		old += value != word + i;
		value = ~(word + i);
		at_key(BPF_MAP_UPDATE_ELEM, i, &value);
	}
	return old;
}

static void other(void)
{
	uint32_t word;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ask[0], &word, 4) == 4) {
		word = look_and_set(word);
		write(answer[1], &word, 4);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY };
	int rounds = argc > 1 ? atoi(argv[1]) : 10, self = argc > 2, round, stored = 0, set = 0;
	volatile uint32_t *values;

	attr.key_size = attr.value_size = 4;	/* of 8 in the mapping */
	attr.max_entries = WORDS;
	attr.map_flags = BPF_F_MMAPABLE;
	array = syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	values = mmap(NULL, PAGE * 2, PROT_READ | PROT_WRITE, MAP_SHARED, array, 0);
	if (array < 0 || values == MAP_FAILED) {
		perror("BPF_MAP_CREATE");
		return 2;
	}
	pipe(ask);
	pipe(answer);
	if (!self && !fork())
		other();
	for (round = 1; round <= rounds; round++) {
		uint32_t word = round << 16, old = 0, i;

		for (i = 0; i < WORDS; i++)
			values[2 * i] = word + i;
		if (self) {
			old = look_and_set(word);
		} else {
			write(ask[1], &word, 4);
			read(answer[0], &old, 4);
		}
		stored += old != 0;
		for (i = 0, old = 0; i < WORDS; i++)
			old += values[2 * i] != ~(word + i);
		set += old != 0;
	}
	printf("%d rounds, stored words are old for the kernel in %d, its words for the process in %d\n", rounds, stored, set);
	return stored || set;
}
