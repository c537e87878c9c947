// SPDX-License-Identifier: MIT OR Apache-2.0
/* Adds up a table of 512 rows of 512 words, by rows, or by columns: docs/use/TUTORIALS.md. */
#include <stdio.h>
#include <string.h>

#define N 512

static int table[N][N];

int main(int argc, char **argv)
{
	int columns = argc > 1 && !strcmp(argv[1], "columns");
	int i, j, round, sum = 0;

	for (round = 0; round < 4; round++)
		for (i = 0; i < N; i++)
			for (j = 0; j < N; j++)
				sum += columns ? table[j][i]++ : table[i][j]++;
	printf("%d\n", sum);
	return 0;
}
