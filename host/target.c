// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * warmswitch-target: the guests' programs in one for a product's Linux, with the
 * calls of `warmswitch host` (plan.h, made of the same list).
 *
 *   warmswitch-target [-q] [-a CPU] TOOL...	ctx, fifo, ... or all
 *   warmswitch-target list			what each tool calls
 *   warmswitch-target run PROGRAM ...		one program, called as it is
 *
 * Output: lines of JSON, which `warmswitch host read` reads out of a log: the
 * machine, each program's run as it ends, the end. SIGINT ends it with what there
 * is. It does not fork: programs are this one again, by name. Exit codes: 0
 * measured, 1 a program failed, 2 wrong usage.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct step {
	const char *tool;
	bool quick;
	/* On one processor when nobody names one. */
	bool pinned;
	const char *what;
	/* Program and arguments. */
	const char *command;
};

#include "plan.h"

#define PROGRAMS(X)	X(lat_ctx) X(ipc) X(messages) X(cyclic) X(overhead) X(memory) X(udp_reply) X(udp_period) X(uio_latency)
#define DECLARE(name)	int name##_main(int argc, char **argv);
#define ROW(name)	{ #name, name##_main },
#define COUNT(list)	(sizeof(list) / sizeof(*(list)))
#define MAX_WORDS	32
#define MAX_FILE	65536

PROGRAMS(DECLARE)

static const struct program {
	const char *name;
	int (*main)(int argc, char **argv);
} programs[] = { PROGRAMS(ROW) { "ipc-child", ipc_main } };

struct text {
	char *bytes;
	size_t count;
};

extern char **environ;
static volatile sig_atomic_t over;
/* The program that runs, if one does. */
static volatile pid_t running;

static void on_interrupt(int signal)
{
	over = 1;
	if (running)
		kill(running, signal);
}

static void __attribute__((noreturn)) failed(const char *what)
{
	fprintf(stderr, "warmswitch-target: %s: %s\n", what, strerror(errno));
	exit(1);
}

static const struct program *program_named(const char *name)
{
	for (size_t n = 0; n < COUNT(programs); n++)
		if (!strcmp(programs[n].name, name))
			return &programs[n];
	return NULL;
}

/* Bytes that are no ASCII as the characters of their numbers: it stays JSON whatever is read. */
static void print_string(const char *bytes, size_t count)
{
	putchar('"');
	for (size_t n = 0; n < count; n++) {
		unsigned char c = (unsigned char)bytes[n];

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20 || c > 0x7e)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void print_key(const char *key, const char *value)
{
	printf(",\"%s\":", key);
	print_string(value, strlen(value));
}

/* Adds what there is to read; false at the end. */
static bool append(struct text *to, int fd)
{
	char *bytes = realloc(to->bytes, to->count + 4096);
	ssize_t n;

	if (!bytes)
		failed("memory");
	to->bytes = bytes;
	n = read(fd, bytes + to->count, 4096);
	if (n < 0)
		return errno == EINTR;
	to->count += (size_t)n;
	return n > 0;
}

/* What the set-up is judged by, as the kernel says it. */
static void print_machine(bool quick)
{
	struct utsname name;
	bool first = true;

	if (uname(&name))
		failed("uname");
	printf("{\"target\":\"machine\",\"format\":1,\"quick\":%s,\"measured_at_s\":%lld,\"processors\":%ld",
	       quick ? "true" : "false", (long long)time(NULL), sysconf(_SC_NPROCESSORS_ONLN));
	print_key("architecture", name.machine);
	print_key("kernel", name.release);
	print_key("kernel_version", name.version);
	fputs(",\"files\":{", stdout);
	for (size_t n = 0; n < COUNT(files); n++) {
		struct text text = { NULL, 0 };
		char path[128];
		int fd;

		snprintf(path, sizeof(path), "/%s", files[n]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		while (text.count < MAX_FILE && append(&text, fd))
			;
		close(fd);
		if (!first)
			putchar(',');
		first = false;
		print_string(files[n], strlen(files[n]));
		putchar(':');
		print_string(text.bytes, text.count);
		free(text.bytes);
	}
	puts("}}");
	fflush(stdout);
}

/* A guest's line of JSON is what it printed; anything else is text. */
static void print_output(struct text *output)
{
	const char start[] = "{\"guest\":\"";
	char *end = output->count ? memchr(output->bytes, '\n', output->count) : NULL;
	bool is_line = end == output->bytes + output->count - 1 && output->count > sizeof(start) &&
		       !memcmp(output->bytes, start, sizeof(start) - 1) && end[-1] == '}';

	if (is_line) {
		printf(",\"printed\":%.*s", (int)(output->count - 1), output->bytes);
		return;
	}
	fputs(",\"output\":", stdout);
	print_string(output->bytes, output->count);
}

/* Splits a copy of the command at its spaces. */
static char **words_of(const char *command)
{
	static char copy[256], *words[MAX_WORDS];
	size_t count = 0;

	snprintf(copy, sizeof(copy), "%s", command);
	for (char *word = strtok(copy, " "); word && count < MAX_WORDS - 1; word = strtok(NULL, " "))
		words[count++] = word;
	words[count] = NULL;
	return words;
}

static pid_t start(char **words, int out, int err)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int error;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
	error = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error) {
		errno = error;
		failed("/proc/self/exe");
	}
	return pid;
}

