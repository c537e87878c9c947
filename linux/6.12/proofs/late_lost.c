/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * late_lost ROUNDS r|w [SLOT]
 *
 * One thread of a process takes the pages of a shared mapping of a file away by
 * madvise(MADV_DONTNEED). Another one preempts it when the entry of the first page
 * is gone and the TLB is not flushed yet. It reads the page by read(2), stores to
 * it by its TLB entry, and tells another process, which
 *   r  reads the file by read(2), and may find old words,
 *   w  writes the words beside by write(2); the stores may be lost for good.
 * With a SLOT of 32 MB (best effort) the thread first gets a page table there, by a
 * fault that userfaultfd ends. In the slot of the third process (5 on our board) this empties
 * the caches in between.
 *
 * Root's: it looks into /proc/kpagecount to see that the round met the case. When
 * an entry of the TLB goes with the one in the table, no round does.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE		4096
#define WORDS		(PAGE / 4)
#define LINE		8
#define TABLE		(2 << 20)
/* The mapping lies behind so many pages of its page table. */
#define SHIFTS		16
#define PATIENCE	60
#define DELAY_NS	210000

enum outcome { EARLY, MET, LATE };

static char mode;
static int file, counts, pagemap, faults = -1;
static int slot, question[2], answer[2], to_third[2], from_third[2];
static volatile uint32_t *volatile at;
static volatile uint32_t *charged;
static volatile uint32_t number, old_words;
static volatile int inside;
static volatile enum outcome seen;
static volatile long delay_ns = DELAY_NS;
static uint64_t frame;
static sem_t go, done;
static sigjmp_buf fault, bus;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void on_fault(int signal)
{
	(void)signal;
	siglongjmp(fault, 1);
}

static void on_bus(int signal)
{
	(void)signal;
	siglongjmp(bus, 1);
}

static void before_others(void)
{
	struct sched_param parameters = { 50 };

	if (sched_setscheduler(0, SCHED_FIFO, &parameters))
		die("SCHED_FIFO");
	prctl(PR_SET_TIMERSLACK, 1);
}

static uint32_t ask(int to, int from, uint32_t word)
{
	if (write(to, &word, 4) != 4 || read(from, &word, 4) != 4)
		die("pipe");
	return word;
}

/* The thread that preempts the other one. */
static enum outcome meet(void)
{
	static uint32_t buffer[WORDS];
	struct timespec delay = { 0, delay_ns };
	uint64_t mapped = 1;
	int i;

	if (sigsetjmp(fault, 1))
		return LATE;
	(void)at[0];
	nanosleep(&delay, NULL);
	if (faults >= 0 && !sigsetjmp(bus, 1))
		(void)charged[0];
	if (pread(file, buffer, PAGE, 0) != PAGE)
		die("read");
	for (i = 0; i < WORDS; i += LINE)
		at[i + 1] = number;
	if (pread(counts, &mapped, 8, (off_t)frame * 8) != 8)
		die("kpagecount");
	if (mapped || !inside)
		return EARLY;
	old_words = ask(question[1], answer[0], number);
	return MET;
}

static void *storer(void *arg)
{
	before_others();
	for (;;) {
		while (sem_wait(&go))
			;
		seen = meet();
		sem_post(&done);
	}
	return arg;
}

static void other_process(void)
{
	static uint32_t words[WORDS];
	uint32_t wanted, old;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	before_others();
	while (read(question[0], &wanted, 4) == 4) {
		old = 0;
		if (mode == 'r' && pread(file, words, PAGE, 0) != PAGE)
			die("read");
		for (i = 0; i < WORDS; i += LINE)
			if (mode == 'r')
				old += words[i + 1] != wanted;
			else if (pwrite(file, &wanted, 4, (i + 2) * 4) != 4)
				die("write");
		if (write(answer[1], &old, 4) != 4)
			break;
	}
	_exit(0);
}

static void third_process(void)
{
	uint32_t word;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(to_third[0], &word, 4) == 4)
		if (write(from_third[1], &word, 4) != 4)
			break;
	_exit(0);
}

