/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The Fast Context Switch Extension (DDI0198D 2.3.13): one virtual address below 32 MB is a
 * different modified virtual address under each PID.
 */
#include "litmus.h"

	/* memory[\pa...] = the instructions from \from to \to */
	.macro	copy_code pa, from, to
	ldr	r0, =\from
	ldr	r1, =\to
	ldr	r2, =STRICT + \pa
996:	ldr	r3, [r0], #4
	str	r3, [r2], #4
	cmp	r0, r1
	bne	996b
	.endm

	/*
	 * Two tasks at one virtual address, each with data of its own, dirty in the cache.
	 * 0: the switch is the PID, without maintenance. 1: the switch is a page-table entry and
	 * the TLB, without maintenance. 2: as 1, with the cache cleaned and invalidated.
	 * Results: what each task reads after the other has run, and its memory.
	 */
	litmus	two_tasks_at_one_address
	poke	SLOT_2 + 0x800, 0x22
	poke	SLOT_3 + 0x800, 0x33
	mov	r4, #0x800
	cmp	r10, #0
	ldrne	r4, =PAGES + 0x800
	mov	r0, #2
	bl	become
two_tasks_at_one_address.first_2:
	ldr	r1, [r4]
	mov	r1, #0x2200
two_tasks_at_one_address.write_2:
	str	r1, [r4]
	mov	r0, #3
	bl	become
two_tasks_at_one_address.read_3:
	ldr	r1, [r4]
	put	r1
	mov	r1, #0x3300
two_tasks_at_one_address.write_3:
	str	r1, [r4]
	mov	r0, #2
	bl	become
two_tasks_at_one_address.read_2:
	ldr	r1, [r4]
	put	r1
	mov	r0, #3
	bl	become
	ldr	r1, [r4]
	put	r1
	mov	r12, #0
	mcr	p15, 0, r12, c13, c0, 0
	nop
	nop
two_tasks_at_one_address.past_2:
	peek	r1, SLOT_2 + 0x800
	put	r1
two_tasks_at_one_address.past_3:
	peek	r1, SLOT_3 + 0x800
	put	r1
	done

	/* Task r0: 2 or 3 */
become:
	cmp	r10, #0
	beq	2f
	cmp	r10, #2
	bne	1f
	clean_invalidate_all
1:	cmp	r0, #2
	ldreq	r1, =SLOT_2 | SMALL_PAGE | WRITE_BACK
	ldrne	r1, =SLOT_3 | SMALL_PAGE | WRITE_BACK
	ldr	r2, =STRICT + COARSE_TABLE
	str	r1, [r2]
	invalidate_tlb
	bx	lr
