// SPDX-License-Identifier: GPL-2.0-only
/*
 * disk_entries ROUNDS, as root, with /dev/zram0 and VFAT
 *
 * One process has a block device mapped, and sees the root directory of the file system
 * on it. Another one makes a file: the file system stores its entry by the kernel's
 * address. The first must see it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE	4096
#define SECTOR	PAGE
#define DEVICE	"/dev/zram0"
#define SIZE	"/sys/block/zram0/disksize"
#define AT	"/mnt"
#define ENTRY	32
/* Behind the boot sector and one table. */
#define ROOT	(2 * SECTOR)

static int device, ask[2], answer[2];

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

/* FAT12 with 1024 sectors. */
static void format(void)
{
	static unsigned char disk[16 * SECTOR];
	static const unsigned char boot[] = {
		0xeb, 0x3c, 0x90, 'M', 'S', 'D', 'O', 'S', '5', '.', '0',
		0, SECTOR >> 8, 1, 1, 0, 1, 0, 2, 0, 4, 0xf8, 1, 0, 32, 0, 2, 0,
	};

	memcpy(disk, boot, sizeof(boot));
	disk[36] = 0x80;
	disk[38] = 0x29;
	memcpy(disk + 43, "NO NAME    FAT12   ", 19);
	disk[510] = 0x55;
	disk[511] = 0xaa;
	memcpy(disk + SECTOR, "\xf8\xff\xff", 3);
	must(pwrite(device, disk, sizeof(disk), 0) == sizeof(disk) && !fsync(device), "pwrite");
}

static unsigned int entries(const volatile unsigned char *directory)
{
	unsigned int at, count = 0;

	for (at = 0; at < PAGE; at += ENTRY)
		count += directory[at] == 'F';
	return count;
}

static void watcher(void)
{
	unsigned char *directory = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, device, ROOT);
	unsigned int count;

	must(directory != MAP_FAILED, "mmap");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ask[0], &count, sizeof(count)) == sizeof(count)) {
		count = entries(directory);
		must(write(answer[1], &count, sizeof(count)) == sizeof(count), "write");
	}
	exit(0);
}

static unsigned int asked(void)
{
	unsigned int count = 0;

	must(write(ask[1], &count, sizeof(count)) == sizeof(count), "write");
	must(read(answer[0], &count, sizeof(count)) == sizeof(count), "read");
	return count;
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? atoi(argv[1]) : 20, unseen = 0, round;
	int size = open(SIZE, O_WRONLY);

	must(rounds <= PAGE / ENTRY, "a page has 128 entries: ROUNDS");
	must(size >= 0 && write(size, "4M", 2) == 2, SIZE);
	device = open(DEVICE, O_RDWR);
	must(device >= 0, DEVICE);
	format();
	/* What is mounted must not be open for writing. */
	close(device);
	mkdir(AT, 0755);
	must(!mount(DEVICE, AT, "vfat", 0, ""), "mount");
	device = open(DEVICE, O_RDONLY);
	must(device >= 0, DEVICE);
	must(!pipe(ask) && !pipe(answer), "pipe");
	if (!fork())
		watcher();
	for (round = 1; round <= rounds; round++) {
		char name[32];
		int made;

		asked();
		snprintf(name, sizeof(name), AT "/F%03u.A", round);
		made = open(name, O_CREAT | O_WRONLY, 0600);
		must(made >= 0 && !close(made), name);
		unseen += asked() != round;
	}
	printf("%u rounds, the mapping does not show the new entry in %u\n", rounds, unseen);
	return unseen != 0;
}
