// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * lat_ctx: what a context switch costs, measured in a ring of tasks.
 *
 * N tasks are joined in a ring by N pipes and hand a token around. Whoever
 * holds the token reads s KB of an array of its own and passes the token on,
 * so that every hop is one switch. The tasks are processes (-P), each in an
 * address space of its own, or threads of one process (-T).
 *
 * The overhead is the same work without a switch: one task hands the token
 * to itself through the same N pipes and reads N arrays in turn. It is
 * measured first, must be stable, and is subtracted.
 *
 * With -g PORT, pin 0 of this port (guest/shared/pins.h) is high during each
 * timed section of the ring and pin 1 during each timed section of the
 * overhead, so that the simulator can take its counters at exactly these
 * instants.
 *
 * Output: one line of JSON. Times are nanoseconds per hop, by
 * CLOCK_MONOTONIC. Exit codes: 0 measured, 1 a system call failed, 2 wrong
 * usage, 3 the overhead was not stable.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pins.h"

#define MAX_TASKS	64
#define MAX_SAMPLES	64
#define MAX_KB		1024
#define MAX_ROUNDS	1000000
#define STACK_BYTES	(64 * 1024)
#define OVERHEAD_TRIES	3

#define PIN_RING	0x01
#define PIN_OVERHEAD	0x02

enum mode { PROCESSES, THREADS };

enum token { TOKEN_GO = 1, TOKEN_STOP = 2 };

struct options {
	enum mode mode;
	const char *port;
	unsigned int tasks;
	unsigned int size_kb;
	unsigned int rounds;
	unsigned int samples;
	unsigned int spread_percent;
};

/* One place in the ring. */
struct task {
	unsigned int index;
	const struct options *opt;
	int in;
	int out;
	pid_t pid;
	pthread_t thread;
};

static int pipes[MAX_TASKS][2];
static struct task tasks[MAX_TASKS];
/* The first time around only warms up. It sets no pin. */
static bool is_warm_up;
static volatile uint32_t sum_sink;

