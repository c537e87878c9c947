// SPDX-License-Identifier: GPL-2.0-only
// Bad pointers on a kernel without address spaces: whatever leads into the last megabyte, where only the vectors are,
// is EFAULT of a system call and SIGSEGV of a program, and the kernel goes on. A single word, too, as ioctl() puts one.

#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CACHEFLUSH 0x0f0002
#define FUTEX_WAIT 0

static sigjmp_buf at;
static int bad;

static void caught(int number)
{
    siglongjmp(at, number);
}

static void expect(const char *what, long returned, int wanted)
{
    int error = returned < 0 ? errno : 0;
    if (error == wanted)
        return;
    printf("%s: %s, not %s\n", what, error ? strerror(error) : "done", wanted ? strerror(wanted) : "done");
    bad++;
}

static int stored(uintptr_t address)
{
    int number = sigsetjmp(at, 1);
    if (!number)
        *(volatile int *)address = 1;
    return number;
}

int main(void)
{
    int ends[2];
    char byte = 7;
    if (pipe(ends)) {
        perror("pipe");
        return 2;
    }
    signal(SIGSEGV, caught);
    static const uintptr_t addresses[] = {0xfff00000, 0xfff80000, 0xffff0000, 0xffff0ffc, 0xffff1ffc, 0xffff8000, 0xfffffffc};
    for (unsigned n = 0; n < sizeof addresses / sizeof *addresses; n++) {
        void *there = (void *)addresses[n];
        printf("%p\n", there);
        fflush(stdout);
        expect("write", syscall(SYS_write, ends[1], there, 4), EFAULT);
        expect("pipe of one byte", write(ends[1], &byte, 1), 0);
        expect("ioctl", syscall(SYS_ioctl, ends[0], FIONREAD, there), EFAULT);
        expect("read", syscall(SYS_read, ends[0], there, 1), EFAULT);
        expect("read of one byte", read(ends[0], &byte, 1), 0);
        expect("clock", syscall(SYS_clock_gettime64, CLOCK_MONOTONIC, there), EFAULT);
        expect("futex", syscall(SYS_futex_time64, there, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
        expect("name", syscall(SYS_open, there, 0), EFAULT);
        expect("flush", syscall(CACHEFLUSH, there, UINTPTR_MAX, 0), EFAULT);
        if (stored(addresses[n]) != SIGSEGV) {
            printf("a store is done\n");
            bad++;
        }
    }
    expect("a flush of everything", syscall(CACHEFLUSH, 0, UINTPTR_MAX, 0), EFAULT);
    expect("a flush of itself", syscall(CACHEFLUSH, (uintptr_t)main, (uintptr_t)main + 64, 0), 0);
    printf("%d wrong\n", bad);
    return bad != 0;
}
