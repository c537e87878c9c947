/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs one random instruction after the other from a table and records what each did.
 *
 * The same bytes run on a simulated core and on QEMU's of the kind (crates/board/tests/differential).
 * The host puts everything into one memory image: this code at physical 0 with its parameters,
 * page tables, tests, scratch memory. Layout of the records: crates/board/tests/differential/
 * layout.rs. Position independent: runs at 0 with the MMU off, at 0xffff0000 with it on.
 *
 * An instruction ends in one of two ways: it falls through to `done`, which changes nothing before
 * it has saved what it could (stores relative to pc need no free register), or it ends in an
 * exception: its own, or that of the guard (undefined instruction) or of the unmapped address it
 * jumped to.
 */
	.arch	armv4t
	.syntax	unified
	.arm
	.text

	/* State saved by stores relative to pc; the page behind this one. */
	.equ	CELLS, vectors + 0x1000
	.equ	CELL_PSR, CELLS + 60
	.equ	CELL_CAUSE, CELLS + 64
	.equ	CELL_USER_DONE, CELLS + 68
	.equ	CELL_R0, CELLS + 72
	.equ	CELL_IN, CELLS + 76
	.equ	CELL_OUT, CELLS + 80
	.equ	CELL_LEFT, CELLS + 84

	/* Words of one test (layout.rs). */
	.equ	TEST_DIGEST, 20
	.equ	TEST_REGISTERS, 32
	.equ	TEST_BYTES, 96

vectors:
	b	reset
	b	undefined
	b	software_interrupt
	b	prefetch_abort
	b	data_abort
	b	.
	b	interrupt
	b	fast_interrupt

	/* Filled in by the host. */
	.org	0x40
sctlr:	.word	0
ttb:	.word	0
dacr:	.word	0
pid:	.word	0
tests:	.word	0
input:	.word	0
output:	.word	0
main_va:	.word	0
sysreg:	.word	0
started:
	.word	0
	/* Clean the D-cache 0: by testing (ARM926EJ-S), 1: by segment and index (ARM920T), 2: by allocation (XScale),
	   3: at once (ARM1136). */
clean_by:
	.word	0
	/* For the host: where `done` and `main` are, from `vectors`. */
	.org	0x80
	.word	done - vectors
	.word	main - vectors

	.org	0x100
	/* Saves the state an exception left; it falls into nothing, each use ends in a branch. */
	.macro	save cause
	str	r0, CELLS
	save_rest \cause
	.endm

	.macro	save_rest cause
	str	r1, CELLS + 4
	str	r2, CELLS + 8
	str	r3, CELLS + 12
	str	r4, CELLS + 16
	str	r5, CELLS + 20
	str	r6, CELLS + 24
	str	r7, CELLS + 28
	str	r8, CELLS + 32
	str	r9, CELLS + 36
	str	r10, CELLS + 40
	str	r11, CELLS + 44
	str	r12, CELLS + 48
	str	r13, CELLS + 52
	str	r14, CELLS + 56
	.if	\cause
	mrs	r0, spsr
	.else
	mrs	r0, cpsr
	.endif
	str	r0, CELL_PSR
	mov	r1, #\cause
	str	r1, CELL_CAUSE
	.endm

undefined:
	save	1
	b	record
prefetch_abort:
	save	3
	b	record
data_abort:
	save	4
	b	record
interrupt:
	save	6
	b	record
fast_interrupt:
	save	7
	b	record

software_interrupt:
	str	r0, CELL_R0
	ldr	r0, CELL_USER_DONE
	cmp	r0, #0
	bne	record
	ldr	r0, CELL_R0
	save	2
	b	record

	/* The instruction fell through. */
done:
	str	r0, CELLS
	save_rest 0
	tst	r0, #15
	bne	record
	mov	r1, #1
	str	r1, CELL_USER_DONE
	swi	0

	/* Privileged, r0 to r7 free: write the record. */
