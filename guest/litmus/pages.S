/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Page sizes and subpages (ARM ARM B4.7; DDI0198D 3.2).
 */
#include "litmus.h"

	/*
	 * A page with AP 3, 2, 1, 0 in its four quarters: 0: 4 KB. 1: 64 KB. Result: user read and
	 * write at the start and the end of each quarter, two bits each from bit 0, and whether the
	 * words read are those of the right place.
	 */
	litmus	subpages
	mov	r0, #0x11000		@ each word of memory holds its offset
	ldr	r1, =STRICT + DATA
1:	sub	r0, r0, #4
	str	r0, [r1, r0]
	cmp	r0, #0
	bne	1b
	cmp	r10, #0
	ldreq	r1, =DATA + 0x1b2
	ldrne	r1, =DATA + 0x1b1
	mov	r2, #1
	movne	r2, #16
	moveq	r5, #0x400
	movne	r5, #0x4000
	ldr	r0, =STRICT + COARSE_TABLE
2:	str	r1, [r0], #4
	subs	r2, r2, #1
	bne	2b
	ldr	r4, =PAGES
	mov	r6, #0
	mov	r7, #1
	mov	r3, #0			@ offset
3:	bl	4f
	add	r3, r3, r5
	sub	r3, r3, #4
	bl	4f
	add	r3, r3, #4
	cmp	r3, r5, lsl #2
	bne	3b
	put	r6
	done
4:	add	r2, r4, r3
	mov	r9, #0
	ldrt	r0, [r2]
	cmp	r9, #0
	bne	5f
	cmp	r0, r3
	orreq	r6, r6, r7
5:	mov	r7, r7, lsl #1
	mov	r9, #0
	mov	r0, r3
	strt	r0, [r2]
	cmp	r9, #0
	orreq	r6, r6, r7
	mov	r7, r7, lsl #1
	bx	lr

	/*
	 * Tiny pages of 1 KB, mapped in reverse order. 0: to four places. 1: the second is not mapped
	 * and the third is for the privileged. Results: user reads of the last word of each.
	 */
	litmus	tiny_pages
	poke	DATA + 0x3fc, 0x10
	poke	DATA + 0x7fc, 0x11
	poke	DATA + 0xbfc, 0x12
	poke	DATA + 0xffc, 0x13
	poke	FINE_TABLE, DATA + 0xc33
	poke	FINE_TABLE + 4, DATA + 0x833
	poke	FINE_TABLE + 8, DATA + 0x433
	poke	FINE_TABLE + 12, DATA + 0x033
	cmp	r10, #0
	beq	1f
	poke	FINE_TABLE + 4, 0
	poke	FINE_TABLE + 8, DATA + 0x413
1:	ldr	r4, =TINY + 0x3fc
	mov	r3, #4
2:	mov	r9, #0
	mov	r0, #0
	ldrt	r0, [r4]
	add	r4, r4, #0x400
	orr	r0, r0, r9
	put	r0
	subs	r3, r3, #1
	bne	2b
	done

	/* Large and small pages in a fine table: replicated 64 and 4 times. */
	litmus	pages_of_a_fine_table
	poke	DATA + 0x10ffc, 0x21
	poke	DATA + 0x1fffc, 0x22
	ldr	r0, =STRICT + FINE_TABLE
	ldr	r1, =DATA + 0x10000 + 0xff1
	mov	r2, #64
1:	str	r1, [r0], #4
	subs	r2, r2, #1
	bne	1b
	ldr	r1, =DATA + 0x10000 + 0xff2
	mov	r2, #4
2:	str	r1, [r0], #4
	subs	r2, r2, #1
	bne	2b
	ldr	r4, =TINY
	ldr	r0, [r4, #0xffc]
	put	r0
	add	r5, r4, #0xf000
	ldr	r0, [r5, #0xffc]
	put	r0
	add	r5, r4, #0x10000
	ldr	r0, [r5, #0xffc]
	put	r0
	done
