/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the tests of dma_suite share: patterns. */
#ifndef DMA_SUITE_H
#define DMA_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "suite.h"

#define PAGE	4096u
#define SECTOR	512u

/* One table per file, ended by an entry without a name. */
extern const struct test network_tests[], flash_tests[];
extern const struct test card_tests[], serial_tests[];

/*
 * Fills memory with bytes that depend on their position and on the seed. Some
 * lines are dirty in the D-cache behind it, and the others are in memory.
 */
void fill(void *at, size_t bytes, uint32_t seed);
/* Compares memory with what fill() wrote. */
enum result holds(const void *at, size_t bytes, uint32_t seed,
		  const char *what);
/*
 * Leaves free pages whose lines are in the D-cache at the kernel's address. A
 * store hits such a line and makes it dirty, while a store that misses goes
 * past the D-cache to memory. The kernel allocates these pages next.
 */
void warm_pages(void);
/* Memory that begins at a page, or NULL. */
void *pages(size_t bytes);

#endif
