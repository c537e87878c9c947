// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * layout: where the parts of a program are, and whether they work: text, data,
 * bss, heap, a large allocation, stack, thread-local data, a thread's stack, the
 * kernel's page of signal trampolines.
 *
 * It is built in four forms, static and dynamic, with and without a fixed
 * address. Where the kernel keeps processes below 32 MB, everything that
 * /proc/self/maps shows must be there. Output: one line per part. Exit codes: 0
 * all is well, 1 something is not.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIMIT		(32u << 20)
#define LARGE		(4u << 20)
#define SMALL		64
#define WORDS		1024

static uint32_t data[WORDS] = { 1, 2, 3 };
static uint32_t bss[WORDS];
static __thread uint32_t tls[16];
static volatile unsigned int handled;
static unsigned long limit;

/* The kernel's struct, for a handler without the C library's way back. */
struct kernel_action {
	void (*handler)(int number);
	unsigned long flags;
	void (*restorer)(void);
	uint32_t mask[2];
};

static bool placed(const char *what, const void *at, size_t bytes)
{
	uintptr_t start = (uintptr_t)at;
	bool good = start >= 0x1000 && start + bytes <= limit;

	printf("%-10s %08lx%s\n", what, (unsigned long)start,
	       good ? "" : " is beyond the limit");
	return good;
}

/* Writes, and reads again. */
static bool works(const char *what, uint32_t *at, size_t bytes)
{
	size_t i, step = bytes > 8192 ? 1024 : 1;

	for (i = 0; i < bytes / 4; i += step)
		at[i] = (uint32_t)(i * 2654435761u);
	for (i = 0; i < bytes / 4; i += step)
		if (((volatile uint32_t *)at)[i] != (uint32_t)(i * 2654435761u)) {
			printf("%s: word %zu is wrong\n", what, i);
			return false;
		}
	return placed(what, at, bytes);
}

static void count(int number)
{
	(void)number;
	handled++;
}

/* The handler returns through the kernel's trampoline. */
static bool signals(void)
{
	struct kernel_action action = { .handler = count };

	if (syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 8))
		return false;
	raise(SIGUSR1);
	raise(SIGUSR1);
	return handled == 2;
}

static void *thread(void *arg)
{
	uint32_t stack[WORDS];

	(void)arg;
	return (void *)(uintptr_t)(works("thread", stack, sizeof(stack)) &&
				   works("its tls", tls, sizeof(tls)));
}

static bool threads(void)
{
	pthread_t id;
	void *good = NULL;

	if (pthread_create(&id, NULL, thread, NULL))
		return false;
	pthread_join(id, &good);
	return good != NULL;
}

/* Nothing is mapped beyond, but the kernel's page of helpers. */
static bool mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[256];
	bool good = maps != NULL, sigpage = false;

	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx", &start, &end) != 2)
			good = false;
		if (strstr(line, "[vectors]"))
			continue;
		sigpage |= strstr(line, "[sigpage]") != NULL;
		if (end > limit) {
			printf("beyond the limit: %s", line);
			good = false;
		}
	}
	if (maps)
		fclose(maps);
	return good && sigpage;
}

static bool limited(void)
{
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	return !access("/sys/kernel/debug/fcse/pids_limit", R_OK);
}

int main(void)
{
	uint32_t stack[WORDS], *small = malloc(SMALL), *large = malloc(LARGE);
	bool good = data[0] == 1 && data[2] == 3 && !bss[0] && !bss[WORDS - 1];

	limit = limited() ? LIMIT : 0xbf000000;
	good &= placed("text", (const void *)(uintptr_t)main, 4);
	good &= works("data", data, sizeof(data));
	good &= works("bss", bss, sizeof(bss));
	good &= small && works("heap", small, SMALL);
	good &= large && works("large", large, LARGE);
	good &= works("stack", stack, sizeof(stack));
	good &= works("tls", tls, sizeof(tls));
	good &= threads();
	good &= signals();
	good &= mapped();
	free(small);
	free(large);
	printf("%s\n", good ? "all is well" : "something is wrong");
	return good ? 0 : 1;
}
