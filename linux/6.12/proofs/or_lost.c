// SPDX-License-Identifier: GPL-2.0-only
/*
 * or_lost ROUNDS: "fcse_state.pinned |= FCSE_PINNED_ANON" of one process is
 * preempted between load and store by another one that sets FCSE_PINNED_SHARED,
 * and waits with its pin: the flag is lost, switches flush no more. What follows
 * is pinned_file. Root's (SCHED_FIFO). --set caches.dcache_bytes=128K
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define PAGES	64
/* 0 step of the owner, 1 the disturber is to run, 2 it does not, 3 round */
static volatile unsigned int *shared;
static volatile unsigned int *page = (void *)0x1000000;
static char *gap;
static int uffd, fd;
static char source[4096] __attribute__((aligned(4096)));
static char sink[4096];
static volatile int go, again;
static void prio(int p) { struct sched_param s = { p }; if (sched_setscheduler(0, p ? SCHED_FIFO : SCHED_OTHER, &s)) perror("prio"); }
static void nap(long ns) { struct timespec t = { 0, ns }; nanosleep(&t, 0); }
static void *reader(void *unused)
{
	for (;;) {
		struct iovec to[2] = { { sink, 32 }, { gap + 8192, 4 } };
		while (!go) nap(100000);
		go = 0;
		if (preadv(fd, to, 2, 0) != 36) perror("preadv");
		again++;
	}
}
static unsigned long fault(void)
{
	struct uffd_msg msg;
	if (read(uffd, &msg, sizeof(msg)) != sizeof(msg)) { perror("uffd read"); exit(3); }
	return msg.arg.pagefault.address & ~4095ul;
}
static void resolve(unsigned long at)
{
	struct uffdio_copy c = { .dst = at, .src = (unsigned long)source, .len = 4096 };
	if (ioctl(uffd, UFFDIO_COPY, &c)) { perror("copy"); exit(3); }
}
static void *monitor(void *unused)
{
	for (;;) {
		unsigned long first = fault(), second, third;
		nap(300000);		/* the disturber goes on, and stores its flag */
		shared[1] = 0;
		while (!shared[2]) nap(100000);
		go = 1;			/* somebody reads the file, and does not finish */
		second = fault();
		resolve(first);		/* the copier goes on, into the reader's lines */
		third = fault();
		shared[0] = 1;		/* the owner stores now */
		while (shared[0] != 2) nap(100000);
		resolve(third);
		while (again < 1) nap(100000);
		resolve(second);
		while (again < 2) nap(100000);
		again = 0;
		shared[0] = 3;
	}
}
static void disturb(char *of, pid_t whose)
{
	char byte = 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		struct iovec l = { &byte, 1 }, r = { of, PAGES * 4096 };
		shared[2] = 1;
		while (!shared[1]) nap(100000);
		shared[2] = 0;
		while (shared[1])
			if (process_vm_writev(whose, &l, 1, &r, 1, 0) != 1) perror("disturber");
	}
}
static void copy(pid_t owner, int rounds)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	pthread_t t;
	int i;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(source, 0x55, sizeof(source));
	memset(sink, 0, sizeof(sink));
	gap = mmap(0, 12288, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api)) { perror("uffd"); exit(3); }
	reg.range.start = (unsigned long)gap; reg.range.len = 12288;
	if (ioctl(uffd, UFFDIO_REGISTER, &reg)) { perror("register"); exit(3); }
	pthread_create(&t, NULL, monitor, NULL);
	pthread_create(&t, NULL, reader, NULL);
	prio(50);
	for (i = 0; i < rounds; i++) {
		struct iovec l[2] = { { gap, 8 }, { gap + 4096, 8 } };
		struct iovec r = { (void *)(page + 2), 16 };
		shared[1] = 1;
		while (shared[2]) nap(100000);
		nap(300000 + rand() % 500000);
		if (process_vm_writev(owner, l, 2, &r, 1, 0) != 16) { perror("writev"); exit(3); }
		again++;
		while (shared[0] != 3) nap(100000);
		madvise(gap, 12288, MADV_DONTNEED);
		shared[0] = 4;
		while (shared[0] != 0) nap(100000);
	}
	exit(0);
}
int main(int c, char **v)
{
	int rounds = c > 1 ? atoi(v[1]) : 100, i, bad = 0;
	pid_t owner = getpid();
	char *of;
	shared = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fd = memfd_create("m", 0);
	ftruncate(fd, 4096);
	of = mmap(0, PAGES * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	shared[2] = 0;
	if (!fork()) {	/* whose pages the disturber pins */
		pid_t me = getpid();
		memset(of, 1, PAGES * 4096);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!fork()) disturb(of, me);
		for (;;) pause();
	}
	while (!shared[2]) nap(100000);
	if (!fork()) copy(owner, rounds);
	mmap((void *)page, 4096, 3, MAP_SHARED | MAP_FIXED, fd, 0);
	for (i = 0; i < rounds; i++) {
		page[0] = 2 * i + 1;
		while (shared[0] != 1) nap(100000);
		page[0] = 2 * i + 2;	/* nobody else ever writes this word */
		shared[0] = 2;
		while (shared[0] != 4) nap(100000);
		if (page[0] != 2 * i + 2) {
			bad++;
			printf("round %d: owner's word %u, expected %u\n", i, page[0], 2 * i + 2);
		}
		shared[0] = 0;
	}
	printf("%d of %d bad\n", bad, rounds);
	return bad != 0;
}
