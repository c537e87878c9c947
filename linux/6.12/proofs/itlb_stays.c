/* SPDX-License-Identifier: GPL-2.0-only */
/* A correct program: code at P is replaced by mmap(MAP_FIXED), after a mprotect(PROT_NONE). Which code runs after N switches? */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>
static int file(unsigned n, int v)
{
	unsigned code[1024];
	char name[32];
	for (int i = 0; i < 1024; i++) code[i] = 0xe1a00000;
	code[0] = 0xe3a00000 | v;	/* mov r0, #v */
	code[1] = 0xe12fff1e;		/* bx lr */
	snprintf(name, sizeof name, "code%u", n);
	int fd = memfd_create(name, 0);
	if (fd < 0 || write(fd, code, 4096) != 4096) { perror("memfd"); exit(2); }
	return fd;
}
int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 20;
	int turns = argc > 3 ? atoi(argv[3]) : 10;
	int prot = argc > 2 && argv[2][0] == 'r' ? PROT_READ : PROT_NONE;
	int old = file(1, 1), new = file(2, 2), other, at_once = 0, later = 0;
	int p[2], q[2]; char c = 0;
	pipe(p); pipe(q);
	if (!(other = fork())) {	/* another process: each answer is two switches */
		close(p[1]);
		static volatile char own[65536];
		while (read(p[0], &c, 1) == 1) { if (c) for (int i = 0; i < 65536; i += 32) own[i]++; write(q[1], &c, 1); }
		_exit(0);
	}
	for (int r = 0; r < rounds; r++) {
		char *at = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED * 0 + MAP_PRIVATE, old, 0);
		int (*f)(void) = (int (*)(void))at;
		if (f() != 1) puts("?");
		mprotect(at, 4096, prot);
		if (mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, new, 0) != at) { perror("mmap"); return 2; }
		if (f() != 2) at_once++;
		for (int i = 0; i < turns; i++) { c = 0; write(p[1], &c, 1); read(q[0], &c, 1); }
		int bad = 0;
		if (f() != 2) later++, bad = 1;
		sleep(0);
		usleep(20000);
		int much = f();
		if (r < 3) printf("round %d: the word there is %08x; called later: %s; after 20 ms more: %d\n", r, *(unsigned *)at, bad ? "OLD code" : "new code", much);
		munmap(at, 4096);
	}
	printf("old code ran at once in %d, after %d switches to another process in %d of %d rounds\n", at_once, 2 * turns, later, rounds);
	return later != 0;
}
