/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the tests of mm_suite share: patterns, second processes,
 * generated code.
 */
#ifndef MM_SUITE_H
#define MM_SUITE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "suite.h"

#define PAGE		4096u
#define PAGE_WORDS	(PAGE / sizeof(uint32_t))
#define LINE		32u
/* Addresses are relocated by multiples of 32 MB, see the manual on FCSE. */
#define SLOT_SHIFT	25
#define SLOT		(1u << SLOT_SHIFT)
/* Below the kernel when it has the upper gigabyte. */
#define SLOTS		95

/* One table per file, ended by an entry without a name. */
extern const struct test process_tests[], map_tests[], share_tests[];
extern const struct test code_tests[], signal_tests[], trace_tests[];
extern const struct test remote_tests[], io_tests[], recycled_tests[];
extern const struct test swap_tests[], slot_tests[], limit_tests[];
extern const struct test large_tests[], grow_tests[], pressure_tests[];
extern const struct test race_tests[], old_code_tests[], bound_tests[];
extern const struct test move_tests[], reread_tests[], own_slot_tests[];
extern const struct test border_tests[], file_race_tests[], leaver_tests[];
extern const struct test hole_tests[], ring_tests[];
extern const struct test receive_tests[], chain_tests[], held_tests[];
extern const struct test ended_tests[], exit_tests[], behind_tests[];
extern const struct test pinned_tests[];

/* Words that depend on seed and place, so that old and moved data differ. */
uint32_t word_of(uint32_t seed, size_t index);
void fill(void *at, size_t bytes, uint32_t seed);
/* PASS when every word at `at` is that of `seed`; says the first that is not. */
enum result holds(const void *at, size_t bytes, uint32_t seed, const char *what);
enum result all_zero(const void *at, size_t bytes, const char *what);

/* Nanoseconds by CLOCK_MONOTONIC. */
int64_t now(void);
/* Fresh private pages; the process ends when there are none. */
void *pages(size_t count);
/* A file in memory of that many bytes, filled from seed. */
int memory_file(size_t bytes, uint32_t seed);
enum result write_text(const char *path, const char *text);
long read_number(const char *path);
/* Of a line "name value" or "name: value kB"; -1 when there is none. */
long named_number(const char *path, const char *name);
/* 32 MB of zram to swap to. */
enum result swap_on(void);
/* /dev/zram0, empty, of ZRAM_MB. */
enum result zram_fresh(void);
/* Does FCSE limit the number and size of processes? */
bool limited(void);
/*
 * The slot of 32 MB by which a process sees its memory below 32 MB once more, or
 * 0. No thread may cause faults meanwhile.
 */
unsigned int own_slot(void);

/* Who touches one of so many pages waits, and *fd tells of it. */
enum result await_faults(const void *at, size_t count, uint64_t features,
			 int *fd);
/* MemAvailable, or the largest number where the kernel does not tell it. */
long available_kb(void);
/* Whether the kernel has userfaultfd(2), which await_faults() needs. */
bool has_userfaultfd(void);
/* Whether a task can interrupt another one within a system call. */
bool kernel_preempts(void);
/* With the smallest stack that there is. */
bool small_thread(pthread_t *thread, void *(*body)(void *arg), void *arg);

/*
 * Changes rights, for which the kernel empties the whole cache: what is taken
 * in next is the oldest in its set. Nothing that a test relies on to be right.
 */
enum result empty_cache(void);

/*
 * The next pages are some that the kernel has just looked at: what it writes to
 * them, zeros at first, stays in its lines.
 */
enum result leave_lines(void);

/* In a process of its own, which begins with a copy; gives its result. */
enum result in_child(enum result (*body)(void *arg), void *arg);
/* The same by clone() with these flags, of a process with one thread. */
enum result in_clone(unsigned long flags, enum result (*body)(void *arg),
		     void *arg);

/* Processes that wait until their pipe is closed. */
#define WAITERS		128
struct waiters {
	pid_t pids[WAITERS];
	unsigned int count;
	int gate[2];
};

/* Until fork is refused; its errno. */
int fill_up(struct waiters *waiters);
/* Closes the pipe. */
enum result disperse(struct waiters *waiters);

/* A second process that runs in turns with the first. */
struct other {
	pid_t pid;
	int to_child[2];
	int to_parent[2];
};

/* In the child `body` runs, and its result is how the child ends. */
enum result other_start(struct other *other,
			enum result (*body)(struct other *other, void *arg),
			void *arg);
/* Parent's side. */
enum result other_go(struct other *other, uint32_t word);
enum result other_wait(struct other *other, uint32_t *word);
enum result other_end(struct other *other);
/* Child's side. */
enum result child_go(struct other *other, uint32_t word);
enum result child_wait(struct other *other, uint32_t *word);

/* Code: a function that gives a number of 16 bits. */
#define GIVE_WORDS	3
void put_give(uint32_t *at, unsigned int value);
void flush_code(void *from, size_t bytes);
int call(const void *code);

/* For the test of execve: what the new program does. */
int exec_check(int argc, char **argv);
/* For that of the limit: the next program of a chain. */
int exec_chain(const char *text);
/* For that of dead ones: the next program, which leaves one behind. */
int exec_pile(const char *text);

#endif
