// SPDX-License-Identifier: MIT OR Apache-2.0
/* What maps, unmaps, moves, protects and advises; and plain loads and stores. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include "mm_chaos.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define RW	(PROT_READ | PROT_WRITE)
#define RX	(PROT_READ | PROT_EXEC)

static void *at_page(unsigned int slot, unsigned int page)
{
	return (void *)address(self, slot, page);
}

static size_t bytes(unsigned int page, unsigned int count)
{
	return (page + count < PAGES ? count : PAGES - page) * PAGE;
}

static void shape_begin(struct change *change, struct slot *slot)
{
	lock(&slot->shape_lock);
	add(&slot->shapes, 1);
	change_begin(change, slot, 0);
}

static void shape_end(struct change *change)
{
	change_end(change);
	unlock(&change->slot->shape_lock);
}

/* Before anybody can see it. */
static uint8_t object_of(struct slot *slot, enum kind kind,
			 unsigned int backing)
{
	uint8_t object = kind == SHARING ? (uint8_t)backing : new_object();

	lock(&slot->lock);
	slot->ever |= 1ull << object;
	if (kind != ANON)
		slot->ever |= 1ull << backing;
	unlock(&slot->lock);
	return object;
}

/* What the slot is from now on. */
static void shaped(struct slot *slot, enum kind kind, unsigned int backing,
		   uint8_t object, unsigned int count, bool runs)
{
	unsigned int i;

	lock(&slot->lock);
	slot->kind = kind;
	slot->backing = (uint8_t)backing;
	slot->object = object;
	slot->cuts = control->backing[backing].cuts;
	slot->stores = control->backing[backing].stores;
	slot->file_at = control->backing[backing].begun;
	slot->count = (uint8_t)count;
	slot->runs = runs;
	for (i = 0; i < PAGES; i++)
		slot->page[i] = (struct page_model){ .own = false };
	unlock(&slot->lock);
}

/* In one step where something was; what is behind it goes after that. */
static void map(unsigned int number, enum kind kind, unsigned int backing,
		unsigned int count, int rights)
{
	struct slot *slot = own_slot(number);
	int flags = kind == SHARING ? MAP_SHARED : MAP_PRIVATE;
	bool file = kind != ANON && backing < FIRST_SHARED;
	int fd = file ? control->files[backing] : -1;
	struct change change;
	uint8_t object;
	bool ok;

	shape_begin(&change, slot);
	object = object_of(slot, kind, backing);
	if (kind == SHARING)
		change_shows(&change, backing);
	ok = mmap(at_page(number, 0), count * PAGE, rights, MAP_FIXED | flags |
		  (file ? 0 : MAP_ANONYMOUS), fd, 0) != MAP_FAILED;
	if (count < PAGES)
		munmap(at_page(number, count), (PAGES - count) * PAGE);
	if (ok)
		shaped(slot, kind, backing, object, count,
		       rights & PROT_EXEC);
	else
		change_effect(&change, 0, PAGES, LOST, 0, 0);
	shape_end(&change);
}

OP(map_anon)
{
	map(n[0], ANON, 0, n[1], RW);
}

/* One that nobody had before. */
OP(map_shared)
{
	uint32_t share = add(&control->shares, 1) - 1;

	if (share < SHARED)
		map(n[0], SHARING, FIRST_SHARED + share, n[1], RW);
}

OP(map_private)
{
	map(n[0], PRIVATE, n[2], n[1], RW);
}

OP(map_file)
{
	map(n[0], SHARING, n[2], n[1], RW);
}

OP(map_code)
{
	map(n[0], PRIVATE, FILES + n[2], n[1], RX);
}

OP(map_code_shared)
{
	map(n[0], SHARING, FILES + n[2], n[1], RX);
}

OP(unmap)
{
	struct slot *slot = own_slot(n[0]);
	struct change change;

	shape_begin(&change, slot);
	munmap(at_page(n[0], n[1]), bytes(n[1], n[2]));
	change_effect(&change, n[1], n[2], LOST, 0, 0);
	if (!n[1] && n[2] >= slot->count) {
		lock(&slot->lock);
		slot->kind = NOTHING;
		unlock(&slot->lock);
	}
	shape_end(&change);
}

