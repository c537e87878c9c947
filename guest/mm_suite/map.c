// SPDX-License-Identifier: MIT OR Apache-2.0
/* Mappings of one process: protection, moving, reuse, demand zero. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "mm_suite.h"

#define RW	(PROT_READ | PROT_WRITE)

static sigjmp_buf resume;
static volatile unsigned int faults;
static void *volatile fault_address;

static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	faults++;
	fault_address = info->si_addr;
	siglongjmp(resume, 1);
}

static void catch_faults(void)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO };

	action.sa_sigaction = on_fault;
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

/* True when the write faulted at that address. */
static bool write_faults(volatile uint32_t *at)
{
	unsigned int before = faults;

	if (!sigsetjmp(resume, 1))
		*at = 0xdead0000;
	return faults == before + 1 && fault_address == (void *)at;
}

static bool read_faults(volatile uint32_t *at)
{
	unsigned int before = faults;

	if (!sigsetjmp(resume, 1))
		(void)*at;
	return faults == before + 1 && fault_address == (void *)at;
}

static enum result protect(unsigned int rounds)
{
	/* Five pages are more than the kernel flushes line by line. */
	static const unsigned int sizes[] = { 1, 5 };
	unsigned int round, i;

	catch_faults();
	for (round = 0; round < rounds * 2; round++) {
		size_t count = sizes[round & 1];
		uint32_t *at = pages(count);

		fill(at, count * PAGE, round);
		EXPECT(!mprotect(at, count * PAGE, PROT_READ), "mprotect");
		for (i = 0; i < count; i++)
			EXPECT(write_faults(at + i * PAGE_WORDS + i),
			       "a write to read-only page %u went through", i);
		TRY(holds(at, count * PAGE, round, "read-only"));
		EXPECT(!mprotect(at, count * PAGE, RW), "mprotect");
		fill(at, count * PAGE, round + 1);
		TRY(holds(at, count * PAGE, round + 1, "writable again"));
		EXPECT(!mprotect(at, count * PAGE, PROT_NONE), "mprotect");
		EXPECT(read_faults(at), "a read of PROT_NONE went through");
		EXPECT(!mprotect(at, count * PAGE, RW), "mprotect");
		TRY(holds(at, count * PAGE, round + 1, "after PROT_NONE"));
		munmap(at, count * PAGE);
		EXPECT(read_faults(at), "a read of what was unmapped went through");
	}
	return PASS;
}

static enum result remap(unsigned int rounds)
{
	unsigned int round;

	catch_faults();
	for (round = 0; round < rounds; round++) {
		size_t count = round & 1 ? 6 : 2;
		char *hole = pages(count + 4);
		char *at = pages(count), *moved;

		fill(at, count * PAGE, round);
		moved = mremap(at, count * PAGE, count * PAGE,
			       MREMAP_MAYMOVE | MREMAP_FIXED, hole);
		EXPECT(moved == hole, "move: %s", strerror(errno));
		TRY(holds(moved, count * PAGE, round, "moved"));
		EXPECT(read_faults((uint32_t *)at), "the old address still reads");
		fill(moved, PAGE, round + 1);
		munmap(hole + count * PAGE, 4 * PAGE);
		moved = mremap(moved, count * PAGE, (count + 4) * PAGE,
			       MREMAP_MAYMOVE);
		EXPECT(moved != MAP_FAILED, "grow: %s", strerror(errno));
		TRY(holds(moved, PAGE, round + 1, "grown"));
		TRY(all_zero(moved + count * PAGE, 4 * PAGE, "the new part"));
		fill(moved, (count + 4) * PAGE, round + 2);
		moved = mremap(moved, (count + 4) * PAGE, PAGE, 0);
		EXPECT(moved != MAP_FAILED, "shrink: %s", strerror(errno));
		TRY(holds(moved, PAGE, round + 2, "shrunk"));
		EXPECT(read_faults((uint32_t *)(moved + PAGE)),
		       "what was cut off still reads");
		/* And back to where it began. */
		moved = mremap(moved, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			       at);
		EXPECT(moved == at, "move back: %s", strerror(errno));
		TRY(holds(at, PAGE, round + 2, "moved back"));
		munmap(at, PAGE);
	}
	return PASS;
}

