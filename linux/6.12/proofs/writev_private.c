/* SPDX-License-Identifier: GPL-2.0-only */
/* process_vm_writev() to a page of a file that its target unmaps while the call waits for its own source. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <linux/userfaultfd.h>
#include <unistd.h>
static int uffd, fd, stay[2], to_t[2], from_t[2];
static char source[4096] __attribute__((aligned(4096)));
static void *handler(void *unused)
{
	struct uffd_msg m; char c; char buf[4096];
	if (read(uffd, &m, sizeof m) != sizeof m) perror("uffd read");
	write(to_t[1], "", 1); read(from_t[0], &c, 1);	/* the target unmaps */
	pread(fd, buf, 4096, 0);			/* the kernel has looked */
	struct uffdio_copy u = { .dst = m.arg.pagefault.address & ~4095ul, .src = (unsigned long)source, .len = 4096 };
	if (ioctl(uffd, UFFDIO_COPY, &u)) perror("copy");
	read(stay[0], &c, 1);	/* a stack that is given back would flush */
	return 0;
}
int main(int argc, char **argv)
{
	int private = argc > 2;
	int rounds = argc > 1 ? atoi(argv[1]) : 20, old = 0, lost = 0;
	for (int r = 0; r < rounds; r++) {
		static unsigned init[1024], data[1024];
		for (int i = 0; i < 1024; i++) init[i] = 0x01d00000 + i;
		memset(source, 0x22, 4096);
		fd = memfd_create("file", 0); write(fd, init, 4096);
		pipe(to_t); pipe(from_t); pipe(stay);
		char *at = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		pid_t t = fork();
		if (!t) { char c; *(volatile char *)at; *(volatile int *)(at + 128) = 0x01d00020; write(from_t[1], "", 1); read(to_t[0], &c, 1); munmap(at, 4096); write(from_t[1], "", 1); read(to_t[0], &c, 1); _exit(0); }
		munmap(at, 4096);
		int go[2]; pipe(go);
		/* somebody else looks, by a mapping, later: a fork would flush */
		pid_t p = fork();
		if (!p) {
			char g;
			static volatile char much[1 << 17];
			for (int i = 0; i < 1 << 17; i += 32) much[i]++;
			read(go[0], &g, 1);
			volatile unsigned *m = mmap(0, 4096, PROT_READ | PROT_WRITE, private ? MAP_PRIVATE : MAP_SHARED, fd, 0);
			if (private) m[1000] = 1;	/* the copy is made now */
			if (private) { for (int k = 0; k < 4; k++) for (int i = 0; i < 1 << 17; i += 32) much[i]++; }
			int bad = m[16] != 0x22222222;
			m[100] = 0x600d600d;	/* mine: not in the same write as m[0..127]? it is in the range: written later */
			for (int k = 0; k < 4; k++) for (int i = 0; i < 1 << 17; i += 32) much[i]++;
			int gone = m[100] != 0x600d600d;
			if (r < 3) { char s[100]; write(1, s, snprintf(s, 100, "round %d: the mapping shows %s; what was written there later is %s: %08x\n", r, bad ? "OLD words" : "the new words", gone ? "LOST" : "there", m[100])); }
			_exit(bad | gone << 1);
		}
		char c; read(from_t[0], &c, 1);
		uffd = syscall(__NR_userfaultfd, O_CLOEXEC);
		struct uffdio_api api = { .api = UFFD_API }; if (ioctl(uffd, UFFDIO_API, &api)) { perror("api"); return 2; }
		char *local = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct uffdio_register reg = { .range = { (unsigned long)local, 4096 }, .mode = UFFDIO_REGISTER_MODE_MISSING };
		if (ioctl(uffd, UFFDIO_REGISTER, &reg)) { perror("register"); return 2; }
		pthread_t th; pthread_create(&th, 0, handler, 0);
		struct iovec l = { local, 512 }, rem = { at, 512 };
		if (process_vm_writev(t, &l, 1, &rem, 1, 0) != 512) perror("process_vm_writev");
		write(go[1], "", 1);
		int st; waitpid(p, &st, 0); st = WEXITSTATUS(st); old += st & 1; lost += st >> 1;
		pread(fd, data, 4096, 0);
		write(to_t[1], "", 1); waitpid(t, 0, 0);
		write(stay[1], "", 1); pthread_join(th, 0); close(stay[0]); close(stay[1]); close(uffd); close(fd); munmap(local, 4096);
		close(go[0]); close(go[1]); close(to_t[0]); close(to_t[1]); close(from_t[0]); close(from_t[1]);
	}
	printf("behind process_vm_writev() another process saw old words in %d, and lost its own later store in %d of %d rounds\n", old, lost, rounds);
	return (old | lost) != 0;
}