static void begin_charging(void)
{
	struct uffdio_api api = { .api = UFFD_API,
				  .features = UFFD_FEATURE_SIGBUS };
	struct sigaction action = { .sa_handler = on_bus };

	faults = (int)syscall(SYS_userfaultfd, 0);
	if (faults < 0 || ioctl(faults, UFFDIO_API, &api) ||
	    sigaction(SIGBUS, &action, NULL) || pipe(to_third) ||
	    pipe(from_third))
		die("userfaultfd");
	if (!fork())
		third_process();
}

/* A page whose fault ends in SIGBUS, behind a table for it. */
static void map_charged(void)
{
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	charged = mmap((void *)((uintptr_t)slot << 25), PAGE,
		       PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	range.range.start = (uintptr_t)charged;
	range.range.len = PAGE;
	if (charged == MAP_FAILED || ioctl(faults, UFFDIO_REGISTER, &range))
		die("the third process's slot");
	ask(to_third[1], from_third[0], 0);
}

static void begin(void)
{
	struct sigaction action = { .sa_handler = on_fault };
	pthread_attr_t attr;
	pthread_t thread;

	counts = open("/proc/kpagecount", O_RDONLY);
	pagemap = open("/proc/self/pagemap", O_RDONLY);
	file = memfd_create("file", 0);
	if (counts < 0 || pagemap < 0 || ftruncate(file, TABLE) ||
	    pipe(question) || pipe(answer) || sigaction(SIGSEGV, &action, NULL))
		die("begin");
	if (!fork())
		other_process();
	if (slot)
		begin_charging();
	sem_init(&go, 0, 0);
	sem_init(&done, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	if (pthread_create(&thread, &attr, storer, NULL))
		die("pthread_create");
	setpriority(PRIO_PROCESS, 0, 19);
}

static void take_away(char *where, size_t size)
{
	int i;

	at = mmap(where, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		  file, 0);
	if (at == MAP_FAILED)
		die("mmap");
	for (i = 0; i < WORDS; i++)
		at[i] = 0;
	if (pread(pagemap, &frame, 8, (off_t)((uintptr_t)at / PAGE * 8)) != 8)
		die("pagemap");
	frame &= (1ull << 55) - 1;
	if (faults >= 0) {
		map_charged();
		at[0] = 0;
	}
	old_words = 0;
	sem_post(&go);
	inside = 1;
	madvise((void *)at, size, MADV_DONTNEED);
	inside = 0;
	while (sem_wait(&done))
		;
	munmap((void *)at, size);
	if (faults >= 0)
		munmap((void *)charged, PAGE);
}

static uint32_t lost(void)
{
	static uint32_t words[WORDS];
	volatile uint32_t *page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);
	uint32_t count = 0;
	int i;

	if (page == MAP_FAILED || pread(file, words, PAGE, 0) != PAGE)
		die("look");
	for (i = 0; i < WORDS; i += LINE)
		count += page[i + 1] != number || words[i + 1] != number;
	munmap((void *)page, PAGE);
	return count;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 50, tries, met = 0, unmet = 0;
	unsigned int old_rounds = 0, lost_rounds = 0, shift = 5;
	char *table = mmap(NULL, 2 * TABLE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mode = argc > 2 ? argv[2][0] : 'r';
	table = (char *)(((uintptr_t)table + TABLE - 1) & -TABLE);
	table[TABLE - PAGE] = 1;
	slot = argc > 3 ? atoi(argv[3]) : 0;
	begin();
	for (tries = 0; met < rounds && tries < 20 * rounds + SHIFTS * PATIENCE; tries++) {
		if (unmet == PATIENCE) {
			shift = (shift + 1) % SHIFTS;
			delay_ns = DELAY_NS;
			unmet = 0;
		}
		number = 0x600d0000 + tries;
		take_away(table + shift * PAGE, TABLE - (4 + shift) * PAGE);
		if (seen != MET) {
			unmet++;
			delay_ns += seen == EARLY ? 500 : -300;
			continue;
		}
		met++;
		unmet = 0;
		delay_ns += tries % 3 * 200 - 200;
		old_rounds += old_words != 0;
		lost_rounds += lost() != 0;
	}
	printf("%d tries, %d met: old words in %u, lost stores in %u\n", tries,
	       met, old_rounds, lost_rounds);
	return old_rounds || lost_rounds;
}
