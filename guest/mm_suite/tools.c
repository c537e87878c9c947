// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the tests share; see mm_suite.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "mm_suite.h"

/* The ARM's private system call behind cacheflush(2). */
#define ARM_CACHEFLUSH	0x0f0002
/* More pages than the kernel cleans line by line. */
#define EMPTYING	8

uint32_t word_of(uint32_t seed, size_t index)
{
	uint32_t x = seed * 0x9e3779b1u + (uint32_t)index * 0x85ebca6bu + 1;

	x ^= x >> 15;
	return x * 0x2c1b3c6du;
}

/*
 * These caches take a line in only when it is read: what is just written goes
 * past them to memory. Three lines of four are read after their first word was
 * written, so that they become dirty; which ones, the seed decides.
 */
void fill(void *at, size_t bytes, uint32_t seed)
{
	volatile uint32_t *word = at;
	size_t i, words = bytes / sizeof(*word);

	for (i = 0; i < words; i++) {
		word[i] = word_of(seed, i);
		if (i % 8 == 0 && (i / 8 + seed) % 4 && i + 1 < words)
			(void)word[i + 1];
	}
}

enum result holds(const void *at, size_t bytes, uint32_t seed, const char *what)
{
	const volatile uint32_t *word = at;
	size_t i;

	for (i = 0; i < bytes / sizeof(*word); i++) {
		uint32_t seen = word[i];
		uint32_t want = word_of(seed, i);

		EXPECT(seen == want,
		       "%s: %p (byte %zu of %zu) is %08x, should be %08x",
		       what, (const void *)&word[i], i * 4, bytes,
		       (unsigned int)seen, (unsigned int)want);
	}
	return PASS;
}

enum result all_zero(const void *at, size_t bytes, const char *what)
{
	const volatile uint32_t *word = at;
	size_t i;

	for (i = 0; i < bytes / sizeof(*word); i++) {
		uint32_t seen = word[i];

		EXPECT(!seen, "%s: %p (byte %zu) is %08x, should be zero",
		       what, (const void *)&word[i], i * 4,
		       (unsigned int)seen);
	}
	return PASS;
}

void *pages(size_t count)
{
	void *at = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		say(FAIL, __FILE__, __LINE__, "%zu pages: %s", count,
		    strerror(errno));
		_exit(FAIL);
	}
	return at;
}

int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

bool has_userfaultfd(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || errno != ENOSYS;
}

bool kernel_preempts(void)
{
	struct utsname names;

	return !uname(&names) && strstr(names.version, "PREEMPT");
}

enum result await_faults(const void *at, size_t count, uint64_t features,
			 int *fd)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	struct uffdio_register area = {
		.range = { .start = (uintptr_t)at, .len = count * PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	*fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	SKIP_UNLESS(*fd >= 0, "userfaultfd: %s", strerror(errno));
	EXPECT(!ioctl(*fd, UFFDIO_API, &api) &&
	       !ioctl(*fd, UFFDIO_REGISTER, &area), "userfaultfd: %s",
	       strerror(errno));
	return PASS;
}

bool small_thread(pthread_t *thread, void *(*body)(void *arg), void *arg)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN);
	return !pthread_create(thread, &attr, body, arg);
}

int memory_file(size_t bytes, uint32_t seed)
{
	uint32_t buffer[PAGE_WORDS];
	size_t done = 0, i;
	int fd = memfd_create("mm_suite", MFD_CLOEXEC);

	while (fd >= 0 && done < bytes) {
		size_t now = bytes - done < PAGE ? bytes - done : PAGE;

		for (i = 0; i < PAGE_WORDS; i++)
			buffer[i] = word_of(seed, done / 4 + i);
		if (write(fd, buffer, now) != (ssize_t)now) {
			close(fd);
			fd = -1;
		}
		done += now;
	}
	if (fd < 0) {
		say(FAIL, __FILE__, __LINE__, "file: %s", strerror(errno));
		_exit(FAIL);
	}
	return fd;
}

enum result write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	EXPECT(fd >= 0, "%s: %s", path, strerror(errno));
	n = write(fd, text, strlen(text));
	EXPECT(n == (ssize_t)strlen(text), "%s to %s: %s", text, path,
	       strerror(errno));
	close(fd);
	return PASS;
}

long read_number(const char *path)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) <= 0) {
		close(fd);
		return -1;
	}
	close(fd);
	return strtol(text, NULL, 10);
}

long available_kb(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	char line[80];
	long kb = LONG_MAX;

	if (!file)
		return kb;
	while (fgets(line, sizeof(line), file) &&
	       sscanf(line, "MemAvailable: %ld", &kb) != 1)
		;
	fclose(file);
	return kb;
}