2:	mov	r1, r0, lsl #25
	mcr	p15, 0, r1, c13, c0, 0
	nop
	nop
	bx	lr

	/* PID 3's address is also reached at its MVA: one line, no maintenance. */
	litmus	relocated_and_plain_address
	poke	SLOT_3 + 0x840, 0x33
	ldr	r1, =(3 << 25) + 0x840
	mov	r2, #0x840
	pid	3
	ldr	r3, [r2]
	mov	r3, #0x44
	str	r3, [r2]
	ldr	r4, [r1]
	mov	r3, #0x55
	str	r3, [r1]
	ldr	r5, [r2]
	pid	0
	put	r4
	put	r5
	peek	r3, SLOT_3 + 0x840
	put	r3
	done

	/*
	 * PID 3's dirty line is cleaned by 0: its VA. 1: its MVA. 2: its VA, invalidating.
	 * 3: its MVA, invalidating. Results: memory, and what the task reads.
	 */
	litmus	cache_operation_by_address
	poke	SLOT_3 + 0x880, 0x33
	mov	r2, #0x880
	pid	3
	ldr	r3, [r2]
	mov	r3, #0x44
	str	r3, [r2]
	tst	r10, #1
	mov	r1, r2
	orrne	r1, r2, #(3 << 25)
	tst	r10, #2
	mcreq	p15, 0, r1, c7, c10, 1
	mcrne	p15, 0, r1, c7, c6, 1
	mov	r12, #0
	mcr	p15, 0, r12, c7, c10, 4
	ldr	r4, =STRICT + SLOT_3 + 0x880
	ldr	r4, [r4]
	ldr	r5, [r2]
	pid	0
	put	r4
	put	r5
	done

	/*
	 * PID 3's translation (a section that moves from SLOT_3 to SLOT_2) is invalidated by 0: its VA.
	 * 1: its MVA. The line read is a new one each time. The section is the fourth of the slot, for
	 * a TLB set that it has for itself.
	 */
	litmus	tlb_operation_by_address
	poke	SLOT_2 + 0x8e0, 0x22
	poke	SLOT_3 + 0x8e0, 0x33
	poke	L1_TABLE + (3 << 25 >> 18) + 12, SLOT_3 + SECTION + CACHED
	ldr	r2, =0x3008c0
	pid	3
	ldr	r3, [r2]
	ldr	r4, =STRICT + L1_TABLE + (3 << 25 >> 18) + 12
	ldr	r5, =SLOT_2 | SECTION | CACHED
	str	r5, [r4]
	tst	r10, #1
	mov	r1, r2
	orrne	r1, r2, #(3 << 25)
	mcr	p15, 0, r1, c8, c6, 1
	ldr	r3, [r2, #0x20]
	pid	0
	put	r3
	done

	/* r0 += 1 four times behind the write of the PID, which is in r1 */
from_2:	mcr	p15, 0, r1, c13, c0, 0
	add	r0, r0, #1
	add	r0, r0, #1
	add	r0, r0, #1
	add	r0, r0, #1
	bx	lr
from_2_end:
	/* The same place in the other address space: r0 += 16 */
into_3:	nop
	add	r0, r0, #0x10
	add	r0, r0, #0x10
	add	r0, r0, #0x10
	add	r0, r0, #0x10
	bx	lr
into_3_end:
	/* A branch empties the pipeline */
branch_2:
	mcr	p15, 0, r1, c13, c0, 0
	b	1f
	nop
1:	add	r0, r0, #1
	add	r0, r0, #1
	bx	lr
branch_2_end:

	/*
	 * The instructions behind the write of the PID. 0: below 32 MB, the two address spaces hold
	 * different code. 1: above, where there is only one code. 2: as 0 with a branch behind.
	 */
	litmus	two_instructions_from_the_old_space
	copy_code SLOT_2 + 0x1000, from_2, from_2_end
	cmp	r10, #2
	bne	1f
	copy_code SLOT_2 + 0x1000, branch_2, branch_2_end
1:	copy_code SLOT_3 + 0x1000, into_3, into_3_end
	pid	2
	mov	r0, #0
	mov	r1, #(3 << 25)
	mov	r2, #0x1000
	cmp	r10, #1
	ldreq	r2, =from_2
	blx	r2
	put	r0
	mrc	p15, 0, r0, c13, c0, 0
	put	r0
	pid	0
	done

	/*
	 * Under PID 3, address 0x900 is read with the MMU 0: off. 1: on. Runs at VA = PA meanwhile;
	 * the line is not in the cache.
	 */
	litmus	pid_with_the_mmu_off
	poke	SLOT_3 + 0x900, 0x33
	poke	0x900, 0x99
	clean_invalidate_all
	cmp	r10, #1
	beq	2f
	mov	r7, #(3 << 25)
	mov	r6, #0
	adr	r0, 1f
	bic	r0, r0, #CODE
	mov	pc, r0
1:	mrc	p15, 0, r5, c1, c0, 0
	bic	r4, r5, #0x1000
	bic	r4, r4, #0x0005
	mcr	p15, 0, r4, c1, c0, 0
	nop
	nop
	mcr	p15, 0, r7, c13, c0, 0
	nop
	nop
	ldr	r3, [r6, #0x900]
	mcr	p15, 0, r6, c13, c0, 0
	nop
	nop
	mcr	p15, 0, r5, c1, c0, 0
	nop
	nop
	ldr	pc, =3f
2:	pid	3
	mov	r6, #0
	ldr	r3, [r6, #0x900]
	pid	0
3:	put	r3
	done

	/* Handlers that tell where they were found */
vector_0:
	mov	r9, #0x10
	mov	pc, r8
vector_0_end:
vector_2:
	mov	r9, #0x12
	mov	pc, r8
vector_2_end:
vector_3:
	mov	r9, #0x13
	mov	pc, r8
vector_3_end:

	/* An SWI under PID 2, 3, 0 with vectors 0: low. 1: high. */
	litmus	vectors
	copy_code 8, vector_0, vector_0_end
	copy_code SLOT_2 + 8, vector_2, vector_2_end
	copy_code SLOT_3 + 8, vector_3, vector_3_end
	mrc	p15, 0, r0, c1, c0, 0
	cmp	r10, #0
	biceq	r0, r0, #0x2000
	mcreq	p15, 0, r0, c1, c0, 0
	pid	2
	adr	r8, 1f
	swi	0
1:	put	r9
	pid	3
	adr	r8, 2f
	swi	0
2:	put	r9
	pid	0
	adr	r8, 3f
	swi	0
3:	put	r9
	orr	r0, r0, #0x2000
	mcr	p15, 0, r0, c1, c0, 0
	done

faulty:	nop
	ldr	r0, [r1]
	bx	lr
faulty_end:

	/*
	 * A load from an unmapped address, executed at VA 0x2000. 0: PID 0. 1: PID 3.
	 * 2: PID 3, the address is above 32 MB. Results: FAR, LR_abt, r9.
	 */
	litmus	fault_address
	copy_code 0x2000, faulty, faulty_end
	copy_code SLOT_3 + 0x2000, faulty, faulty_end
	ldr	r1, =EMPTY + 0x124
	cmp	r10, #2
	ldreq	r1, =NOWHERE + 0x124
	mov	r2, #0x2000
	cmp	r10, #0
	mov	r12, #0
	movne	r12, #(3 << 25)
	mcr	p15, 0, r12, c13, c0, 0
	nop
	nop
	blx	r2
	pid	0
	peek	r1, FAULT + 8
	put	r1
	peek	r1, FAULT
	put	r1
	put	r9
	done

	/* A jump to an unmapped address under PID 3: LR_abt is the VA + 4, FAR stays. */
	litmus	prefetch_abort_address
	ldr	r1, =0x12345678
	mcr	p15, 0, r1, c6, c0, 0
	ldr	r1, =EMPTY + 0x128
	adr	r8, 1f
	pid	3
	mov	pc, r1
1:	pid	0
	peek	r1, FAULT
	put	r1
	put	r9
	mrc	p15, 0, r1, c6, c0, 0
	put	r1
	done
