/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ranges that are taken away while a thread writes to them; see race.c. */
#ifndef RACE_H
#define RACE_H

#include "mm_suite.h"

#define NOBODY		65534
/* Pages at the end of a range that the writer aims at. */
#define LAST		4
#define INTRUDER	0xbadbadbau

/* What B found, for the time of its next try. */
enum seen { EARLY, MET, LATE };

struct race_range {
	const char *what;
	volatile uint32_t *at;
	unsigned int count;		/* pages */
	/* Fresh pages at `at`. */
	void (*prepare)(struct race_range *range);
	/* Takes them away from the first to the last; false with errno. */
	bool (*take_away)(struct race_range *range);
	/* What B does in the middle; without, it dirties the last pages. */
	enum seen (*meet)(const struct race_range *range);
	/* What came of it; without, somebody else gets the pages. */
	enum result (*judge)(struct race_range *range, struct other *other);
	/* A round, with `seen`; without, by two threads, an ordinary user's. */
	enum result (*round)(struct race_range *range, struct other *other);
	int fd, pagemap;
	uint32_t seed, frames[LAST];
	long delay;		/* ns from B's sleep to its writes */
	enum seen seen;
	unsigned int tries, met, overwritten, elsewhere, stray;
};

/* For a round: fresh pages with the round's words, and their frames. */
void race_prepare(struct race_range *range);
/* What thread A does. */
bool race_take_away(struct race_range *range);
/* Is thread A still in take_away? */
bool race_inside(void);
/* Is page i of the range still there, with its first word of this round? */
bool race_there(const struct race_range *range, unsigned int i);
/* Makes lines of the last pages dirty; false when they are not there. */
bool race_dirty(const struct race_range *range);
/* Another process runs, and nothing else happens. */
enum result race_switch(struct other *other);
/* By reading: nothing of before is in the D-cache any more. */
void race_sweep(void);
/* Either all ranges have a round of their own or none has. */
enum result race_for_pages(struct race_range *ranges, unsigned int count,
			   unsigned int rounds);
/* Another process, which takes it away when race_by_other() tells it. */
enum result race_other_start(struct race_range *theirs);
bool race_by_other(struct race_range *range);
enum result race_other_end(void);
/* For good; nothing that only root may do comes after. */
void ordinary_user(void);
int open_pagemap(void);
/* 0: there is none, or it is not shown. */
uint32_t frame_of(int pagemap, const volatile void *at);

#endif
