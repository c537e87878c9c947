/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Translations that outlive their descriptors (DDI0198D 3.7), and descriptors the walker does not
 * see yet. Pages are uncached, so that only the TLB can be stale.
 */
#include "litmus.h"

#define FIRST	0x220000
#define SECOND	0x230000
#define ENTRY(n) (COARSE_TABLE + (n << 2))
#define PAGE(n)	(PAGES + (n << 12))

	.macro	two_pages
	poke	FIRST, 0x11
	poke	SECOND, 0x22
	.endm

	/*
	 * A page's descriptor changes. 0: nothing. 1: whole TLB invalidated. 2: by MVA.
	 * 3: by another page's MVA. 4: by MVA in the instruction TLB, which is the same one.
	 * 5: whole instruction TLB.
	 */
	litmus	changed_page_descriptor
	two_pages
	poke	ENTRY(3), FIRST | SMALL_PAGE
	ldr	r0, =PAGE(3)
	ldr	r1, [r0]
	put	r1
	poke	ENTRY(3), SECOND | SMALL_PAGE
	bl	invalidate
	ldr	r1, [r0]
	put	r1
	done

	/* For r0's page, by the variant */
invalidate:
	mov	r12, #0
	cmp	r10, #1
	mcreq	p15, 0, r12, c8, c7, 0
	cmp	r10, #2
	mcreq	p15, 0, r0, c8, c6, 1
	add	r1, r0, #0x1000
	cmp	r10, #3
	mcreq	p15, 0, r1, c8, c6, 1
	cmp	r10, #4
	mcreq	p15, 0, r0, c8, c5, 1
	cmp	r10, #5
	mcreq	p15, 0, r12, c8, c5, 0
	bx	lr

	/* The page is taken away: the old translation still serves. Variants as above. */
	litmus	removed_page_descriptor
	two_pages
	poke	ENTRY(4), FIRST | SMALL_PAGE
	ldr	r0, =PAGE(4)
	ldr	r1, [r0]
	poke	ENTRY(4), 0
	bl	invalidate
	mov	r1, #0
	mov	r9, #0
	ldr	r1, [r0]
	put	r1
	put	r9
	done

	/* The page becomes read-only for users. Variants as above. */
	litmus	tightened_permissions
	two_pages
	poke	ENTRY(5), FIRST | SMALL_PAGE
	ldr	r0, =PAGE(5)
	ldr	r1, [r0]
	poke	ENTRY(5), FIRST | 0xaa2
	bl	invalidate
	mov	r1, #0x99
	mov	r9, #0
	strt	r1, [r0]
	put	r9
	peek	r1, FIRST
	put	r1
	done

	/* A missing page is not remembered: no maintenance after adding one. */
	litmus	added_page_descriptor
	two_pages
	poke	ENTRY(6), 0
	ldr	r0, =PAGE(6)
	ldr	r1, [r0]
	put	r9
	poke	ENTRY(6), SECOND | SMALL_PAGE
	ldr	r1, [r0]
	put	r1
	done

	/*
	 * The translation sits in a lockdown entry. 0: nothing. 1: whole TLB invalidated. 2: by MVA.
	 */
	litmus	locked_translation
	two_pages
	poke	ENTRY(7), FIRST | SMALL_PAGE
	ldr	r0, =PAGE(7)
	mov	r1, #1
	mcr	p15, 0, r1, c10, c0, 0
	ldr	r2, [r0]
	mrc	p15, 0, r3, c10, c0, 0
	mov	r1, #0
	mcr	p15, 0, r1, c10, c0, 0
	put	r2
	put	r3
	poke	ENTRY(7), SECOND | SMALL_PAGE
	bl	invalidate
	ldr	r1, [r0]
	put	r1
	done

	/*
	 * The descriptor is written through the D-cache. 0: left there. 1: drained only. 2: cleaned
	 * and drained. The page has not been used, so the TLB is not in play.
	 */
	litmus	descriptor_in_the_dcache
	two_pages
	poke	ENTRY(8), FIRST | SMALL_PAGE
	ldr	r0, =PAGE(8)
	ldr	r1, =CODE + ENTRY(8)
	ldr	r2, =SECOND | SMALL_PAGE
	ldr	r3, [r1]
	str	r2, [r1]
	cmp	r10, #0
	beq	2f
	cmp	r10, #1
	beq	1f
	clean_line r1
1:	drain
2:	ldr	r3, [r0]
	put	r3
	done

	/*
	 * The descriptor is written through the write buffer. 0: nothing. 1: drained.
	 *
	 * Three stores to other places keep the bus busy so that the descriptor is still in the buffer
	 * when the walk begins: the walk's reads come between the buffered writes, one of which may
	 * go out between its two reads, and do not look at what waits. The loop runs twice, the first
	 * time for the I-cache and the TLB entry of the stores, on the page before.
	 */
	litmus	descriptor_in_the_write_buffer
	two_pages
	poke	ENTRY(9), FIRST | SMALL_PAGE
	poke	ENTRY(10), FIRST | SMALL_PAGE
	ldr	r0, =PAGE(9)
	ldr	r1, =BUFFERED + ENTRY(9)
	ldr	r2, =SECOND | SMALL_PAGE
	ldr	r3, =BUFFERED + DATA
	mov	r4, #2
	b	1f
	.balign	32
1:	drain
	cmp	r10, #0
	str	r2, [r3]
	str	r2, [r3, #0x40]
	str	r2, [r3, #0x80]
	str	r2, [r1], #4
	mcrne	p15, 0, r12, c7, c10, 4
	ldr	r5, [r0]
	add	r0, r0, #0x1000
	subs	r4, r4, #1
	bne	1b
	put	r5
	drain
	peek	r5, ENTRY(10)
	put	r5
	done
