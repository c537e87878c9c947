// SPDX-License-Identifier: MIT OR Apache-2.0
/* Generated code: written, flushed, run. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mm_suite.h"

#define RWX	(PROT_READ | PROT_WRITE | PROT_EXEC)
#define GIVERS	32

static void *code_pages(size_t count)
{
	void *at = mmap(NULL, count * PAGE, RWX, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		say(FAIL, __FILE__, __LINE__, "mmap: %s", strerror(errno));
		_exit(FAIL);
	}
	return at;
}

static enum result gives(const void *code, unsigned int value, const char *what)
{
	int got = call(code);

	EXPECT(got == (int)value, "%s: the code at %p gives %d, should be %u",
	       what, code, got, value);
	return PASS;
}

static enum result jit(unsigned int rounds)
{
	uint32_t *at = code_pages(1);
	unsigned int round, slot;

	for (round = 0; round < rounds * 8; round++) {
		for (slot = 0; slot < GIVERS; slot++)
			put_give(at + slot * 8, round * GIVERS + slot);
		flush_code(at, GIVERS * LINE);
		for (slot = 0; slot < GIVERS; slot++)
			TRY(gives(at + slot * 8, round * GIVERS + slot, "slot"));
		/* One function alone. */
		slot = round % GIVERS;
		put_give(at + slot * 8, 60000 + round % 1000);
		flush_code(at + slot * 8, GIVE_WORDS * 4);
		TRY(gives(at + slot * 8, 60000 + round % 1000, "one slot"));
	}
	return PASS;
}

static enum result jit_page_end(unsigned int rounds)
{
	uint32_t *at = code_pages(2);
	unsigned int round, before;

	for (round = 0; round < rounds * 8; round++) {
		for (before = 0; before <= GIVE_WORDS; before++) {
			uint32_t *code = at + PAGE_WORDS - before;

			put_give(code, round * 4 + before);
			flush_code(code, GIVE_WORDS * 4);
			TRY(gives(code, round * 4 + before, "across pages"));
		}
	}
	return PASS;
}

/* More than the kernel flushes line by line. */
static enum result jit_large(unsigned int rounds)
{
	const size_t count = 6;
	uint32_t *at = code_pages(count);
	unsigned int round, line, lines = count * PAGE / LINE;

	for (round = 0; round < rounds; round++) {
		for (line = 0; line < lines; line++)
			put_give(at + line * 8, round * 100 + line);
		flush_code(at, count * PAGE);
		for (line = 0; line < lines; line++)
			TRY(gives(at + line * 8, round * 100 + line, "large"));
	}
	return PASS;
}

/* Parent and child make the same page into different code. */
static enum result jit_child(struct other *other, void *at)
{
	uint32_t round;

	TRY(child_wait(other, &round));
	TRY(gives(at, round, "child, inherited"));
	put_give(at, round + 1000);
	flush_code(at, GIVE_WORDS * 4);
	TRY(gives(at, round + 1000, "child, own"));
	TRY(child_go(other, 0));
	TRY(child_wait(other, NULL));
	return gives(at, round + 1000, "child, later");
}

static enum result jit_fork(unsigned int rounds)
{
	uint32_t *at = code_pages(1);
	unsigned int round;

	for (round = 0; round < rounds; round++) {
		struct other other;

		put_give(at, round);
		flush_code(at, GIVE_WORDS * 4);
		TRY(gives(at, round, "parent"));
		TRY(other_start(&other, jit_child, at));
		TRY(other_go(&other, round));
		TRY(other_wait(&other, NULL));
		TRY(gives(at, round, "parent, after the child's change"));
		put_give(at, round + 2000);
		flush_code(at, GIVE_WORDS * 4);
		TRY(gives(at, round + 2000, "parent, changed"));
		TRY(other_go(&other, 0));
		TRY(other_end(&other));
	}
	return PASS;
}

