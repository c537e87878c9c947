// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The four works of the paper of 2007, written for this: bubble sort; the search
 * for repetitions that deflate begins with (its Huffman codes are left out); AES
 * with a 128-bit key by four tables (FIPS 197); CRC-32 by a table. A piece
 * works on the same data each time.
 */
#include <stdlib.h>
#include <string.h>

#include "work.h"

#define HASHES		4096
#define MATCH_MIN	3
#define MATCH_MAX	258
#define ROUNDS		10
#define KEY_WORDS	(4 * (ROUNDS + 1))

static size_t bytes, sorted;
static uint8_t *data, *result;
static uint32_t numbers[SORTED_MAX];
static uint32_t crc_table[256];
static uint8_t sbox[256];
static uint32_t tables[4][256];
static uint32_t key[KEY_WORDS];
/* The last place, and 1, of three bytes with this hash. */
static uint32_t last[HASHES];

static uint32_t sort_piece(void)
{
	uint32_t state = 1;
	size_t count = sorted;

	for (size_t n = 0; n < count; n++) {
		state = state * 1664525u + 1013904223u;
		numbers[n] = state;
	}
	for (size_t end = count; end > 1; end--)
		for (size_t n = 1; n < end; n++)
			if (numbers[n - 1] > numbers[n]) {
				uint32_t swap = numbers[n];

				numbers[n] = numbers[n - 1];
				numbers[n - 1] = swap;
			}
	return numbers[count / 2];
}

/* A loop in registers. */
static uint32_t spin_piece(void)
{
	uint32_t state = 1;

	for (size_t n = 0; n < 16 * bytes; n++) {
		state = state * 1664525u + 1013904223u;
		/* Not to be known before. */
		__asm__ volatile("" : "+r"(state));
	}
	return state;
}

static size_t match(size_t from, size_t at)
{
	size_t most = bytes - at < MATCH_MAX ? bytes - at : MATCH_MAX, n = 0;

	while (n < most && data[from + n] == data[at + n])
		n++;
	return n;
}

/* Bytes, and pairs of length and distance; how much that is. */
static uint32_t deflate_piece(void)
{
	size_t at = 0, out = 0;

	memset(last, 0, sizeof(last));
	while (at + MATCH_MIN <= bytes) {
		uint32_t three = data[at] | (uint32_t)data[at + 1] << 8 | (uint32_t)data[at + 2] << 16;
		uint32_t *place = &last[(three * 2654435761u) >> 20];
		size_t length = *place ? match(*place - 1, at) : 0;
		size_t distance = at + 1 - *place;

		*place = (uint32_t)at + 1;
		if (length >= MATCH_MIN) {
			result[out++] = (uint8_t)(length - MATCH_MIN);
			result[out++] = (uint8_t)distance;
			result[out++] = (uint8_t)(distance >> 8);
			at += length;
		} else {
			result[out++] = data[at++];
		}
	}
	return (uint32_t)out;
}

static uint32_t crc_piece(void)
{
	uint32_t c = ~0u;

	for (size_t n = 0; n < bytes; n++)
		c = crc_table[(c ^ data[n]) & 0xff] ^ c >> 8;
	return ~c;
}

/* A column of the next state (FIPS 197, 5.1, by tables). */
static inline uint32_t column(const uint32_t s[4], int n, uint32_t round_key)
{
	return tables[0][s[n] >> 24] ^ tables[1][s[(n + 1) & 3] >> 16 & 0xff] ^
	       tables[2][s[(n + 2) & 3] >> 8 & 0xff] ^ tables[3][s[(n + 3) & 3] & 0xff] ^ round_key;
}

static inline uint32_t last_column(const uint32_t s[4], int n, uint32_t round_key)
{
	return ((uint32_t)sbox[s[n] >> 24] << 24 | (uint32_t)sbox[s[(n + 1) & 3] >> 16 & 0xff] << 16 |
		(uint32_t)sbox[s[(n + 2) & 3] >> 8 & 0xff] << 8 | sbox[s[(n + 3) & 3] & 0xff]) ^ round_key;
}

static void encrypt(uint32_t s[4])
{
	const uint32_t *k = key;
	uint32_t t[4];

	for (int n = 0; n < 4; n++)
		s[n] ^= *k++;
	for (int round = 1; round < ROUNDS; round++) {
		for (int n = 0; n < 4; n++)
			t[n] = column(s, n, *k++);
		memcpy(s, t, sizeof(t));
	}
	for (int n = 0; n < 4; n++)
		t[n] = last_column(s, n, *k++);
	memcpy(s, t, sizeof(t));
}

