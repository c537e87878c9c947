// SPDX-License-Identifier: MIT OR Apache-2.0
/* Pages that TCP enters into the page tables of whoever receives; see ring.c. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <unistd.h>
#include "mm_suite.h"

#define STOP	UINT32_MAX
#define COUNT	3u

/* Pages of a pipe go over the connection as they are. */
static enum result pages_sender(struct other *other, void *arg)
{
	int to = *(int *)arg, ends[2];
	uint32_t seed;

	EXPECT(!pipe(ends), "pipe: %s", strerror(errno));
	for (;;) {
		char *at = pages(COUNT);

		TRY(child_wait(other, &seed));
		if (seed == STOP)
			return PASS;
		fill(at, COUNT * PAGE, seed);
		TRY(leave_lines());
		EXPECT(write(ends[1], at, COUNT * PAGE) == COUNT * PAGE &&
		       splice(ends[0], NULL, to, NULL, COUNT * PAGE, 0) ==
		       COUNT * PAGE, "splice: %s", strerror(errno));
		munmap(at, COUNT * PAGE);
		TRY(child_go(other, 0));
	}
}

/* Both ends of a connection over lo. */
static enum result connection(int ends[2])
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	EXPECT(fd >= 0 && ends[0] >= 0, "socket: %s", strerror(errno));
	EXPECT(!bind(fd, (void *)&at, sizeof(at)) && !listen(fd, 1) &&
	       !getsockname(fd, (void *)&at, &size) &&
	       !connect(ends[0], (void *)&at, sizeof(at)), "connect: %s",
	       strerror(errno));
	ends[1] = accept(fd, NULL, NULL);
	EXPECT(ends[1] >= 0, "accept: %s", strerror(errno));
	close(fd);
	return PASS;
}

static enum result mapped_receive(unsigned int rounds)
{
	unsigned int round, entered = 0;
	struct other other;
	int ends[2];
	char *at;

	/* These processors have it set, and sockets are not for executing. */
	personality((unsigned long)personality(0xffffffff) &
		    ~(unsigned long)READ_IMPLIES_EXEC);
	TRY(connection(ends));
	at = mmap(NULL, COUNT * PAGE, PROT_READ, MAP_SHARED, ends[1], 0);
	SKIP_UNLESS(at != MAP_FAILED, "mmap of a socket: %s", strerror(errno));
	TRY(other_start(&other, pages_sender, &ends[0]));
	for (round = 0; round < rounds * 4; round++) {
		struct tcp_zerocopy_receive zc = {
			.address = (uintptr_t)at,
			.length = COUNT * PAGE,
		};
		socklen_t size = sizeof(zc);
		size_t done;

		TRY(other_go(&other, round));
		TRY(other_wait(&other, NULL));
		EXPECT(!getsockopt(ends[1], IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE,
				   &zc, &size), "receive: %s", strerror(errno));
		TRY(holds(at, zc.length, round, "pages received"));
		entered += zc.length / PAGE;
		/* The kernel need not enter any. */
		for (done = zc.length; done < COUNT * PAGE;) {
			char rest[PAGE];
			ssize_t n = read(ends[1], rest, sizeof(rest));

			EXPECT(n > 0, "read: %s", strerror(errno));
			done += (size_t)n;
		}
	}
	TRY(other_go(&other, STOP));
	TRY(other_end(&other));
	SKIP_UNLESS(entered, "no page was entered");
	return PASS;
}

const struct test receive_tests[] = {
	{ "mapped_receive", "pages that TCP enters where it receives",
	  mapped_receive, NULL },
	{ NULL, NULL, NULL, NULL },
};
