// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Code that was mapped, and is not any more. A program that maps another file
 * in its place need not flush anything: nothing was written.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>
#include "mm_suite.h"
#include "race.h"

#define RX		(PROT_READ | PROT_EXEC)
/* The I-cache's size, and no more than the kernel flushes line by line. */
#define COUNT		4
#define BYTES		(COUNT * PAGE)
#define FUNCTIONS	(BYTES / LINE)
#define VALUES		600	/* more than FUNCTIONS */
/*
 * Replacements in a round: what the kernel runs in between pushes most of the
 * old code out, and in one replacement of fifty all of it.
 */
#define TIMES		4
#define SWITCHES	10	/* and as many back */

/* Two files, of functions that each fill a line and give a number. */
struct texts {
	int fds[2];
	uint32_t *at;
	bool sealed;		/* without rights before it is unmapped */
	bool at_once;		/* no other process in between */
	bool later;		/* called at once, which is not looked at, and then */
	unsigned int met, stale_rounds, stale_calls;
};

/* Written by other functions of the kernel, for the checker's report to name. */
static enum result copy_text(int *fd)
{
	int to = memory_file(BYTES, 0);

	EXPECT(lseek(*fd, 0, SEEK_SET) == 0 && lseek(to, 0, SEEK_SET) == 0 &&
	       sendfile(to, *fd, NULL, BYTES) == (ssize_t)BYTES,
	       "sendfile: %s", strerror(errno));
	close(*fd);
	*fd = to;
	return PASS;
}

static enum result make_texts(struct texts *texts)
{
	static uint32_t code[BYTES / 4];
	unsigned int i, slot;

	texts->at = pages(COUNT);
	for (i = 0; i < 2; i++) {
		for (slot = 0; slot < FUNCTIONS; slot++)
			put_give(code + slot * (LINE / 4), i * VALUES + slot);
		texts->fds[i] = memory_file(BYTES, i);
		EXPECT(pwrite(texts->fds[i], code, BYTES, 0) == BYTES,
		       "pwrite: %s", strerror(errno));
		if (texts->at_once)
			TRY(copy_text(&texts->fds[i]));
	}
	return PASS;
}

/* How many functions of file i are not those. */
static enum result call_all(struct texts *texts, unsigned int i,
			    unsigned int *wrong)
{
	unsigned int slot;

	*wrong = 0;
	for (slot = 0; slot < FUNCTIONS; slot++) {
		int got = call(texts->at + slot * (LINE / 4));
		int want = (int)(i * VALUES + slot);
		int old = (int)((1 - i) * VALUES + slot);

		EXPECT(got == want || got == old, "function %u gives %d", slot,
		       got);
		*wrong += got != want;
	}
	return PASS;
}

static enum result map_text(struct texts *texts, unsigned int i)
{
	void *got = mmap(texts->at, BYTES, RX, MAP_PRIVATE | MAP_FIXED,
			 texts->fds[i], 0);

	EXPECT(got == texts->at, "mmap: %s", strerror(errno));
	return PASS;
}

/* Of executable memory, and more of it than is flushed line by line. */
static enum result empty_both(void)
{
	static void *large;

	if (!large)
		large = pages(COUNT + 1);
	EXPECT(!mprotect(large, BYTES + PAGE, RX) &&
	       !mprotect(large, BYTES + PAGE, RX | PROT_WRITE),
	       "mprotect: %s", strerror(errno));
	return PASS;
}

static enum result echo(struct other *other, void *arg)
{
	uint32_t go;

	(void)arg;
	ordinary_user();
	for (;;) {
		TRY(child_wait(other, &go));
		if (!go)
			return PASS;
		TRY(child_go(other, go));
	}
}

static enum result switches(struct other *other, unsigned int count)
{
	while (count--) {
		TRY(other_go(other, 1));
		TRY(other_wait(other, NULL));
	}
	return PASS;
}

/*
 * The second process runs after the old code is gone and before the new one is
 * there: on a kernel that empties the caches at a switch nothing old is left.
 */
