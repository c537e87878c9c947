/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program with an array of 40 MB that has no content in its file: does the array lie over the stack? An ordinary
 * user's. To be linked with -static: the array is then at the program's own, fixed address.
 *
 * large_array WORD
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile char array[40 << 20];

int main(int argc, char **argv)
{
	char here;
	int over = (volatile char *)&here >= array && (volatile char *)&here < array + sizeof(array);
	int lost = argc != 2 || strcmp(argv[1], "word") || !getenv("PATH");

	printf("the array lies over the stack: %d, arguments or environment are lost: %d\n", over, lost);
	return over || lost;
}
