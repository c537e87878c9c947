// SPDX-License-Identifier: GPL-2.0-only
/*
 * writev_overlap ROUNDS
 *
 * A process copies two words onto their neighbours by one process_vm_writev() to itself:
 * words[0] = words[1], words[1] = words[0], words[2] = words[1]. Each copy reads what an
 * earlier copy of the call has written, so all three must end with the first value of words[1].
 *
 * The kernel writes by its own address. It reads the source by the process's address, whose
 * line still has the old word. The words are read by /proc/self/mem in the end, which flushes:
 * this is not the bug of vm_own_line.
 */
#define _FILE_OFFSET_BITS 64	/* addresses are offsets in /proc/self/mem */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE	4096

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static void copy_words(uint32_t *words)
{
	struct iovec from[] = { { &words[1], 4 }, { &words[0], 4 }, { &words[1], 4 } };
	struct iovec to = { words, 12 };

	must(process_vm_writev(getpid(), from, 3, &to, 1, 0) == 12, "process_vm_writev");
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? atoi(argv[1]) : 100, wrong = 0, round;
	uint32_t *words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int memory = open("/proc/self/mem", O_RDONLY);

	must(words != MAP_FAILED, "mmap");
	must(memory >= 0, "/proc/self/mem");
	for (round = 1; round <= rounds; round++) {
		volatile uint32_t *own = words;
		uint32_t is[3], i, bad = 0;

		for (i = 0; i < 3; i++)
			own[i] = 1000 * i + round;
		copy_words(words);
		must(pread(memory, is, sizeof(is), (uintptr_t)words) == sizeof(is), "pread");
		for (i = 0; i < 3; i++)
			bad += is[i] != 1000 + round;
		wrong += bad != 0;
	}
	printf("%u of %u rounds have wrong words\n", wrong, rounds);
	return wrong != 0;
}
