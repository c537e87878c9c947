/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The D-cache by itself (DDI0198D 4), and the write buffer.
 *
 * Whether an address is in the cache shows when memory changes behind it: what is cached stays old.
 */
#include "litmus.h"

	/*
	 * A store to an address that is 0: not cached. 1: cached. Then memory changes behind.
	 */
	litmus	store_miss
	poke	DATA, 1
	ldr	r0, =CODE + DATA
	cmp	r10, #0
	ldrne	r1, [r0]
	mov	r1, #2
	str	r1, [r0]
	drain
	poke	DATA, 3
	ldr	r1, [r0]
	put	r1
	done

	/*
	 * The other words of the line change in memory; word 0 is stored to. The line is cleaned.
	 * 0: only the lower half is dirty. 1: both halves are. 2: only the upper. Results: words 0,
	 * 1, 4, 5 of memory.
	 */
	litmus	dirty_halves
	poke	DATA, 0
	poke	DATA + 4, 1
	poke	DATA + 16, 4
	poke	DATA + 20, 5
	ldr	r0, =CODE + DATA
	ldr	r1, [r0]
	poke	DATA + 4, 0x11
	poke	DATA + 20, 0x55
	mov	r1, #0xa
	cmp	r10, #2
	strne	r1, [r0]
	cmp	r10, #0
	strne	r1, [r0, #16]
	clean_invalidate_line r0
	drain
	peek	r0, DATA
	put	r0
	peek	r0, DATA + 4
	put	r0
	peek	r0, DATA + 16
	put	r0
	peek	r0, DATA + 20
	put	r0
	done

	/* Memory below r0 (n words, 4 KB apart, at DATA) becomes r1; spoils r2, r3 */
write_behind:
	ldr	r2, =STRICT + DATA
1:	str	r1, [r2]
	add	r2, r2, #0x1000
	subs	r0, r0, #1
	bne	1b
	bx	lr

	/*
	 * Eight lines of one set are read in turn, 16 times over; after each time, which of them are
	 * still there? Replacement is 0: random. 1: round robin. Result: in how many of the 16 it
	 * was the last four, and only those.
	 */
	litmus	replacement
	mrc	p15, 0, r0, c1, c0, 0
	cmp	r10, #0
	biceq	r0, r0, #0x4000
	mcr	p15, 0, r0, c1, c0, 0
	mov	r7, #0
	mov	r6, #16
	mov	r9, #1
2:	clean_invalidate_all
	mov	r0, #8
	mov	r1, r9
	bl	write_behind
	ldr	r4, =CODE + DATA
	mov	r3, #8
3:	ldr	r0, [r4]
	add	r4, r4, #0x1000
	subs	r3, r3, #1
	bne	3b
	add	r9, r9, #1
	mov	r0, #8
	mov	r1, r9
	bl	write_behind
	ldr	r4, =CODE + DATA + 0x7000	@ last first: a miss may evict one not yet asked
	mov	r5, #0
	mov	r3, #8
4:	ldr	r0, [r4]
	sub	r4, r4, #0x1000
	cmp	r0, r9
	mov	r5, r5, lsl #1
	orrne	r5, r5, #1
	subs	r3, r3, #1
	bne	4b
	cmp	r5, #0xf0
	addeq	r7, r7, #1
	subs	r6, r6, #1
	bne	2b
	put	r7
	done

	/*
	 * A line is read, then 128 others of its set. Its way is 0: not locked. 1: locked by CP15 c9
	 * (format C: bits set are ways not to be filled).
	 */
	litmus	locked_way
	poke	DATA, 1
	mrc	p15, 0, r0, c9, c0, 0
	put	r0
	ldr	r4, =CODE + DATA
	clean_invalidate_all
	mov	r1, #0xe
	mov	r2, #0x1
	cmp	r10, #1
	mcreq	p15, 0, r1, c9, c0, 0
	ldr	r0, [r4]
	mcreq	p15, 0, r2, c9, c0, 0
	mov	r5, r4
	mov	r3, #128
1:	add	r5, r5, #0x1000
	ldr	r0, [r5]
	subs	r3, r3, #1
	bne	1b
	poke	DATA, 2
	ldr	r0, [r4]
	put	r0
	mrc	p15, 0, r0, c9, c0, 0
	put	r0
	mov	r0, #0
	mcr	p15, 0, r0, c9, c0, 0
	done

	/*
	 * 64 lines are read and every other one stored to. 0: nothing. 1: test, clean and invalidate
	 * until Z. 2: test and clean until Z. Then memory's other words change. Results: the first
	 * dirty line's word in memory, a clean line's and a dirty line's other word as read, whether
	 * the loop ran as often as there are dirty lines at least.
	 */
	litmus	test_and_clean_loop
	poke	DATA, 1
	ldr	r4, =CODE + DATA
	mov	r5, r4
	mov	r3, #32
1:	ldr	r0, [r5]
	ldr	r0, [r5, #32]
	mov	r0, #2
	str	r0, [r5], #64
	subs	r3, r3, #1
	bne	1b
	mov	r6, #0
	cmp	r10, #1
	blo	4f
	bne	3f
2:	add	r6, r6, #1
	mrc	p15, 0, r15, c7, c14, 3
	bne	2b
	b	4f
3:	add	r6, r6, #1
	mrc	p15, 0, r15, c7, c10, 3
	bne	3b
4:	drain
	peek	r0, DATA
	put	r0
	poke	DATA + 4, 0x77
	poke	DATA + 32 + 4, 0x77
	ldr	r0, [r4, #32 + 4]
	put	r0
	ldr	r0, [r4, #4]
	put	r0
	cmp	r6, #32
	movlo	r6, #0
	movhs	r6, #1
	put	r6
	done

	/*
	 * A cached line is stored to in a page that is 0: write-back. 1: write-through. Memory is
	 * looked at, then the line is invalidated and read.
	 */
	litmus	write_through
	poke	DATA, 1
	ldr	r0, =CODE + DATA
	cmp	r10, #1
	ldreq	r0, =THROUGH + DATA
	ldr	r1, [r0]
	mov	r1, #2
	str	r1, [r0]
	ldr	r2, [r0]
	put	r2
	drain
	peek	r1, DATA
	put	r1
	invalidate_line r0
	ldr	r1, [r0]
	put	r1
	done

	/*
	 * One physical word is written through two buffered addresses, 1 then 0, and read through the
	 * first: Linux's boot test. 0: two buffered sections. 1: a strict and a buffered one.
	 */
	litmus	write_buffer_order
	poke	COARSE_TABLE, DATA + SMALL_PAGE + 4
	ldr	r0, =BUFFERED + DATA
	ldr	r1, =PAGES
	cmp	r10, #1
	ldreq	r1, =STRICT + DATA
	mov	r4, #4
	b	1f
	.balign	32
1:	mov	r2, #1
	mov	r3, #0
	str	r2, [r0]
	str	r3, [r1]
	ldr	r2, [r0]
	subs	r4, r4, #1
	bne	1b
	put	r2
	done

	/* A read waits for the buffered stores to its word: whole, bytes, and an evicted line's. */
	litmus	read_after_buffered_store
	poke	DATA, 0
	ldr	r0, =BUFFERED + DATA
	ldr	r1, =STRICT + DATA
	ldr	r2, =0x11223344
	str	r2, [r0]
	mov	r3, #0x55
	strb	r3, [r0, #1]
	ldr	r4, [r1]
	put	r4
	ldrb	r4, [r1, #1]
	put	r4
	ldr	r0, =CODE + DATA
	ldr	r3, [r0]
	str	r2, [r0]
	clean_line r0
	ldr	r4, [r1]
	put	r4
	done

	/*
	 * SWP on a page that is 0: strict. 1: write-back, cached. 2: write-back, not cached.
	 * Results: old word, word after, old byte, word after.
	 */
	litmus	swap
	poke	DATA, 0x11223344
	ldr	r0, =STRICT + DATA
	cmp	r10, #0
	ldrne	r0, =CODE + DATA
	cmp	r10, #1
	ldreq	r1, [r0]
	mov	r1, #7
	swp	r2, r1, [r0]
	put	r2
	ldr	r2, [r0]
	put	r2
	mov	r1, #0x99
	swpb	r2, r1, [r0]
	put	r2
	ldr	r2, [r0]
	put	r2
	done

	/*
	 * With the C bit of SCTLR 0: set. 1: clear, a page is read that is dirty in the cache.
	 * What happens to lines that are valid while the cache is off is left to software, which
	 * cleans first: 1 does not clean, 2 does.
	 */
	litmus	dcache_off
	poke	DATA, 1
	ldr	r0, =CODE + DATA
	ldr	r1, [r0]
	mov	r1, #2
	str	r1, [r0]
	cmp	r10, #2
	bne	1f
	clean_invalidate_all
1:	mrc	p15, 0, r2, c1, c0, 0
	cmp	r10, #0
	bic	r3, r2, #4
	mcrne	p15, 0, r3, c1, c0, 0
	ldr	r1, [r0]
	mcr	p15, 0, r2, c1, c0, 0
	put	r1
	done