static enum result reuse(unsigned int rounds)
{
	int file[2] = { memory_file(2 * PAGE, 7), memory_file(2 * PAGE, 8) };
	char *at = pages(2);
	unsigned int round;

	for (round = 0; round < rounds * 2; round++) {
		int which = round & 1;
		int share = round & 2 ? MAP_SHARED : MAP_PRIVATE;
		void *got;

		fill(at, 2 * PAGE, round + 100);
		/* With and without an munmap between. */
		if (round & 4)
			munmap(at, 2 * PAGE);
		got = mmap(at, 2 * PAGE, PROT_READ, share | MAP_FIXED,
			   file[which], 0);
		EXPECT(got == at, "mmap: %s", strerror(errno));
		TRY(holds(at, 2 * PAGE, 7 + which, "file over memory"));
		got = mmap(at, 2 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED,
			   file[!which], 0);
		EXPECT(got == at, "mmap: %s", strerror(errno));
		TRY(holds(at, 2 * PAGE, 7 + !which, "file over file"));
		got = mmap(at, 2 * PAGE, RW,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		EXPECT(got == at, "mmap: %s", strerror(errno));
		TRY(all_zero(at, 2 * PAGE, "memory over file"));
	}
	return PASS;
}

static enum result dontneed(unsigned int rounds)
{
	int fd = memory_file(2 * PAGE, 3);
	char *at = pages(6), *file;
	unsigned int round;

	file = mmap(NULL, 2 * PAGE, RW, MAP_PRIVATE, fd, 0);
	EXPECT(file != MAP_FAILED, "mmap: %s", strerror(errno));
	for (round = 0; round < rounds; round++) {
		fill(at, 6 * PAGE, round);
		EXPECT(!madvise(at + PAGE, 2 * PAGE, MADV_DONTNEED), "madvise");
		TRY(holds(at, PAGE, round, "before the hole"));
		TRY(all_zero(at + PAGE, 2 * PAGE, "the hole"));
		EXPECT(!madvise(at, 6 * PAGE, MADV_DONTNEED), "madvise");
		TRY(all_zero(at, 6 * PAGE, "all dropped"));
		fill(file, 2 * PAGE, round + 10);
		EXPECT(!madvise(file, 2 * PAGE, MADV_DONTNEED), "madvise");
		TRY(holds(file, 2 * PAGE, 3, "the file's content again"));
	}
	return PASS;
}

static enum result zero_page(unsigned int rounds)
{
	unsigned int round;

	for (round = 0; round < rounds * 2; round++) {
		char *at = pages(3);

		TRY(all_zero(at, 3 * PAGE, "never written"));
		fill(at + PAGE, PAGE, round);
		TRY(all_zero(at, PAGE, "before the written one"));
		TRY(holds(at + PAGE, PAGE, round, "written"));
		TRY(all_zero(at + 2 * PAGE, PAGE, "behind the written one"));
		munmap(at, 3 * PAGE);
	}
	return PASS;
}

static enum result program_break(unsigned int rounds)
{
	unsigned int round;

	for (round = 0; round < rounds; round++) {
		char *start = sbrk(0);
		char *at = (char *)(((uintptr_t)start + PAGE - 1) & -PAGE);

		EXPECT(!brk(at + 3 * PAGE), "brk: %s", strerror(errno));
		TRY(all_zero(at, 3 * PAGE, "new"));
		fill(at, 3 * PAGE, round);
		EXPECT(!brk(at + PAGE), "brk: %s", strerror(errno));
		TRY(holds(at, PAGE, round, "kept"));
		EXPECT(!brk(at + 3 * PAGE), "brk: %s", strerror(errno));
		TRY(all_zero(at + PAGE, 2 * PAGE, "given back and taken again"));
		EXPECT(!brk(start), "brk: %s", strerror(errno));
	}
	return PASS;
}

static unsigned int __attribute__((noinline)) deep(unsigned int depth)
{
	volatile uint32_t frame[PAGE_WORDS / 2];

	fill((void *)frame, sizeof(frame), depth);
	if (depth && deep(depth - 1))
		return 1;
	return holds((void *)frame, sizeof(frame), depth, "stack frame");
}

static enum result stack_growth(unsigned int rounds)
{
	unsigned int round;

