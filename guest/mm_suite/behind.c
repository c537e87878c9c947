// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A page of a file is written by the kernel's address while, or right after,
 * whoever had it mapped unmaps it. What the kernel has of it in its lines then
 * is newer than memory, and nobody's mapping leads there. Whoever maps the page
 * next has to see it, and it must not be written back over what he stores.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "mm_suite.h"
#include "race.h"

#define RW		(PROT_READ | PROT_WRITE)
#define COUNT		2
#define BYTES		(COUNT * PAGE)
#define WORDS		(BYTES / 4)
#define MARK		0x600d0000u
/* Of each line one word is stored. */
#define STORED		3
enum { STOP, GO };

/* Who has the pages mapped, who looks at them next, and what it found. */
static struct {
	int fd, faults;
	bool private;
	struct other target, next;
	void *source;		/* no page, so that the write waits for it */
	uint32_t data[PAGE_WORDS];
	uint32_t old, lost;
	unsigned int met;
} behind;

static void *map_it(bool private)
{
	void *at = mmap(NULL, BYTES, RW, private ? MAP_PRIVATE : MAP_SHARED,
			behind.fd, 0);

	if (at == MAP_FAILED)
		_exit(say(FAIL, __FILE__, __LINE__, "mmap: %s",
			  strerror(errno)));
	return at;
}

/*
 * Maps the pages and writes to them. When told it maps them once more, by which
 * the kernel takes them for clean, and unmaps them.
 */
static enum result target(struct other *other, void *arg)
{
	uint32_t go;

	for (;;) {
		volatile uint32_t *at, *again;
		unsigned int i;

		TRY(child_wait(other, &go));
		if (go == STOP)
			return PASS;
		at = map_it(false);
		for (i = 0; i < COUNT; i++)
			at[i * PAGE_WORDS] += 1;
		TRY(child_go(other, (uint32_t)(uintptr_t)at));
		TRY(child_wait(other, NULL));
		again = map_it(false);
		for (i = 0; i < COUNT; i++)
			(void)again[i * PAGE_WORDS];
		munmap((void *)again, BYTES);
		munmap((void *)at, BYTES);
		TRY(child_go(other, 0));
		(void)arg;
	}
}

/* How many words of a mapping are not those of the write, told how it begins. */
static uint32_t not_new(const volatile uint32_t *at, uint32_t base)
{
	uint32_t wrong = 0, i;

	for (i = 0; i < WORDS; i++)
		wrong += at[i] != (base | i % PAGE_WORDS);
	return wrong;
}

/* Looks by a mapping of its own, stores, and looks again when lines have gone. */
static enum result next(struct other *other, void *arg)
{
	uint32_t base, i;

	race_sweep();
	for (;;) {
		volatile uint32_t *at;
		uint32_t old, lost = 0;

		TRY(child_wait(other, &base));
		if (base == STOP)
			return PASS;
		at = map_it(behind.private);
		if (behind.private)
			for (i = 0; i < COUNT; i++)	/* a copy is made */
				at[i * PAGE_WORDS] = base;
		old = not_new(at, base);
		for (i = STORED; i < WORDS; i += LINE / 4)
			at[i] = MARK | i;
		race_sweep();
		for (i = STORED; i < WORDS; i += LINE / 4)
			lost += at[i] != (MARK | i);
		munmap((void *)at, BYTES);
		TRY(child_go(other, old));
		TRY(child_go(other, lost));
		(void)arg;
	}
}

/* The write waits for its source: the target unmaps, the kernel looks. */
static void *supply(void *arg)
{
	static uint32_t looked[WORDS];
	struct uffd_msg message;

	while (read(behind.faults, &message, sizeof(message)) ==
	       sizeof(message)) {
		struct uffdio_copy copy = {
			.dst = (uintptr_t)behind.source,
			.src = (uintptr_t)behind.data,
			.len = PAGE,
		};

		if (other_go(&behind.target, GO) ||
		    other_wait(&behind.target, NULL) ||
		    pread(behind.fd, looked, BYTES, 0) != BYTES ||
		    ioctl(behind.faults, UFFDIO_COPY, &copy))
			break;
		behind.met++;
	}
	return arg;
}

static enum result write_behind(uint32_t round)
{
	struct iovec local[COUNT], remote = { NULL, BYTES };
	uint32_t base = (round + 1) << 16, i, at, old, lost;
	static uint32_t before[WORDS];

	for (i = 0; i < PAGE_WORDS; i++)
		behind.data[i] = base | i;
	EXPECT(pwrite(behind.fd, before, BYTES, 0) == BYTES, "pwrite: %s",
	       strerror(errno));
	EXPECT(!madvise(behind.source, PAGE, MADV_DONTNEED), "madvise: %s",
	       strerror(errno));
	for (i = 0; i < COUNT; i++)
		local[i] = (struct iovec){ behind.source, PAGE };
	TRY(other_go(&behind.target, GO));
	TRY(other_wait(&behind.target, &at));
	remote.iov_base = (void *)(uintptr_t)at;
	EXPECT(process_vm_writev(behind.target.pid, local, COUNT, &remote, 1,
				 0) == BYTES, "process_vm_writev: %s",
	       strerror(errno));
	TRY(other_go(&behind.next, base));
	TRY(other_wait(&behind.next, &old));
	TRY(other_wait(&behind.next, &lost));
	behind.old += old != 0;
	behind.lost += lost != 0;
	return PASS;
}

static enum result written_behind(unsigned int rounds)
{
	pthread_t thread;
	uint32_t round;

