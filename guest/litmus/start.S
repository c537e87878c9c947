/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Loaded at 0x10000 and entered there with MMU and caches off. Builds the tables, turns MMU,
 * caches and high vectors on (alignment checks off, round robin, so that a third line does not evict
 * one of two aliases), and runs the program that the test chose.
 */
#include "litmus.h"

	.text
	.arm
	.global	_start
_start:
	msr	cpsr_c, #0xd3
	mov	r0, #L1_TABLE		@ L1, second-level tables: empty
	mov	r1, #0
	mov	r2, #0xa000
1:	str	r1, [r0], #4
	cmp	r0, r2
	bne	1b

	mov	r3, #L1_TABLE
	ldr	r1, =PLAIN | SECTION | CACHED
	bl	map_memory
	ldr	r1, =STRICT | SECTION
	bl	map_memory
	ldr	r1, =BUFFERED | SECTION | 4
	bl	map_memory
	ldr	r1, =THROUGH | SECTION | 8
	bl	map_memory
	ldr	r1, =CODE | SECTION | CACHED
	bl	map_memory
	ldr	r1, =ALIAS | SECTION | CACHED
	bl	map_memory

	mov	r1, #0
	str	r1, [r3, #(EMPTY >> 18)]
	ldr	r0, =L1_TABLE + (PAGES >> 18)
	ldr	r1, =COARSE_TABLE | 0x11
	str	r1, [r0]
	ldr	r1, =FINE_TABLE | 0x13
	str	r1, [r0, #4]
	ldr	r1, =SLOT_2 | SECTION | CACHED
	str	r1, [r3, #(2 << 25 >> 18)]
	ldr	r1, =SLOT_3 | SECTION | CACHED
	str	r1, [r3, #(3 << 25 >> 18)]

	ldr	r0, =L1_TABLE + (0xfff << 2)	@ high vectors at PA 0x1000
	ldr	r1, =VECTOR_TABLE | 0x11
	str	r1, [r0]
	ldr	r0, =VECTOR_TABLE + (0xf0 << 2)
	ldr	r1, =0x1000 | SMALL_PAGE
	str	r1, [r0]
	adr	r0, vectors
	mov	r1, #0x1000
	mov	r2, #16
1:	ldr	r4, [r0], #4
	str	r4, [r1], #4
	subs	r2, r2, #1
	bne	1b

	mcr	p15, 0, r3, c2, c0, 0
	mov	r0, #1
	mcr	p15, 0, r0, c3, c0, 0
	mov	r0, #0
	mcr	p15, 0, r0, c13, c0, 0
	mcr	p15, 0, r0, c7, c7, 0
	mcr	p15, 0, r0, c7, c10, 4
	mcr	p15, 0, r0, c8, c7, 0
	mrc	p15, 0, r0, c1, c0, 0
	bic	r0, r0, #0x0300
	bic	r0, r0, #0x0002
	orr	r0, r0, #0x7000			@ RR V I
	orr	r0, r0, #0x0005			@ C M
	mcr	p15, 0, r0, c1, c0, 0
	nop
	nop
	ldr	pc, =virtual

	/* 64 sections: r1 = VA | attributes, PA from 0 */
map_memory:
	mov	r0, r1, lsr #20
	add	r0, r3, r0, lsl #2
	mov	r1, r1, lsl #20
	mov	r1, r1, lsr #20
	mov	r2, #64
1:	str	r1, [r0], #4
	add	r1, r1, #0x100000
	subs	r2, r2, #1
	bne	1b
	bx	lr

vectors:
	.rept	8
	ldr	pc, [pc, #24]
	.endr
	.word	unexpected, undefined, swi, prefetch_abort, data_abort, unexpected, unexpected
	.word	unexpected

virtual:
	msr	cpsr_c, #0xd7
	ldr	sp, =STRICT + FAULT
	msr	cpsr_c, #0xd3
	ldr	sp, =CODE + 0xd000
	mov	r9, #0
	ldr	r11, =STRICT + RESULTS
	ldr	r12, =STRICT
	add	r12, r12, #DONE
	ldr	r10, [r12, #VARIANT - DONE]
	ldr	pc, [r12, #CASE - DONE]

	.global	finish
finish:
	ldr	r12, =STRICT + DONE
	str	r11, [r12, #END - DONE]
	ldr	r0, =DONE_MARK
	str	r0, [r12]
1:	b	1b

	/* r9 = 0x100 | FSR, on behind the instruction */
data_abort:
	str	lr, [sp]
	mrc	p15, 0, r9, c6, c0, 0
	str	r9, [sp, #8]
	mrc	p15, 0, r9, c5, c0, 0
	str	r9, [sp, #4]
	orr	r9, r9, #0x100
	subs	pc, lr, #4

	/* r9 = 0x200 | IFSR, on at r8 */
prefetch_abort:
	str	lr, [sp]
#ifdef XSCALE
	mrc	p15, 0, r9, c5, c0, 0
#else
	mrc	p15, 0, r9, c5, c0, 1
#endif
	str	r9, [sp, #4]
	orr	r9, r9, #0x200
	mov	lr, r8
	movs	pc, lr

	/* r9 = 0x400, on at r8 */
undefined:
	mov	r9, #0x400
	mov	lr, r8
	movs	pc, lr

	/* r9 = 0x800, on at r8 in Supervisor mode */
swi:
	mov	r9, #0x800
	mov	pc, r8

unexpected:
	ldr	r12, =STRICT + DONE
	ldr	r0, =0xdead
	str	r0, [r12]
1:	b	1b