record:
	mov	r0, #0
	str	r0, CELL_USER_DONE
	ldr	r7, CELL_OUT
	adr	r6, vectors
	add	r6, r6, #0x1000
	ldmia	r6!, {r0-r5}
	stmia	r7!, {r0-r5}
	ldmia	r6!, {r0-r5}
	stmia	r7!, {r0-r5}
	ldmia	r6!, {r0-r4}
	stmia	r7!, {r0-r4}
	msr	cpsr_c, #0xd1
	mrs	r0, spsr
	stmia	r7!, {r0, r8-r14}
	msr	cpsr_c, #0xd2
	mrs	r0, spsr
	stmia	r7!, {r0, r13, r14}
	msr	cpsr_c, #0xd3
	mrs	r0, spsr
	stmia	r7!, {r0, r13, r14}
	msr	cpsr_c, #0xd7
	mrs	r0, spsr
	stmia	r7!, {r0, r13, r14}
	msr	cpsr_c, #0xdb
	mrs	r0, spsr
	stmia	r7!, {r0, r13, r14}
	msr	cpsr_c, #0xdf
	stmia	r7!, {r8-r14}

	/* Digest of the memory the instruction may have written; put it back as it was. */
	ldr	r6, CELL_IN
	add	r4, r6, #TEST_DIGEST
	ldmia	r4, {r4, r5, r6}
	mov	r3, #0
	cmp	r6, #0
	beq	2f
1:	ldr	r0, [r4]
	ldr	r1, [r5], #4
	str	r1, [r4], #4
	eor	r3, r0, r3, ror #25
	add	r3, r3, r3, lsl #5
	subs	r6, r6, #1
	bne	1b
2:	ldr	r0, clean_by
	cmp	r0, #2
	bne	7f
	/* XScale: the accumulator's 40 bits, and one fault status register. */
	.inst	0xec510000		@ mra r0, r1, acc0
	and	r1, r1, #0xff
	eor	r3, r3, r0, ror #1
	eor	r3, r3, r1, ror #9
	mov	r1, #0
7:	mrc	p15, 0, r0, c5, c0, 0
	mrcne	p15, 0, r1, c5, c0, 1
	mrc	p15, 0, r2, c6, c0, 0
	stmia	r7!, {r0-r3}
	mov	r0, #0
	mcr	p15, 0, r0, c5, c0, 0
	mcrne	p15, 0, r0, c5, c0, 1
	mcr	p15, 0, r0, c6, c0, 0
	str	r7, CELL_OUT
	ldr	r7, CELL_IN
	add	r7, r7, #TEST_BYTES
	str	r7, CELL_IN
	ldr	r6, CELL_LEFT
	subs	r6, r6, #1
	str	r6, CELL_LEFT
	beq	finish

	/* r7: the test. */
next:
	/* ARMv6: clear the exclusive monitor, by a store to the place of the next record. */
	ldr	r5, clean_by
	cmp	r5, #3
	bne	1f
	ldr	r5, CELL_OUT
	.inst	0xe1856f98		@ strex r6, r8, [r5]
