// SPDX-License-Identifier: MIT OR Apache-2.0
/* Files by themselves: written, read, cut, and with holes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include "mm_chaos.h"

OP(truncate)
{
	struct file_change change;
	int done;

	file_begin(&change, n[0]);
	done = ftruncate(control->files[n[0]], n[1] * (off_t)PAGE);
	add(&change.backing->cuts, 1);
	file_effect(&change, n[1], PAGES, done ? LOST : ZEROED, 0, 0);
	file_end(&change);
}

OP(punch)
{
	int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	struct file_change change;
	int done;

	file_begin(&change, n[0]);
	done = fallocate(control->files[n[0]], mode, n[1] * (off_t)PAGE,
			 n[2] * (off_t)PAGE);
	file_effect(&change, n[1], n[2], done ? LOST : ZEROED, 0, 0);
	file_end(&change);
}

/* A few words one by one, or the whole page. */
OP(file_write)
{
	unsigned int ring = n[2] ? 2 : 0, i, place;
	uint32_t stamp = new_stamp(), word = word_of(n[0], n[1], stamp);
	off_t at = n[1] * (off_t)PAGE;
	int fd = control->files[n[0]];
	struct file_change change;
	bool ok = true;

	file_begin(&change, n[0]);
	put_words(me.scratch, word, ring);
	if (ring)
		ok = pwrite(fd, me.scratch, PAGE, at) == (ssize_t)PAGE;
	for (i = 0; !ring && (place = word_at(0, i)) < PAGE_WORDS; i++)
		ok &= pwrite(fd, &word, 4, at + 4 * (off_t)place) == 4;
	file_effect(&change, n[1], 1, ok ? WRITTEN : LOST, stamp, ring);
	file_end(&change);
}

OP(file_read)
{
	struct seen seen = { .odd = 0 };
	struct view view;
	ssize_t got;

	view_file(&view, n[0], n[1]);
	got = pread(control->files[n[0]], me.scratch, PAGE, n[1] * (off_t)PAGE);
	if (got == (ssize_t)PAGE)
		look(&view, &seen, me.scratch, n[2]);
	judge(&view, &seen);
}

/* Pages of this task go into the pipe, and the file gets what they have. */
OP(splice_in)
{
	struct iovec page = { me.scratch, PAGE };
	uint32_t stamp = new_stamp();
	loff_t at = n[1] * (loff_t)PAGE;
	struct file_change change;
	bool ok;

	if (!own_pipe())
		return;
	file_begin(&change, n[0]);
	put_words(me.scratch, word_of(n[0], n[1], stamp), 2);
	ok = vmsplice(me.pipe[1], &page, 1, SPLICE_F_NONBLOCK) ==
			(ssize_t)PAGE &&
		splice(me.pipe[0], NULL, control->files[n[0]], &at, PAGE,
		       SPLICE_F_NONBLOCK) == (ssize_t)PAGE;
	file_effect(&change, n[1], 1, ok ? WRITTEN : LOST, stamp, 2);
	file_end(&change);
	empty_pipe();
}

/* The file's pages go into the pipe, and are read from there. */
OP(splice_out)
{
	struct seen seen = { .odd = 0 };
	loff_t at = n[1] * (loff_t)PAGE;
	struct view view;

	if (!own_pipe())
		return;
	view_file(&view, n[0], n[1]);
	if (splice(control->files[n[0]], &at, me.pipe[1], NULL, PAGE,
		   SPLICE_F_NONBLOCK) == (ssize_t)PAGE &&
	    read(me.pipe[0], me.scratch, PAGE) == (ssize_t)PAGE)
		look(&view, &seen, me.scratch, 1);
	judge(&view, &seen);
	empty_pipe();
}
