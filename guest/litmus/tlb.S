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
changed_page_descriptor.write:
	poke	ENTRY(3), SECOND | SMALL_PAGE
	bl	invalidate
changed_page_descriptor.read:
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
removed_page_descriptor.write:
	poke	ENTRY(4), 0
	bl	invalidate
	mov	r1, #0
	mov	r9, #0
removed_page_descriptor.read:
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
tightened_permissions.write:
	poke	ENTRY(5), FIRST | 0xaa2
	bl	invalidate
	mov	r1, #0x99
	mov	r9, #0
tightened_permissions.store:
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
locked_translation.write:
	poke	ENTRY(7), SECOND | SMALL_PAGE
	bl	invalidate
locked_translation.read:
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
descriptor_in_the_dcache.write:
	str	r2, [r1]
	cmp	r10, #0
	beq	2f
	cmp	r10, #1
	beq	1f
	clean_line r1
1:	drain
descriptor_in_the_dcache.read:
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
descriptor_in_the_write_buffer.write:
	str	r2, [r1], #4
	mcrne	p15, 0, r12, c7, c10, 4
descriptor_in_the_write_buffer.read:
	ldr	r5, [r0]
	add	r0, r0, #0x1000
	subs	r4, r4, #1
	bne	1b
	put	r5
	drain
	peek	r5, ENTRY(10)
	put	r5
	done

	/*
	 * A page that may be written is made read-only for users, read, then written by a user.
	 * 0: the TLB is not invalidated. 1: it is.
	 */
	litmus	write_after_a_read
	two_pages
	poke	ENTRY(11), FIRST | SMALL_PAGE
	ldr	r0, =PAGE(11)
	ldr	r1, [r0]
write_after_a_read.write:
	poke	ENTRY(11), FIRST | 0xaa2
	bl	invalidate
	ldr	r1, [r0]
	mov	r1, #0x99
	mov	r9, #0
write_after_a_read.store:
	strt	r1, [r0]
	put	r9
	done

	/*
	 * A page loses its permission bits; what is left is up to S and R of SCTLR. 0: both clear,
	 * nothing is. 1: R set, everybody may read. The TLB is not invalidated.
	 */
	litmus	permissions_by_system_bits
	two_pages
	mrc	p15, 0, r0, c1, c0, 0
	cmp	r10, #1
	orreq	r0, r0, #0x200
	mcr	p15, 0, r0, c1, c0, 0
	poke	ENTRY(12), FIRST | SMALL_PAGE
	ldr	r0, =PAGE(12)
	ldr	r1, [r0]
permissions_by_system_bits.write:
	poke	ENTRY(12), FIRST | 2
permissions_by_system_bits.read:
	ldr	r1, [r0]
	put	r1
	done

	/* A page becomes uncached. 0: the TLB is not invalidated. 1: it is. */
	litmus	page_made_uncached
	two_pages
	poke	ENTRY(14), FIRST | SMALL_PAGE | WRITE_BACK
	ldr	r0, =PAGE(14)
	ldr	r1, [r0]
page_made_uncached.write:
	poke	ENTRY(14), FIRST | SMALL_PAGE
	bl	invalidate
page_made_uncached.read:
	ldr	r1, [r0]
	put	r1
	done

	/*
	 * The table base changes, and with it a page's mapping; all others stay the same.
	 * 0: nothing else. 1: the TLB is invalidated.
	 */
#define OTHER_L1	0x250000
#define OTHER_COARSE	0x254000
	litmus	new_table_base
	two_pages
	ldr	r0, =STRICT + L1_TABLE
	ldr	r1, =STRICT + OTHER_L1
	mov	r2, #0x1000
1:	ldr	r3, [r0], #4
	str	r3, [r1], #4
	subs	r2, r2, #1
	bne	1b
	poke	ENTRY(13), FIRST | SMALL_PAGE
	poke	OTHER_COARSE + (13 << 2), SECOND | SMALL_PAGE
new_table_base.write:
	poke	OTHER_L1 + (PAGES >> 18), OTHER_COARSE | 0x11
	ldr	r0, =PAGE(13)
	ldr	r1, [r0]
	put	r1
	ldr	r1, =OTHER_L1
	mcr	p15, 0, r1, c2, c0, 0
	bl	invalidate
new_table_base.read:
	ldr	r1, [r0]
	put	r1
	done
