// SPDX-License-Identifier: MIT OR Apache-2.0
/* The ops, and how their text is read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "mm_chaos.h"

/* grammar.toml has the same names and arguments. */
const struct op_kind op_kinds[] = {
	{ "ma", "sk", op_map_anon },		/* anonymous, private */
	{ "ms", "sk", op_map_shared },		/* anonymous, shared */
	{ "mp", "skf", op_map_private },	/* a file, private */
	{ "mf", "skf", op_map_file },		/* a file, shared */
	{ "mc", "chx", op_map_code },		/* a file of code, private */
	{ "mx", "chx", op_map_code_shared },	/* a file of code, shared */
	{ "u", "spk", op_unmap },
	{ "uc", "cgh", op_unmap_code },
	{ "p", "spkr", op_protect },		/* 0 none, 1 read, 2 write */
	{ "pc", "cr", op_protect_code },	/* 0 none, 1 run, 2 write */
	{ "w", "spkd", op_write },
	{ "r", "spkd", op_read },
	{ "c", "cgh", op_call },
	{ "kf", "xg", op_code_file },		/* code by pwrite */
	{ "ks", "cg", op_code_store },		/* by stores, and cacheflush */
	{ "v", "ss", op_move },			/* mremap to another slot */
	{ "vc", "cc", op_move_code },
	{ "z", "sk", op_resize },		/* mremap */
	{ "ad", "spk", op_drop },		/* MADV_DONTNEED */
	{ "ac", "c", op_drop_code },
	{ "af", "spk", op_give_back },		/* MADV_FREE */
	{ "ao", "spk", op_page_out },		/* MADV_PAGEOUT */
	{ "ar", "spk", op_remove },		/* MADV_REMOVE */
	{ "aw", "spk", op_will_need },		/* MADV_WILLNEED */
	{ "ap", "spk", op_populate },		/* MADV_POPULATE_WRITE */
	{ "l", "spk", op_lock_pages },		/* mlock */
	{ "lu", "spk", op_unlock_pages },
	{ "t", "fp", op_truncate },
	{ "ph", "fpk", op_punch },		/* a hole, by fallocate */
	{ "fw", "fpd", op_file_write },		/* pwrite */
	{ "fr", "fpd", op_file_read },		/* pread */
	{ "si", "fp", op_splice_in },		/* vmsplice, splice */
	{ "so", "fp", op_splice_out },		/* splice, read */
	{ "ko", "spd", op_pipe_out },		/* write(2) of slot memory */
	{ "ki", "sp", op_pipe_in },		/* read(2) into it */
	{ "vs", "spd", op_lend },		/* vmsplice of it, and read */
	{ "uf", "spk", op_fault_copy },		/* userfaultfd: COPY, ZEROPAGE */
	{ "um", "sspk", op_fault_move },	/* userfaultfd: MOVE */
	{ "xr", "tspd", op_vm_read },		/* process_vm_readv */
	{ "xw", "tsp", op_vm_write },		/* process_vm_writev */
	{ "pt", "tsp", op_poke },		/* ptrace */
	{ "th", "q", op_thread },
	{ "fo", "q", op_fork },
	{ "vx", "q", op_exec },			/* vfork and exec */
	{ "ex", "", op_end },
	{ "j", "", op_join },
	{ "y", "", op_yield },
	{ "n", "m", op_nap },			/* in units of 100 us */
	{ NULL, NULL, NULL },
};

struct program program;
const char *program_text;

static void refuse(unsigned int sequence, const char *op, size_t length,
		   const char *why)
{
	fprintf(stderr, "mm_chaos: sequence %u, op \"%.*s\": %s\n", sequence,
		(int)length, op, why);
	exit(USAGE);
}

static bool in_range(char sort, unsigned long n, unsigned int sequence)
{
	bool code = n >= CODE_SLOT && n < CODE_SLOT + CODE_SLOTS;

	switch (sort) {
	case 's': return n < SLOTS && !code;
	case 'c': return code;
	case 'f': return n < FILES;
	case 'x': return n < CODES;
	case 'p': return n < PAGES;
	case 'k': return n >= 1 && n <= PAGES;
	case 'g': return n < CODE_PAGES;
	case 'h': return n >= 1 && n <= CODE_PAGES;
	case 'd': return n < RINGS;
	case 'r': return n <= 2;
	case 't': return n < PROCESSES;
	case 'm': return n >= 1 && n <= 50;
	/* Only later ones, so that none begins itself. */
	case 'q': return n > sequence && n < program.sequences;
	}
	return false;
}

static const char *wrong_number(char sort)
{
	switch (sort) {
	case 's': return "no slot of data (0 to 3, 6, 7)";
	case 'c': return "no slot of code (4, 5)";
	case 'f': return "no file (0 to 3)";
	case 'x': return "no file of code (0, 1)";
	case 'q': return "no later sequence";
	}
	return "a number is out of range";
}

static const struct op_kind *kind_of(const char *op, size_t length)
{
	const struct op_kind *kind;

	for (kind = op_kinds; kind->name; kind++)
		if (strlen(kind->name) == length &&
		    !strncmp(kind->name, op, length))
			return kind;
	return NULL;
}

static void parse_op(unsigned int sequence, const char *text, size_t length,
		     struct op *op)
{
	size_t name = strspn(text, "abcdefghijklmnopqrstuvwxyz"), i;
	const struct op_kind *kind = kind_of(text, name);
	const char *at = text + name;

	if (!kind)
		refuse(sequence, text, length, "no such op");
	op->what = (uint8_t)(kind - op_kinds);
	for (i = 0; kind->arguments[i]; i++) {
		char *end;
		unsigned long n;

		if (i && *at++ != '.')
			refuse(sequence, text, length, "too few numbers");
		if (*at < '0' || *at > '9')
			refuse(sequence, text, length, "a number is missing");
		n = strtoul(at, &end, 10);
		if (!in_range(kind->arguments[i], n, sequence))
			refuse(sequence, text, length,
			       wrong_number(kind->arguments[i]));
		op->n[i] = (uint8_t)n;
		at = end;
	}
	if (at != text + length)
		refuse(sequence, text, length, "something is behind its numbers");
}

void parse(const char *text)
{
	unsigned int sequence = 0, count = 0;
	const char *at;

	program_text = text;
	program.sequences = 1;
	for (at = text; *at; at++)
		program.sequences += *at == '|';
	if (at - text > (long)TEXT_BYTES || program.sequences > SEQUENCES) {
		fprintf(stderr, "mm_chaos: more than %u bytes or %u sequences\n",
			TEXT_BYTES, SEQUENCES);
		exit(USAGE);
	}
	for (at = text; ; ) {
		size_t length = strcspn(at, " |");

		if (length) {
			if (count - program.first[sequence] == SEQUENCE_OPS)
				refuse(sequence, at, length, "more than 200 ops");
			parse_op(sequence, at, length, &program.ops[count++]);
		}
		at += length;
		if (*at != ' ')
			program.first[++sequence] = count;
		if (!*at++)
			return;
	}
}
