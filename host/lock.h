/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mlockall() for a user with a limit: what is locked now may fit, and the next
 * thread's stack not. Then nothing is locked, and it is said to have failed.
 */
#ifndef LOCK_H
#define LOCK_H

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

/* More than the stacks and buffers of what calls it; a product has less memory than a PC. */
#ifndef COMES_LATER
#define COMES_LATER	(64 << 20)
#endif

static inline int lock_that_lasts(int flags)
{
	void *later;

	if (mlockall(flags))
		return -1;
	later = mmap(NULL, COMES_LATER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (later == MAP_FAILED) {
		munlockall();
		errno = EPERM;
		return -1;
	}
	munmap(later, COMES_LATER);
	return 0;
}

#endif
