// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * lesson: loads and stores to look at (docs/use/LESSON.md).
 *
 *   lesson line|alias|code
 *
 * line: a line is filled, becomes dirty, and a store misses.
 * alias: the same page of a file at two addresses, four lines of it.
 * code: a function is written, called, written anew and called again.
 *
 * load_word() and store_word() are one instruction each, store_three() three
 * with 64 bytes between their addresses, so that there is something to stop at:
 * the address is in r0, what is stored in r1.
 *
 * Exit codes: 0 all was read as it was written, 1 it was not, or a system call
 * failed, 2 wrong usage.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE	4096
#define OLD	0x11111111u
#define NEW	0x22222222u

/* Words from a page's first to the line that is looked at: the first lines of pages are in everybody's way. */
#define LINE	(0x340 / 4)
#define WORDS_OF_LINE 8

/* Lines that `alias` stores to: a load's own line makes room for itself at random, and may write back the alias. */
#define LINES	4

/* More than a D-cache holds, eight times. */
#define OTHERS	(256 * 1024)

uint32_t load_word(const volatile uint32_t *at);
void store_word(volatile uint32_t *at, uint32_t value);
void store_three(volatile uint32_t *at, uint32_t value);

asm(".text\n"
    ".arm\n"
    ".global load_word\n.type load_word, %function\n"
    "load_word: ldr r0, [r0]\n"
    "	bx lr\n"
    ".size load_word, . - load_word\n"
    ".global store_word\n.type store_word, %function\n"
    "store_word: str r1, [r0]\n"
    "	bx lr\n"
    ".size store_word, . - store_word\n"
    ".global store_three\n.type store_three, %function\n"
    "store_three: str r1, [r0]\n"
    "	str r1, [r0, #64]\n"
    "	str r1, [r0, #128]\n"
    "	bx lr\n"
    ".size store_three, . - store_three\n");

static uint32_t words[2 * PAGE / 4] __attribute__((aligned(PAGE)));
static char others[OTHERS];

/* Reads so much else that hardly a line is left of what was there. */
static void read_others(void)
{
	volatile char *at = others;

	for (int n = 0; n < OTHERS; n += 32)
		(void)at[n];
}

static int expect(const char *who, uint32_t is, uint32_t should)
{
	printf("%s: 0x%08x%s\n", who, is, is == should ? "" : ", which is old");
	return is != should;
}

static int line(void)
{
	for (int n = 0; n < 8; n++)
		words[n] = OLD;
	/* Its page is there, so that a store to it is no page fault. */
	words[PAGE / 4] = OLD;
	memset(others, 1, OTHERS);
	read_others();
	load_word(&words[2]);
	store_word(&words[5], NEW);
	store_three(&words[PAGE / 4], NEW);
	return expect("the word that was stored", words[5], NEW);
}

/* A page of a new file, all of it old; -1 where that fails. */
static int page_of_file(void)
{
	static uint32_t page[PAGE / 4];
	int fd = open("/tmp/lesson", O_RDWR | O_CREAT | O_TRUNC, 0600);

	for (int n = 0; n < PAGE / 4; n++)
		page[n] = OLD;
	if (fd < 0 || write(fd, page, PAGE) != PAGE)
		return -1;
	return fd;
}

static volatile uint32_t *view(int fd)
{
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static int alias(void)
{
	int fd = page_of_file();
	volatile uint32_t *one = fd < 0 ? NULL : view(fd);
	volatile uint32_t *other = one ? view(fd) : NULL;
	uint32_t got = NEW;

	if (!other)
		return 1;
	one += LINE;
	other += LINE;
	*one = OLD;
	load_word(one);
	for (int n = 1; n < LINES; n++)
		(void)one[n * WORDS_OF_LINE];
	for (int n = 0; n < LINES; n++)
		store_word(one + n * WORDS_OF_LINE, NEW);
	/* The page comes to be there only with the first of these. */
	for (int n = 0; n < LINES && got == NEW; n++)
		got = load_word(other + n * WORDS_OF_LINE);
	return expect("the other address has", got, NEW);
}

static int code(void)
{
	/* mov r0, #1 and mov r0, #2; bx lr */
	static const uint32_t one[] = { 0xe3a00001, 0xe12fff1e };
	static const uint32_t two[] = { 0xe3a00002, 0xe12fff1e };
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *at = (uint32_t *)page + LINE;
	int (*call)(void) = (int (*)(void))(uintptr_t)at;
	uint32_t got;

	if (page == MAP_FAILED)
		return 1;
	memcpy(at, one, sizeof(one));
	__builtin___clear_cache(at, (char *)at + sizeof(one));
	got = call();
	load_word(at);
	memcpy(at, two, sizeof(two));
	__builtin___clear_cache(at, (char *)at + sizeof(two));
	printf("first %u; ", got);
	return expect("then", call(), 2);
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	if (!strcmp(what, "line"))
		return line();
	if (!strcmp(what, "alias"))
		return alias();
	if (!strcmp(what, "code"))
		return code();
	fprintf(stderr, "usage: lesson line|alias|code\n");
	return 2;
}
