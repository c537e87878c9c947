// SPDX-License-Identifier: MIT OR Apache-2.0
/* Memory of another process: process_vm_readv and writev, ptrace. */
#define _GNU_SOURCE
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include "mm_chaos.h"

/* Naps until a tracee has stopped. */
#define STOP_NAPS 400

struct process *other_process(unsigned int number, unsigned int slot)
{
	struct process *process = &control->process[number];

	if (!process->alive || process == self || !process->pid ||
	    !process->base)
		return NULL;
	if (process->inherited && process->verdict[slot] != KEPT)
		return NULL;
	return process;
}

OP(vm_read)
{
	struct process *process = other_process(n[0], n[1]);
	struct iovec to = { me.scratch, PAGE }, from = { NULL, PAGE };
	struct seen seen = { .odd = 0 };
	struct view view;

	if (!process)
		return;
	from.iov_base = (void *)address(process, n[1], n[2]);
	view_slot(&view, &process->slot[n[1]], n[1], n[2]);
	if (process_vm_readv(process->pid, &to, 1, &from, 1, 0) ==
	    (ssize_t)PAGE)
		look(&view, &seen, me.scratch, n[3]);
	judge(&view, &seen);
}

/*
 * The kernel looks for the page first and writes to it later. By then it may
 * have been moved; that is left out.
 */
OP(vm_write)
{
	struct process *process = other_process(n[0], n[1]);
	struct iovec from = { me.scratch, PAGE }, to = { NULL, PAGE };
	uint32_t stamp = new_stamp();
	struct change change;
	struct slot *slot;
	bool ok = false;

	if (!process)
		return;
	slot = &process->slot[n[1]];
	to.iov_base = (void *)address(process, n[1], n[2]);
	lock(&slot->far_lock);
	change_begin(&change, slot, MAY_WRITE);
	put_words(me.scratch, word_of(change.object, n[2], stamp), 2);
	if (change.kind != NOTHING)
		ok = process_vm_writev(process->pid, &from, 1, &to, 1, 0) ==
			(ssize_t)PAGE;
	change_effect(&change, n[2], 1, ok ? WRITTEN : LOST, stamp, 2);
	change_end(&change);
	unlock(&slot->far_lock);
}

/* Stopped it is until the end of the op, which waits for no lock meanwhile. */
static bool stop(int pid, int *signal)
{
	unsigned int naps;
	int status = 0;

	if (ptrace(PTRACE_SEIZE, pid, 0, 0) ||
	    ptrace(PTRACE_INTERRUPT, pid, 0, 0))
		return false;
	for (naps = 0; naps < STOP_NAPS; naps++) {
		int got = waitpid(pid, &status, WNOHANG | __WALL);

		if (got < 0 || (got == pid && !WIFSTOPPED(status)))
			return false;
		if (got == pid) {
			*signal = status >> 16 ? 0 : WSTOPSIG(status);
			return true;
		}
		nap(300);
	}
	return false;
}

static bool poke_words(int pid, volatile uint32_t *at, uint32_t word,
		       const struct change *change, const uint8_t *n)
{
	unsigned int i, place;

	for (i = 0; (place = word_at(0, i)) < PAGE_WORDS; i++) {
		volatile uint32_t *there = at + place;
		uint32_t got;

		if (ptrace(PTRACE_POKEDATA, pid, there, word))
			return false;
		got = (uint32_t)ptrace(PTRACE_PEEKDATA, pid, there, 0);
		if (got != word && change_is_alone(change))
			say_wrong("slot %u page %u word %u: got %#x expected %#x",
				  n[1], n[2], place, (unsigned int)got,
				  (unsigned int)word);
	}
	return true;
}

/* Later processes only, so that no two stop each other. */
OP(poke)
{
	struct process *process = other_process(n[0], n[1]);
	uint32_t stamp = new_stamp(), word;
	struct change change;
	bool ok = false;
	int signal = 0;

	if (!process || process < self)
		return;
	change_begin(&change, &process->slot[n[1]], MAY_WRITE);
	word = word_of(change.object, n[2], stamp);
	if (change.kind != NOTHING && stop(process->pid, &signal)) {
		ok = poke_words(process->pid, address(process, n[1], n[2]),
				word, &change, n);
		ptrace(PTRACE_DETACH, process->pid, 0, signal);
	}
	change_effect(&change, n[2], 1, ok ? WRITTEN : LOST, stamp, 0);
	change_end(&change);
}