static inline uint32_t word_at(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Block by block, each added to the one before. */
static uint32_t aes_piece(void)
{
	uint32_t s[4] = { 0 };

	for (size_t at = 0; at + 16 <= bytes; at += 16) {
		for (int n = 0; n < 4; n++)
			s[n] ^= word_at(data + at + 4 * n);
		encrypt(s);
		memcpy(result + at, s, 16);
	}
	return s[0];
}

static uint8_t times_2(uint8_t x)
{
	return (uint8_t)(x << 1 ^ (x & 0x80 ? 0x1b : 0));
}

static uint32_t rotated(uint32_t word, int bits)
{
	return word >> bits | word << (32 - bits);
}

/* The S-box as 5.1.1 defines it: an inverse, found by the powers of 3, and an affine map. */
static void aes_tables(void)
{
	uint8_t powers[256], logarithms[256] = { 0 }, x = 1;

	for (int n = 0; n < 255; n++) {
		powers[n] = x;
		logarithms[x] = (uint8_t)n;
		x ^= times_2(x);
	}
	for (int n = 0; n < 256; n++) {
		uint8_t inverse = n ? powers[(255 - logarithms[n]) % 255] : 0, s = inverse;

		for (int turn = 0; turn < 4; turn++) {
			inverse = (uint8_t)(inverse << 1 | inverse >> 7);
			s ^= inverse;
		}
		sbox[n] = s ^ 0x63;
	}
	for (int n = 0; n < 256; n++) {
		uint8_t s = sbox[n], twice = times_2(s);

		tables[0][n] = (uint32_t)twice << 24 | (uint32_t)s << 16 | (uint32_t)s << 8 | (uint8_t)(twice ^ s);
		for (int t = 1; t < 4; t++)
			tables[t][n] = rotated(tables[0][n], 8 * t);
	}
}

/* 5.2, for the key of FIPS 197's appendix B. */
static void aes_key(void)
{
	static const uint32_t first[4] = { 0x2b7e1516, 0x28aed2a6, 0xabf71588, 0x09cf4f3c };
	uint8_t constant = 1;

	memcpy(key, first, sizeof(first));
	for (int n = 4; n < KEY_WORDS; n++) {
		uint32_t w = key[n - 1];

		if (n % 4 == 0) {
			w = rotated(w, 24);
			w = ((uint32_t)sbox[w >> 24] << 24 | (uint32_t)sbox[w >> 16 & 0xff] << 16 |
			     (uint32_t)sbox[w >> 8 & 0xff] << 8 | sbox[w & 0xff]) ^ (uint32_t)constant << 24;
			constant = times_2(constant);
		}
		key[n] = key[n - 4] ^ w;
	}
}

/* That of FIPS 197's appendix B and that of CRC-32's check value. */
static void check(void)
{
	uint32_t s[4] = { 0x3243f6a8, 0x885a308d, 0x313198a2, 0xe0370734 };
	uint8_t *kept = data;
	size_t count = bytes;

	encrypt(s);
	data = (uint8_t *)"123456789";
	bytes = 9;
	if (s[0] != 0x3925841d || s[3] != 0x196a0b32 || crc_piece() != 0xcbf43926)
		abort();
	data = kept;
	bytes = count;
}

void work_prepare(size_t data_bytes, size_t count)
{
	uint32_t state = 1;

	sorted = count;
	bytes = data_bytes;
	data = malloc(bytes);
	/* Three bytes for one are written by no work. */
	result = malloc(bytes + MATCH_MIN);
	if (!data || !result)
		abort();
	/* Of few letters, so that something repeats. */
	for (size_t n = 0; n < bytes; n++) {
		state = state * 1664525u + 1013904223u;
		data[n] = "etaoin s"[state >> 29];
	}
	for (uint32_t n = 0; n < 256; n++) {
		uint32_t c = n;

		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
		crc_table[n] = c;
	}
	aes_tables();
	aes_key();
	check();
}

const struct work *work_find(const char *name)
{
	static const struct work all[] = {
		{ "sort", sort_piece },
		{ "deflate", deflate_piece },
		{ "aes", aes_piece },
		{ "crc", crc_piece },
		{ "spin", spin_piece },
	};

	for (size_t n = 0; n < sizeof(all) / sizeof(*all); n++)
		if (!strcmp(all[n].name, name))
			return &all[n];
	return NULL;
}
