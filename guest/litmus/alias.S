/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * One page at two MVAs: two lines that know nothing of each other (DDI0198D 4.1).
 */
#include "litmus.h"

#define HERE	(CODE + DATA)
#define THERE	(ALIAS + DATA)

	/* A store here is read there. 0: nothing. 1: this line is cleaned. */
	litmus	store_reaches_the_other_address
	poke	DATA, 1
	ldr	r0, =HERE
	ldr	r1, =THERE
	ldr	r2, [r0]
	mov	r2, #2
store_reaches_the_other_address.write:
	str	r2, [r0]
	cmp	r10, #0
	beq	1f
	clean_line r0
store_reaches_the_other_address.read:
1:	ldr	r3, [r1]
	put	r3
store_reaches_the_other_address.past:
	peek	r3, DATA
	put	r3
	done

	/*
	 * The other address has read the old value before. 0: nothing. 1: cleaned here.
	 * 2: cleaned here and invalidated there. 3: invalidated there only.
	 */
	litmus	store_reaches_a_cached_alias
	poke	DATA, 1
	ldr	r0, =HERE
	ldr	r1, =THERE
	ldr	r2, [r1]
	ldr	r2, [r0]
	mov	r2, #2
store_reaches_a_cached_alias.write:
	str	r2, [r0]
	tst	r10, #3
	beq	2f
	cmp	r10, #3
	beq	1f
	clean_line r0
1:	cmp	r10, #2
	blo	2f
	invalidate_line r1
store_reaches_a_cached_alias.read:
2:	ldr	r3, [r1]
	put	r3
	done

	/*
	 * Each address changes its own word of one half-line. 0: both lines dirty at the same time.
	 * 1: the first is cleaned and invalidated before the second is touched. 2: as 0, the other
	 * order of write-backs.
	 */
	litmus	two_dirty_aliases
	poke	DATA, 1
	poke	DATA + 4, 1
	ldr	r0, =HERE
	ldr	r1, =THERE
	mov	r4, #0xa
	mov	r5, #0xb
	cmp	r10, #1
	beq	1f
	ldr	r2, [r0]
	ldr	r2, [r1]
two_dirty_aliases.write_here:
	str	r4, [r0]
two_dirty_aliases.write_there:
	str	r5, [r1, #4]
	cmp	r10, #2
	beq	2f
two_dirty_aliases.first:
	clean_invalidate_line r0
two_dirty_aliases.last:
	clean_invalidate_line r1
	b	3f
two_dirty_aliases.first_of_2:
2:	clean_invalidate_line r1
two_dirty_aliases.last_of_2:
	clean_invalidate_line r0
	b	3f
1:	ldr	r2, [r0]
	str	r4, [r0]
	clean_invalidate_line r0
	ldr	r2, [r1]
	str	r5, [r1, #4]
	clean_invalidate_line r1
3:	drain
	peek	r0, DATA
	put	r0
	peek	r0, DATA + 4
	put	r0
	done

	/*
	 * A device writes memory below a dirty line; the line is cleaned later, as at the next switch.
	 * 0: nothing before the device. 1: the line is cleaned and invalidated before.
	 */
	litmus	old_data_over_new
	poke	DATA, 1
	ldr	r0, =HERE
	ldr	r2, [r0]
	mov	r2, #2
	str	r2, [r0]
	cmp	r10, #0
	beq	1f
	clean_invalidate_line r0
	drain
old_data_over_new.write:
1:	poke	DATA, 3
	peek	r3, DATA
	put	r3
old_data_over_new.clean:
	clean_invalidate_all
	peek	r3, DATA
	put	r3
	ldr	r3, [r0]
	put	r3
	done

	/*
	 * A device writes memory below a dirty line; the line makes room for others later.
	 * 0: nothing before the device. 1: the line is cleaned and invalidated before.
	 */
	litmus	victim_over_new
	poke	DATA, 1
	ldr	r0, =HERE
	ldr	r2, [r0]
	mov	r2, #2
	str	r2, [r0]
	cmp	r10, #0
	beq	1f
	clean_invalidate_line r0
	drain
1:
victim_over_new.write:
	poke	DATA, 3
	mov	r3, #4
2:	add	r0, r0, #0x1000
	ldr	r2, [r0]
	subs	r3, r3, #1
	bne	2b
	peek	r3, DATA
	put	r3
	done

	/*
	 * Both addresses have a dirty line, and each reads what the other wrote. 0: nothing.
	 * 1: the first is cleaned and invalidated before the second is used.
	 */
	litmus	read_between_dirty_aliases
	poke	DATA, 1
	ldr	r0, =HERE
	ldr	r1, =THERE
	mov	r4, #0xa
	mov	r5, #0xb
	ldr	r2, [r1]
	cmp	r10, #0
	ldreq	r2, [r0]
	streq	r4, [r0, #4]
read_between_dirty_aliases.write:
	str	r5, [r1, #8]
	cmp	r10, #0
	beq	read_between_dirty_aliases.read
	clean_invalidate_line r1
read_between_dirty_aliases.read:
	ldr	r3, [r0, #8]
	put	r3
	done

	/* 100 dirty words of one address are read at another. */
	litmus	many_stale_words
	ldr	r0, =HERE
	ldr	r1, =THERE
	mov	r2, #100
	mov	r3, #1
1:	ldr	r4, [r0]
many_stale_words.write:
	str	r3, [r0], #4
	subs	r2, r2, #1
	bne	1b
	mov	r2, #100
many_stale_words.read:
	ldr	r3, [r1], #4
	subs	r2, r2, #1
	bne	many_stale_words.read
	done