static enum result replace(struct texts *texts, struct other *other,
			   unsigned int i, unsigned int *stale)
{
	unsigned int wrong;

	TRY(map_text(texts, 1 - i));
	TRY(call_all(texts, 1 - i, &wrong));
	/* Again, with room for all, which its lines then keep. */
	TRY(empty_both());
	TRY(call_all(texts, 1 - i, &wrong));
	EXPECT(!texts->sealed || !mprotect(texts->at, BYTES, PROT_NONE),
	       "mprotect: %s", strerror(errno));
	/* What is mapped next can take its place without a munmap(). */
	EXPECT(texts->later || !munmap(texts->at, BYTES), "munmap: %s",
	       strerror(errno));
	if (!texts->at_once)
		TRY(switches(other, 1));
	TRY(map_text(texts, i));
	TRY(call_all(texts, i, &wrong));
	if (texts->later) {
		TRY(switches(other, SWITCHES));
		TRY(call_all(texts, i, &wrong));
	}
	*stale += wrong;
	/* As it has its rights this is a flush. */
	EXPECT(!munmap(texts->at, BYTES), "munmap: %s", strerror(errno));
	return PASS;
}

static enum result old_code(struct texts *texts, unsigned int rounds)
{
	struct other other;
	unsigned int round, wrong, stale, i;

	TRY(make_texts(texts));
	TRY(other_start(&other, echo, NULL));
	ordinary_user();
	/* Pages that are mapped for the first time are flushed. */
	for (i = 0; i < 2; i++) {
		TRY(map_text(texts, i));
		TRY(call_all(texts, i, &wrong));
	}
	EXPECT(!munmap(texts->at, BYTES), "munmap: %s", strerror(errno));
	TRY(replace(texts, &other, 0, &stale));
	for (round = 0; round < rounds; round++) {
		stale = 0;
		for (i = 0; i < TIMES; i++)
			TRY(replace(texts, &other, i % 2, &stale));
		texts->met++;
		texts->stale_rounds += stale != 0;
		texts->stale_calls += stale;
	}
	TRY(other_go(&other, 0));
	TRY(other_end(&other));
	say(PASS, __FILE__, __LINE__,
	    "%u met, %u ran old code; %u of %u calls", texts->met,
	    texts->stale_rounds, texts->stale_calls,
	    texts->met * TIMES * (unsigned int)FUNCTIONS);
	EXPECT(!texts->stale_rounds, "old code ran in %u of %u rounds",
	       texts->stale_rounds, texts->met);
	return PASS;
}

/* Without rights for a moment, as a guarded code cache is, then unmapped. */
static enum result unmapped_code_runs(unsigned int rounds)
{
	struct texts texts = { .sealed = true };

	return old_code(&texts, rounds);
}

static enum result unmapped_at_once(unsigned int rounds)
{
	struct texts texts = { .sealed = true, .at_once = true };

	return old_code(&texts, rounds);
}

/*
 * Old code that was run at once, by an entry of the TLB for instructions say, is
 * in the I-cache: whatever throws the entry out, its lines have to go, too.
 */
static enum result code_stays(unsigned int rounds)
{
	struct texts texts = { .sealed = true, .at_once = true, .later = true };

	return old_code(&texts, rounds);
}

static enum result replaced_code_runs(unsigned int rounds)
{
	struct texts texts = { .sealed = false };

	return old_code(&texts, rounds);
}

const struct test old_code_tests[] = {
	{ "unmapped_code_runs", "code that lost its rights, then its mapping",
	  unmapped_code_runs, NULL },
	{ "unmapped_at_once", "the same with no other process in between",
	  unmapped_at_once,
	  "Linux, too, forgets the I-cache when rights go before the mapping" },
	{ "code_stays", "code that lost its rights, looked at some switches later",
	  code_stays, NULL },
	{ "replaced_code_runs", "code that lost its mapping",
	  replaced_code_runs, NULL },
	{ NULL, NULL, NULL, NULL },
};