/* The end of a process as that of its body. */
static enum result result_of(pid_t pid)
{
	int status = 0;

	EXPECT(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
	EXPECT(WIFEXITED(status), "the other process ended by signal %d",
	       WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* On both sides of the fork that gave `pid`. */
static enum result forked(pid_t pid, enum result (*body)(void *arg), void *arg)
{
	EXPECT(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		enum result result = body(arg);

		fflush(stdout);
		_exit(result);
	}
	return result_of(pid);
}

enum result in_child(enum result (*body)(void *arg), void *arg)
{
	fflush(stdout);
	return forked(fork(), body, arg);
}

enum result in_clone(unsigned long flags, enum result (*body)(void *arg),
		     void *arg)
{
	fflush(stdout);
	return forked((pid_t)syscall(SYS_clone, flags, 0, 0, 0, 0), body, arg);
}

enum result other_start(struct other *other,
			enum result (*body)(struct other *other, void *arg),
			void *arg)
{
	EXPECT(!pipe(other->to_child) && !pipe(other->to_parent), "pipe: %s",
	       strerror(errno));
	fflush(stdout);
	other->pid = fork();
	EXPECT(other->pid >= 0, "fork: %s", strerror(errno));
	if (!other->pid) {
		enum result result;

		close(other->to_child[1]);
		close(other->to_parent[0]);
		result = body(other, arg);
		fflush(stdout);
		_exit(result);
	}
	close(other->to_child[0]);
	close(other->to_parent[1]);
	return PASS;
}

static enum result put_word(int fd, uint32_t word)
{
	EXPECT(write(fd, &word, 4) == 4, "the other process is gone");
	return PASS;
}

static enum result get_word(int fd, uint32_t *word)
{
	uint32_t got = 0;

	EXPECT(read(fd, &got, 4) == 4, "the other process is gone");
	if (word)
		*word = got;
	return PASS;
}

enum result other_go(struct other *other, uint32_t word)
{
	return put_word(other->to_child[1], word);
}

enum result other_wait(struct other *other, uint32_t *word)
{
	return get_word(other->to_parent[0], word);
}

enum result child_go(struct other *other, uint32_t word)
{
	return put_word(other->to_parent[1], word);
}

enum result child_wait(struct other *other, uint32_t *word)
{
	return get_word(other->to_child[0], word);
}

enum result other_end(struct other *other)
{
	close(other->to_child[1]);
	close(other->to_parent[0]);
	return result_of(other->pid);
}

enum result empty_cache(void)
{
	static char *other;

	if (!other)
		other = pages(EMPTYING);
	EXPECT(!mprotect(other, EMPTYING * PAGE, PROT_READ) &&
	       !mprotect(other, EMPTYING * PAGE, PROT_READ | PROT_WRITE),
	       "mprotect: %s", strerror(errno));
	return PASS;
}

enum result leave_lines(void)
{
	static char passed[2 * PAGE];
	int ends[2];

	fill(passed, sizeof(passed), 1);
	EXPECT(!pipe(ends), "pipe: %s", strerror(errno));
	EXPECT(write(ends[1], passed, sizeof(passed)) == sizeof(passed) &&
	       read(ends[0], passed, sizeof(passed)) == sizeof(passed),
	       "by the pipe: %s", strerror(errno));
	close(ends[0]);
	close(ends[1]);
	return PASS;
}

/* movw does not exist on ARMv5: two instructions for 16 bits. */
void put_give(uint32_t *at, unsigned int value)
{
	volatile uint32_t *code = at;

	/* Read first, so that the code becomes a dirty line; see fill. */
	(void)code[0];
	(void)code[GIVE_WORDS - 1];
	code[0] = 0xe3a00000 | (value & 0xff);			/* mov r0, #low */
	code[1] = 0xe3800c00 | ((value >> 8) & 0xff);		/* orr r0, r0, #high */
	code[2] = 0xe12fff1e;					/* bx lr */
}

void flush_code(void *from, size_t bytes)
{
	syscall(ARM_CACHEFLUSH, from, (char *)from + bytes, 0);
}

int call(const void *code)
{
	int (*function)(void) = (int (*)(void))(uintptr_t)code;

	return function();
}

long named_number(const char *path, const char *name)
{
	FILE *file = fopen(path, "re");
	char line[128];
	long value = -1;

	while (file && value < 0 && fgets(line, sizeof(line), file)) {
		size_t n = strlen(name);

		if (!strncmp(line, name, n) && strchr(": ", line[n]))
			value = strtol(line + n + 1, NULL, 10);
	}
	if (file)
		fclose(file);
	return value;
}
