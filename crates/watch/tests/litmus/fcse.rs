// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Fast Context Switch Extension, rule by rule (DDI0198D 2.3.13).

use crate::run;

const PID_3: u32 = 3 << 25;

#[test]
pub fn two_pids_share_an_address_without_maintenance_and_page_tables_do_not() {
    let memory_before = [0x22, 0x33];
    assert_eq!(
        run("two_tasks_at_one_address", 0)[..3],
        [0x33, 0x2200, 0x3300]
    );
    assert_eq!(
        run("two_tasks_at_one_address", 0)[3..],
        memory_before,
        "nothing written back"
    );
    // Without FCSE and without maintenance, each task reads the other task's data.
    assert_eq!(
        run("two_tasks_at_one_address", 1)[..3],
        [0x2200, 0x3300, 0x3300]
    );
    assert_eq!(
        run("two_tasks_at_one_address", 2),
        [0x33, 0x2200, 0x3300, 0x2200, 0x3300],
        "with clean and invalidate at each switch"
    );
}

#[test]
pub fn a_relocated_address_and_its_mva_are_one_line() {
    assert_eq!(run("relocated_and_plain_address", 0), [0x44, 0x55, 0x33]);
}

#[test]
pub fn cache_operations_take_an_mva() {
    assert_eq!(
        run("cache_operation_by_address", 0),
        [0x33, 0x44],
        "clean by VA does nothing"
    );
    assert_eq!(run("cache_operation_by_address", 1), [0x44, 0x44]);
    assert_eq!(
        run("cache_operation_by_address", 2),
        [0x33, 0x44],
        "invalidate by VA does nothing"
    );
    assert_eq!(run("cache_operation_by_address", 3), [0x33, 0x33]);
}

#[test]
pub fn tlb_operations_take_an_mva() {
    assert_eq!(run("tlb_operation_by_address", 0), [0x33]);
    assert_eq!(run("tlb_operation_by_address", 1), [0x22]);
}

#[test]
pub fn two_instructions_behind_the_write_come_from_the_old_space() {
    assert_eq!(run("two_instructions_from_the_old_space", 0), [0x22, PID_3]);
    assert_eq!(
        run("two_instructions_from_the_old_space", 1),
        [4, PID_3],
        "above 32 MB"
    );
    assert_eq!(
        run("two_instructions_from_the_old_space", 2),
        [0x20, PID_3],
        "a branch refetches"
    );
}

#[test]
pub fn the_pid_has_no_effect_with_the_mmu_off() {
    assert_eq!(run("pid_with_the_mmu_off", 0), [0x99]);
    assert_eq!(run("pid_with_the_mmu_off", 1), [0x33]);
}

#[test]
pub fn low_vectors_are_relocated_and_high_vectors_are_not() {
    assert_eq!(run("vectors", 0), [0x12, 0x13, 0x10]);
    assert_eq!(run("vectors", 1), [0x800, 0x800, 0x800]);
}

#[test]
pub fn far_holds_the_mva_and_the_link_register_the_va() {
    assert_eq!(run("fault_address", 0), [0x01f0_0124, 0x200c, 0x105]);
    assert_eq!(
        run("fault_address", 1),
        [0x07f0_0124, 0x200c, 0x105],
        "PID 3"
    );
    assert_eq!(
        run("fault_address", 2),
        [0x9100_0124, 0x200c, 0x105],
        "PID 3, above 32 MB"
    );
}

#[test]
pub fn a_prefetch_abort_gives_the_va_and_leaves_far_alone() {
    assert_eq!(
        run("prefetch_abort_address", 0),
        [0x01f0_012c, 0x205, 0x1234_5678]
    );
}