1:	ldmia	r7, {r0-r4}
	stmia	r2, {r0, r1}
	mov	r5, #0
	mcr	p15, 0, r2, c7, c10, 1	@ clean the D line
	mcr	p15, 0, r5, c7, c10, 4	@ drain
	mcr	p15, 0, r2, c7, c5, 1	@ invalidate the I line
	msr	cpsr_c, #0xd1
	ldmia	r3!, {r5, r8-r14}
	msr	spsr_cxsf, r5
	msr	cpsr_c, #0xd2
	ldmia	r3!, {r5, r13, r14}
	msr	spsr_cxsf, r5
	msr	cpsr_c, #0xd3
	ldmia	r3!, {r5, r13, r14}
	msr	spsr_cxsf, r5
	msr	cpsr_c, #0xd7
	ldmia	r3!, {r5, r13, r14}
	msr	spsr_cxsf, r5
	msr	cpsr_c, #0xdb
	ldmia	r3!, {r5, r13, r14}
	msr	spsr_cxsf, r5
	msr	cpsr_c, #0xdf
	ldmia	r3!, {r8-r14}
	/*
	 * Registers of its mode from r8 on (User's are System's), the others, and away: by a return from
	 * Undefined mode, or from Supervisor mode if Undefined is its own. ARMv4T enters Thumb so, or by BX,
	 * which needs a register. r14 and SPSR of that mode stay as the return had them.
	 */
	add	r0, r7, #TEST_REGISTERS
	ldr	r1, [r0, #60]
	and	r2, r1, #1
	orr	r4, r4, r2, lsl #5
	bic	r1, r1, #1
	and	r2, r4, #0x1f
	cmp	r2, #0x10
	orr	r3, r2, #0xc0
	orreq	r3, r3, #0xf
	msr	cpsr_c, r3
	add	r3, r0, #32
	ldmia	r3, {r8-r14}
	cmp	r2, #0x1b
	movne	r3, #0xdb
	moveq	r3, #0xd3
	msr	cpsr_c, r3
	msr	spsr_cxsf, r4
	mov	r14, r1
	ldmia	r0, {r0-r7}
	movs	pc, r14

	/* A test that comes here has run away: stay, the host sees that the count stands still. */
reset:
	ldr	r0, started
	cmp	r0, #0
	bne	.
	mov	r0, #1
	str	r0, started
	mov	r0, #0
	mcr	p15, 0, r0, c7, c7, 0
	mcr	p15, 0, r0, c8, c7, 0
	ldr	r0, ttb
	mcr	p15, 0, r0, c2, c0, 0
	ldr	r0, dacr
	mcr	p15, 0, r0, c3, c0, 0
	/* XScale: coprocessor 0 for everybody. */
	ldr	r0, clean_by
	cmp	r0, #2
	moveq	r0, #1
	mcreq	p15, 0, r0, c15, c1, 0
	ldr	r1, main_va
	ldr	r0, sctlr
	mcr	p15, 0, r0, c1, c0, 0
	nop
	nop
	nop
	bx	r1

	/* Where the code is to stay. */
main:
	ldr	r0, pid
	mcr	p15, 0, r0, c13, c0, 0
	nop
	nop
	nop
	mov	r0, #0
	str	r0, CELL_USER_DONE
	ldr	r0, tests
	str	r0, CELL_LEFT
	ldr	r0, output
	str	r0, CELL_OUT
	ldr	r7, input
	str	r7, CELL_IN
	b	next

	/* Everything into memory, then reset the board: the end. */
finish:
	ldr	r0, clean_by
	cmp	r0, #3
	moveq	r0, #0
	mcreq	p15, 0, r0, c7, c14, 0
	beq	6f
	cmp	r0, #1
	beq	4f
	bhi	8f
3:	mrc	p15, 0, r15, c7, c14, 3
	bne	3b
	b	6f
4:	mov	r1, #0xe0
5:	mcr	p15, 0, r1, c7, c14, 2
	adds	r1, r1, #0x04000000
	bcc	5b
	subs	r1, r1, #0x20
	bpl	5b
	b	6f
8:	mov	r1, #0xe0000000
	add	r2, r1, #0x8000
9:	mcr	p15, 0, r1, c7, c2, 5
	add	r1, r1, #0x20
	cmp	r1, r2
	bne	9b
6:	mov	r0, #0
	mcr	p15, 0, r0, c7, c10, 4
	ldr	r0, sysreg
	ldr	r1, =0xa05f
	str	r1, [r0, #0x20]
	mov	r1, #0x100
	orr	r1, r1, #5
	str	r1, [r0, #0x40]
	mov	r1, #0
	mcr	p15, 0, r1, c7, c10, 4
	b	.
	.ltorg
end:
