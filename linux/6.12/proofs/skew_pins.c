/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fs/direct-io.c takes pins by folio_add_pin(), which does not count them in
 * NR_FOLL_PIN_ACQUIRED, and drops them by unpin_user_page(), which counts them in
 * NR_FOLL_PIN_RELEASED. After one direct read of a page the two differ by two with
 * nothing pinned; and they are equal while somebody has two pages pinned.
 *
 * skew_pins MANY [MORE], as root, on a kernel with a file system that uses
 * fs/direct-io.c: makes that difference MANY. What follows is for an ordinary
 * user, who reads such a file, too, and /proc/vmstat.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE	4096

static int put(const char *path, const char *what)
{
	int fd = open(path, O_WRONLY), ok;

	ok = fd >= 0 && write(fd, what, strlen(what)) == (int)strlen(what);
	close(fd);
	return ok ? 0 : -1;
}

/* A FAT12 of 1024 sectors of 4 KB. */
static int make(const char *path)
{
	static unsigned char s[2 * PAGE];
	int fd = open(path, O_WRONLY), ok;

	memcpy(s, "\xeb\x3c\x90MSDOS5.0", 11);
	s[12] = PAGE >> 8;	/* bytes in a sector */
	s[13] = 1;		/* sectors in a cluster */
	s[14] = 1;		/* reserved */
	s[16] = 1;		/* FATs */
	s[17] = 128;		/* entries of the root */
	s[20] = 1024 >> 8;	/* sectors */
	s[21] = 0xf8;
	s[22] = 1;		/* sectors of a FAT */
	s[24] = 32;
	s[26] = 2;
	s[510] = 0x55;
	s[511] = 0xaa;
	memcpy(s + PAGE, "\xf8\xff\xff", 3);
	ok = fd >= 0 && write(fd, s, sizeof(s)) == sizeof(s);
	close(fd);
	return ok ? 0 : -1;
}

static long difference(void)
{
	unsigned long acquired = 0, released = 0;
	char line[128];
	FILE *f = fopen("/proc/vmstat", "r");

	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "nr_foll_pin_acquired %lu", &acquired);
		sscanf(line, "nr_foll_pin_released %lu", &released);
	}
	if (f)
		fclose(f);
	return (long)(released - acquired);
}

int main(int argc, char **argv)
{
	int many = argc > 1 ? atoi(argv[1]) : 2, fd, reads = 0;
	char *buffer = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mkdir("/tmp/fat", 0777);
	put("/sys/block/zram0/disksize", "4194304");
	if (make("/dev/zram0") ||
	    mount("/dev/zram0", "/tmp/fat", "msdos", 0, "")) {
		perror("zram0");
		return 2;
	}
	fd = open("/tmp/fat/file", O_RDWR | O_CREAT, 0666);
	memset(buffer, 1, PAGE);
	if (write(fd, buffer, PAGE) != PAGE || fsync(fd))
		perror("write");
	close(fd);
	printf("released - acquired: %ld\n", difference());
	if (argc > 2 || setgid(1000) || setuid(1000))
		return 0;
	fd = open("/tmp/fat/file", O_RDONLY | O_DIRECT);
	while (difference() < many && reads++ < many)
		if (pread(fd, buffer, PAGE, 0) != PAGE) {
			perror("pread");
			return 3;
		}
	printf("released - acquired: %ld\n", difference());
	return 0;
}
