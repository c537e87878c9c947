// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The guests' ipc with FIFOs of its own: a PC's /tmp is everybody's. They have
 * the first process's number, which the second one finds in its environment, and
 * are gone when both are open.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NUMBER "WARMSWITCH_FIFOS"

static inline const char *of_ours(const char *path)
{
	static char place[64];
	char number[16];

	if (!getenv(NUMBER)) {
		snprintf(number, sizeof(number), "%d", (int)getpid());
		setenv(NUMBER, number, 1);
	}
	snprintf(place, sizeof(place), "%s-%s", path, getenv(NUMBER));
	return place;
}

/* The first process reads what comes to it: then both FIFOs are open at both ends. */
static inline int open_of_ours(const char *path, int flags)
{
	int fd = open(of_ours(path), flags);

	if (flags == O_RDONLY && !strcmp(path, "/tmp/ipc-to-parent")) {
		unlink(of_ours(path));
		unlink(of_ours("/tmp/ipc-to-child"));
	}
	return fd;
}

#define open open_of_ours
#define unlink(path) unlink(of_ours(path))
#define mkfifo(path, mode) mkfifo(of_ours(path), mode)
#include "../guest/ipc/ipc.c"
