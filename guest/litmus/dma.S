/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Memory that changes, or is read, behind the cache. The test plays the device: it waits for READY,
 * reads or writes memory on the bus, and sets GO.
 */
#include "litmus.h"

	.macro	device
	ldr	r12, =STRICT + DONE
	mov	r8, #1
	str	r8, [r12, #READY - DONE]
998:	ldr	r8, [r12, #GO - DONE]
	cmp	r8, #0
	beq	998b
	.endm

	/*
	 * From the device: the buffer has been read before. 0: nothing. 1: line invalidated after.
	 * 2: cleaned and invalidated after. 3: cleaned only.
	 */
	litmus	device_to_memory
	poke	DATA, 1
	ldr	r0, =CODE + DATA
device_to_memory.first:
	ldr	r1, [r0]
	put	r1
	device
	cmp	r10, #1
	mcreq	p15, 0, r0, c7, c6, 1
	cmp	r10, #2
#ifdef XSCALE
	mcreq	p15, 0, r0, c7, c10, 1
	mcreq	p15, 0, r0, c7, c6, 1
#else
	mcreq	p15, 0, r0, c7, c14, 1
#endif
	cmp	r10, #3
	mcreq	p15, 0, r0, c7, c10, 1
device_to_memory.read:
	ldr	r1, [r0]
	put	r1
	done

	/*
	 * The device writes the descriptor of a page that has been read before.
	 * 0: nothing. 1: the TLB is invalidated after.
	 */
	litmus	descriptor_from_a_device
	poke	COARSE_TABLE + (15 << 2), DATA | SMALL_PAGE
	poke	DATA, 1
	poke	DATA + 0x1000, 2
	ldr	r0, =PAGES + (15 << 12)
	ldr	r1, [r0]
	put	r1
	device
	cmp	r10, #1
	mcreq	p15, 0, r12, c8, c7, 0
descriptor_from_a_device.read:
	ldr	r1, [r0]
	put	r1
	done

	/* To the device. 0: nothing. 1: line cleaned and drained. 2: whole cache cleaned. */
	litmus	memory_to_device
	poke	DATA, 1
	ldr	r0, =CODE + DATA
	ldr	r1, [r0]
	mov	r1, #2
	str	r1, [r0]
	if_variant 1, 1f
	cmp	r10, #2
	bne	3f
#ifdef XSCALE
	clean_invalidate_all
#else
2:	mrc	p15, 0, r15, c7, c10, 3
	bne	2b
#endif
	b	4f
1:	clean_line r0
4:	drain
3:	device
	done

	/* Invalidating discards what was not written back. 0: not invalidated. 1: by MVA. 2: all. */
	litmus	invalidate_discards
	poke	DATA, 1
	ldr	r0, =CODE + DATA
	ldr	r1, [r0]
	mov	r1, #2
invalidate_discards.write:
	str	r1, [r0]
	mov	r2, #0
	cmp	r10, #1
	mcreq	p15, 0, r0, c7, c6, 1
	cmp	r10, #2
	mcreq	p15, 0, r2, c7, c6, 0
invalidate_discards.read:
	ldr	r1, [r0]
	put	r1
	done
