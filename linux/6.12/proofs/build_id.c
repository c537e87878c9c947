// SPDX-License-Identifier: GPL-2.0-only
/*
 * build_id ROUNDS [self], as root, at most 2000 rounds
 *
 * One process stores a build ID to a file by its shared mapping. Another one maps the file.
 * A perf event records each mapping with its build ID, which must be the new one. With
 * "self" the second process stores, too: no switch happens between store and mmap().
 *
 * The kernel reads the build ID in the page cache by its own address, without a flush. The
 * process that has the ring mapped only waits, as switches to it flush.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	4096
#define RING	(64 * PAGE)

struct program {
	Elf32_Ehdr header;
	Elf32_Phdr segment;
	struct { Elf32_Nhdr header; char name[4]; uint32_t id[5]; } note;
};

struct record {
	struct perf_event_header header;
	uint64_t where[4];		/* pid, tid, addr, len, pgoff */
	uint32_t id_bytes, id[5];
};

static int file, go[2], ask[2], answer[2];

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static void make_program(void)
{
	static const struct program program = {
		.header = { .e_ident = ELFMAG "\1\1\1", .e_type = ET_DYN, .e_phoff = sizeof(Elf32_Ehdr), .e_phnum = 1 },
		.segment = { .p_type = PT_NOTE, .p_offset = offsetof(struct program, note),
			.p_filesz = sizeof(program.note) },
		.note = { .header = { 4, sizeof(program.note.id), NT_GNU_BUILD_ID }, .name = "GNU" },
	};

	file = memfd_create("program", 0);
	must(file >= 0 && write(file, &program, sizeof(program)) == sizeof(program), "memfd_create");
}

static volatile uint32_t *shared_id(void)
{
	struct program *program = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	must(program != MAP_FAILED, "mmap");
	return program->note.id;
}

static void writer(volatile uint32_t *shared)
{
	uint32_t id;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ask[0], &id, sizeof(id)) == sizeof(id)) {
		*shared = id;
		must(write(answer[1], &id, sizeof(id)) == sizeof(id), "write");
	}
	exit(0);
}

static void mapper(uint32_t rounds, volatile uint32_t *own)
{
	uint32_t id;
	void *at;

	must(read(go[0], &id, 1) == 1, "read");
	for (id = 1; id <= rounds; id++) {
		if (own)
			*own = id;
		else
			must(write(ask[1], &id, 4) == 4 && read(answer[0], &id, 4) == 4, "the writer");
		at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
		must(at != MAP_FAILED && !munmap(at, PAGE), "mmap of the program");
	}
	exit(0);
}

static volatile struct perf_event_mmap_page *open_ring(pid_t pid)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr), .mmap = 1, .mmap2 = 1, .build_id = 1 };
	int event = syscall(SYS_perf_event_open, &attr, pid, -1, -1, 0);
	void *ring;

	must(event >= 0, "perf_event_open");
	ring = mmap(NULL, PAGE + RING, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
	must(ring != MAP_FAILED, "mmap of the ring");
	return ring;
}

static uint32_t count_old(volatile struct perf_event_mmap_page *control, uint32_t *seen)
{
	volatile unsigned char *ring = (volatile unsigned char *)control + PAGE;
	uint32_t head = control->data_head, tail, old = 0, i;
	struct record record;

	for (tail = 0; tail < head; tail += record.header.size) {
		for (i = 0; i < sizeof(record); i++)
			((unsigned char *)&record)[i] = ring[(tail + i) % RING];
		must(record.header.size, "a record");
		if (record.header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
			old += record.id[0] != ++*seen;
	}
	return old;
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 1 ? atoi(argv[1]) : 100, seen = 0, old;
	volatile struct perf_event_mmap_page *ring;
	pid_t pid;

	make_program();
	must(!pipe(go) && !pipe(ask) && !pipe(answer), "pipe");
	if (argc <= 2 && !fork())
		writer(shared_id());
	pid = fork();
	if (!pid)
		mapper(rounds, argc > 2 ? shared_id() : NULL);
	ring = open_ring(pid);
	must(write(go[1], "", 1) == 1, "write");
	waitpid(pid, NULL, 0);
	old = count_old(ring, &seen);
	printf("%u of %u build IDs are old\n", old, seen);
	return seen == rounds ? old != 0 : 2;
}
