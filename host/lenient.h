/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For guests' sources on a PC: what root of a board may do and a user may not is
 * said on standard error and gone without.
 */
#ifndef LENIENT_H
#define LENIENT_H

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "lock.h"

static inline int gone_without(const char *what, int refused)
{
	if (refused)
		fprintf(stderr, "not set: %s: %s\n", what, strerror(errno));
	return 0;
}

#define mlockall(flags) gone_without("memory lock", lock_that_lasts(flags))
/* Within itself a macro's name is the function's. */
#define sched_setscheduler(pid, policy, param) \
	gone_without("SCHED_FIFO", sched_setscheduler(pid, policy, param))

#endif
