/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Code that changes code: the caches do not know of each other (DDI0198D 4.1, 9.1).
 */
#include "litmus.h"

#define FUNCTION	(CODE + DATA)

	/*
	 * A function that returns 1 is called, rewritten in the D-cache to return 2, called again.
	 * 0: nothing. 1: D cleaned, drained. 2: I invalidated. 3: D cleaned, drained, I invalidated.
	 * 4: as 3 with the I-cache line by MVA. 5: as 4 with a wrong MVA. 6: D invalidated, not
	 * cleaned, I invalidated.
	 */
	litmus	rewritten_code
	poke	DATA, 0xe3a00001	@ mov r0, #1
	poke	DATA + 4, 0xe12fff1e	@ bx lr
	ldr	r4, =FUNCTION
	blx	r4
	put	r0
	ldr	r5, [r4]
	ldr	r5, =0xe3a00002		@ mov r0, #2
rewritten_code.write:
	str	r5, [r4]
	if_variant 1, clean
	if_variant 2, invalidate
	if_variant 3, clean
	if_variant 4, clean
	if_variant 5, clean
	cmp	r10, #6
	bne	call
	invalidate_line r4
	b	invalidate
clean:	clean_line r4
	drain
	if_variant 4, by_mva
	if_variant 5, by_wrong_mva
	cmp	r10, #3
	bne	call
invalidate:
	invalidate_icache
	b	call
by_wrong_mva:
	add	r6, r4, #0x1000
	mcr	p15, 0, r6, c7, c5, 1
	b	call
by_mva:	mcr	p15, 0, r4, c7, c5, 1
call:	blx	r4
	put	r0
	done

	/*
	 * The same where the line is not in the D-cache: the store goes through the write buffer.
	 * 0: I not invalidated. 1: drained and I invalidated.
	 */
	litmus	rewritten_code_past_the_dcache
	poke	DATA + 0x40, 0xe3a00001
	poke	DATA + 0x44, 0xe12fff1e
	ldr	r4, =FUNCTION + 0x40
	blx	r4
	put	r0
	ldr	r5, =0xe3a00002
rewritten_code_past_the_dcache.write:
	str	r5, [r4]
	cmp	r10, #0
	beq	1f
	drain
	invalidate_icache
1:	blx	r4
	put	r0
	done

	/*
	 * A function's line is invalidated, and the store that rewrites it is still in the write buffer
	 * when it is fetched: three others keep the bus busy (tlb.S has the same of a descriptor).
	 * 0: not drained. 1: drained.
	 */
	litmus	code_in_the_write_buffer
	poke	DATA + 0x100, 0xe3a00001
	poke	DATA + 0x104, 0xe12fff1e
	ldr	r4, =FUNCTION + 0x100
	blx	r4
	put	r0
	ldr	r1, =BUFFERED + DATA + 0x100
	ldr	r3, =BUFFERED + DATA + 0x200
	ldr	r5, =0xe3a00000
	mov	r6, #2
	b	1f
	.balign	32
1:	drain
	cmp	r10, #0
	add	r5, r5, #1
	str	r5, [r3]
	str	r5, [r3, #0x40]
	str	r5, [r3, #0x80]
code_in_the_write_buffer.write:
	str	r5, [r1]
	mcrne	p15, 0, r12, c7, c10, 4
	mcr	p15, 0, r4, c7, c5, 1
	blx	r4
	subs	r6, r6, #1
	bne	1b
	put	r0
	done

	/*
	 * One function at two addresses: lines of the I-cache are found by MVA too.
	 * 0: the call goes to the address that was called before. 1: to the other one.
	 */
	litmus	code_at_two_addresses
	poke	DATA + 0x80, 0xe3a00001
	poke	DATA + 0x84, 0xe12fff1e
	ldr	r4, =FUNCTION + 0x80
	blx	r4
	put	r0
	poke	DATA + 0x80, 0xe3a00002
	cmp	r10, #1
	ldreq	r4, =ALIAS + DATA + 0x80
	blx	r4
	put	r0
	done

	/*
	 * A page of code is mapped elsewhere. 0: nothing. 1: the I-cache line is invalidated. The TLB
	 * is, and the D-cache is not in play.
	 */
	litmus	remapped_code
	poke	DATA, 0xe3a00001
	poke	DATA + 4, 0xe12fff1e
	poke	DATA + 0x1000, 0xe3a00002
	poke	DATA + 0x1004, 0xe12fff1e
	poke	COARSE_TABLE, DATA | SMALL_PAGE | WRITE_BACK
	ldr	r4, =PAGES
	blx	r4
	put	r0
	poke	COARSE_TABLE, DATA + 0x1000 + SMALL_PAGE + WRITE_BACK
	invalidate_tlb
	cmp	r10, #1
	mcreq	p15, 0, r4, c7, c5, 1
	blx	r4
	put	r0
	done