/* Both to their ends. */
static void read_both(const int from[2], struct text to[2])
{
	struct pollfd fds[2] = { { .fd = from[0], .events = POLLIN }, { .fd = from[1], .events = POLLIN } };

	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			failed("poll");
		for (int n = 0; n < 2; n++)
			if (fds[n].fd >= 0 && fds[n].revents && !append(&to[n], fds[n].fd))
				fds[n].fd = -1;
	}
}

/* Programs have the processors of whoever starts them. */
static void run_on(int cpu, const cpu_set_t *all)
{
	cpu_set_t set = *all;

	if (cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
	}
	if (sched_setaffinity(0, sizeof(set), &set) && cpu >= 0) {
		fprintf(stderr, "warmswitch-target: -a %d: %s\n", cpu, strerror(errno));
		exit(2);
	}
}

/* Whether it came to its end without a complaint. */
static bool run(const struct step *step, int cpu)
{
	struct text said[2] = { { NULL, 0 }, { NULL, 0 } };
	int out[2], err[2], status;
	char **words = words_of(step->command);
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		failed("pipe");
	pid = running = start(words, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	read_both((int[2]){ out[0], err[0] }, said);
	close(out[0]);
	close(err[0]);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			failed("waitpid");
	running = 0;
	printf("{\"target\":\"run\"");
	print_key("tool", step->tool);
	print_key("what", step->what);
	print_key("command", step->command);
	if (cpu >= 0)
		printf(",\"cpu\":%d", cpu);
	else
		fputs(",\"cpu\":null", stdout);
	if (WIFEXITED(status))
		printf(",\"code\":%d", WEXITSTATUS(status));
	else
		fputs(",\"code\":null", stdout);
	fputs(",\"errors\":", stdout);
	print_string(said[1].bytes, said[1].count);
	print_output(&said[0]);
	puts("}");
	fflush(stdout);
	free(said[0].bytes);
	free(said[1].bytes);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool is_of(const struct step *step, const char *tool, bool quick)
{
	return step->quick == quick && (!strcmp(tool, "all") || !strcmp(tool, step->tool));
}

static void check_tools(char **tools)
{
	for (; *tools; tools++) {
		bool is = false;

		for (size_t n = 0; n < COUNT(steps); n++)
			is |= is_of(&steps[n], *tools, false);
		if (is)
			continue;
		fprintf(stderr, "warmswitch-target: no tool \"%s\"; there are: all", *tools);
		for (size_t n = 0; n < COUNT(steps); n++)
			if (!steps[n].quick && (!n || strcmp(steps[n].tool, steps[n - 1].tool)))
				fprintf(stderr, ", %s", steps[n].tool);
		fputc('\n', stderr);
		exit(2);
	}
}

static int measure(char **tools, bool quick, int cpu)
{
	struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = SA_RESTART };
	bool all_well = true;
	unsigned int runs = 0;
	cpu_set_t all;

	check_tools(tools);
	sigaction(SIGINT, &action, NULL);
	if (sched_getaffinity(0, sizeof(all), &all))
		failed("sched_getaffinity");
	/* Whether it can is said before anything is printed. */
	run_on(cpu, &all);
	print_machine(quick);
	for (; *tools; tools++) {
		for (size_t n = 0; n < COUNT(steps) && !over; n++) {
			int where = cpu < 0 && steps[n].pinned ? 0 : cpu;

			if (!is_of(&steps[n], *tools, quick))
				continue;
			run_on(where, &all);
			all_well &= run(&steps[n], where);
			runs++;
		}
	}
	printf("{\"target\":\"end\",\"interrupted\":%s,\"runs\":%u}\n", over ? "true" : "false", runs);
	return fflush(stdout) || !all_well;
}

static int list(void)
{
	for (size_t n = 0; n < COUNT(steps); n++)
		if (!steps[n].quick)
			printf("%-10s %s\n", steps[n].tool, steps[n].command);
	return 0;
}

static int __attribute__((noreturn)) usage(void)
{
	fputs("usage: warmswitch-target [-q] [-a CPU] TOOL...|all\n"
	      "       warmswitch-target list\n"
	      "       warmswitch-target run PROGRAM ...; there are:", stderr);
	for (size_t n = 0; n < COUNT(programs) - 1; n++)
		fprintf(stderr, " %s", programs[n].name);
	fputc('\n', stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	const char *slash = argc ? strrchr(argv[0], '/') : NULL;
	const struct program *program = argc ? program_named(slash ? slash + 1 : argv[0]) : NULL;
	bool quick = false;
	int c, cpu = -1;
	char *end;

	if (program)
		return program->main(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "run")) {
		program = argc > 2 ? program_named(argv[2]) : NULL;
		if (!program)
			usage();
		return program->main(argc - 2, argv + 2);
	}
	while ((c = getopt(argc, argv, "+qa:")) != -1) {
		switch (c) {
		case 'q':
			quick = true;
			break;
		case 'a':
			cpu = (int)strtoul(optarg, &end, 10);
			if (*end || end == optarg || cpu < 0 || cpu >= CPU_SETSIZE) {
				fprintf(stderr, "warmswitch-target: -a %s: no processor\n", optarg);
				return 2;
			}
			break;
		default:
			usage();
		}
	}
	if (optind == argc)
		usage();
	if (!strcmp(argv[optind], "list"))
		return list();
	return measure(argv + optind, quick, cpu);
}
