/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Alignment, domains, permissions (ARM ARM B4; DDI0198D 3.5). A result r9 is zero, or 0x100 and the
 * fault status.
 */
#include "litmus.h"

	/* Unaligned accesses with SCTLR.A 0: clear. 1: set. */
	litmus	unaligned_access
	poke	DATA, 0x44332211
	poke	DATA + 4, 0x88776655
	ldr	r4, =CODE + DATA
	cmp	r10, #1
	mrc	p15, 0, r0, c1, c0, 0
	orreq	r0, r0, #2
	mcreq	p15, 0, r0, c1, c0, 0
	.irp	offset, 0, 1, 2, 3
	mov	r9, #0
	mov	r0, #0
	ldr	r0, [r4, #\offset]
	put	r0
	put	r9
	.endr
	add	r5, r4, #1		@ LDM ignores the low bits
	mov	r9, #0
	mov	r0, #0
	mov	r1, #0
	ldmia	r5, {r0, r1}
	put	r0
	put	r1
	put	r9
	mov	r0, #0x1000		@ so does STR
	mov	r9, #0
	str	r0, [r4, #5]
	put	r9
	ldr	r0, [r4, #4]
	put	r0
	mov	r0, #0			@ SWP rotates as LDR
	mov	r1, #0x2000
	mov	r9, #0
	add	r5, r4, #2
	swp	r0, r1, [r5]
	put	r0
	put	r9
	peek	r0, FAULT + 8		@ the last fault's address
	put	r0
	mrc	p15, 0, r0, c1, c0, 0
	bic	r0, r0, #2
	mcr	p15, 0, r0, c1, c0, 0
	done

	/*
	 * A section and a page of domain 5 without permissions (AP, S and R zero). The variant is the
	 * domain's field: 0 no access, 1 client, 2 reserved, 3 manager. Results: read, write, fetch
	 * for the section, then for the page.
	 */
	litmus	domain_field
	poke	DATA, 0xe1a0f008	@ mov pc, r8
	poke	L1_TABLE + (NOWHERE >> 18), DATA + 0x0b2
	poke	L1_TABLE + ((NOWHERE + 0x100000) >> 18), COARSE_TABLE + 0x11 + (5 << 5)
	poke	COARSE_TABLE, DATA + 2
	mov	r0, r10, lsl #10
	orr	r0, r0, #1
	mcr	p15, 0, r0, c3, c0, 0
	invalidate_icache
	ldr	r4, =NOWHERE
	bl	1f
	ldr	r4, =NOWHERE + 0x100000
	bl	1f
	done
1:	mov	r9, #0
	ldr	r0, [r4]
	put	r9
	mov	r9, #0
	ldr	r0, =0xe1a0f008
	str	r0, [r4]
	put	r9
	mov	r9, #0
	adr	r8, 2f
	mov	pc, r4
2:	put	r9
	bx	lr

	/*
	 * Every AP on pages and on sections, privileged and user, read and write. The variant is
	 * SCTLR.S (1) and SCTLR.R (2). Results: one word for pages, one for sections: per AP from bit
	 * 0: privileged read, write, user read, write; 1 is allowed. Then every fault status seen,
	 * one bit each.
	 */
	litmus	permissions
	poke	COARSE_TABLE + 0, DATA + 0x002
	poke	COARSE_TABLE + 4, DATA + 0x552
	poke	COARSE_TABLE + 8, DATA + 0xaa2
	poke	COARSE_TABLE + 12, DATA + 0xff2
	poke	L1_TABLE + (NOWHERE >> 18) + 0, DATA + 0x012
	poke	L1_TABLE + (NOWHERE >> 18) + 4, DATA + 0x412
	poke	L1_TABLE + (NOWHERE >> 18) + 8, DATA + 0x812
	poke	L1_TABLE + (NOWHERE >> 18) + 12, DATA + 0xc12
	mrc	p15, 0, r0, c1, c0, 0
	orr	r0, r0, r10, lsl #8
	mcr	p15, 0, r0, c1, c0, 0
	mov	r7, #0
	ldr	r4, =PAGES
	mov	r5, #0x1000
	bl	1f
	ldr	r4, =NOWHERE
	mov	r5, #0x100000
	bl	1f
	put	r7
	mrc	p15, 0, r0, c1, c0, 0
	bic	r0, r0, #0x300
	mcr	p15, 0, r0, c1, c0, 0
	done
1:	mov	r6, #0
	mov	r2, #1
	mov	r3, #4
2:	.irp	access, ldr, str, ldrt, strt
	mov	r9, #0
	mov	r0, #0
	\access	r0, [r4]
	cmp	r9, #0
	orreq	r6, r6, r2
	and	r9, r9, #15
	mov	r0, #1
	orrne	r7, r7, r0, lsl r9
	mov	r2, r2, lsl #1
	.endr
	add	r4, r4, r5
	subs	r3, r3, #1
	bne	2b
	put	r6
	bx	lr

	/*
	 * The same in User mode proper, by LDR and STR, for the page of the variant's AP, with code of
	 * AP 3. Results: read, write.
	 */
	litmus	user_mode
	poke	COARSE_TABLE + 0, DATA + 0x002
	poke	COARSE_TABLE + 4, DATA + 0x552
	poke	COARSE_TABLE + 8, DATA + 0xaa2
	poke	COARSE_TABLE + 12, DATA + 0xff2
	ldr	r4, =PAGES
	add	r4, r4, r10, lsl #12
	msr	cpsr_c, #0xd0
	mov	r9, #0
	ldr	r0, [r4]
	mov	r5, r9
	mov	r9, #0
	str	r0, [r4]
	mov	r6, r9
	adr	r8, 1f
	swi	0
1:	put	r5
	put	r6
	done

	/* What has no descriptor: section, coarse page, fine page; read and fetch. */
	litmus	translation_faults
	mov	r9, #0
	ldr	r0, =NOWHERE
	ldr	r1, [r0]
	put	r9
	ldr	r0, =PAGES + 0xff000
	ldr	r1, [r0]
	put	r9
	ldr	r0, =TINY + 0xffc00
	ldr	r1, [r0]
	put	r9
	ldr	r0, =NOWHERE
	adr	r8, 1f
	mov	pc, r0
1:	put	r9
	ldr	r0, =PAGES + 0xff000
	adr	r8, 2f
	mov	pc, r0
2:	put	r9
	done

	/*
	 * An abort leaves the base register alone: a load with write-back, and an LDM whose second
	 * word is on a missing page. Results: how far the base moved, twice; the LDM's second
	 * register; r9.
	 */
	litmus	base_restored
	poke	COARSE_TABLE, DATA | SMALL_PAGE
	poke	DATA + 0xffc, 0x77
	ldr	r4, =NOWHERE
	mov	r5, r4
	ldr	r0, [r5, #4]!
	sub	r5, r5, r4
	put	r5
	ldr	r4, =PAGES + 0xffc
	mov	r5, r4
	mov	r0, #0
	mov	r1, #5
	ldmia	r5!, {r0, r1}
	sub	r5, r5, r4
	put	r5
	put	r1
	put	r9
	done
