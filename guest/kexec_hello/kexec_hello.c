// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * kexec_hello: starts another "kernel" by kexec, which needs nothing: it prints
 * a line by the UART and resets the board. The way there is the kernel's way out
 * of its own page tables: caches cleaned, identity map, MMU off.
 *
 * Before it prints, it turns the MMU on with page tables of its own, as a kernel
 * would, and counts the translations that are still the old kernel's: entries
 * locked into the TLB outlive "invalidate all" and the MMU being off.
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
	/* Page tables of its own: as with the MMU off, but the sections that a kernel
	 * is in and the last one, which has the vectors, are this one. */
	"ldr	r8, marker\n\t"
	"ldr	r1, table\n\t"
	"ldr	r2, section\n\t"
	"mov	r0, #0\n"
	"5:\t"
	"orr	r3, r2, r0, lsl #20\n\t"
	"str	r3, [r1, r0, lsl #2]\n\t"
	"add	r0, r0, #1\n\t"
	"cmp	r0, #4096\n\t"
	"bne	5b\n\t"
	"orr	r2, r2, #0x02000000\n\t"
	"add	r3, r1, #0x3000\n\t"
	"add	r4, r3, #32\n"
	"6:\t"
	"str	r2, [r3], #4\n\t"
	"cmp	r3, r4\n\t"
	"bne	6b\n\t"
	"sub	r0, r0, #1\n\t"
	"str	r2, [r1, r0, lsl #2]\n\t"
	"mov	r3, #0x02000000\n\t"
	"add	r3, r3, #0xf0000\n\t"
	"str	r8, [r3]\n\t"
	"add	r3, r3, #0x1000\n\t"
	"str	r8, [r3]\n\t"
	"mov	r3, #0x02000000\n\t"
	"add	r3, r3, #0x80000\n\t"
	"str	r8, [r3]\n\t"
	/* The TLB as a kernel finds it that invalidates it when it starts. */
	"mvn	r3, #0\n\t"
	"mcr	p15, 0, r3, c3, c0, 0\n\t"
	"mcr	p15, 0, r1, c2, c0, 0\n\t"
	"mcr	p15, 0, r0, c8, c7, 0\n\t"
	"mrc	p15, 0, r3, c1, c0, 0\n\t"
	"orr	r3, r3, #1\n\t"
	"mcr	p15, 0, r3, c1, c0, 0\n\t"
	"nop\n\tnop\n\tnop\n\t"
	/* How many are still somebody else's? */
	"mov	r9, #'0'\n\t"
	"mov	r3, #0xc0000000\n\t"
	"add	r3, r3, #0x80000\n\t"
	"add	r4, r3, #0x800000\n"
	"7:\t"
	"ldr	r5, [r3]\n\t"
	"cmp	r5, r8\n\t"
	"addne	r9, r9, #1\n\t"
	"add	r3, r3, #0x100000\n\t"
	"cmp	r3, r4\n\t"
	"bne	7b\n\t"
	"ldr	r3, vectors\n\t"
	"ldr	r5, [r3]\n\t"
	"cmp	r5, r8\n\t"
	"addne	r9, r9, #1\n\t"
	"add	r3, r3, #0x1000\n\t"
	"ldr	r5, [r3]\n\t"
	"cmp	r5, r8\n\t"
	"addne	r9, r9, #1\n\t"
	"adr	r5, digit\n\t"
	"strb	r9, [r5]\n\t"
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
	"marker:	.word	0x6d61726b\n"
	"table:	.word	0x02004000\n"
	"section:	.word	0x00000c12\n"
	"vectors:	.word	0xffff0000\n"
	"text:	.ascii	\"hello from behind kexec, old translations: \"\n"
	"digit:	.asciz	\"?\\r\\n\"\n"
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
