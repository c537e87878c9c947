/* SPDX-License-Identifier: GPL-2.0-only */
/* fork() copies a page that may be pinned at once. A thread writes P, then Q (which lies below P), then lets another process run. A child that
 * has the new Q has to have the new P: Q is write-protected before P is copied. argv: rounds [pages below] */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/prctl.h>
#include <unistd.h>
static volatile unsigned *P, *Q;
static int to_c[2];
static int pinned = 1, period = 400;
static void rt(int prio) { struct sched_param s = { prio }; if (sched_setscheduler(0, SCHED_FIFO, &s)) perror("fifo"); }
static void *writer(void *unused)
{
	unsigned k = 0; char c = 0;
	rt(20);
	for (;;) {
		struct timespec t = { 0, period * 1000 };
		k++;
		{ unsigned was = *P; asm volatile("" :: "r"(was)); *P = k; }	/* read first: stores do not allocate */
		*Q = k;
		if (write(to_c[1], &c, 1) != 1) perror("write");
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, 0);
	}
	return 0;
}
int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 30, pages = argc > 2 ? atoi(argv[2]) : 1500, bad = 0, met = 0;
	if (argc > 3) pinned = atoi(argv[3]);
	if (argc > 4) period = atoi(argv[4]);
	char *at = mmap(0, (pages + 2) * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED) { perror("mmap"); return 2; }
	for (int i = 0; i < pages + 2; i++) at[i * 4096] = 1;
	Q = (unsigned *)(at + pages * 4096); P = (unsigned *)(at + (pages + 1) * 4096);
	*P = *Q = 0;
	pipe(to_c);
	pid_t c = fork();
	if (!c) { char b; prctl(PR_SET_PDEATHSIG, SIGKILL); rt(10); close(to_c[1]); while (read(to_c[0], &b, 1) == 1); _exit(0); }
	*P = *Q = 0;	/* own again */
	/* it has had a pin: MMF_HAS_PINNED */
	char buf[4]; struct iovec l = { buf, 4 }, r = { (void *)P, 4 };
	if (process_vm_readv(getpid(), &l, 1, &r, 1, 0) != 4) perror("process_vm_readv");
	if (pinned) {	/* as many references as a pin counts for */
		int n = 0;
		for (int p = 0; p < 80 && n < 1100; p++) {
			int fd[2]; pipe(fd);
			fcntl(fd[1], F_SETPIPE_SZ, 1 << 20);
			struct iovec v = { (char *)P + 64, 1 };
			while (n < 1100 && vmsplice(fd[1], &v, 1, SPLICE_F_NONBLOCK) == 1) n++;
		}
		printf("%d references\n", n);
	}
	pthread_t t;
	pthread_attr_t a; pthread_attr_init(&a); pthread_attr_setstacksize(&a, 65536);
	if (pthread_create(&t, &a, writer, 0)) return 2;
	for (int i = 0; i < rounds; i++) {
		unsigned before = *Q;
		pid_t pid = fork();
		if (!pid) {
			unsigned q = *Q, p = *P;
			if (q > before + 1 && p < q && i < 200) { char s[80]; int n = snprintf(s, 80, "round %d: child has Q = %u, P = %u (Q was %u before fork)\n", i, q, p, before); write(1, s, n); }
			_exit((q > before) | (p < q) << 1);
		}
		int st; waitpid(pid, &st, 0);
		st = WEXITSTATUS(st);
		met += st & 1; bad += st >> 1;
		usleep(1000);
	}
	printf("written during the fork in %d rounds, the child had an older P than Q in %d of %d\n", met, bad, rounds);
	fflush(stdout);
	kill(c, SIGKILL);
	_exit(bad != 0);
}
