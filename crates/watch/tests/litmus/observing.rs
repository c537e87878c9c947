// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that an observer changes nothing, and that a board without an observer has no observer code.

use crate::rig::Rig;
use arm::Bus as _;
use board::Observed;
use board::bus::SystemBus;
use watch::checker::Checker;

/// Results, cycle, counters and memory hash of a program.
macro_rules! trace {
    ($rig:expr) => {{
        let mut rig = $rig;
        let observed = rig.run_to_end();
        let machine = rig.machine();
        let hash = machine.memory_hash();
        (observed, machine.now(), machine.counters().clone(), hash)
    }};
}

#[test]
fn observing_changes_no_cycle_no_counter_and_no_memory() {
    for (name, variant) in [
        ("replacement", 0),
        ("two_dirty_aliases", 0),
        ("rewritten_code", 3),
        ("tightened_permissions", 0),
        ("write_after_a_read", 0),
        ("new_table_base", 0),
        ("descriptor_in_the_write_buffer", 0),
        ("two_tasks_at_one_address", 0),
        ("two_tasks_at_one_address", 1),
        ("test_and_clean_loop", 1),
        ("subpages", 1),
        ("vectors", 0),
    ] {
        let plain = trace!(Rig::new(name, variant));
        let checked = trace!(Rig::checked(name, variant));
        assert_eq!(plain, checked, "{name}/{variant}");
    }
}

#[test]
fn a_board_without_a_checker_has_no_observer_code_compiled_in() {
    const { assert!(!SystemBus::OBSERVED && Observed::<Checker>::OBSERVED) }
}
