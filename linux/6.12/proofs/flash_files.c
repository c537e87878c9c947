/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files of a product's flash: UBIFS on the (simulated) NAND, and squashfs in a file there, by a loop device. In each
 * round a file has other words; they are read by a mapping and by read(2), before and after the page cache is emptied.
 * On UBIFS they are also written by a shared mapping.
 *
 * flash_files ROUNDS
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/loop.h>
#include <mtd/ubi-user.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE	(4 * 4096)
#define WORDS	(SIZE / 4)
#define FLASH	"/tmp/flash"
#define SQUASH	"/tmp/squash"

static uint32_t words[WORDS];

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static void mount_flash(void)
{
	struct ubi_attach_req attach = { .ubi_num = 0, .mtd_num = 0 };
	struct ubi_mkvol_req volume = { .vol_id = 0, .alignment = 1, .vol_type = UBI_DYNAMIC_VOLUME };
	int control = open("/dev/ubi_ctrl", O_RDWR), ubi;

	if (control < 0 || ioctl(control, UBI_IOCATT, &attach) < 0)
		fail("UBI_IOCATT");
	ubi = open("/dev/ubi0", O_RDWR);
	volume.bytes = 4 << 20;
	volume.name_len = 5;
	memcpy(volume.name, "files", 6);
	if (ubi < 0 || ioctl(ubi, UBI_IOCMKVOL, &volume) < 0)
		fail("UBI_IOCMKVOL");
	mkdir(FLASH, 0755);
	if (mount("ubi0:files", FLASH, "ubifs", 0, ""))
		fail("mount of ubifs");
}

static void forget_pages(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	sync();
	if (write(fd, "3", 1) != 1)
		fail("drop_caches");
	close(fd);
}

static void fill(volatile uint32_t *at, uint32_t word)
{
	int i;

	for (i = 0; i < WORDS; i++)
		at[i] = word + i;
}

static int wrong_words(const volatile uint32_t *at, uint32_t word)
{
	int i, wrong = 0;

	for (i = 0; i < WORDS; i++)
		wrong += at[i] != word + i;
	return wrong;
}

/* Reads a file both ways, twice. */
static int wrong_in(const char *name, uint32_t word)
{
	int fd = open(name, O_RDONLY), wrong = 0, times;
	volatile uint32_t *map;

	if (fd < 0)
		fail(name);
	for (times = 0; times < 2; times++) {
		map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED)
			fail("mmap");
		wrong += wrong_words(map, word);
		memset(words, 0, SIZE);
		wrong += pread(fd, words, SIZE, 0) != SIZE || wrong_words(words, word);
		munmap((void *)map, SIZE);
		forget_pages();
	}
	close(fd);
	return wrong;
}

static int on_ubifs(uint32_t word)
{
	const char *name = FLASH "/file";
	int fd = open(name, O_RDWR | O_CREAT, 0644), wrong;
	volatile uint32_t *map;

	if (fd < 0)
		fail(name);
	fill(words, word);
	if (pwrite(fd, words, SIZE, 0) != SIZE)
		fail("write");
	wrong = wrong_in(name, word);
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	fill(map, word | 0x8000);
	wrong += pread(fd, words, SIZE, 0) != SIZE || wrong_words(words, word | 0x8000);
	munmap((void *)map, SIZE);
	wrong += wrong_in(name, word | 0x8000);
	close(fd);
	return wrong;
}

/* The inodes of a squashfs, and what comes before and behind them; nothing is compressed. */
struct inode {
	uint16_t type, mode, user, group;
	uint32_t time, number;
} __attribute__((packed));

struct squashfs {
	uint32_t magic, inodes, time, block_size, fragments;
	uint16_t compression, block_log, flags, users, major, minor;
	uint64_t root, size, user_table, attributes, inode_table, entry_table, fragment_table, lookup;
	uint32_t data[WORDS];
	uint16_t inodes_size;
	struct inode file;
	uint32_t file_start, file_fragment, file_offset, file_size, file_block;
	struct inode dir;
	uint32_t dir_start, dir_links;
	uint16_t dir_size, dir_offset;
	uint32_t dir_parent;
	uint16_t entries_size;
	uint32_t entries, entry_start, entry_number;
	uint16_t entry_offset, entry_delta, entry_type, entry_length;
	char entry_name[4];
	uint16_t users_size;
	uint32_t user;
	uint64_t users_at;
	char end[4096];
} __attribute__((packed));

#define AT(field)	offsetof(struct squashfs, field)
#define NONE		(~0ull)
#define AS_IT_IS	0x8000	/* of a table's size: not compressed */

/* One file "file" in the root directory. */
static void make_squashfs(struct squashfs *s, uint32_t word)
{
	*s = (struct squashfs){
		.magic = 0x73717368, .inodes = 2, .block_size = 1 << 17, .compression = 1, .block_log = 17,
		.users = 1, .major = 4, .root = AT(dir) - AT(file), .size = AT(end), .user_table = AT(users_at),
		.attributes = NONE, .inode_table = AT(inodes_size), .entry_table = AT(entries_size),
		.fragment_table = NONE, .lookup = NONE,
		.inodes_size = AS_IT_IS | (AT(entries_size) - AT(file)),
		.file = { .type = 2, .mode = 0444, .number = 1 },
		.file_start = AT(data), .file_fragment = ~0u, .file_size = SIZE, .file_block = 1 << 24 | SIZE,
		.dir = { .type = 1, .mode = 0555, .number = 2 },
		.dir_links = 2, .dir_size = AT(users_size) - AT(entries) + 3, .dir_parent = 3,
		.entries_size = AS_IT_IS | (AT(users_size) - AT(entries)),
		.entry_number = 1, .entry_type = 2, .entry_length = 3, .entry_name = "file",
		.users_size = AS_IT_IS | 4, .users_at = AT(users_size),
	};
	fill(words, word);
	memcpy(s->data, words, SIZE);
}

static int on_squashfs(uint32_t word)
{
	static struct squashfs image;
	struct loop_config config = { .info.lo_flags = LO_FLAGS_READ_ONLY };
	int control = open("/dev/loop-control", O_RDWR), loop, number, wrong;
	char name[20];

	make_squashfs(&image, word);
	config.fd = open(FLASH "/image", O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (write(config.fd, &image, sizeof(image) & ~511) < 0)
		fail("write of the image");
	number = ioctl(control, LOOP_CTL_GET_FREE);
	sprintf(name, "/dev/loop%d", number);
	loop = open(name, O_RDONLY);
	if (loop < 0 || ioctl(loop, LOOP_CONFIGURE, &config))
		fail("loop device");
	mkdir(SQUASH, 0755);
	if (mount(name, SQUASH, "squashfs", MS_RDONLY, ""))
		fail("mount of squashfs");
	wrong = wrong_in(SQUASH "/file", word);
	umount(SQUASH);
	ioctl(loop, LOOP_CLR_FD, 0);
	close(loop);
	close(config.fd);
	close(control);
	return wrong;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 4, round, ubifs = 0, squash = 0;

	mount_flash();
	for (round = 1; round <= rounds; round++) {
		ubifs += on_ubifs(round << 16) != 0;
		squash += on_squashfs(round << 16) != 0;
	}
	umount(FLASH);
	printf("%d rounds, words are wrong on ubifs in %d, on squashfs in %d\n", rounds, ubifs, squash);
	return ubifs || squash;
}
