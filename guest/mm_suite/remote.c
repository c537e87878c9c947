// SPDX-License-Identifier: MIT OR Apache-2.0
/* Memory of a process through the kernel: process_vm_*, /proc/PID/mem. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include "mm_suite.h"

#define COUNT	3
#define BYTES	(COUNT * PAGE)
/* Of a page's lines, every how many-th is tried in a round. */
#define STRIDE	8

enum way { BY_VM, BY_MEM };

struct access {
	enum way way;
	pid_t pid;
	int mem;
};

static enum result access_open(struct access *access, enum way way, pid_t pid)
{
	char path[32];

	*access = (struct access){ .way = way, .pid = pid, .mem = -1 };
	if (way == BY_VM)
		return PASS;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	access->mem = open(path, O_RDWR | O_CLOEXEC);
	EXPECT(access->mem >= 0, "%s: %s", path, strerror(errno));
	return PASS;
}

static enum result put(struct access *access, void *to, void *from, size_t bytes)
{
	struct iovec remote = { to, bytes }, local = { from, bytes };
	ssize_t n;

	if (access->way == BY_VM)
		n = process_vm_writev(access->pid, &local, 1, &remote, 1, 0);
	else
		n = pwrite64(access->mem, from, bytes, (off64_t)(uintptr_t)to);
	SKIP_UNLESS(n >= 0 || errno != ENOSYS, "not in this kernel");
	EXPECT(n == (ssize_t)bytes, "wrote %zd: %s", n, strerror(errno));
	return PASS;
}

static enum result get(struct access *access, void *to, void *from, size_t bytes)
{
	struct iovec remote = { from, bytes }, local = { to, bytes };
	ssize_t n;

	if (access->way == BY_VM)
		n = process_vm_readv(access->pid, &local, 1, &remote, 1, 0);
	else
		n = pread64(access->mem, to, bytes, (off64_t)(uintptr_t)from);
	SKIP_UNLESS(n >= 0 || errno != ENOSYS, "not in this kernel");
	EXPECT(n == (ssize_t)bytes, "read %zd: %s", n, strerror(errno));
	return PASS;
}

/* Finds what the parent put there and leaves something else. */
static enum result victim(struct other *other, void *at)
{
	uint32_t round;

	fill(at, BYTES, 0);
	TRY(child_go(other, 0));
	for (;;) {
		TRY(child_wait(other, &round));
		if (round == UINT32_MAX)
			return PASS;
		TRY(holds(at, BYTES, round, "the other process' view"));
		fill(at, BYTES, round + 1);
		TRY(child_go(other, 0));
	}
}

static enum result foreign(enum way way, void *at, unsigned int rounds)
{
	char *buffer = pages(COUNT);
	struct access access;
	struct other other;
	unsigned int round;

	TRY(other_start(&other, victim, at));
	TRY(access_open(&access, way, other.pid));
	TRY(other_wait(&other, NULL));
	TRY(get(&access, buffer, at, BYTES));
	TRY(holds(buffer, BYTES, 0, "read at first"));
	for (round = 1; round <= rounds * 2; round++) {
		fill(buffer, BYTES, round * 3);
		TRY(put(&access, at, buffer, BYTES));
		TRY(other_go(&other, round * 3));
		TRY(other_wait(&other, NULL));
		TRY(get(&access, buffer, at, BYTES));
		TRY(holds(buffer, BYTES, round * 3 + 1, "read back"));
	}
	TRY(other_go(&other, UINT32_MAX));
	return other_end(&other);
}

/* A process reaches its own memory by the way meant for others'. */
static enum result own(enum way way, char *at, unsigned int rounds)
{
	char *buffer = pages(COUNT);
	struct access access;
	unsigned int round;

	TRY(access_open(&access, way, getpid()));
	for (round = 0; round < rounds * 2; round++) {
		fill(at, BYTES, round * 5);
		TRY(holds(at, BYTES, round * 5, "own store"));
		fill(buffer, BYTES, round * 5 + 1);
		TRY(put(&access, at, buffer, BYTES));
		TRY(holds(at, BYTES, round * 5 + 1, "written remotely"));
		fill(at, BYTES, round * 5 + 2);
		TRY(get(&access, buffer, at, BYTES));
		TRY(holds(buffer, BYTES, round * 5 + 2, "read remotely"));
		TRY(holds(at, BYTES, round * 5 + 2, "own store, later"));
		/* Half a line each way, with dirty neighbours. */
		fill(at, BYTES, round * 5 + 3);
		TRY(put(&access, at + LINE, buffer, LINE / 2));
		TRY(holds(at, LINE, round * 5 + 3, "the line before"));
		EXPECT(!memcmp(at + LINE, buffer, LINE / 2), "half a line");
	}
	return PASS;
}

static void *shared(void)
{
	void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		_exit(FAIL);
	return at;
}

