/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Does a process get at what its neighbours have in the TLB? Each of 11 victims,
 * or as many as the second argument says, uses its pages, and at once a process
 * at the same addresses tries the modified addresses of all PIDs, by itself and
 * through the kernel. Says how many of its tries met a living entry, which the
 * kernel counts as domain faults. Prefetch aborts do not tell what they were.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define VICTIMS		30	/* at most */
#define SLOTS		95
#define SLOT_SHIFT	25
#define PAGE_WORDS	1024
#define PAGES		3	/* data, code, data */
#define FOREIGN		0xdead0000

enum how { READ, WRITE, RUN, UNALIGNED, GIVEN, TAKEN, HOWS };

static const char *const names[HOWS] = {
	"read", "written", "run", "read unaligned", "given to write(2)",
	"given to read(2)",
};

static struct victim {
	int ask[2], answer[2];
	pid_t pid;
} victims[VICTIMS];

static sigjmp_buf back;
static int pipe_of[2], zero;
static unsigned int count = 11;

static void on_fault(int sig)
{
	siglongjmp(back, sig);
}

static void must(int holds, const char *what)
{
	if (holds)
		return;
	perror(what);
	exit(2);
}

/* Does it go through? */
static int attack(enum how how, uintptr_t at, uint32_t *got)
{
	ssize_t n;

	if (sigsetjmp(back, 1))
		return 0;
	switch (how) {
	case READ:
		*got = *(volatile uint32_t *)at;
		return 1;
	case WRITE:
		*(volatile uint32_t *)at = FOREIGN;
		return 1;
	case RUN:
		*got = ((uint32_t (*)(void))(at + PAGE_WORDS * 4))();
		return 1;
	case UNALIGNED:
		asm volatile("ldr %0, [%1, #1]" : "=r" (*got) : "r" (at));
		return 1;
	case GIVEN:
		n = write(pipe_of[1], (void *)at, 4);
		if (n == 4)
			must(read(pipe_of[0], got, 4) == 4, "pipe");
		break;
	default:
		n = read(zero, (void *)at, 4);
	}
	must(n == 4 || (n < 0 && errno == EFAULT), names[how]);
	return n == 4;
}

static void fill(volatile uint32_t *own, uint32_t value)
{
	own[0] = value;
	own[PAGE_WORDS] = 0xe3a00000 | value;		/* mov r0, #value */
	own[PAGE_WORDS + 1] = 0xe12fff1e;		/* bx lr */
	own[2 * PAGE_WORDS] = value;
	__builtin___clear_cache((char *)own, (char *)(own + PAGES * PAGE_WORDS));
}

static int holds(volatile uint32_t *own, uint32_t value)
{
	uint32_t (*code)(void) = (void *)(own + PAGE_WORDS);

	return own[0] == value && code() == value && own[2 * PAGE_WORDS] == value;
}

/* Uses its pages whenever it is asked, for writing, too. */
static void victim(struct victim *me, volatile uint32_t *own, uint32_t value)
{
	char c;

	fill(own, value);
	while (read(me->ask[0], &c, 1) == 1) {
		c = holds(own, value);
		own[0] = value;
		must(write(me->answer[1], &c, 1) == 1, "answer");
	}
	_exit(0);
}

static void wake(struct victim *v)
{
	char c = 0;

	must(write(v->ask[1], &c, 1) == 1, "ask");
	must(read(v->answer[0], &c, 1) == 1, "a victim is gone");
	if (!c) {
		puts("FAIL: a victim's memory has changed");
		exit(1);
	}
}

static void start(volatile uint32_t *own)
{
	unsigned int i, j;

	for (i = 0; i < count; i++) {
		must(!pipe(victims[i].ask) && !pipe(victims[i].answer), "pipe");
		victims[i].pid = fork();
		must(victims[i].pid >= 0, "fork");
		if (!victims[i].pid) {
			for (j = 0; j <= i; j++)
				close(victims[j].ask[1]);
			victim(&victims[i], own, i + 1);
		}
	}
}

static unsigned int counted(const char *name)
{
	char path[64];
	unsigned int n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/debug/fcse/%s", name);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%u", &n) != 1)
		printf("no %s\n", path);
	if (file)
		fclose(file);
	return n;
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? atoi(argv[1]) : 2;
	unsigned int round, slot, i, alias = 0, tries = 0, through = 0, before;
	volatile uint32_t *own;
	uint32_t got = 0;
	enum how how;

	if (argc > 2)
		count = atoi(argv[2]) < VICTIMS ? atoi(argv[2]) : VICTIMS;
	own = mmap(NULL, PAGES * PAGE_WORDS * 4, PROT_READ | PROT_WRITE | PROT_EXEC,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(own != MAP_FAILED, "mmap");
	if ((uintptr_t)own >> SLOT_SHIFT) {
		puts("the process is above 32 MB");
		return 2;
	}
	must(!pipe(pipe_of), "pipe");
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	zero = open("/dev/zero", 0);
	must(zero >= 0, "/dev/zero");
	start(own);
	fill(own, 99);
	signal(SIGSEGV, on_fault);
	signal(SIGBUS, on_fault);
	for (how = READ; how < HOWS; how++) {
		before = counted("domain_faults");
		tries = 0;
		for (round = 0; round < rounds; round++)
			for (i = 0; i < count; i++)
				for (slot = 1; slot < SLOTS; slot++) {
					uintptr_t at = (uintptr_t)own + (slot << SLOT_SHIFT);

					/* Its entries were used a moment ago. */
					if (slot % 24 == 1)
						wake(&victims[i]);
					tries++;
					if (slot == alias || !attack(how, at, &got))
						continue;
					if (alias || how != READ || got != own[0]) {
						printf("FAIL: slot %u is %s: %#x\n", slot, names[how], got);
						through++;
					}
					alias = slot;
				}
		printf("%s: %u tries, %u met an entry\n", names[how], tries,
		       counted("domain_faults") - before);
	}
	for (i = 0; i < count; i++)
		wake(&victims[i]);
	if (!holds(own, 99))
		puts("FAIL: own memory"), through++;
	if (attack(READ, 0xc0008000, &got))
		printf("FAIL: the kernel's memory is read: %#x\n", got), through++;
	printf("own slot %u; %u tries went through\n", alias, through);
	return through != 0;
}
