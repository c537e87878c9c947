/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program with an array that has no content in its file: does it lie over the stack, and are arguments and
 * environment there? An ordinary user's. KB says how large it is. Linked with -static or -no-pie, the array is at the
 * program's own, fixed address.
 *
 * large_array WORD
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef KB
#define KB	(40 << 10)
#endif

static volatile char array[KB << 10];

/* The stack can grow to half a megabyte, and keeps what it has. */
static int deeper(int depth)
{
	volatile char page[4096];

	page[0] = page[sizeof(page) - 1] = depth;
	return (depth ? deeper(depth - 1) : 0) + (page[0] != page[sizeof(page) - 1]) + (page[0] != (char)depth);
}

int main(int argc, char **argv)
{
	char here;
	int over = (volatile char *)&here >= array && (volatile char *)&here < array + sizeof(array);
	int lost = argc != 2 || strcmp(argv[1], "word") || !getenv("PATH");
	size_t i;

	for (i = 0; i < sizeof(array); i += 16 * 4096)
		array[i] = 1;
	lost += deeper(128) || argc != 2 || strcmp(argv[1], "word") || !getenv("PATH");
	printf("the array lies over the stack: %d, arguments or environment are lost: %d\n", over, lost);
	return over || lost;
}
