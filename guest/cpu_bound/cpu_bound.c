// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * cpu_bound: a fixed amount of work without system calls, for the bench.
 *
 * Each round fills an array with pseudo-random words, sorts it, copies it and
 * takes the CRC-32 of the copy. The checksum printed at the end depends on
 * every step, so that a wrong simulator shows.
 *
 * Usage: cpu_bound [rounds]. Output: one line of JSON.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS		4096
#define MAX_ROUNDS	100000
#define POLYNOMIAL	0xedb88320u

static uint32_t table[256];
static uint32_t words[WORDS];
static uint32_t copy[WORDS];

static void crc_init(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? (c >> 1) ^ POLYNOMIAL : c >> 1;
		table[i] = c;
	}
}

static uint32_t crc(uint32_t start, const void *data, size_t bytes)
{
	const unsigned char *p = data;
	uint32_t c = ~start;

	while (bytes--)
		c = table[(c ^ *p++) & 0xff] ^ (c >> 8);
	return ~c;
}

static void sift_down(uint32_t *a, size_t root, size_t count)
{
	size_t child;

	while ((child = 2 * root + 1) < count) {
		uint32_t swap;

		if (child + 1 < count && a[child] < a[child + 1])
			child++;
		if (a[root] >= a[child])
			return;
		swap = a[root];
		a[root] = a[child];
		a[child] = swap;
		root = child;
	}
}

static void heap_sort(uint32_t *a, size_t count)
{
	for (size_t root = count / 2; root-- > 0;)
		sift_down(a, root, count);
	while (count > 1) {
		uint32_t largest = a[0];

		a[0] = a[--count];
		a[count] = largest;
		sift_down(a, 0, count);
	}
}

int main(int argc, char **argv)
{
	unsigned long rounds = 50;
	uint32_t state = 1, sum = 0;
	char *end;

	if (argc > 1) {
		rounds = strtoul(argv[1], &end, 10);
		if (*end || end == argv[1] || !rounds || rounds > MAX_ROUNDS) {
			fprintf(stderr, "cpu_bound: \"%s\" is not a number of rounds from 1 to %d\n",
				argv[1], MAX_ROUNDS);
			return 2;
		}
	}

	crc_init();
	for (unsigned long r = 0; r < rounds; r++) {
		for (size_t i = 0; i < WORDS; i++) {
			state = state * 1664525u + 1013904223u;
			words[i] = state;
		}
		heap_sort(words, WORDS);
		memcpy(copy, words, sizeof(copy));
		sum = crc(sum, copy, sizeof(copy));
	}
	printf("{\"guest\":\"cpu_bound\",\"format\":1,\"rounds\":%lu,\"checksum\":\"%08lx\"}\n",
	       rounds, (unsigned long)sum);
	return fflush(stdout) ? 1 : 0;
}
