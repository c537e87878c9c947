/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ranges that are taken away while a thread writes to them; see race.c. */
#ifndef RACE_H
#define RACE_H

#include "mm_suite.h"

#define NOBODY		65534
/* Pages at the end of a range that the writer aims at. */
#define LAST		4
#define INTRUDER	0xbadbadbau

struct race_range {
	const char *what;
	volatile uint32_t *at;
	unsigned int count;		/* pages */
	/* Fresh pages at `at`. */
	void (*prepare)(struct race_range *range);
	/* Takes them away from the first to the last; false with errno. */
	bool (*take_away)(struct race_range *range);
	int fd, pagemap;
	uint32_t seed, frames[LAST];
	long delay;
	unsigned int tries, met, overwritten, elsewhere, stray;
};

enum result race_for_pages(struct race_range *ranges, unsigned int count,
			   unsigned int rounds);
/* For good; nothing that only root may do comes after. */
void ordinary_user(void);
int open_pagemap(void);
/* 0: there is none, or it is not shown. */
uint32_t frame_of(int pagemap, const volatile void *at);

#endif
