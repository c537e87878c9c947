// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What is seen, and what it should be. Sure is what nobody changed meanwhile:
 * it must be exactly the newest. Of anything else a word must at least be zero
 * or one that may have come there.
 */
#include "mm_chaos.h"

#define STAMPS ((1u << STAMP_BITS) - 1)

static bool quiet(const struct backing *backing)
{
	return backing->begun == backing->ended;
}

static void view_backing(struct view *view)
{
	struct backing *backing = view->backing;

	lock(&backing->lock);
	view->sure &= quiet(backing);
	view->backing_at = backing->begun;
	view->expected = backing->page[view->page];
	unlock(&backing->lock);
}

static bool is_code(unsigned int slot)
{
	return slot >= CODE_SLOT && slot < CODE_SLOT + CODE_SLOTS;
}

void view_slot(struct view *view, struct slot *slot, unsigned int number,
	       unsigned int page)
{
	*view = (struct view){
		.slot = slot, .slot_number = number, .page = page,
	};
	lock(&slot->lock);
	view->sure = slot->begun == slot->ended;
	view->slot_at = slot->begun;
	view->kind = slot->kind;
	if (slot->kind == SHARING || slot->kind == PRIVATE) {
		view->backing = &control->backing[slot->backing];
		view_backing(view);
	}
	/*
	 * Nobody promises when a private mapping shows what becomes of the file,
	 * except that code that was written is the code that runs. And Linux is
	 * known to miss what is dirty in a shared mapping (private_of_shared).
	 */
	if (slot->kind == PRIVATE)
		view->sure &= slot->cuts == view->backing->cuts &&
			(slot->page[page].own || is_code(number) ||
			 (slot->file_at == view->backing->begun &&
			  !view->backing->stored));
	if (slot->kind == ANON ||
	    (slot->kind == PRIVATE && slot->page[page].own))
		view->expected = slot->page[page];
	unlock(&slot->lock);
}

void view_file(struct view *view, unsigned int backing, unsigned int page)
{
	*view = (struct view){
		.backing = &control->backing[backing], .page = page,
		.slot_number = backing, .kind = SHARING,
	};
	/* unmapped_and_read */
	view->sure = !control->lenient || !view->backing->stored;
	view_backing(view);
}

bool view_sure(struct view *view)
{
	if (view->slot)
		view->sure &= view->slot->begun == view->slot_at;
	if (view->backing)
		view->sure &= view->backing->begun == view->backing_at;
	return view->sure;
}

/* Is the word what is expected there? */
static bool expected(const struct view *view, uint32_t word, unsigned int ring)
{
	const struct page_model *page = &view->expected;

	if (page->unknown & 1u << ring)
		return false;
	return word == page->word[ring] ||
		(!word && page->or_zero & 1u << ring);
}

void look_at(const struct view *view, struct seen *seen,
	     unsigned int place, uint32_t word)
{
	seen->words++;
	if (expected(view, word, ring_of(place)))
		return;
	if (seen->odd && seen->word[seen->odd - 1] == word)
		return;
	if (seen->odd == ODD_WORDS)
		return;
	seen->place[seen->odd] = (uint16_t)place;
	seen->word[seen->odd++] = word;
}

void look(const struct view *view, struct seen *seen,
	  const volatile uint32_t *at, unsigned int ring)
{
	uint32_t usual = view->expected.word[2];
	unsigned int n, place;

	for (n = 0; (place = word_at(ring, n)) < PAGE_WORDS; n++) {
		uint32_t word = at[place];

		/* Most words of most pages, where all are read. */
		if (ring == 2 && word == usual &&
		    word == view->expected.word[1] &&
		    word == view->expected.word[0] &&
		    !view->expected.unknown)
			seen->words++;
		else
			look_at(view, seen, place, word);
	}
}

/* Objects of which words may be seen here, whatever has happened. */
static uint64_t possible(const struct view *view)
{
	uint64_t ever = view->slot ? view->slot->ever : view->backing->ever;
	unsigned int i;

	for (i = 0; i < BACKINGS; i++)
		if (ever & 1ull << i)
			ever |= control->backing[i].ever;
	return ever;
}

static bool possible_word(const struct view *view, uint32_t word)
{
	if (!word)
		return true;
	return word >> 26 == view->page && (word & STAMPS) &&
		(word & STAMPS) <= control->stamps &&
		possible(view) >> (word >> STAMP_BITS & (OBJECTS - 1)) & 1;
}

static void wrong(const struct view *view, const struct seen *seen,
		  unsigned int i, bool known)
{
	unsigned int ring = ring_of(seen->place[i]);
	const char *what = view->slot ? "slot" : "file";

	if (known)
		say_wrong("%s %u page %u word %u: got %#x expected %#x", what,
			  view->slot_number, view->page, seen->place[i],
			  (unsigned int)seen->word[i],
			  (unsigned int)view->expected.word[ring]);
	else
		say_wrong("%s %u page %u word %u: got %#x expected a word of its objects",
			  what, view->slot_number, view->page, seen->place[i],
			  (unsigned int)seen->word[i]);
}

void judge(struct view *view, const struct seen *seen)
{
	bool sure = view_sure(view) && view->kind != NOTHING;
	unsigned int i;

	add(&control->words, seen->words);
	for (i = 0; i < seen->odd; i++) {
		unsigned int ring = ring_of(seen->place[i]);
		bool known = sure && !(view->expected.unknown & 1u << ring);

		if (known || !possible_word(view, seen->word[i])) {
			wrong(view, seen, i, known);
			return;
		}
	}
}

/*
 * These caches take in a line only when it is read: what is just written goes
 * past them to memory.
 */
void put_words(volatile uint32_t *at, uint32_t word, unsigned int ring)
{
	unsigned int n, place;

	for (n = 0; (place = word_at(ring, n)) < PAGE_WORDS; n++) {
		if (ring < 2 ? (word + n) % 4 : n % LINE_WORDS == 0 &&
		    (word + n / LINE_WORDS) % 4)
			(void)at[place];
		at[place] = word;
	}
}
