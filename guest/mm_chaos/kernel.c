// SPDX-License-Identifier: MIT OR Apache-2.0
/* Memory of slots by way of the kernel: pipes, and userfaultfd. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "mm_chaos.h"

/* Newer than the headers of the compiler. */
struct move_pages {
	uint64_t to, from, bytes, mode;
	int64_t moved;
};
#define MOVE_PAGES	_IOWR(UFFDIO, 0x05, struct move_pages)
#define CAN_MOVE	(1u << 16)
#define ALLOW_HOLES	2u
/* More than this program opens. */
#define OPEN_FILES	32

/* A task never waits for one. */
bool own_pipe(void)
{
	if (me.pipe[1])
		return true;
	if (pipe2(me.pipe, O_NONBLOCK | O_CLOEXEC)) {
		me.pipe[1] = 0;
		return false;
	}
	return true;
}

/* Of what an op could not take out again. */
void empty_pipe(void)
{
	uint32_t rest[LINE_WORDS * 4];

	while (read(me.pipe[0], rest, sizeof(rest)) > 0)
		;
}

static void out(const uint8_t *n, bool lent)
{
	struct slot *slot = own_slot(n[0]);
	struct iovec page = { (void *)address(self, n[0], n[1]), PAGE };
	struct seen seen = { .odd = 0 };
	struct view view;
	ssize_t put;

	if (!own_pipe())
		return;
	view_slot(&view, slot, n[0], n[1]);
	if (lent)
		put = vmsplice(me.pipe[1], &page, 1, SPLICE_F_NONBLOCK);
	else
		put = write(me.pipe[1], page.iov_base, PAGE);
	if (put == (ssize_t)PAGE &&
	    read(me.pipe[0], me.scratch, PAGE) == (ssize_t)PAGE)
		look(&view, &seen, me.scratch, n[2]);
	judge(&view, &seen);
	empty_pipe();
}

OP(pipe_out)
{
	out(n, false);
}

OP(lend)
{
	out(n, true);
}

OP(pipe_in)
{
	struct slot *slot = own_slot(n[0]);
	uint32_t stamp = new_stamp();
	struct change change;
	ssize_t got;

	if (!own_pipe())
		return;
	change_begin(&change, slot, MAY_WRITE);
	put_words(me.scratch, word_of(change.object, n[1], stamp), 2);
	got = change.kind == NOTHING ? 0 : write(me.pipe[1], me.scratch, PAGE);
	if (got == (ssize_t)PAGE)
		got = read(me.pipe[0], (void *)address(self, n[0], n[1]), PAGE);
	change_effect(&change, n[1], 1,
		      got == (ssize_t)PAGE ? WRITTEN : LOST, stamp, 2);
	change_end(&change);
	empty_pipe();
}

/*
 * A child of fork() has those of its parent's threads, and its own wait for
 * faults of the parent, as in process_vm_readv(), would have no end.
 */
void close_inherited_faults(void)
{
	int fd;

	for (fd = 3; fd < OPEN_FILES; fd++) {
		char name[32], target[32] = "";

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		if (readlink(name, target, sizeof(target) - 1) > 0 &&
		    !strcmp(target, "anon_inode:[userfaultfd]"))
			close(fd);
	}
}

/* Who touches a page of these that is missing waits until this is closed. */
static int await_faults(unsigned int slot, unsigned int page,
			unsigned int count, uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	struct uffdio_register area = {
		.range = { .start = (uintptr_t)address(self, slot, page),
			   .len = count * PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return fd;
	if (ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &area)) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool give_page(int fd, unsigned int slot, unsigned int page,
		      uint32_t word)
{
	uintptr_t at = (uintptr_t)address(self, slot, page);
	struct uffdio_copy copy = {
		.dst = at, .src = (uintptr_t)me.scratch, .len = PAGE,
	};
	struct uffdio_zeropage zero = { .range = { .start = at, .len = PAGE } };

	if (page % 2)
		return !ioctl(fd, UFFDIO_ZEROPAGE, &zero);
	put_words(me.scratch, word, 2);
	return !ioctl(fd, UFFDIO_COPY, &copy);
}

/* Pages that are missing are copied from here, each second one is zero. */
OP(fault_copy)
{
	struct slot *slot = own_slot(n[0]);
	unsigned int end = n[1] + n[2], page;
	uint32_t stamp = new_stamp();
	struct change change;
	int fd = -1;

	change_begin(&change, slot, 0);
	end = end < slot->count ? end : slot->count;
	if (change.kind == ANON && n[1] < end) {
		madvise((void *)address(self, n[0], n[1]),
			(end - n[1]) * PAGE, MADV_DONTNEED);
		fd = await_faults(n[0], n[1], end - n[1], 0);
		change_effect(&change, n[1], end - n[1], LOST, 0, 0);
	}
	for (page = n[1]; fd >= 0 && page < end; page++)
		if (give_page(fd, n[0], page,
			      word_of(change.object, page, stamp)))
			change_effect(&change, page, 1,
				      page % 2 ? ZEROED : WRITTEN, stamp, 2);
	if (fd >= 0)
		close(fd);
	change_end(&change);
}

/* The page models follow the pages that were moved. */
static void pages_moved(struct change *from, struct change *to,
			unsigned int page, unsigned int end, unsigned int moved)
{
	struct slot *a = from->slot, *b = to->slot;

	lock_two(a, b, offsetof(struct slot, lock));
	a->muddled |= b->muddled;
	b->muddled |= a->muddled;
	for (; page < end; page++, moved -= moved != 0) {
		struct page_model *here = &a->page[page];

		if (moved) {
			b->page[page] = *here;
			*here = (struct page_model){ .own = false };
		} else {
			b->page[page].unknown = here->unknown = 7;
		}
	}
	unlock(&a->lock);
	unlock(&b->lock);
}

static unsigned int move_pages(unsigned int from, unsigned int to,
			       unsigned int page, unsigned int end)
{
	struct move_pages move = {
		.to = (uintptr_t)address(self, to, page),
		.from = (uintptr_t)address(self, from, page),
		.bytes = (end - page) * PAGE, .mode = ALLOW_HOLES,
	};
	int fd;

	madvise((void *)address(self, to, page), (end - page) * PAGE,
		MADV_DONTNEED);
	fd = await_faults(to, page, end - page, CAN_MOVE);
	if (fd < 0)
		return 0;
	ioctl(fd, MOVE_PAGES, &move);
	close(fd);
	return move.moved > 0 ? (unsigned int)(move.moved / PAGE) : 0;
}

OP(fault_move)
{
	struct slot *a = own_slot(n[0]), *b = own_slot(n[1]);
	unsigned int end = n[2] + n[3];
	struct change here, there;

	if (a == b)
		return;
	lock_two(a, b, offsetof(struct slot, far_lock));
	change_begin(&here, a, 0);
	change_begin(&there, b, 0);
	end = end < a->count ? end : a->count;
	end = end < b->count ? end : b->count;
	lock(&b->lock);
	b->ever |= a->ever;
	unlock(&b->lock);
	if (here.kind == ANON && there.kind == ANON && n[2] < end)
		pages_moved(&here, &there, n[2], end,
			    move_pages(n[0], n[1], n[2], end));
	change_end(&here);
	change_end(&there);
	unlock(&a->far_lock);
	unlock(&b->far_lock);
}
