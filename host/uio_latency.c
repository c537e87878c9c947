// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The guests' task that answers interrupts, on the device that UIO names. The
 * pins of a board's instruments are memory here: nothing of the machine is
 * mapped.
 */
#include "lenient.h"

#include <fcntl.h>
#include <stdlib.h>

static inline int open_of_pc(const char *path, int flags)
{
	const char *device = getenv("UIO");

	if (!strcmp(path, "/dev/mem"))
		return open("/dev/zero", O_RDWR);
	return open(device ? device : path, flags);
}

#define open open_of_pc
#define mmap(at, bytes, protection, flags, fd, offset) \
	mmap(at, bytes, protection, flags, fd, (offset) - (offset))

#include "../guest/uio_latency/uio_latency.c"
