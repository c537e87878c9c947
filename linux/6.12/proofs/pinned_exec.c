// SPDX-License-Identifier: GPL-2.0-only
/*
 * pinned_exec [ROUNDS]: process_vm_writev() into a page whose owner's child of
 * vfork() leaves a dirty line there by its execve() of /bin/gone (gone.c): the
 * end of its robust list. The switch in execve() is away from the owner.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
static unsigned int from[1024];
#include <sys/syscall.h>
static struct ent { struct ent *next; } ent;
static struct { struct ent *next; long offset; struct ent *pending; } head;
static volatile unsigned int *shared;
static void prio(int p) { struct sched_param s = { p }; if (sched_setscheduler(0, p ? SCHED_FIFO : SCHED_OTHER, &s)) perror("prio"); }
static void nap(long us) { struct timespec t = { 0, us * 1000 }; nanosleep(&t, 0); }
int main(int c, char **v)
{
	int rounds = c > 1 ? atoi(v[1]) : 60, i, bad = 0;
	int plain = c > 2;
	volatile unsigned int *page = mmap((void *)0x1000000, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	shared = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < 1024; i++) page[i] = 0;
	pid_t owner = getpid(), copier = fork();
	if (!copier) {
		unsigned int n = 0;
		prio(1);
		for (;;) {
			struct iovec l = { from, 4072 }, r = { (void *)page, 4072 };
			int k;
			while (!shared[0]) nap(300);
			for (k = 0; k < 500 && shared[0]; k++) {
				n++;
				for (i = 0; i < 1018; i++) from[i] = n;
				process_vm_writev(owner, &l, 1, &r, 1, 0);
			}
			shared[0] = 0;
			shared[1] = n;
		}
	}
	for (i = 0; i < rounds; i++) {
		unsigned int want = 0x40000000;
		pid_t pid;
		shared[0] = 1;
		pid = vfork();
		if (!pid) {
			prio(50);
			nap(400 + 37 * (i % 50));
			head.next = &ent; ent.next = (void *)&head; head.offset = (char *)&page[1018] - (char *)&ent;
			syscall(SYS_set_robust_list, &head, sizeof(head));
			page[1018] = syscall(SYS_gettid);
			if (page[8] == page[1017]) _exit(0);
			shared[2]++;
			if (!plain) execl("/bin/gone", "gone", (char *)0);
			_exit(0);
		}
		waitpid(pid, 0, 0);
		while (shared[0]) nap(500);
		nap(500);
		if (page[1018] != want || page[1017] != shared[1]) {
			bad++;
			printf("round %d: owner's word %u, expected %u; copier's %u, expected %u\n", i, page[1018], want, page[1017], shared[1]);
		}
	}
	kill(copier, SIGKILL);
	printf("%d bad, %u met\n", bad, shared[2]);
	return bad != 0;
}