	for (round = 0; round < rounds; round++)
		EXPECT(!deep(30 + round % 4), "the stack");
	return PASS;
}

struct faulter {
	int fd;
	char *source;
	unsigned int served;
	bool failed;
};

/* Serves odd pages with data and even ones with zeroes. */
static void *serve(void *arg)
{
	struct faulter *faulter = arg;
	struct uffd_msg message;

	while (read(faulter->fd, &message, sizeof(message)) ==
	       (ssize_t)sizeof(message)) {
		uint64_t at = message.arg.pagefault.address & ~(uint64_t)(PAGE - 1);

		/* Before the answer: that lets the other thread look. */
		faulter->served++;
		if (at / PAGE & 1) {
			struct uffdio_copy copy = {
				.dst = at, .len = PAGE,
				.src = (uintptr_t)faulter->source,
			};

			fill(faulter->source, PAGE, (uint32_t)at);
			if (ioctl(faulter->fd, UFFDIO_COPY, &copy))
				faulter->failed = true;
		} else {
			struct uffdio_zeropage zero = {
				.range = { .start = at, .len = PAGE },
			};

			if (ioctl(faulter->fd, UFFDIO_ZEROPAGE, &zero))
				faulter->failed = true;
		}
	}
	return NULL;
}

static enum result user_faults(unsigned int rounds)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct faulter faulter = { .source = pages(1) };
	unsigned int round, i;
	pthread_t thread;

	faulter.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	SKIP_UNLESS(faulter.fd >= 0, "userfaultfd: %s", strerror(errno));
	EXPECT(!ioctl(faulter.fd, UFFDIO_API, &api), "UFFDIO_API");
	EXPECT(!pthread_create(&thread, NULL, serve, &faulter), "thread");
	for (round = 0; round < rounds; round++) {
		char *at = pages(4);
		struct uffdio_register range = {
			.range = { .start = (uintptr_t)at, .len = 4 * PAGE },
			.mode = UFFDIO_REGISTER_MODE_MISSING,
		};

		EXPECT(!ioctl(faulter.fd, UFFDIO_REGISTER, &range), "register: %s",
		       strerror(errno));
		for (i = 0; i < 4; i++) {
			char *page = at + i * PAGE;

			if ((uintptr_t)page / PAGE & 1)
				TRY(holds(page, PAGE, (uint32_t)(uintptr_t)page,
					  "copied in"));
			else
				TRY(all_zero(page, PAGE, "zeroed in"));
		}
		EXPECT(!faulter.failed, "the server failed");
		munmap(at, 4 * PAGE);
	}
	EXPECT(faulter.served == 4 * rounds, "%u faults served", faulter.served);
	return PASS;
}

const struct test map_tests[] = {
	{ "protect", "mprotect back and forth, faults counted", protect, NULL },
	{ "remap", "mremap moves, grows, shrinks", remap, NULL },
	{ "reuse", "other content at the same address", reuse, NULL },
	{ "dontneed", "MADV_DONTNEED", dontneed, NULL },
	{ "zero_page", "read first, then written", zero_page, NULL },
	{ "program_break", "brk up and down", program_break, NULL },
	{ "stack_growth", "a deep stack", stack_growth, NULL },
	{ "user_faults", "userfaultfd copies and zeroes", user_faults, NULL },
	{ NULL, NULL, NULL, NULL },
};
