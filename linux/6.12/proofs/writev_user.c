/* SPDX-License-Identifier: GPL-2.0-only */
/* As writev_unmapped, as an ordinary user without userfaultfd: the target wakes up in the middle of a long process_vm_writev(), unmaps, and reads the file. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/prctl.h>
#include <unistd.h>
#define PAGES 200
#define SIZE (PAGES * 4096)
static unsigned source[1024], init[SIZE / 4];
int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100, us = argc > 2 ? atoi(argv[2]) : 4000, old = 0, lost = 0, mixed = 0;
	if (setgid(1000) || setuid(1000)) { perror("setuid"); return 2; }
	prctl(PR_SET_DUMPABLE, 1);
	memset(source, 0x22, 4096);
	for (int i = 0; i < SIZE / 4; i++) init[i] = 0x01d00000 + i;
	srand(1);
	for (int r = 0; r < rounds; r++) {
		int fd = memfd_create("file", 0), go[2], to_t[2], from_t[2]; char c;
		if (write(fd, init, SIZE) != SIZE) perror("write");
		pipe(go); pipe(to_t); pipe(from_t);
		int wait = 100 + rand() % us;
		char *at = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		pid_t t = fork();
		if (!t) {
			static char buf[8192];
			prctl(PR_SET_DUMPABLE, 1);
			for (int i = 0; i < SIZE; i += 4096) *(volatile char *)(at + i) = *(volatile char *)(at + i);
			write(from_t[1], "", 1); read(to_t[0], &c, 1);
			usleep(wait);
			munmap(at, SIZE);
			pread(fd, buf, 8192, SIZE - 8192);
			read(to_t[0], &c, 1); _exit(0);
		}
		munmap(at, SIZE);
		pid_t p = fork();
		if (!p) {
			int bad = 0, good = 0, gone = 0;
			static volatile char much[1 << 17];
			for (int i = 0; i < 1 << 17; i += 32) much[i]++;
			read(go[0], &c, 1);
			if (c == 'n') _exit(4);
			volatile unsigned *m = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			for (int i = SIZE / 4 - 1024 * 2; i < SIZE / 4; i += 8) { if (m[i] != 0x22222222) bad++; else good++; m[i] = 0x600d0000 + i; }
			for (int k = 0; k < 4; k++) for (int i = 0; i < 1 << 17; i += 32) much[i]++;
			for (int i = SIZE / 4 - 1024 * 2; i < SIZE / 4; i += 8) gone += m[i] != 0x600d0000 + i;
			if (bad || gone) { char s[120]; write(1, s, snprintf(s, 120, "round %d: of the words in the mapping %d are OLD, %d new; %d of those written there later are LOST\n", r, bad, good, gone)); }
			_exit((bad != 0) | (gone != 0) << 1);
		}
		read(from_t[0], &c, 1);
		static struct iovec l[PAGES]; struct iovec rem = { at, SIZE };
		for (int i = 0; i < PAGES; i++) l[i] = (struct iovec){ source, 4096 };
		pid_t w = fork();	/* of low priority, so that the target preempts it */
		if (!w) {
			nice(19);
			write(to_t[1], "", 1);
			ssize_t n = process_vm_writev(t, l, PAGES, &rem, 1, 0);
			write(go[1], n == SIZE ? "y" : "n", 1);
			pause();
			_exit(n != SIZE);
		}
		int st; waitpid(p, &st, 0); kill(w, 9); waitpid(w, 0, 0); { st = WEXITSTATUS(st); old += st & 1; lost += st >> 1 & 1; mixed += st >> 2; }
		write(to_t[1], "", 1); waitpid(t, 0, 0);
		close(fd); close(go[0]); close(go[1]); close(to_t[0]); close(to_t[1]); close(from_t[0]); close(from_t[1]);
	}
	printf("uid %d: another process saw old words in %d, and lost its own later stores in %d of %d rounds (%d writes refused)\n", getuid(), old, lost, rounds, mixed);
	return (old | lost) != 0;
}
