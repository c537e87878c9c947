// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A process reads its memory while another one writes there by way of the
 * kernel: after the kernel has got the pages and flushed them, and before the
 * data comes. What the reader took into the cache then is old, and must not be
 * all that it ever sees.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>
#include "mm_suite.h"

#define COUNT		128
#define BYTES		(COUNT * PAGE)
#define LAST		4
#define FIRST_NS	700000
#define NEW		0x80000000u

enum seen { EARLY, MET, LATE };

/* The words of a round: what was there, and what comes. */
static uint32_t old_word(uint32_t round)
{
	return round;
}

static enum seen look(const volatile uint32_t *at, uint32_t round)
{
	unsigned int i;

	/* The rest of the data shall not push out what is read now. */
	if (at[(COUNT - COUNT / 4) * PAGE_WORDS] == old_word(round))
		return EARLY;
	for (i = (COUNT - LAST) * PAGE_WORDS; i < COUNT * PAGE_WORDS;
	     i += LINE / 4)
		if (at[i] != old_word(round))
			return LATE;
	return MET;
}

/* Told the delay; tells what it saw in time, and how many old words later. */
static enum result reader(struct other *other, void *arg)
{
	volatile uint32_t *at = arg;
	uint32_t delay, round = 0, i;

	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		struct timespec wait = { 0 };
		uint32_t old = 0;
		enum seen seen;

		round++;
		for (i = 0; i < COUNT * PAGE_WORDS; i++)
			at[i] = old_word(round);
		TRY(child_go(other, 0));
		TRY(child_wait(other, &delay));
		if (!delay)
			return PASS;
		wait.tv_nsec = (long)delay;
		nanosleep(&wait, NULL);
		seen = look(at, round);
		TRY(child_wait(other, NULL));
		for (i = (COUNT - LAST) * PAGE_WORDS; i < COUNT * PAGE_WORDS; i++)
			old += at[i] != (NEW | i % PAGE_WORDS);
		TRY(child_go(other, seen));
		TRY(child_go(other, old));
	}
}

static enum result write_once(struct other *other, void *at, uint32_t *from,
			      uint32_t *delay, uint32_t *seen, uint32_t *old)
{
	struct iovec remote = { at, BYTES }, local[COUNT];
	unsigned int i;

	for (i = 0; i < COUNT; i++)
		local[i] = (struct iovec){ from, PAGE };
	TRY(other_wait(other, NULL));
	TRY(other_go(other, *delay));
	EXPECT(process_vm_writev(other->pid, local, COUNT, &remote, 1, 0) ==
	       (ssize_t)BYTES, "process_vm_writev: %s", strerror(errno));
	TRY(other_go(other, 0));
	TRY(other_wait(other, seen));
	TRY(other_wait(other, old));
	if (*seen == EARLY)
		*delay += *delay / 16 + 1000;
	else if (*seen == LATE && *delay > 4000)
		*delay -= *delay / 16 + 700;
	return PASS;
}

static enum result vm_write_races_reader(unsigned int rounds)
{
	unsigned int tries, met = 0, stale = 0, most = 40 * rounds + 200;
	uint32_t *at = pages(COUNT), *from = pages(1);
	uint32_t i, seen, old, delay = FIRST_NS;
	struct other other;

	SKIP_UNLESS(kernel_preempts(), "no task interrupts a system call");
	for (i = 0; i < PAGE_WORDS; i++)
		from[i] = NEW | i;
	TRY(other_start(&other, reader, at));
	/* The reader comes in when it wakes up. */
	EXPECT(!setpriority(PRIO_PROCESS, 0, 19), "nice: %s", strerror(errno));
	for (tries = 0; tries < most && met < rounds; tries++) {
		TRY(write_once(&other, at, from, &delay, &seen, &old));
		met += seen == MET;
		stale += seen == MET && old;
	}
	TRY(other_wait(&other, NULL));
	TRY(other_go(&other, 0));
	TRY(other_end(&other));
	say(PASS, __FILE__, __LINE__, "%u tries, %u met, %u with old words",
	    tries, met, stale);
	EXPECT(met == rounds, "only %u met", met);
	EXPECT(!stale, "old words in %u of %u rounds", stale, met);
	return PASS;
}

const struct test reread_tests[] = {
	{ "vm_write_races_reader",
	  "process_vm_writev to pages that their process looks at",
	  vm_write_races_reader, NULL },
	{ NULL, NULL, NULL, NULL },
};
