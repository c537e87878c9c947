// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Changes of slots and of what they show. A change by itself is exact: the
 * model says what the pages are afterwards. Of changes at the same time it says
 * that nobody knows, and of everything that they may have reached: a store that
 * comes late goes to what is mapped there by then.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/mman.h>
#include "mm_chaos.h"

#define ALL_RINGS ((1u << RINGS) - 1)

static void forget(struct page_model *page, unsigned int count)
{
	for (; count--; page++)
		page->unknown = ALL_RINGS;
}

/* A file that became shorter has taken private copies with it. */
static void notice_cuts(struct slot *slot)
{
	struct backing *backing = &control->backing[slot->backing];
	unsigned int i;

	if (slot->kind != PRIVATE || slot->cuts == backing->cuts)
		return;
	slot->cuts = backing->cuts;
	forget(slot->page, PAGES);
	for (i = 0; i < PAGES; i++)
		slot->page[i].own = true;
}

static bool quiet(const struct backing *backing)
{
	return backing->begun == backing->ended;
}

/* With the slot's lock: what it shows is under change as well. */
static void hold(struct slot *slot)
{
	unsigned int i;

	for (i = 0; i < BACKINGS; i++) {
		struct backing *backing = &control->backing[i];

		if (!(slot->shown & 1u << i))
			continue;
		lock(&backing->lock);
		backing->ever |= slot->ever;
		backing->stored = true;
		if (!(slot->held & 1u << i)) {
			slot->held |= 1u << i;
			slot->held_alone = quiet(backing);
			slot->held_at = ++backing->begun;
		}
		unlock(&backing->lock);
	}
}

static void release(struct slot *slot)
{
	unsigned int i;

	for (i = 0; i < BACKINGS; i++) {
		struct backing *backing = &control->backing[i];

		if (!(slot->held & 1u << i))
			continue;
		lock(&backing->lock);
		if (slot->muddled)
			forget(backing->page, PAGES);
		backing->ended++;
		unlock(&backing->lock);
	}
	slot->held = 0;
	slot->shown = 0;
	slot->muddled = false;
}

void change_begin(struct change *change, struct slot *slot, unsigned int flags)
{
	struct backing *backing;

	lock(&slot->lock);
	slot->muddled |= slot->begun != slot->ended;
	slot->begun++;
	notice_cuts(slot);
	backing = &control->backing[slot->backing];
	*change = (struct change){
		.slot = slot, .kind = slot->kind, .backing = slot->backing,
		.object = slot->object, .calm_at = backing->begun,
		.calm = quiet(backing),
	};
	if (slot->kind == SHARING)
		slot->shown |= 1u << slot->backing;
	if (flags & MAY_WRITE || slot->muddled)
		hold(slot);
	unlock(&slot->lock);
}

void change_shows(struct change *change, unsigned int backing)
{
	struct slot *slot = change->slot;

	lock(&slot->lock);
	slot->shown |= 1u << backing;
	if (slot->muddled || slot->held)
		hold(slot);
	unlock(&slot->lock);
}

/* The first write to a page of a private mapping copies it. */
static void copy_first(struct page_model *page, const struct page_model *from)
{
	if (page->own)
		return;
	*page = *from;
	page->own = true;
}

static void effect_on(struct page_model *page, enum effect effect,
		      uint32_t word, unsigned int ring)
{
	unsigned int i;

	switch (effect) {
	case NONE:
	case COPIED:
	case DROPPED:
		return;
	case WRITTEN:
		for (i = 0; i <= ring; i++) {
			page->word[i] = word;
			page->unknown &= ~(1u << i);
			page->or_zero &= ~(1u << i);
		}
		return;
	case ZEROED:
		*page = (struct page_model){ .own = page->own };
		return;
	case FREED:
		page->or_zero = ALL_RINGS;
		return;
	case LOST:
		page->unknown = ALL_RINGS;
		return;
	}
}

static void backing_effect(struct change *change, unsigned int page,
			   enum effect effect, uint32_t word, unsigned int ring)
{
	struct backing *backing = &control->backing[change->backing];
	struct slot *slot = change->slot;

	/* Not held: it cannot have been written to. */
	if (!(slot->held & 1u << change->backing))
		return;
	lock(&backing->lock);
	if (!slot->held_alone || backing->begun != slot->held_at)
		effect = LOST;
	effect_on(&backing->page[page], effect, word, ring);
	unlock(&backing->lock);
}

