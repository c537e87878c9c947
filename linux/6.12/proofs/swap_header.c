// SPDX-License-Identifier: GPL-2.0-only
/*
 * swap_header ROUNDS, as root, with /dev/zram0
 *
 * One process reads a device's first page by read(2). Another one stores a header of swap
 * space there by its shared mapping, and is done. swapon(2) of the first must find it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/swap.h>
#include <unistd.h>

#define PAGE	4096
#define DEVICE	"/dev/zram0"
#define SIZE	"/sys/block/zram0/disksize"
#define HEADER	256		/* of words: the version, the last page */
#define MAGIC	"SWAPSPACE2"

static int device, ask[2], answer[2];

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static void writer(void)
{
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, device, 0);
	volatile uint32_t *words = (void *)page;
	char make;

	must(page != MAP_FAILED, "mmap");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ask[0], &make, 1) == 1) {
		words[HEADER] = make;
		words[HEADER + 1] = make ? 1023 : 0;
		memcpy(page + PAGE - 10, make ? MAGIC : "          ", 10);
		must(write(answer[1], &make, 1) == 1, "write");
	}
	exit(0);
}

static void asked(char make)
{
	must(write(ask[1], &make, 1) == 1, "write");
	must(read(answer[0], &make, 1) == 1, "read");
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? atoi(argv[1]) : 10, unseen = 0, round;
	static char page[PAGE];
	int size = open(SIZE, O_WRONLY);

	must(size >= 0 && write(size, "4M", 2) == 2, SIZE);
	device = open(DEVICE, O_RDWR);
	must(device >= 0, DEVICE);
	must(!pipe(ask) && !pipe(answer), "pipe");
	if (!fork())
		writer();
	for (round = 0; round < rounds; round++) {
		asked(0);
		must(pread(device, page, PAGE, 0) == PAGE, "pread");
		asked(1);
		if (swapon(DEVICE, 0))
			unseen++;
		else
			must(!swapoff(DEVICE), "swapoff");
	}
	printf("%u rounds, swapon() does not see the header in %u\n", rounds, unseen);
	return unseen != 0;
}
