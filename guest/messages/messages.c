/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * messages RUNS GROUPS: what hackbench does by default, for user land that has none (guest/root/armv4t.toml).
 *
 * A group is 20 senders, 20 receivers and a socket pair for each receiver. Every sender sends 100 messages of
 * 100 bytes to each receiver of its group, one receiver after the other; every receiver reads what 20 senders
 * send it. All wait until all are there; the time is from then to the last exit. As hackbench-times has it
 * for Debian's program, a socket holds 16 KB.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIDE 20
#define MESSAGES 100
#define BYTES 100
/* Linux gives twice that. */
#define BUFFER 8192

static int ready[2], go[2];

static void fail(const char *what, ...)
{
	va_list list;

	va_start(list, what);
	fputs("messages: ", stderr);
	vfprintf(stderr, what, list);
	fprintf(stderr, ": %s\n", strerror(errno));
	exit(1);
}

/* Says that it is there, and waits for the others: until the last writer of the pipe is gone. */
static void wait_for_all(void)
{
	char byte = 0;

	close(go[1]);
	if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 0)
		fail("waiting for the others");
}

static void all_of(ssize_t (*move)(int, void *, size_t), int fd, char *data)
{
	size_t done = 0;

	while (done < BYTES) {
		ssize_t n = move(fd, data + done, BYTES - done);

		if (n <= 0 && !(n < 0 && errno == EINTR))
			fail("a message");
		if (n > 0)
			done += n;
	}
}

static ssize_t give(int fd, void *data, size_t bytes)
{
	return write(fd, data, bytes);
}

static void sender(int to[SIDE])
{
	char data[BYTES] = "";

	wait_for_all();
	for (int n = 0; n < MESSAGES; n++)
		for (int receiver = 0; receiver < SIDE; receiver++)
			all_of(give, to[receiver], data);
}

static void receiver(int from)
{
	char data[BYTES];

	wait_for_all();
	for (int n = 0; n < SIDE * MESSAGES; n++)
		all_of(read, from, data);
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	return pid;
}

static void group(void)
{
	int to[SIDE];

	for (int n = 0; n < SIDE; n++) {
		int pair[2], bytes = BUFFER;

		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
			fail("socketpair");
		if (setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)))
			fail("setsockopt");
		if (child() == 0) {
			close(pair[1]);
			for (int other = 0; other < n; other++)
				close(to[other]);
			receiver(pair[0]);
			_exit(0);
		}
		close(pair[0]);
		to[n] = pair[1];
	}
	for (int n = 0; n < SIDE; n++)
		if (child() == 0) {
			sender(to);
			_exit(0);
		}
	for (int n = 0; n < SIDE; n++)
		close(to[n]);
}

static double now(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t))
		fail("clock_gettime");
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int run(int groups)
{
	int failed = 0, status;
	double start;
	char byte;

	if (pipe(ready) || pipe(go))
		fail("pipe");
	for (int n = 0; n < groups; n++)
		group();
	for (int n = 0; n < 2 * SIDE * groups; n++)
		if (read(ready[0], &byte, 1) != 1)
			fail("a child");
	start = now();
	close(go[1]);
	while (wait(&status) > 0)
		failed |= status;
	printf("Time: %.3f\n", now() - start);
	fflush(stdout);
	close(ready[0]);
	close(ready[1]);
	close(go[0]);
	return failed != 0;
}

static int number(const char *text, int most)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (*end || end == text || value < 1 || value > most) {
		fprintf(stderr, "messages: \"%s\" is not from 1 to %d\n", text, most);
		exit(2);
	}
	return value;
}

int main(int count, char **arguments)
{
	int runs, groups;

	if (count != 3) {
		fputs("usage: messages RUNS GROUPS\n", stderr);
		return 2;
	}
	runs = number(arguments[1], 10000);
	groups = number(arguments[2], 100);
	while (runs-- > 0)
		if (run(groups))
			return 1;
	return 0;
}
