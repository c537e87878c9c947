// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * ipc: latency and bandwidth of a pipe between two processes.
 *
 *   ipc lat ...	a token there and back, microseconds per round trip
 *   ipc bw ...		bytes from the child to the parent, MB (10^6 bytes) a second
 *
 * Two forms: with -f the child is forked and two pipes join the processes;
 * with -v the child is vforked, executes this program again, and two named
 * FIFOs join them, which also works where there is no fork.
 *
 * Output: one line of JSON, one value per timed section. Exit codes: 0
 * measured, 1 a system call failed, 2 wrong usage.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_SAMPLES	64
#define MAX_ROUNDS	1000000u
#define MAX_MB		1024u
#define MAX_KB		1024u
#define TO_CHILD	"/tmp/ipc-to-child"
#define TO_PARENT	"/tmp/ipc-to-parent"

struct options {
	bool bandwidth;
	bool fifo;
	unsigned int rounds;	/* round trips in a timed section of lat */
	unsigned int mb;	/* MB in a timed section of bw */
	unsigned int kb;	/* KB in a write or read of bw */
	unsigned int samples;
};

static int in, out;
static char *buffer;

static void __attribute__((noreturn, format(printf, 2, 3)))
die(int code, const char *fmt, ...)
{
	va_list ap;

	fputs("ipc: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(code);
}

static void __attribute__((noreturn)) failed(const char *what)
{
	die(1, "%s: %s", what, strerror(errno));
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void send_bytes(const void *from, size_t bytes)
{
	const char *at = from;

	while (bytes) {
		ssize_t n = write(out, at, bytes);

		if (n < 0)
			failed("write");
		at += n;
		bytes -= (size_t)n;
	}
}

/* Takes what there is, up to that many bytes. */
static size_t receive(void *to, size_t bytes)
{
	ssize_t n = read(in, to, bytes);

	if (n < 0)
		failed("read");
	if (n == 0)
		die(1, "the other process has ended");
	return (size_t)n;
}

/*
 * The child's half: lat sends every token back; bw writes a section's bytes
 * for every token. It ends with the parent's end of the pipe.
 */
static void __attribute__((noreturn)) child(const struct options *opt)
{
	const size_t chunk = opt->kb * 1024u;
	char token;

	while (read(in, &token, 1) == 1) {
		if (!opt->bandwidth) {
			send_bytes(&token, 1);
			continue;
		}
		for (uint64_t left = opt->mb * 1000000ull; left;) {
			size_t n = left < chunk ? (size_t)left : chunk;

			send_bytes(buffer, n);
			left -= n;
		}
	}
	_exit(0);
}

static double section_lat(const struct options *opt)
{
	uint64_t start = now_ns();
	char token = 1;

	for (unsigned int i = 0; i < opt->rounds; i++) {
		send_bytes(&token, 1);
		receive(&token, 1);
	}
	return (double)(now_ns() - start) / 1e3 / opt->rounds;
}

static double section_bw(const struct options *opt)
{
	const size_t chunk = opt->kb * 1024u;
	uint64_t start = now_ns();
	char token = 1;

	send_bytes(&token, 1);
	for (uint64_t left = opt->mb * 1000000ull; left;)
		left -= receive(buffer, left < chunk ? (size_t)left : chunk);
	return opt->mb * 1e9 / (double)(now_ns() - start);
}

static void start_forked(const struct options *opt)
{
	int there[2], back[2];
	pid_t pid;

	if (pipe(there) || pipe(back))
		failed("pipe");
	pid = fork();
	if (pid < 0)
		failed("fork");
	if (pid == 0) {
		close(there[1]);
		close(back[0]);
		in = there[0];
		out = back[1];
		child(opt);
	}
	close(there[0]);
	close(back[1]);
	out = there[1];
	in = back[0];
}

static void start_vforked(char **argv)
{
	pid_t pid;

	unlink(TO_CHILD);
	unlink(TO_PARENT);
	if (mkfifo(TO_CHILD, 0600) || mkfifo(TO_PARENT, 0600))
		failed("mkfifo");
	argv[0] = (char *)"ipc-child";
	pid = vfork();
	if (pid < 0)
		failed("vfork");
	if (pid == 0) {
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	/* Opening waits for the other side, in the order that the child has. */
	out = open(TO_CHILD, O_WRONLY);
	in = open(TO_PARENT, O_RDONLY);
	if (out < 0 || in < 0)
		failed("open of a FIFO");
}

static unsigned int number(const char *text, char key, unsigned int max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || n < 1 || n > max)
		die(2, "-%c %s: not from 1 to %u", key, text, max);
	return (unsigned int)n;
}

static struct options parse(int argc, char **argv)
{
	struct options opt = {
		.rounds = 1000, .mb = 10, .kb = 64, .samples = 11,
	};
	int c;

	if (argc < 2 || (strcmp(argv[1], "lat") && strcmp(argv[1], "bw")))
		die(2, "usage: ipc lat|bw [-f|-v] [-n ROUNDS] [-m MB] [-k KB] [-r SECTIONS]");
	opt.bandwidth = !strcmp(argv[1], "bw");
	optind = 2;
	while ((c = getopt(argc, argv, "fvn:m:k:r:")) != -1) {
		switch (c) {
		case 'f':
			opt.fifo = false;
			break;
		case 'v':
			opt.fifo = true;
			break;
		case 'n':
			opt.rounds = number(optarg, 'n', MAX_ROUNDS);
			break;
		case 'm':
			opt.mb = number(optarg, 'm', MAX_MB);
			break;
		case 'k':
			opt.kb = number(optarg, 'k', MAX_KB);
			break;
		case 'r':
			opt.samples = number(optarg, 'r', MAX_SAMPLES);
			break;
		default:
			exit(2);
		}
	}
	return opt;
}

int main(int argc, char **argv)
{
	const bool is_child = !strcmp(argv[0], "ipc-child");
	struct options opt = parse(argc, argv);
	double values[MAX_SAMPLES];

	buffer = calloc(opt.kb, 1024);
	if (!buffer)
		failed("memory");
	if (is_child) {
		in = open(TO_CHILD, O_RDONLY);
		out = open(TO_PARENT, O_WRONLY);
		if (in < 0 || out < 0)
			failed("open of a FIFO");
		child(&opt);
	}
	if (opt.fifo)
		start_vforked(argv);
	else
		start_forked(&opt);
	/* One section to start with, which does not count. */
	for (unsigned int i = 0; i <= opt.samples; i++) {
		double value = opt.bandwidth ? section_bw(&opt) : section_lat(&opt);

		if (i)
			values[i - 1] = value;
	}
	close(out);
	wait(NULL);
	printf("{\"guest\":\"ipc\",\"format\":1,\"metric\":\"%s\",\"values\":[",
	       opt.bandwidth ? "bw_pipe" : "lat_fifo");
	for (unsigned int i = 0; i < opt.samples; i++)
		printf("%s%.4f", i ? "," : "", values[i]);
	puts("]}");
	return 0;
}
