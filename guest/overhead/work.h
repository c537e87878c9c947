/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The four works of the paper of 2007, and one that needs no data. */
#ifndef WORK_H
#define WORK_H

#include <stddef.h>
#include <stdint.h>

#define SORTED_MAX	16384

struct work {
	const char *name;
	/* A piece: always the same amount. What it gives depends on all of it. */
	uint32_t (*piece)(void);
};

/* Tables and data, and how many numbers are sorted; to be called once. */
void work_prepare(size_t data_bytes, size_t numbers);

/* The work of that name, or NULL. */
const struct work *work_find(const char *name);

#endif