OP(unmap_code)
{
	op_unmap(n);
}

/* Changes nothing that is there: no change by the model. */
OP(protect)
{
	static const int rights[] = { PROT_NONE, PROT_READ, RW };

	own_slot(n[0]);
	mprotect(at_page(n[0], n[1]), bytes(n[1], n[2]), rights[n[3]]);
}

/* Of code nothing may run that has no right to. */
OP(protect_code)
{
	static const int rights[] = { PROT_NONE, RX, RW };
	struct slot *slot = own_slot(n[0]);
	struct change change;

	shape_begin(&change, slot);
	slot->runs = n[1] == 1 &&
		!mprotect(at_page(n[0], 0), slot->count * PAGE, RX);
	if (n[1] != 1)
		mprotect(at_page(n[0], 0), slot->count * PAGE, rights[n[1]]);
	shape_end(&change);
}

void lock_two(struct slot *a, struct slot *b, size_t which)
{
	struct slot *first = a < b ? a : b;
	struct slot *second = a < b ? b : a;

	lock((uint32_t *)((char *)first + which));
	lock((uint32_t *)((char *)second + which));
}

/* The mapping that `from` was is now at `to`. */
static void moved(struct change *from, struct change *to)
{
	struct slot *a = from->slot, *b = to->slot;
	unsigned int i;

	lock_two(a, b, offsetof(struct slot, lock));
	if (a->muddled)
		b->muddled = true;
	b->kind = a->kind;
	b->backing = a->backing;
	b->object = a->object;
	b->count = a->count;
	b->runs = a->runs;
	b->cuts = a->cuts;
	b->stores = a->stores;
	b->file_at = a->file_at;
	for (i = 0; i < PAGES; i++)
		b->page[i] = a->page[i];
	a->kind = NOTHING;
	unlock(&a->lock);
	unlock(&b->lock);
}

static void move(unsigned int from, unsigned int to)
{
	struct slot *a = own_slot(from), *b = own_slot(to);
	struct change here, there;
	unsigned int count;
	size_t size;

	if (a == b)
		return;
	lock_two(a, b, offsetof(struct slot, far_lock));
	lock_two(a, b, offsetof(struct slot, shape_lock));
	add(&a->shapes, 1);
	add(&b->shapes, 1);
	change_begin(&here, a, 0);
	change_begin(&there, b, 0);
	count = here.kind == NOTHING ? 0 : a->count;
	size = count * PAGE;
	lock(&b->lock);
	b->ever |= a->ever;
	unlock(&b->lock);
	if (here.kind == SHARING)
		change_shows(&there, here.backing);
	if (size && mremap(at_page(from, 0), size, size,
			   MREMAP_MAYMOVE | MREMAP_FIXED, at_page(to, 0)) !=
	    MAP_FAILED) {
		if (count < PAGES)
			munmap(at_page(to, count), (PAGES - count) * PAGE);
		moved(&here, &there);
	} else if (size) {
		/* What was there may be gone. */
		change_effect(&there, 0, PAGES, LOST, 0, 0);
	}
	change_end(&here);
	change_end(&there);
	unlock(&a->shape_lock);
	unlock(&b->shape_lock);
	unlock(&a->far_lock);
	unlock(&b->far_lock);
}

OP(move)
{
	move(n[0], n[1]);
}

OP(move_code)
{
	move(n[0], n[1]);
}

OP(resize)
{
	struct slot *slot = own_slot(n[0]);
	struct change change;
	unsigned int old;
	bool ok = false;

	shape_begin(&change, slot);
	old = slot->count;
	if (change.kind != NOTHING && old != n[1])
		ok = mremap(at_page(n[0], 0), old * PAGE, n[1] * PAGE, 0) !=
			MAP_FAILED;
	if (ok && n[1] > old)
		change_effect(&change, old, n[1] - old, DROPPED, 0, 0);
	if (ok) {
		lock(&slot->lock);
		slot->count = n[1];
		unlock(&slot->lock);
	} else if (n[1] < old) {
		change_effect(&change, n[1], PAGES, LOST, 0, 0);
	}
	shape_end(&change);
}

