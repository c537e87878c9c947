// SPDX-License-Identifier: MIT OR Apache-2.0
/* A serial line that receives what it sends (local loopback). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include "dma_suite.h"

#define DEVICE	"/dev/ttyS1"
/* Of the kernel (asm-generic/termios.h); not in the header of the C library. */
#ifndef TIOCM_LOOP
#define TIOCM_LOOP	0x8000
#endif
#define LARGEST	200u
#define WAITS_MS	2000

/* A raw line at 115200 bit/s, in loopback. */
static enum result open_line(int *fd)
{
	int bits = TIOCM_LOOP;
	struct termios line;

	warm_pages();
	*fd = open(DEVICE, O_RDWR | O_NOCTTY);
	SKIP_UNLESS(*fd >= 0, DEVICE ": %s", strerror(errno));
	EXPECT(!tcgetattr(*fd, &line), "tcgetattr: %s", strerror(errno));
	cfmakeraw(&line);
	cfsetspeed(&line, B115200);
	line.c_cflag |= CLOCAL | CREAD;
	EXPECT(!tcsetattr(*fd, TCSANOW, &line), "tcsetattr: %s",
	       strerror(errno));
	SKIP_UNLESS(!ioctl(*fd, TIOCMBIS, &bits), "loopback: %s", strerror(errno));
	tcflush(*fd, TCIOFLUSH);
	return PASS;
}

static enum result comes_back(int fd, size_t bytes, uint32_t seed)
{
	unsigned char in[LARGEST];
	size_t have = 0;

	while (have < bytes) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		ssize_t got;

		EXPECT(poll(&ready, 1, WAITS_MS) > 0,
		       "%zu of %zu bytes came back", have, bytes);
		got = read(fd, in + have, bytes - have);
		EXPECT(got > 0, "read: %s", strerror(errno));
		have += (size_t)got;
	}
	return holds(in, bytes, seed, "serial line");
}

/* Pieces of odd lengths: the second piece of a line follows the first. */
static enum result serial_loop(unsigned int rounds)
{
	static const size_t lengths[] = { 1, 3, 17, 5, 32, 64, 33, LARGEST };
	unsigned char out[LARGEST];
	unsigned int round, i;
	int fd;

	for (round = 0; round < rounds; round++) {
		/* The first open and the last close make and free the rings. */
		TRY(open_line(&fd));
		for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			uint32_t seed = round * 16 + i;

			fill(out, lengths[i], seed);
			EXPECT(write(fd, out, lengths[i]) ==
			       (ssize_t)lengths[i], "write: %s",
			       strerror(errno));
			TRY(comes_back(fd, lengths[i], seed));
		}
		close(fd);
	}
	return PASS;
}

const struct test serial_tests[] = {
	{ "serial_loop", "pieces of odd lengths through a serial line",
	  serial_loop, NULL },
	{ }
};
