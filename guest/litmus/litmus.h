/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What every litmus program sees. Memory is mapped several times (start.S), 64 MB each:
 */
#define PLAIN	 0x00000000	/* write-back, VA = PA; the section at EMPTY is left out	*/
#define STRICT	 0x40000000	/* uncached, unbuffered: stands for memory itself and for a DMA */
#define BUFFERED 0x50000000	/* uncached, buffered						*/
#define THROUGH	 0x60000000	/* write-through						*/
#define CODE	 0x70000000	/* write-back: where the programs run, above what PIDs move	*/
#define ALIAS	 0x80000000	/* write-back once more						*/
#define PAGES	 0x90000000	/* 1 MB by the second-level table at COARSE_TABLE, empty	*/
#define TINY	 0x90100000	/* 1 MB by the second-level table at FINE_TABLE, empty		*/
#define EMPTY	 0x01f00000	/* not mapped							*/
#define NOWHERE	 0x91000000	/* not mapped							*/
#define SLOT_2	 0x01000000	/* PA of the first MB of PID 2's 32 MB, write-back		*/
#define SLOT_3	 0x01100000	/* PA of the first MB of PID 3's 32 MB, write-back		*/

#define L1_TABLE	0x4000
#define COARSE_TABLE	0x8000
#define VECTOR_TABLE	0x8400
#define FINE_TABLE	0x9000

/* Words shared with the test, by physical address. */
#define DONE		0xe000	/* becomes DONE_MARK						*/
#define CASE		0xe004	/* address of the program to run, set by the test		*/
#define VARIANT		0xe008	/* which maintenance to do, set by the test; the program's r10	*/
#define END		0xe00c	/* where the results end					*/
#define READY		0xe010	/* the program waits for the test				*/
#define GO		0xe014	/* the test lets it go on					*/
#define FAULT		0xe040	/* LR_abt, FSR and FAR of the last abort			*/
#define RESULTS		0xe100
#define DONE_MARK	0x600d

#define DATA		0x200000	/* scratch memory of the programs			*/

/* Section and page descriptors: full access, domain 0. */
#define SECTION		0xc12
#define SMALL_PAGE	0xff2
#define CACHED		0xc
#define WRITE_BACK	0xc

/*
 * r9 tells of the last exception (see start.S), r10 is the variant, r11 where the next result goes,
 * r12 is spoilt by the macros.
 */
	.macro	put reg
	str	\reg, [r11], #4
	.endm

	.macro	done
	b	finish
	.endm

	/* memory[\pa] = \value, behind every cache */
	.macro	poke pa, value
	ldr	r12, =STRICT + \pa
	ldr	r8, =\value
	str	r8, [r12]
	.endm

	/* \reg = memory[\pa], behind every cache */
	.macro	peek reg, pa
	ldr	r12, =STRICT + \pa
	ldr	\reg, [r12]
	.endm

	.macro	drain
	mov	r12, #0
	mcr	p15, 0, r12, c7, c10, 4
	.endm

	.macro	clean_line reg
	mcr	p15, 0, \reg, c7, c10, 1
	.endm

	.macro	invalidate_line reg
	mcr	p15, 0, \reg, c7, c6, 1
	.endm

#ifdef XSCALE	/* which has neither of these: lines of two windows that nobody uses take the place of all others */
	.macro	clean_invalidate_line reg
	mcr	p15, 0, \reg, c7, c10, 1
	mcr	p15, 0, \reg, c7, c6, 1
	.endm

	.macro	clean_invalidate_all
	mov	r12, #0xe0000000
997:	mcr	p15, 0, r12, c7, c2, 5
	add	r12, r12, #0x20
	tst	r12, #0x10000
	beq	997b
	drain
	.endm
#else
	.macro	clean_invalidate_line reg
	mcr	p15, 0, \reg, c7, c14, 1
	.endm

	/* What Linux does at a switch of address space */
	.macro	clean_invalidate_all
997:	mrc	p15, 0, r15, c7, c14, 3
	bne	997b
	drain
	.endm
#endif

	.macro	invalidate_icache
	mov	r12, #0
	mcr	p15, 0, r12, c7, c5, 0
	.endm

	.macro	invalidate_tlb
	mov	r12, #0
	mcr	p15, 0, r12, c8, c7, 0
	.endm

	.macro	pid n
	mov	r12, #(\n << 25)
	mcr	p15, 0, r12, c13, c0, 0
	nop
	nop
	.endm

	/* Jumps to \label if the variant is \n */
	.macro	if_variant n, label
	cmp	r10, #\n
	beq	\label
	.endm

	.macro	litmus name
	.global	\name
\name:
	.endm