	behind.fd = memory_file(BYTES, 1);
	behind.source = mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
	TRY(other_start(&behind.target, target, NULL));
	TRY(other_start(&behind.next, next, NULL));
	TRY(await_faults(behind.source, 1, 0, &behind.faults));
	EXPECT(small_thread(&thread, supply, NULL), "thread: %s",
	       strerror(errno));
	for (round = 0; round < rounds; round++)
		TRY(write_behind(round));
	TRY(other_go(&behind.target, STOP));
	TRY(other_go(&behind.next, STOP));
	TRY(other_end(&behind.target));
	TRY(other_end(&behind.next));
	say(PASS, __FILE__, __LINE__,
	    "%u met, %u with old words, %u with stores lost", behind.met,
	    (unsigned int)behind.old, (unsigned int)behind.lost);
	EXPECT(behind.met == rounds, "only %u met", behind.met);
	EXPECT(!behind.old && !behind.lost,
	       "old words in %u, stores lost in %u of %u rounds",
	       (unsigned int)behind.old, (unsigned int)behind.lost, rounds);
	return PASS;
}

/* Seen by a shared mapping. */
static enum result unmapped_and_written(unsigned int rounds)
{
	return written_behind(rounds);
}

/* By a private one, whose copies are made then. */
static enum result written_and_copied(unsigned int rounds)
{
	behind.private = true;
	return written_behind(rounds);
}

/*
 * The kernel looks at a page that is mapped, for one task, and is preempted in
 * its flush. Meanwhile another one unmaps the page and writes to it by write():
 * that it is not flushed stands in the page's flags, and the flush that goes on
 * may not say otherwise. Where the first one was is not to be seen; it does
 * nothing else, so that a try is met when it was preempted.
 */
#define TRIES		24
#define SLEEP_NS	300000
#define SETTLE_NS	400000

static void *look_on(void *arg)
{
	uint32_t word;

	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19);
	*(volatile pid_t *)arg = (pid_t)syscall(SYS_gettid);
	while (pread(behind.fd, &word, 4, 0) == 4)
		;
	return arg;
}

static enum result other_looks_on(struct other *other, void *arg)
{
	ordinary_user();
	TRY(child_go(other, 0));
	look_on(arg);
	return say(FAIL, __FILE__, __LINE__, "pread: %s", strerror(errno));
}

static enum result unmap_and_write(uint32_t base, long delay, uint32_t *old)
{
	struct timespec wait = { 0, delay }, settle = { 0, SETTLE_NS };
	static uint32_t words[WORDS];
	volatile uint32_t *at = map_it(false);
	uint32_t i;

	/* Read only: it is not to be taken for a writer. */
	for (i = 0; i < COUNT; i++)
		(void)at[i * PAGE_WORDS];
	nanosleep(&wait, NULL);
	munmap((void *)at, BYTES);
	EXPECT(pread(behind.fd, words, BYTES, 0) == BYTES, "pread: %s",
	       strerror(errno));
	for (i = 0; i < WORDS; i++)
		words[i] = base | i % PAGE_WORDS;
	EXPECT(pwrite(behind.fd, words, BYTES, 0) == BYTES, "pwrite: %s",
	       strerror(errno));
	nanosleep(&settle, NULL);
	at = map_it(false);
	*old = not_new(at, base);
	munmap((void *)at, BYTES);
	return PASS;
}

/* How often a task was preempted. */
static long preempted(pid_t task)
{
	char status[48];

	snprintf(status, sizeof(status), "/proc/%d/status", (int)task);
	return named_number(status, "nonvoluntary_ctxt_switches");
}

static enum result beside_looker(unsigned int rounds, pid_t looker)
{
	unsigned int try, met = 0, stale = 0, tries = rounds * TRIES;
	uint32_t old = 0;

	ordinary_user();
	prctl(PR_SET_TIMERSLACK, 1);
	for (try = 0; try < tries; try++) {
		long before = preempted(looker);

		TRY(unmap_and_write((try + 1) << 16, SLEEP_NS + try * 1700L %
				    100000, &old));
		met += preempted(looker) > before;
		stale += old != 0;
	}
	say(PASS, __FILE__, __LINE__, "%u tries, %u met, %u with old words",
	    tries, met, stale);
	EXPECT(met >= rounds, "only %u met", met);
	EXPECT(!stale, "old words in %u of %u", stale, tries);
	return PASS;
}

static enum result written_in_flush(unsigned int rounds)
{
	struct other other;
	pid_t itself;

	behind.fd = memory_file(BYTES, 1);
	TRY(other_start(&other, other_looks_on, &itself));
	TRY(other_wait(&other, NULL));
	return beside_looker(rounds, other.pid);
}

static enum result written_in_own_flush(unsigned int rounds)
{
	volatile pid_t looker = 0;
	pthread_t thread;

	behind.fd = memory_file(BYTES, 1);
	EXPECT(small_thread(&thread, look_on, (void *)&looker), "thread: %s",
	       strerror(errno));
	while (!looker)
		sched_yield();
	return beside_looker(rounds, looker);
}

const struct test behind_tests[] = {
	{ "unmapped_and_written",
	  "process_vm_writev to pages that their process unmaps meanwhile",
	  unmapped_and_written, NULL },
	{ "written_and_copied", "the same, seen by a private mapping",
	  written_and_copied, NULL },
	{ "written_in_flush",
	  "a page unmapped and written in the middle of a flush of it",
	  written_in_flush, NULL },
	{ "written_in_own_flush", "the same by two threads",
	  written_in_own_flush,
	  "Linux, too, says of a page that it is clean when it no longer is" },
	{ NULL, NULL, NULL, NULL },
};