static void __attribute__((noreturn, format(printf, 2, 3)))
die(int code, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("lat_ctx: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(code);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void pin_set(uint32_t pin, bool high)
{
	if (!is_warm_up)
		pins_set(pin, high);
}

/* An array with pages of its own, all present before it is timed. */
static uint32_t *array_new(unsigned int size_kb)
{
	size_t bytes = (size_t)size_kb * 1024;
	uint32_t *array;

	if (!bytes)
		return NULL;
	array = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (array == MAP_FAILED)
		die(1, "%u KB of memory: %s", size_kb, strerror(errno));
	memset(array, 0x5a, bytes);
	return array;
}

/* The work of one turn: read every word. */
static inline void array_touch(const uint32_t *array, unsigned int size_kb)
{
	const uint32_t *end = array + (size_t)size_kb * 256;
	uint32_t sum = 0;

	while (array < end) {
		sum += array[0] + array[1] + array[2] + array[3];
		sum += array[4] + array[5] + array[6] + array[7];
		array += 8;
	}
	sum_sink = sum;
}

static void token_send(int fd, uint32_t token)
{
	if (write(fd, &token, sizeof(token)) != sizeof(token))
		die(1, "write to the ring: %s", strerror(errno));
}

static uint32_t token_receive(int fd)
{
	uint32_t token;
	ssize_t got = read(fd, &token, sizeof(token));

	if (got == sizeof(token))
		return token;
	die(1, "read from the ring: %s",
	    got < 0 ? strerror(errno) : "it was closed");
}

static void pipes_open(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (pipe(pipes[i]))
			die(1, "pipe: %s", strerror(errno));
}

/* The life of every task but the first. */
static void task_run(struct task *task)
{
	unsigned int size_kb = task->opt->size_kb;
	uint32_t *array = array_new(size_kb);
	uint32_t token;

	do {
		token = token_receive(task->in);
		array_touch(array, size_kb);
		token_send(task->out, token);
	} while (token != TOKEN_STOP);
}

static void *thread_main(void *arg)
{
	task_run(arg);
	return NULL;
}

static void task_start(struct task *task)
{
	pthread_attr_t attr;
	int err;

	if (task->opt->mode == THREADS) {
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, STACK_BYTES);
		err = pthread_create(&task->thread, &attr, thread_main, task);
		pthread_attr_destroy(&attr);
		if (err)
			die(1, "thread %u: %s", task->index, strerror(err));
		return;
	}

	task->pid = fork();
	if (task->pid < 0)
		die(1, "process %u: %s", task->index, strerror(errno));
	if (task->pid > 0)
		return;
	/* Nobody is left waiting for a token when the first task dies. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	task_run(task);
	_exit(0);
}

static void task_join(struct task *task)
{
	int status;

	if (task->opt->mode == THREADS) {
		pthread_join(task->thread, NULL);
		return;
	}
	while (waitpid(task->pid, &status, 0) < 0)
		if (errno != EINTR)
			die(1, "wait: %s", strerror(errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		die(1, "process %u of the ring failed", task->index);
}

/* Nanoseconds for `rounds` times around the ring, as seen by task 0. */
static uint64_t ring_time(const struct options *opt, const uint32_t *array)
{
	const struct task *self = &tasks[0];
	uint64_t start, end;

	pin_set(PIN_RING, true);
	start = now_ns();
	for (unsigned int i = 0; i < opt->rounds; i++) {
		token_send(self->out, TOKEN_GO);
		token_receive(self->in);
		array_touch(array, opt->size_kb);
	}
	end = now_ns();
	pin_set(PIN_RING, false);
	return end - start;
}

/* The same hops within one task: the same pipes, N arrays, no switch. */
static uint64_t overhead_time(const struct options *opt, uint32_t **arrays)
{
	uint64_t start, end;

	pin_set(PIN_OVERHEAD, true);
	start = now_ns();
	for (unsigned int i = 0; i < opt->rounds; i++) {
		for (unsigned int t = 0; t < opt->tasks; t++) {
			token_send(pipes[t][1], TOKEN_GO);
			token_receive(pipes[t][0]);
			array_touch(arrays[t], opt->size_kb);
		}
	}
	end = now_ns();
	pin_set(PIN_OVERHEAD, false);
	return end - start;
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The median; *spread is (largest - smallest) / median in percent, up. */
static uint64_t median(const uint64_t *times, unsigned int count,
		       unsigned int *spread)
{
	uint64_t sorted[MAX_SAMPLES];
	uint64_t middle, range;

	memcpy(sorted, times, count * sizeof(*times));
	qsort(sorted, count, sizeof(*sorted), compare_times);
	middle = sorted[count / 2];
	range = sorted[count - 1] - sorted[0];
	*spread = middle ? (unsigned int)((range * 100 + middle - 1) / middle)
			 : 100;
	return middle;
}

static uint64_t overhead_measure(const struct options *opt, uint64_t *times)
{
	uint32_t *arrays[MAX_TASKS];
	unsigned int spread = 0;
	uint64_t middle = 0;

	for (unsigned int t = 0; t < opt->tasks; t++)
		arrays[t] = array_new(opt->size_kb);

	for (int attempt = 0; attempt < OVERHEAD_TRIES; attempt++) {
		is_warm_up = true;
		overhead_time(opt, arrays);
		is_warm_up = false;
		for (unsigned int i = 0; i < opt->samples; i++)
			times[i] = overhead_time(opt, arrays);
		middle = median(times, opt->samples, &spread);
		if (spread <= opt->spread_percent)
			break;
	}
	if (spread > opt->spread_percent)
		die(3, "the overhead is not stable: its samples differ by %u %%, the limit is %u %% (more rounds: -n)",
		    spread, opt->spread_percent);

	for (unsigned int t = 0; t < opt->tasks; t++)
		if (arrays[t])
			munmap(arrays[t], (size_t)opt->size_kb * 1024);
	return middle;
}

static void ring_measure(const struct options *opt, uint64_t *times)
{
	uint32_t *array;

	for (unsigned int i = 0; i < opt->tasks; i++) {
		tasks[i].index = i;
		tasks[i].opt = opt;
		tasks[i].in = pipes[i][0];
		tasks[i].out = pipes[(i + 1) % opt->tasks][1];
	}
	for (unsigned int i = 1; i < opt->tasks; i++)
		task_start(&tasks[i]);
	array = array_new(opt->size_kb);

	is_warm_up = true;
	ring_time(opt, array);
	is_warm_up = false;
	for (unsigned int i = 0; i < opt->samples; i++)
		times[i] = ring_time(opt, array);

	token_send(tasks[0].out, TOKEN_STOP);
	token_receive(tasks[0].in);
	for (unsigned int i = 1; i < opt->tasks; i++)
		task_join(&tasks[i]);
}

/* Nanoseconds per hop with three decimals, without floating point. */
static void print_per_hop(int64_t ns, uint64_t hops)
{
	uint64_t size = ns < 0 ? (uint64_t)-ns : (uint64_t)ns;
	uint64_t milli = size * 1000 / hops;

	printf("%s%llu.%03llu", ns < 0 ? "-" : "",
	       (unsigned long long)(milli / 1000),
	       (unsigned long long)(milli % 1000));
}

static void print_samples(const char *key, const uint64_t *times,
			  const struct options *opt, uint64_t less)
{
	uint64_t hops = (uint64_t)opt->rounds * opt->tasks;

	printf(",\"%s\":[", key);
	for (unsigned int i = 0; i < opt->samples; i++) {
		if (i)
			putchar(',');
		print_per_hop((int64_t)(times[i] - less), hops);
	}
	putchar(']');
}

static unsigned int number(const char *what, const char *text,
			   unsigned long min, unsigned long max)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || value < min || value > max ||
	    text[0] == '-')
		die(2, "%s: \"%s\" is not a number from %lu to %lu", what, text,
		    min, max);
	return (unsigned int)value;
}

static void parse(struct options *opt, int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "PTg:s:n:r:l:")) != -1) {
		switch (c) {
		case 'P':
			opt->mode = PROCESSES;
			break;
		case 'T':
			opt->mode = THREADS;
			break;
		case 'g':
			opt->port = optarg;
			break;
		case 's':
			opt->size_kb = number("-s", optarg, 0, MAX_KB);
			break;
		case 'n':
			opt->rounds = number("-n", optarg, 1, MAX_ROUNDS);
			break;
		case 'r':
			opt->samples = number("-r", optarg, 1, MAX_SAMPLES);
			break;
		case 'l':
			opt->spread_percent = number("-l", optarg, 0, 1000);
			break;
		default:
			die(2, "usage: lat_ctx [-P|-T] [-g PORT] [-s KB] [-n rounds] [-r samples] [-l spread in %%] TASKS");
		}
	}
	if (optind + 1 != argc)
		die(2, "the number of tasks is missing (2 to %d)", MAX_TASKS);
	opt->tasks = number("TASKS", argv[optind], 2, MAX_TASKS);
}

int main(int argc, char **argv)
{
	struct options opt = {
		.mode = PROCESSES,
		.rounds = 100,
		.samples = 5,
		.spread_percent = 10,
	};
	uint64_t overhead[MAX_SAMPLES], ring[MAX_SAMPLES], less;

	parse(&opt, argc, argv);
	if (opt.port)
		pins_open("lat_ctx", opt.port, PIN_RING | PIN_OVERHEAD);
	pipes_open(opt.tasks);
	less = overhead_measure(&opt, overhead);
	ring_measure(&opt, ring);

	printf("{\"guest\":\"lat_ctx\",\"format\":1,\"mode\":\"%s\",\"tasks\":%u,\"size_kb\":%u,\"rounds\":%u",
	       opt.mode == THREADS ? "thread" : "process", opt.tasks,
	       opt.size_kb, opt.rounds);
	print_samples("overhead_ns", overhead, &opt, 0);
	print_samples("hop_ns", ring, &opt, 0);
	print_samples("switch_ns", ring, &opt, less);
	puts("}");
	return fflush(stdout) ? 1 : 0;
}
