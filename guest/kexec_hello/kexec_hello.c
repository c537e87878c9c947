// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * kexec_hello: starts another "kernel" by kexec, which needs nothing: it prints
 * a line by the UART and resets the board. The way there is the kernel's way out
 * of its own page tables: caches cleaned, identity map, MMU off.
 *
 * Exit codes: 1 it was not started (else there is nobody to exit), 2 wrong usage.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/kexec.h>
#include <linux/reboot.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* RAM that the running kernel does not occupy. */
#define PLACE	0x02000000u
#define PAGE	4096u

extern const char payload[], payload_end[];

/* The Versatile's UART 0 and system registers. */
__asm__(".text\n"
	".align	2\n"
	".globl	payload, payload_end\n"
	"payload:\n\t"
	"ldr	r4, uart\n\t"
	"adr	r5, text\n"
	"1:\t"
	"ldrb	r6, [r5], #1\n\t"
	"cmp	r6, #0\n\t"
	"beq	3f\n"
	"2:\t"
	"ldr	r7, [r4, #0x18]\n\t"	/* room in the FIFO? */
	"tst	r7, #0x20\n\t"
	"bne	2b\n\t"
	"str	r6, [r4]\n\t"
	"b	1b\n"
	"3:\t"
	"ldr	r7, [r4, #0x18]\n\t"	/* all sent? */
	"tst	r7, #0x08\n\t"
	"bne	3b\n\t"
	"ldr	r4, sysreg\n\t"
	"ldr	r5, unlock\n\t"
	"str	r5, [r4, #0x20]\n\t"
	"ldr	r5, reset\n\t"
	"str	r5, [r4, #0x40]\n"
	"4:\t"
	"b	4b\n"
	"uart:	.word	0x101f1000\n"
	"sysreg:	.word	0x10000000\n"
	"unlock:	.word	0xa05f\n"
	"reset:	.word	0x105\n"
	"text:	.asciz	\"hello from behind kexec\\r\\n\"\n"
	".align	2\n"
	"payload_end:\n");

int main(int argc, char **argv)
{
	struct kexec_segment segment = {
		.buf = payload,
		.bufsz = (size_t)(payload_end - payload),
		.mem = (void *)(uintptr_t)PLACE,
		.memsz = PAGE,
	};

	(void)argv;
	if (argc != 1) {
		fprintf(stderr, "usage: kexec_hello\n");
		return 2;
	}
	if (syscall(SYS_kexec_load, PLACE, 1, &segment, KEXEC_ARCH_DEFAULT)) {
		fprintf(stderr, "kexec_load: %s\n", strerror(errno));
		return 1;
	}
	syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
		LINUX_REBOOT_CMD_KEXEC, NULL);
	fprintf(stderr, "reboot: %s\n", strerror(errno));
	return 1;
}