static enum result vm_foreign(unsigned int rounds)
{
	TRY(foreign(BY_VM, pages(COUNT), rounds));
	return foreign(BY_VM, shared(), rounds);
}

static enum result mem_foreign(unsigned int rounds)
{
	TRY(foreign(BY_MEM, pages(COUNT), rounds));
	return foreign(BY_MEM, shared(), rounds);
}

static enum result vm_own(unsigned int rounds)
{
	return own(BY_VM, pages(COUNT), rounds);
}

static enum result vm_own_shared(unsigned int rounds)
{
	return own(BY_VM, shared(), rounds);
}

static enum result mem_own(unsigned int rounds)
{
	TRY(own(BY_MEM, pages(COUNT), rounds));
	return own(BY_MEM, shared(), rounds);
}

/*
 * Source and target in one line: what is copied is read through the user's
 * address, which takes the line in, and written through the kernel's.
 */
static enum result vm_own_line(unsigned int rounds)
{
	char *at = pages(1);
	struct access access;
	unsigned int round, line;

	TRY(access_open(&access, BY_VM, getpid()));
	for (round = 0; round < rounds * 2; round++) {
		fill(at, PAGE, round);
		for (line = 0; line < PAGE; line += LINE)
			TRY(put(&access, at + line + LINE / 2, at + line,
				LINE / 2));
		for (line = 0; line < PAGE; line += LINE)
			EXPECT(!memcmp(at + line, at + line + LINE / 2, LINE / 2),
			       "the line at %#x has the old second half", line);
	}
	return PASS;
}

/*
 * One line at a time. With more of them it hangs on what else is in the cache
 * whether a line is still there when the kernel looks.
 */
static enum result own_line(struct access *access, char *at, uint32_t seed)
{
	uint32_t buffer[LINE / sizeof(uint32_t)];

	TRY(empty_cache());
	fill(at, LINE, seed);
	TRY(get(access, buffer, at, LINE));
	TRY(holds(buffer, LINE, seed, "a dirty line, read remotely"));
	TRY(empty_cache());
	TRY(holds(at, LINE, seed, "the line, taken in clean"));
	fill(buffer, LINE, seed + 1);
	TRY(put(access, at, buffer, LINE));
	return holds(at, LINE, seed + 1, "a clean line, written remotely");
}

static enum result own_lines(enum way way, char *at, unsigned int rounds)
{
	struct access access;
	unsigned int round, line;

	TRY(access_open(&access, way, getpid()));
	for (round = 0; round < rounds * 2; round++)
		for (line = round % STRIDE; line < PAGE / LINE; line += STRIDE)
			/* Odd: `fill` makes the line dirty. */
			TRY(own_line(&access, at + line * LINE,
				     2 * (round * PAGE + line) + 1));
	return PASS;
}

static enum result vm_own_lines(unsigned int rounds)
{
	TRY(own_lines(BY_VM, pages(1), rounds));
	return own_lines(BY_VM, shared(), rounds);
}

static enum result mem_own_lines(unsigned int rounds)
{
	TRY(own_lines(BY_MEM, pages(1), rounds));
	return own_lines(BY_MEM, shared(), rounds);
}

/* A process patches its own code through /proc/self/mem, as tracers do. */
static enum result mem_own_text(unsigned int rounds)
{
	uint32_t *at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *code = pages(1);
	struct access access;
	unsigned int round;

	EXPECT(at != MAP_FAILED, "mmap: %s", strerror(errno));
	TRY(access_open(&access, BY_MEM, getpid()));
	for (round = 0; round < rounds * 4; round++) {
		int got;

		put_give(code, round + 1);
		TRY(put(&access, at, code, GIVE_WORDS * 4));
		got = call(at);
		EXPECT(got == (int)round + 1, "the code gives %d, not %u", got,
		       round + 1);
	}
	return PASS;
}

const struct test remote_tests[] = {
	{ "vm_foreign", "process_vm_readv and writev, another process",
	  vm_foreign, NULL },
	{ "vm_own", "process_vm_writev to oneself", vm_own, NULL },
	{ "vm_own_shared", "the same, shared memory", vm_own_shared, NULL },
	{ "vm_own_line", "process_vm_writev within one cache line", vm_own_line,
	  "Linux does not flush what process_vm_writev wrote" },
	{ "mem_foreign", "/proc/PID/mem, another process", mem_foreign, NULL },
	{ "mem_own", "/proc/PID/mem of oneself", mem_own, NULL },
	{ "vm_own_lines", "process_vm_* to oneself, line by line", vm_own_lines,
	  NULL },
	{ "mem_own_lines", "/proc/PID/mem of oneself, line by line",
	  mem_own_lines, NULL },
	{ "mem_own_text", "/proc/PID/mem patches one's own code", mem_own_text,
	  NULL },
	{ NULL, NULL, NULL, NULL },
};