static void private_effect(struct change *change, unsigned int number,
			   enum effect effect, uint32_t word, unsigned int ring)
{
	struct backing *backing = &control->backing[change->backing];
	struct page_model *page = &change->slot->page[number];
	bool calm = change->calm && backing->begun == change->calm_at;
	bool first = !page->own && (backing->stored ||
				    backing->begun != change->slot->file_at);

	if (effect == DROPPED) {
		*page = (struct page_model){ .own = false };
		return;
	}
	if (effect == NONE)
		return;
	copy_first(page, &backing->page[number]);
	/* Which of the file's contents was copied? See view_slot. */
	if (first)
		page->unknown = ALL_RINGS;
	if (!calm || effect == COPIED)
		effect = LOST;
	effect_on(page, effect, word, ring);
}

void change_effect(struct change *change, unsigned int page, unsigned int count,
		   enum effect effect, uint32_t stamp, unsigned int ring)
{
	struct slot *slot = change->slot;
	unsigned int end = page + count < PAGES ? page + count : PAGES;

	lock(&slot->lock);
	for (; page < end && !slot->muddled; page++) {
		uint32_t word = word_of(change->object, page, stamp);

		if (change->kind == SHARING)
			backing_effect(change, page, effect, word, ring);
		else if (change->kind == PRIVATE)
			private_effect(change, page, effect, word, ring);
		else if (change->kind == ANON)
			effect_on(&slot->page[page],
				  effect == DROPPED ? ZEROED : effect, word,
				  ring);
	}
	unlock(&slot->lock);
}

/* Has nobody else begun to change it, in this process or, where it is shared, in another? */
bool change_is_alone(const struct change *change)
{
	const struct backing *backing = &control->backing[change->backing];
	const volatile struct slot *slot = change->slot;

	return !slot->muddled &&
		(change->kind != SHARING ||
		 (slot->held_alone &&
		  *(const volatile uint32_t *)&backing->begun == slot->held_at));
}

void change_end(struct change *change)
{
	struct slot *slot = change->slot;

	lock(&slot->lock);
	if (slot->muddled) {
		unsigned int i;

		forget(slot->page, PAGES);
		for (i = 0; slot->kind == PRIVATE && i < PAGES; i++)
			slot->page[i].own = true;
	}
	if (slot->begun == ++slot->ended)
		release(slot);
	unlock(&slot->lock);
}

void file_begin(struct file_change *change, unsigned int backing)
{
	struct backing *at = &control->backing[backing];

	lock(&at->lock);
	at->ever |= 1ull << backing;
	*change = (struct file_change){ at, quiet(at), at->begun + 1 };
	at->begun++;
	unlock(&at->lock);
}

void file_effect(struct file_change *change, unsigned int page,
		 unsigned int count, enum effect effect, uint32_t stamp,
		 unsigned int ring)
{
	struct backing *backing = change->backing;
	uint8_t object = (uint8_t)(backing - control->backing);
	unsigned int end = page + count < PAGES ? page + count : PAGES;

	lock(&backing->lock);
	if (!change->alone || backing->begun != change->at)
		effect = LOST;
	for (; page < end; page++)
		effect_on(&backing->page[page], effect,
			  word_of(object, page, stamp), ring);
	unlock(&backing->lock);
}

void file_end(struct file_change *change)
{
	lock(&change->backing->lock);
	change->backing->ended++;
	unlock(&change->backing->lock);
}

/* Until the parent says which slots were left alone during the fork. */
struct slot *own_slot(unsigned int slot)
{
	struct process *process = self;
	struct slot *at = &process->slot[slot];
	volatile uint8_t *verdict = &process->verdict[slot];
	unsigned int i;

	for (i = 0; process->inherited && *verdict == PENDING; i++)
		i < 4 ? sched_yield() : nap(200);
	if (!process->inherited || *verdict == KEPT)
		return at;
	lock(&at->lock);
	if (*verdict != KEPT) {
		forget(at->page, PAGES);
		for (i = 0; i < PAGES; i++)
			at->page[i].own = true;
	}
	if (*verdict == RESHAPED) {
		munmap((void *)address(process, slot, 0), PAGES * PAGE);
		at->kind = NOTHING;
	}
	*verdict = KEPT;
	unlock(&at->lock);
	return at;
}
