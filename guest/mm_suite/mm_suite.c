// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * mm_suite: what user land can make memory management do, and whether the
 * data stays right.
 *
 * Each test moves data between two addresses of one page, or gives an address
 * other content, in one of the ways that the kernel has for it, and checks
 * every word. On a processor whose caches are addressed virtually each of
 * these ways needs a clean, an invalidate or a drain somewhere; a checker of
 * coherence that watches this program sees them all.
 *
 * Each test runs in a process of its own. guest/shared/suite.h describes output
 * and exit codes.
 */
#define _GNU_SOURCE
#include <string.h>
#include "mm_suite.h"

static const struct test *const tables[] = {
	process_tests, map_tests, share_tests, code_tests, signal_tests,
	trace_tests, remote_tests, io_tests, recycled_tests, swap_tests,
	slot_tests, limit_tests, large_tests, grow_tests, pressure_tests,
	race_tests, old_code_tests, bound_tests, move_tests, reread_tests,
	own_slot_tests, border_tests, file_race_tests, leaver_tests,
	hole_tests, chain_tests, ring_tests, receive_tests, held_tests,
	ended_tests, exit_tests, behind_tests, pinned_tests,
};

int main(int argc, char **argv)
{
	const struct suite suite = {
		.name = "mm_suite",
		.tables = tables,
		.table_count = sizeof(tables) / sizeof(tables[0]),
		.normal_rounds = 10,
		.round_s = 2,
	};

	if (argc > 1 && !strcmp(argv[1], "--exec-check"))
		return exec_check(argc, argv);
	if (argc == 3 && !strcmp(argv[1], "--exec-chain"))
		return exec_chain(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "--exec-pile"))
		return exec_pile(argv[2]);
	return suite_main(&suite, argc, argv);
}
