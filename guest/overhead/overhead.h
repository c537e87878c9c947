/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What both measurements have: what was asked for, and the time. */
#ifndef OVERHEAD_H
#define OVERHEAD_H

#include <stdint.h>

#include "work.h"

#define MAX_TURNS	16
#define MAX_SAMPLES	64
#define MAX_INTERRUPTS	49

extern const struct work *works[2];
extern unsigned int pieces, kb, samples;
/* Turns, or interrupts. */
extern unsigned int turns[MAX_TURNS], turn_count;

void __attribute__((noreturn)) failed(const char *what);
uint64_t now_ns(void);
uint32_t do_pieces(const struct work *work, unsigned int count);
void print_times(const uint64_t *times);

/* Opens the port PORT of -g. From now on, pin_set() sets its pin 0. */
void pin_open(const char *port);
void pin_set(int high);

/* Measures works[0] with timer interrupts, and prints it: the exit code. */
int interrupts_measure(void);

#endif