/* Written through one view, run through another. */
static enum result jit_two_views(unsigned int rounds)
{
	int fd = memory_file(PAGE, 0);
	uint32_t *write_view, *run_view;
	unsigned int round;

	write_view = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	run_view = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	EXPECT(write_view != MAP_FAILED && run_view != MAP_FAILED, "mmap: %s",
	       strerror(errno));
	for (round = 0; round < rounds * 8; round++) {
		unsigned int slot = round % GIVERS * 8;

		put_give(write_view + slot, round);
		flush_code(write_view + slot, GIVE_WORDS * 4);
		flush_code(run_view + slot, GIVE_WORDS * 4);
		TRY(gives(run_view + slot, round, "through the other view"));
	}
	return PASS;
}

/* Writable first, executable later, as a careful compiler does it. */
static enum result jit_protect(unsigned int rounds)
{
	uint32_t *at = code_pages(2);
	unsigned int round;

	for (round = 0; round < rounds * 2; round++) {
		EXPECT(!mprotect(at, 2 * PAGE, PROT_READ | PROT_WRITE), "mprotect");
		put_give(at, round);
		put_give(at + PAGE_WORDS, round + 1);
		flush_code(at, 2 * PAGE);
		EXPECT(!mprotect(at, 2 * PAGE, PROT_READ | PROT_EXEC), "mprotect");
		TRY(gives(at, round, "first page"));
		TRY(gives(at + PAGE_WORDS, round + 1, "second page"));
	}
	return PASS;
}

/* As a loader maps text: one file, then another, at one address. */
static enum result text_mapped(unsigned int rounds)
{
	uint32_t *at = code_pages(2);
	unsigned int round, slot, i;
	int fds[2];

	for (i = 0; i < 2; i++) {
		static uint32_t code[2 * PAGE_WORDS];

		for (slot = 0; slot < 2 * GIVERS; slot++)
			put_give(code + slot * LINE, 700 + i);
		fds[i] = memory_file(2 * PAGE, i);
		EXPECT(pwrite(fds[i], code, sizeof(code), 0) == sizeof(code),
		       "pwrite: %s", strerror(errno));
	}
	for (round = 0; round < rounds * 4; round++) {
		void *got = mmap(at, 2 * PAGE, PROT_READ | PROT_EXEC,
				 MAP_PRIVATE | MAP_FIXED, fds[round % 2], 0);

		EXPECT(got == at, "mmap: %s", strerror(errno));
		for (slot = 0; slot < 2 * GIVERS; slot++)
			TRY(gives(at + slot * LINE, 700 + round % 2, "mapped"));
	}
	return PASS;
}

/* The loader's other way: read(2) into memory that is executable. */
static enum result text_read(unsigned int rounds)
{
	uint32_t *at = code_pages(1);
	unsigned int round;

	for (round = 0; round < rounds * 2; round++) {
		uint32_t code[GIVE_WORDS];
		int fd = memory_file(PAGE, round);

		put_give(code, round + 300);
		EXPECT(pwrite(fd, code, sizeof(code), 0) == sizeof(code) &&
		       pread(fd, at, PAGE, 0) == PAGE, "file: %s",
		       strerror(errno));
		close(fd);
		flush_code(at, PAGE);
		TRY(gives(at, round + 300, "read in"));
	}
	return PASS;
}

const struct test code_tests[] = {
	{ "jit", "code written, flushed and run, over and over", jit, NULL },
	{ "jit_page_end", "code across the end of a page", jit_page_end, NULL },
	{ "jit_large", "more code than is flushed by lines", jit_large, NULL },
	{ "jit_fork", "parent and child change the same code", jit_fork, NULL },
	{ "jit_two_views", "code written through another view", jit_two_views,
	  NULL },
	{ "jit_protect", "code made executable by mprotect", jit_protect, NULL },
	{ "text_mapped", "text of different files at one address", text_mapped,
	  NULL },
	{ "text_read", "text read from a file", text_read, NULL },
	{ NULL, NULL, NULL, NULL },
};
