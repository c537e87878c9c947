// SPDX-License-Identifier: MIT OR Apache-2.0
/* Threads and processes that run sequences. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "mm_chaos.h"

#define STACK		(32u << 10)
#define JOIN_NAPS	100
#define HIGH		0x30000000u
#define ROOM		(SLOTS * (PAGES + 16) * PAGE)

static uint32_t scratch[TASKS][PAGE_WORDS] __attribute__((aligned(4096)));
static struct start starts[TASKS];

void run_task(const struct start *start)
{
	unsigned int op, first = program.first[start->sequence];
	unsigned int end = program.first[start->sequence + 1];

	me.number = start->number;
	me.id = start->id;
	me.sequence = start->sequence;
	me.over = false;
	me.armed = false;
	me.pipe[0] = me.pipe[1] = 0;
	me.scratch = scratch[me.number];
	for (op = first; op < end && !me.over; op++) {
		me.op = op - first;
		op_kinds[program.ops[op].what].run(program.ops[op].n);
	}
	add(&control->ops, op - first);
	if (me.pipe[1]) {
		close(me.pipe[0]);
		close(me.pipe[1]);
	}
}

/* Its number is free; false when there are enough tasks. */
bool task_prepare(struct start *start, unsigned int sequence)
{
	unsigned int i = 0;

	lock(&control->lock);
	if (control->starts < STARTS)
		while (i < TASKS && control->tasks & 1u << i)
			i++;
	else
		i = TASKS;
	if (i < TASKS) {
		control->tasks |= 1u << i;
		control->starter[i] = me.id;
		*start = (struct start){ sequence, i, ++control->starts };
	}
	unlock(&control->lock);
	return i < TASKS;
}

static void task_over(unsigned int number)
{
	lock(&control->lock);
	control->starter[number] = 0;
	control->tasks &= ~(1u << number);
	unlock(&control->lock);
}

static void *thread(void *arg)
{
	run_task(arg);
	task_over(me.number);
	add(&self->threads, (uint32_t)-1);
	/*
	 * At once: what libc does at the end of a thread would throw out of the
	 * caches what this one has left there. Its stack is lost.
	 */
	syscall(SYS_exit, 0);
	return NULL;
}

OP(thread)
{
	struct start start;
	pthread_attr_t attr;
	pthread_t handle;

	if (!task_prepare(&start, n[0]))
		return;
	starts[start.number] = start;
	add(&self->threads, 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setguardsize(&attr, 0);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&handle, &attr, thread, &starts[start.number])) {
		add(&self->threads, (uint32_t)-1);
		task_over(start.number);
	}
}

static bool uses_high_slot(void)
{
	unsigned int i, j;

	for (i = 0; i < program.first[program.sequences]; i++) {
		const struct op *op = &program.ops[i];
		const char *arguments = op_kinds[op->what].arguments;

		for (j = 0; arguments[j]; j++)
			if (arguments[j] == 's' && op->n[j] == HIGH_SLOT)
				return true;
	}
	return false;
}

/*
 * Where slots are: nothing else is to come there, the program's own memory
 * neither. A whole process that has to be below 32 MB has no high slot.
 */
static void choose_places(struct process *process)
{
	static const uintptr_t bases[] = {
		0xc00000, 0x1000000, 0x1400000, 0x800000, 0x20000000,
	};
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE |
		MAP_NORESERVE;
	unsigned int i;

	for (i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		void *at = (void *)bases[i];

		if (mmap(at, ROOM, PROT_NONE, flags, -1, 0) == at) {
			munmap(at, ROOM);
			process->base = bases[i];
			break;
		}
	}
	/* Only if it is used: a mapping there takes a process out of its 32 MB. */
	if (process->base && uses_high_slot() &&
	    mmap((void *)HIGH, PAGE, PROT_NONE, flags, -1, 0) == (void *)HIGH) {
		munmap((void *)HIGH, PAGE);
		process->high = HIGH;
	}
	if (!process->base) {
		printf("no room for the slots\n");
		exit(UNABLE);
	}
}

