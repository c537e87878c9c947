/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Programs of memory management, and a model that says what each word has to
 * be. The model is in memory that all processes of a program share.
 */
#ifndef MM_CHAOS_H
#define MM_CHAOS_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAGE		4096u
#define PAGE_WORDS	(PAGE / sizeof(uint32_t))
#define LINE_WORDS	8u

#define SEQUENCES	16u
#define SEQUENCE_OPS	200u
#define TEXT_BYTES	3500u
#define OPS		(TEXT_BYTES / 2)
#define NUMBERS		4u	/* of an op, at most */

#define SLOTS		8u
#define PAGES		64u	/* of a slot, at most */
#define CODE_SLOT	4u	/* the first of two: no data is ever there */
#define CODE_SLOTS	2u
#define CODE_PAGES	8u
#define HIGH_SLOT	7u	/* above 32 MB, where a process may be there */

/* What can be mapped in several places: files, files of code, shared memory. */
#define FILES		4u
#define CODES		2u
#define SHARED		8u
#define BACKINGS	(FILES + CODES + SHARED)
#define FIRST_SHARED	(FILES + CODES)

#define TASKS		24u	/* at a time */
#define PROCESSES	32u	/* in all */
#define STARTS		150u	/* of tasks, in all */
#define RINGS		3u
#define WRONG_LINES	10u

/* Exit codes. */
enum { GOOD = 0, WRONG = 1, USAGE = 2, HUNG = 3, UNABLE = 4 };

/*
 * A word says where it belongs: its page, its object, and when it was written.
 * The words of a page are in three rings: a few, some more, all others. What is
 * written goes to the first ring or the first two or all; within a ring all
 * words are alike.
 */
#define OBJECTS		64u
#define STAMP_BITS	20

struct page_model {
	uint32_t word[RINGS];
	uint8_t unknown;	/* rings, a bit each: nothing is known */
	uint8_t or_zero;	/* rings that may have become zero */
	bool own;		/* of a private file mapping: copied */
};

/*
 * Changes that began and ended, counted: what was checked is sure if none was
 * under way meanwhile.
 */
struct backing {
	uint32_t lock;
	uint32_t begun, ended;
	uint32_t cuts;		/* times that the file was made shorter */
	bool stored;		/* perhaps to, through a mapping */
	uint32_t stores;	/* of code through a mapping */
	uint64_t ever;		/* objects of which it may have words */
	struct page_model page[PAGES];
};

enum kind { NOTHING, ANON, SHARING, PRIVATE };

/*
 * While changes of a slot are under way it is in flux. Two at a time make it
 * muddled: then nobody knows what became of it, or of the backings that it
 * showed meanwhile, which are held: they count as under change, too.
 */
struct slot {
	uint32_t lock;
	uint32_t begun, ended;
	uint32_t shape_lock;	/* one mapping, unmapping or moving at a time */
	uint32_t far_lock;	/* neither moved nor written from far away */
	uint32_t shapes;	/* begun */
	bool muddled;
	bool held_alone;	/* the one backing, by nobody else */
	uint32_t held_at;	/* its count then */
	uint16_t shown, held;	/* backings, a bit each */
	uint8_t kind, backing, object, count;
	uint8_t runs;		/* code: may be called */
	uint32_t callers;	/* who do so */
	uint32_t cuts, stores;	/* of the backing, when last looked at */
	uint32_t file_at;	/* and changes of it, when it was mapped */
	uint64_t ever;
	struct page_model page[PAGES];
};

enum verdict { PENDING, KEPT, CHANGED, RESHAPED };

struct process {
	int pid;
	uint32_t alive;
	uint32_t threads;	/* besides the first */
	uint32_t inherited;	/* slots come from a fork that has no verdict */
	uint8_t verdict[SLOTS];
	uintptr_t base, high;
	struct slot slot[SLOTS];
};

struct control {
	uint32_t lock;
	uint32_t stamps, objects, shares, starts, processes;
	uint32_t tasks;		/* alive, a bit each */
	uint32_t starter[TASKS]; /* the identity of who began that task */
	uint32_t ops, words, faults, wrong;
	bool lenient;		/* known bugs of plain Linux are left alone */
	int own_file, files[FILES + CODES];
	struct backing backing[BACKINGS];
	struct process process[PROCESSES];
};

/* A thread, wherever it is. */
struct task {
	unsigned int number, id, sequence, op;
	int pipe[2];
	bool over;
	volatile bool armed;
	sigjmp_buf fault;
	uint32_t *scratch;	/* a page */
};

struct op {
	uint8_t what;
	uint8_t n[NUMBERS];
};

struct program {
	unsigned int sequences;
	unsigned int first[SEQUENCES + 1];
	struct op ops[OPS];
};

/*
 * Arguments, a letter each: s slot of data, c slot of code, f file, x file of
 * code, p page, k pages, d rings, r rights, q sequence, t process, m number, and
 * g and h are p and k of code.
 */
struct op_kind {
	const char *name;
	const char *arguments;
	void (*run)(const uint8_t *n);
};

