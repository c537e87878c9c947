// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs a program of memory management that is given as text:
 *
 *	mm_chaos 'ma0.4 w0.0.4.1 fo1 r0.0.4.2|r0.0.4.1 w0.1.1.0 ad0.0.2'
 *
 * Sequences of ops are between bars. The first one is what the first thread of
 * the first process does; ops begin others as threads or processes. What an op
 * is, parse.c says. Whatever ops are taken out, what is left is a program.
 * With --lenient nothing is said of a bug that plain Linux is known for: files
 * that were stored to through a mapping are read as they were.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "mm_chaos.h"

/* With an interrupt every 0.5 ms a plain kernel does little but switch. */
#define LONGEST_S	30
#define POLL_US		500

static void unable(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(UNABLE);
}

/* All but this one. */
static void kill_others(void)
{
	unsigned int i;

	for (i = 0; i < PROCESSES; i++) {
		const struct process *process = &control->process[i];

		if (process->alive && process->pid > 0 && process != self)
			kill(process->pid, SIGKILL);
	}
}

static void hung(int number)
{
	static const char text[] = "hung: the program does not end\n";

	(void)number;
	kill_others();
	if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
		_exit(UNABLE);
	_exit(control->wrong ? WRONG : HUNG);
}

static void map_control(int fd)
{
	control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd, 0);
	if (control == MAP_FAILED)
		unable("mmap");
}

static int new_file(size_t bytes)
{
	int fd = memfd_create("mm_chaos", 0);

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		unable("memfd_create");
	return fd;
}

static bool has_code(void)
{
	unsigned int i;

	for (i = 0; i < program.first[program.sequences]; i++)
		if (strpbrk(op_kinds[program.ops[i].what].arguments, "cx"))
			return true;
	return false;
}

static void make_control(void)
{
	int fd = new_file(sizeof(*control));
	unsigned int i;

	map_control(fd);
	control->own_file = fd;
	for (i = 0; i < FILES + CODES; i++)
		control->files[i] = new_file((i < FILES ? PAGES : CODE_PAGES) *
					     PAGE);
	control->processes = 1;
	if (has_code())
		write_first_code();
}

/* One that did not come to its end: killed, or gone astray. */
static bool all_there(void)
{
	unsigned int i;

	for (i = 0; i < PROCESSES; i++) {
		volatile struct process *process = &control->process[i];

		if (process->alive && process->pid > 0 &&
		    kill(process->pid, 0) && process->alive) {
			printf("gone: process %u ended too early\n", i);
			return false;
		}
	}
	return true;
}

static int await_all(void)
{
	volatile uint32_t *tasks = &control->tasks;

	while (*tasks) {
		nap(POLL_US);
		if (!all_there()) {
			kill_others();
			return control->wrong ? WRONG : UNABLE;
		}
	}
	if (control->wrong)
		return WRONG;
	printf("ok: %u ops, %u words checked, %u faults\n",
	       (unsigned int)control->ops, (unsigned int)control->words,
	       (unsigned int)control->faults);
	return GOOD;
}

static int first_process(bool lenient)
{
	struct start start;

	make_control();
	control->lenient = lenient;
	process_prepare(&control->process[0]);
	/* Nobody waits for a process, and none of them stays. */
	signal(SIGCHLD, SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGALRM, hung);
	alarm(LONGEST_S);
	task_prepare(&start, 0);
	run_task(&start);
	process_end();
	return await_all();
}

/* The program of an exec: another process of one that runs. */
static int join_others(const char *numbers)
{
	struct start start;
	unsigned int process;
	int fd;

	if (sscanf(numbers, "%d %u %u %u %u", &fd, &process, &start.sequence,
		   &start.number, &start.id) != 5)
		return USAGE;
	map_control(fd);
	process_prepare(&control->process[process]);
	run_task(&start);
	process_end();
	return GOOD;
}

int main(int argc, char **argv)
{
	bool lenient;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && !strcmp(argv[1], "--check")) {
		parse(argv[2]);
		return GOOD;
	}
	if (argc == 4 && !strcmp(argv[1], "--join")) {
		parse(argv[3]);
		catch_faults();
		return join_others(argv[2]);
	}
	lenient = argc == 3 && !strcmp(argv[1], "--lenient");
	if (argc != 2 + lenient || argv[1 + lenient][0] == '-') {
		fprintf(stderr, "usage: mm_chaos [--check|--lenient] 'OPS|OPS|...'\n");
		return USAGE;
	}
	parse(argv[1 + lenient]);
	catch_faults();
	return first_process(lenient);
}