void process_prepare(struct process *process)
{
	/* The heap is somewhere from the first piece on. */
	void *volatile piece = malloc(1);

	free(piece);
	self = process;
	choose_places(process);
	process->pid = getpid();
	process->alive = 1;
}

void process_end(void)
{
	volatile uint32_t *threads = &self->threads;

	while (*threads)
		nap(300);
	task_over(me.number);
	self->alive = 0;
}

static struct process *new_process(void)
{
	uint32_t number;

	if (control->processes >= PROCESSES)
		return NULL;
	number = add(&control->processes, 1) - 1;
	return number < PROCESSES ? &control->process[number] : NULL;
}

/* What the slots of a parent were before a fork, to see whether it changed. */
struct before {
	uint32_t begun, shapes;
	bool quiet, shaping;
};

static void copy_slot(struct slot *to, struct slot *from, struct before *before)
{
	lock(&from->lock);
	before->begun = from->begun;
	before->shapes = from->shapes;
	before->quiet = from->begun == from->ended;
	before->shaping = from->shape_lock;
	if (from->kind != NOTHING)
		*to = *from;
	to->ever = from->ever;
	to->lock = to->begun = to->ended = 0;
	to->shape_lock = to->far_lock = to->shapes = to->callers = 0;
	to->muddled = false;
	to->shown = to->held = 0;
	unlock(&from->lock);
}

static uint8_t verdict(const struct slot *slot, const struct before *before)
{
	if (before->shaping || slot->shapes != before->shapes)
		return RESHAPED;
	if (!before->quiet || slot->begun != before->begun)
		return CHANGED;
	return KEPT;
}

static void forked_child(struct process *process, const struct start *start)
{
	self = process;
	process->pid = getpid();
	close_inherited_faults();
	run_task(start);
	process_end();
	_exit(0);
}

/* There is none when fork() refused. */
static void process_begun(struct process *process, int pid,
			  const struct start *start)
{
	if (pid > 0) {
		process->pid = pid;
	} else {
		process->alive = 0;
		task_over(start->number);
	}
}

OP(fork)
{
	struct before before[SLOTS];
	struct process *process;
	struct start start;
	unsigned int i;
	int pid;

	for (i = 0; i < SLOTS; i++)
		own_slot(i);
	if (!task_prepare(&start, n[0]))
		return;
	process = new_process();
	if (!process) {
		task_over(start.number);
		return;
	}
	process->base = self->base;
	process->high = self->high;
	process->inherited = 1;
	for (i = 0; i < SLOTS; i++)
		copy_slot(&process->slot[i], &self->slot[i], &before[i]);
	process->alive = 1;
	pid = fork();
	if (!pid)
		forked_child(process, &start);
	for (i = 0; i < SLOTS; i++)
		process->verdict[i] = verdict(&self->slot[i], &before[i]);
	process_begun(process, pid, &start);
}

OP(exec)
{
	char numbers[64];
	char *argv[] = { "mm_chaos", "--join", numbers, (char *)program_text,
			 NULL };
	struct process *process;
	struct start start;
	int pid;

	if (!task_prepare(&start, n[0]))
		return;
	process = new_process();
	if (!process) {
		task_over(start.number);
		return;
	}
	snprintf(numbers, sizeof(numbers), "%d %u %u %u %u", control->own_file,
		 (unsigned int)(process - control->process), start.sequence,
		 start.number, start.id);
	process->alive = 1;
	pid = vfork();
	if (!pid) {
		execv("/proc/self/exe", argv);
		_exit(UNABLE);
	}
	process_begun(process, pid, &start);
}

OP(end)
{
	(void)n;
	me.over = true;
}

static bool has_children(void)
{
	unsigned int i;

	for (i = 0; i < TASKS; i++)
		if (control->tasks & 1u << i && control->starter[i] == me.id)
			return true;
	return false;
}

/* Whom this task has begun; not for ever. */
OP(join)
{
	unsigned int naps;

	(void)n;
	for (naps = 0; naps < JOIN_NAPS && has_children(); naps++)
		nap(500);
}

OP(yield)
{
	(void)n;
	sched_yield();
}

OP(nap)
{
	nap(n[0] * 100);
}