static void advise(const uint8_t *n, int advice, enum effect effect,
		   enum effect failed)
{
	struct slot *slot = own_slot(n[0]);
	struct change change;

	change_begin(&change, slot, advice == MADV_REMOVE ? MAY_WRITE : 0);
	/* Holes are no failure, but for a file: what is there was treated. */
	if (madvise(at_page(n[0], n[1]), bytes(n[1], n[2]), advice) &&
	    (errno != ENOMEM || effect == ZEROED))
		effect = failed;
	/* Lazily freed pages are anonymous ones, and of no file is a hole. */
	if ((effect == FREED && change.kind != ANON) ||
	    (effect == ZEROED && change.kind != SHARING))
		effect = LOST;
	change_effect(&change, n[1], n[2], effect, 0, 0);
	change_end(&change);
}

OP(drop)
{
	advise(n, MADV_DONTNEED, DROPPED, LOST);
}

OP(drop_code)
{
	const uint8_t all[] = { n[0], 0, CODE_PAGES };

	advise(all, MADV_DONTNEED, DROPPED, LOST);
}

OP(give_back)
{
	advise(n, MADV_FREE, FREED, FREED);
}

/* Two that leave contents alone. */
OP(page_out)
{
	own_slot(n[0]);
	madvise(at_page(n[0], n[1]), bytes(n[1], n[2]), MADV_PAGEOUT);
}

OP(will_need)
{
	own_slot(n[0]);
	madvise(at_page(n[0], n[1]), bytes(n[1], n[2]), MADV_WILLNEED);
}

/* Not of private memory. */
OP(remove)
{
	struct slot *slot = own_slot(n[0]);

	if (slot->kind == SHARING)
		advise(n, MADV_REMOVE, ZEROED, LOST);
}

OP(populate)
{
	advise(n, MADV_POPULATE_WRITE, COPIED, COPIED);
}

OP(lock_pages)
{
	struct slot *slot = own_slot(n[0]);
	struct change change;

	change_begin(&change, slot, 0);
	mlock(at_page(n[0], n[1]), bytes(n[1], n[2]));
	change_effect(&change, n[1], n[2], COPIED, 0, 0);
	change_end(&change);
}

OP(unlock_pages)
{
	own_slot(n[0]);
	munlock(at_page(n[0], n[1]), bytes(n[1], n[2]));
}

OP(write)
{
	struct slot *slot = own_slot(n[0]);
	volatile unsigned int page = n[1];
	unsigned int end = n[1] + n[2] < PAGES ? n[1] + n[2] : PAGES;
	uint32_t stamp = new_stamp();
	struct change change;

	change_begin(&change, slot, MAY_WRITE);
	if (change.kind != NOTHING && GUARDED())
		for (; page < end; page++)
			put_words(address(self, n[0], page),
				  word_of(change.object, page, stamp), n[3]);
	unguard();
	change_effect(&change, n[1], page - n[1], WRITTEN, stamp, n[3]);
	if (page < end)
		change_effect(&change, page, 1, LOST, 0, 0);
	change_end(&change);
}

static void read_page(unsigned int number, struct slot *slot, unsigned int page,
		      unsigned int ring)
{
	struct seen seen = { .odd = 0 };
	struct view view;

	view_slot(&view, slot, number, page);
	if (GUARDED())
		look(&view, &seen, address(self, number, page), ring);
	unguard();
	judge(&view, &seen);
}

OP(read)
{
	struct slot *slot = own_slot(n[0]);
	unsigned int page;

	for (page = n[1]; page < n[1] + n[2] && page < PAGES; page++)
		read_page(n[0], slot, page, n[3]);
}
