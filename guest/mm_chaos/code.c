// SPDX-License-Identifier: MIT OR Apache-2.0
/* Code: functions at some places of each page, which give the page's word. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "mm_chaos.h"

/* The ARM's private system call behind cacheflush(2). */
#define ARM_CACHEFLUSH	0x0f0002
/*
 * Of a page, and how many words they are apart: in other lines of a cache, and
 * in the first 1 KB, as QEMU keeps what it has translated of the others when a
 * TLB entry of 4 KB is flushed.
 */
#define PLACES		4u
#define APART		(PAGE_WORDS / (4 * PLACES) + LINE_WORDS)

static void put_function(volatile uint32_t *code, uint32_t value)
{
	/* Read first, so that the code becomes a dirty line. */
	(void)code[0];
	code[0] = 0xe3a00000 | (value & 0xff);		/* mov r0, #... */
	code[1] = 0xe3800c00 | (value >> 8 & 0xff);	/* orr r0, r0, #... */
	code[2] = 0xe3800800 | (value >> 16 & 0xff);
	code[3] = 0xe3800400 | value >> 24;
	code[4] = 0xe12fff1e;				/* bx lr */
}

static void put_code(volatile uint32_t *page, uint32_t value)
{
	unsigned int i;

	for (i = 0; i < PLACES; i++)
		put_function(page + i * APART, value);
}

static void flush_code(unsigned int slot, unsigned int page, unsigned int count)
{
	volatile uint32_t *at = address(self, slot, page);

	syscall(ARM_CACHEFLUSH, at, at + count * PAGE_WORDS, 0);
}

static void write_code(unsigned int file, unsigned int page)
{
	unsigned int backing = FILES + file;
	uint32_t stamp = new_stamp(), words[PAGE_WORDS] = { 0 };
	struct file_change change;
	bool ok;

	file_begin(&change, backing);
	put_code(words, word_of((uint8_t)backing, page, stamp));
	ok = pwrite(control->files[backing], words, PAGE,
		    page * (off_t)PAGE) == (ssize_t)PAGE;
	file_effect(&change, page, 1, ok ? WRITTEN : LOST, stamp, 2);
	file_end(&change);
}

void write_first_code(void)
{
	unsigned int file, page;

	for (file = 0; file < CODES; file++)
		for (page = 0; page < CODE_PAGES; page++)
			write_code(file, page);
}

OP(code_file)
{
	write_code(n[0], n[1]);
}

/*
 * Nobody calls what may not be executed: the kernel leaves such code in the
 * I-cache. Whoever else has the file mapped is told to flush, too.
 */
OP(code_store)
{
	struct slot *slot = own_slot(n[0]);
	volatile bool ok = false;
	uint32_t stamp = new_stamp();
	struct change change;
	void *all = (void *)address(self, n[0], 0);

	lock(&slot->shape_lock);
	add(&slot->shapes, 1);
	change_begin(&change, slot, MAY_WRITE);
	slot->runs = false;
	__sync_synchronize();
	while (*(volatile uint32_t *)&slot->callers)
		nap(100);
	if (change.kind != NOTHING && n[1] < slot->count &&
	    !mprotect(all, slot->count * PAGE, PROT_READ | PROT_WRITE) &&
	    GUARDED()) {
		put_code(address(self, n[0], n[1]),
			 word_of(change.object, n[1], stamp));
		ok = true;
	}
	unguard();
	if (change.kind == SHARING)
		add(&control->backing[change.backing].stores, 1);
	flush_code(CODE_SLOT, 0, CODE_PAGES);
	flush_code(CODE_SLOT + 1, 0, CODE_PAGES);
	slot->runs = change.kind != NOTHING &&
		!mprotect(all, slot->count * PAGE, PROT_READ | PROT_EXEC);
	change_effect(&change, n[1], 1, ok ? WRITTEN : LOST, stamp, 2);
	change_end(&change);
	unlock(&slot->shape_lock);
}

static uint32_t run_function(unsigned int slot, unsigned int page, unsigned int place)
{
	uintptr_t at = (uintptr_t)(address(self, slot, page) + place * APART);

	return ((uint32_t (*)(void))at)();
}

static void call_page(unsigned int number, struct slot *slot, unsigned int page)
{
	struct seen seen = { .odd = 0 };
	volatile unsigned int i;
	struct view view;

	view_slot(&view, slot, number, page);
	add(&slot->callers, 1);
	if (!slot->runs || page >= slot->count)
		goto over;
	if (view.backing && slot->stores != view.backing->stores) {
		slot->stores = view.backing->stores;
		flush_code(number, 0, CODE_PAGES);
	}
	if (GUARDED())
		for (i = 0; i < PLACES; i++)
			look_at(&view, &seen, i, run_function(number, page, i));
	unguard();
	/* Half of one number and half of another is possible meanwhile. */
	if (view_sure(&view))
		judge(&view, &seen);
over:
	add(&slot->callers, (uint32_t)-1);
}

OP(call)
{
	struct slot *slot = own_slot(n[0]);
	unsigned int page;

	for (page = n[1]; page < n[1] + n[2] && page < CODE_PAGES; page++)
		call_page(n[0], slot, page);
}