extern const struct op_kind op_kinds[];
extern struct program program;
extern const char *program_text;
extern struct control *control;
extern struct process *self;
extern __thread struct task me;

/* parse.c: exit with USAGE when the text is none. */
void parse(const char *text);

/* model.c */
void lock(uint32_t *at);
void unlock(uint32_t *at);
void nap(long us);
uint32_t add(uint32_t *at, uint32_t more);
uint32_t new_stamp(void);
uint8_t new_object(void);
uint32_t word_of(uint8_t object, unsigned int page, uint32_t stamp);
/* The ring of a word of a page. */
unsigned int ring_of(unsigned int word);
/* The n-th word of the first rings, 0 to `ring`; PAGE_WORDS behind the last. */
unsigned int word_at(unsigned int ring, unsigned int n);
volatile uint32_t *address(const struct process *process, unsigned int slot,
			   unsigned int page);
/* A slot of this process; waits until it is known what a fork has made of it. */
struct slot *own_slot(unsigned int slot);
void say_wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * What follows may fault; only where this gives true it is run, and there again
 * with false behind a fault.
 */
#define GUARDED() (me.armed = true, !sigsetjmp(me.fault, 0))
void unguard(void);
void catch_faults(void);

/* change.c */
enum effect { NONE, WRITTEN, ZEROED, FREED, DROPPED, LOST, COPIED };
#define MAY_WRITE	1u	/* to what a backing has */
struct change {
	struct slot *slot;
	bool calm;		/* the backing of a private mapping, at first */
	uint32_t calm_at;
	enum kind kind;
	uint8_t backing, object;
};
void change_begin(struct change *change, struct slot *slot, unsigned int flags);
/* What the change has made of so many pages; between these two. */
void change_effect(struct change *change, unsigned int page, unsigned int count,
		   enum effect effect, uint32_t stamp, unsigned int ring);
bool change_is_alone(const struct change *change);
void change_end(struct change *change);
/* A backing is to be seen in the slot as well. */
void change_shows(struct change *change, unsigned int backing);

/* The same of a file by itself. */
struct file_change {
	struct backing *backing;
	bool alone;
	uint32_t at;
};
void file_begin(struct file_change *change, unsigned int backing);
void file_effect(struct file_change *change, unsigned int page,
		 unsigned int count, enum effect effect, uint32_t stamp,
		 unsigned int ring);
void file_end(struct file_change *change);

/* words.c: what is seen, and what it should be. */
struct view {
	struct slot *slot;
	struct backing *backing;
	unsigned int slot_number, page;
	bool sure;
	uint32_t slot_at, backing_at;
	struct page_model expected;
	enum kind kind;
};
#define ODD_WORDS	8u
struct seen {
	unsigned int odd;
	uint16_t place[ODD_WORDS];
	uint32_t word[ODD_WORDS];
	unsigned int words;
};
void view_slot(struct view *view, struct slot *slot, unsigned int number,
	       unsigned int page);
void view_file(struct view *view, unsigned int backing, unsigned int page);
bool view_sure(struct view *view);
void look_at(const struct view *view, struct seen *seen, unsigned int place,
	     uint32_t word);
void look(const struct view *view, struct seen *seen,
	  const volatile uint32_t *at, unsigned int ring);
/* Says what is wrong of what was seen. */
void judge(struct view *view, const struct seen *seen);
/* Stores to some of a page's words; lines that were read first become dirty. */
void put_words(volatile uint32_t *at, uint32_t word, unsigned int ring);

/* map.c: one of the locks of both, lower address first. */
void lock_two(struct slot *a, struct slot *b, size_t which);
/* code.c */
void write_first_code(void);
/* tasks.c: a task that has a number and may begin. */
struct start {
	unsigned int sequence, number, id;
};
void run_task(const struct start *start);
bool task_prepare(struct start *start, unsigned int sequence);
void process_prepare(struct process *process);
/* Waits for the threads. */
void process_end(void);
/* other.c: another process, alive and known; NULL when it is not. */
struct process *other_process(unsigned int number, unsigned int slot);
/* kernel.c: of this task alone. */
bool own_pipe(void);
void empty_pipe(void);
void close_inherited_faults(void);

#define OP(name) void op_##name(const uint8_t *n)
OP(map_anon); OP(map_shared); OP(map_private); OP(map_file); OP(map_code);
OP(map_code_shared); OP(unmap); OP(protect); OP(protect_code); OP(move);
OP(move_code); OP(resize); OP(drop); OP(drop_code); OP(give_back); OP(page_out);
OP(remove); OP(will_need); OP(populate); OP(lock_pages); OP(unlock_pages);
OP(unmap_code);
OP(write); OP(read);
OP(truncate); OP(punch); OP(file_write); OP(file_read); OP(splice_in);
OP(splice_out);
OP(code_file); OP(code_store); OP(call);
OP(thread); OP(fork); OP(exec); OP(end); OP(join); OP(yield); OP(nap);
OP(vm_read); OP(vm_write); OP(poke);
OP(pipe_out); OP(pipe_in); OP(lend); OP(fault_copy); OP(fault_move);

#endif
