/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A thread unmaps a shared mapping of a file. In the middle of it another thread
 * reads a page by read(2) that is unmapped already, and then stores to it by the
 * TLB entry that it still has. When all is over, another process looks at the
 * file in both ways, by read(2) and by a mapping of its own: they have to show
 * the same.
 *
 * Few pages are there, as the caches are emptied for many, at the beginning of a
 * mapping in one page table, which takes the time that the other thread needs, and
 * has a page of somebody else, so that it stays.
 *
 * old_entry ROUNDS SHIFT, as root for /proc/kpagecount; the rest is an ordinary
 * user's. SHIFT chooses the sets of the TLB that the pages are in. Where other
 * pages throw the entry out of its set, it is not met: then the next one is tried.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define TABLE	(2 << 20)
#define WORDS	(PAGE / 4)
#define LINE	8	/* words */
#define SHIFTS	16
#define PATIENCE 60	/* tries */
#define DELAY_NS 210000

enum { EARLY, MET, LATE };

static int file, counts, pagemap;
static char *table;
static volatile uint32_t *volatile at;
static volatile long delay_ns = DELAY_NS;
static volatile uint32_t number;
static volatile int inside, seen;
static uint64_t frame;
static sem_t go, done;
static sigjmp_buf fault;

static void on_fault(int signal)
{
	(void)signal;
	siglongjmp(fault, 1);
}

static int meet(void)
{
	static uint32_t buffer[WORDS];
	struct timespec delay = { 0, delay_ns };
	uint64_t count = 1;
	int i;

	if (sigsetjmp(fault, 1))
		return LATE;
	(void)at[0];
	nanosleep(&delay, NULL);
	pread(file, buffer, PAGE, 0);
	for (i = 0; i < WORDS; i += LINE)
		at[i + 1] = number;
	pread(counts, &count, 8, frame * 8);
	return count || !inside ? EARLY : MET;
}

static void *writer(void *arg)
{
	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		while (sem_wait(&go))
			;
		seen = meet();
		sem_post(&done);
	}
	return arg;
}

/* A process that says what read(2) and a mapping show of the number. */
static int question[2], answer[2];

static void look(void)
{
	static uint32_t read_words[WORDS];
	uint32_t both[2], wanted;
	volatile uint32_t *mine;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(question[0], &wanted, 4) == 4) {
		both[0] = both[1] = 0;
		pread(file, read_words, PAGE, 0);
		mine = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);
		for (i = 1; i < WORDS; i += LINE) {
			both[0] += read_words[i] == wanted;
			both[1] += mine[i] == wanted;
		}
		munmap((void *)mine, PAGE);
		write(answer[1], both, sizeof(both));
	}
	_exit(0);
}

static void prepare(void)
{
	int i;

	for (i = 0; i < WORDS; i++)
		at[i] = 0;
	pread(pagemap, &frame, 8, (uintptr_t)at / PAGE * 8);
	frame &= (1ull << 55) - 1;
}

static void start(void)
{
	struct sigaction action = { .sa_handler = on_fault };
	pthread_attr_t attr;
	pthread_t thread;

	file = memfd_create("file", 0);
	ftruncate(file, TABLE);
	pipe(question);
	pipe(answer);
	if (!fork())
		look();
	sigaction(SIGSEGV, &action, NULL);
	sem_init(&go, 0, 0);
	sem_init(&done, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	pthread_create(&thread, &attr, writer, NULL);
	setpriority(PRIO_PROCESS, 0, 19);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100, tries, in = 0, old = 0;
	int shift = argc > 2 ? atoi(argv[2]) % SHIFTS : 5, lines = 0, unmet = 0;

	counts = open("/proc/kpagecount", O_RDONLY);
	pagemap = open("/proc/self/pagemap", O_RDONLY);
	if (counts < 0 || pagemap < 0 || setgid(1000) || setuid(1000))
		return 2;
	table = mmap(NULL, 2 * TABLE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	table = (char *)(((uintptr_t)table + TABLE - 1) & -TABLE);
	table[TABLE - PAGE] = 1;
	start();
	for (tries = 0; in < rounds && tries < 20 * rounds + SHIFTS * PATIENCE; tries++) {
		int size = TABLE - (4 + shift) * PAGE;
		uint32_t both[2];

		if (unmet == PATIENCE) {
			shift = (shift + 1) % SHIFTS;
			delay_ns = DELAY_NS;
			unmet = 0;
			continue;
		}
		number = 0x600d0000 + tries;
		at = mmap(table + shift * PAGE, size, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_FIXED, file, 0);
		if (at == MAP_FAILED)
			return 3;
		prepare();
		sem_post(&go);
		inside = 1;
		munmap((void *)at, size);
		inside = 0;
		while (sem_wait(&done))
			;
		write(question[1], (void *)&number, 4);
		read(answer[0], both, sizeof(both));
		if (seen == MET) {
			in++;
			unmet = 0;
			old += both[0] < both[1];
			lines += both[1] - both[0];
			delay_ns += tries % 3 * 200 - 200;
		} else {
			unmet++;
			delay_ns += seen == EARLY ? 500 : -300;
		}
		if (argc > 3)
			printf("%ld %d: read %d, mapped %d\n", delay_ns, seen, both[0], both[1]);
	}
	printf("%d tries, %d met; read(2) shows another process old words in %d, of %d lines\n",
	       tries, in, old, lines);
	return old != 0;
}
