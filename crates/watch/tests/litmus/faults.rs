// SPDX-License-Identifier: MIT OR Apache-2.0
//! Alignment, domains, permissions, and the state after aborts. A fault appears in the results as 0x100 (data) or 0x200
//! (instruction) plus the fault status register.

use crate::run;

#[test]
pub fn unaligned_words_rotate_unless_alignment_is_checked() {
    let rotated = [
        [0x4433_2211, 0, 0x1144_3322, 0],
        [0x2211_4433, 0, 0x3322_1144, 0],
        // LDM and STR ignore the low bits, and SWP rotates. There is no fault.
        [0x4433_2211, 0x8877_6655, 0, 0],
        [0x1000, 0x2211_4433, 0, 0],
    ];
    assert_eq!(run("unaligned_access", 0), rotated.concat());
    let faulted = [
        [0x4433_2211, 0, 0, 0x101],
        [0, 0x101, 0, 0x101],
        [0, 0, 0x101, 0x101],
        [0x8877_6655, 0, 0x101, 0x7020_0002],
    ];
    assert_eq!(run("unaligned_access", 1), faulted.concat());
}

#[test]
pub fn a_domain_is_closed_checked_or_open() {
    let closed = [0x159, 0x159, 0x259, 0x15b, 0x15b, 0x25b];
    assert_eq!(run("domain_field", 0), closed);
    assert_eq!(
        run("domain_field", 1),
        [0x15d, 0x15d, 0x25d, 0x15f, 0x15f, 0x25f]
    );
    assert_eq!(
        run("domain_field", 2),
        closed,
        "reserved: treated as no access"
    );
    assert_eq!(
        run("domain_field", 3),
        [0; 6],
        "manager: permissions are ignored"
    );
}

#[test]
pub fn permissions_follow_ap_s_and_r() {
    // ARM ARM table B4-1. S and R together are unpredictable.
    let statuses = 1 << 13 | 1 << 15;
    assert_eq!(run("permissions", 0), [0xf730, 0xf730, statuses]);
    assert_eq!(run("permissions", 1), [0xf731, 0xf731, statuses], "S");
    assert_eq!(run("permissions", 2), [0xf735, 0xf735, statuses], "R");
}

#[test]
pub fn user_mode_is_held_to_its_permissions() {
    assert_eq!(run("user_mode", 0), [0x10f, 0x10f]);
    assert_eq!(run("user_mode", 1), [0x10f, 0x10f]);
    assert_eq!(run("user_mode", 2), [0, 0x10f]);
    assert_eq!(run("user_mode", 3), [0, 0]);
}

#[test]
pub fn missing_descriptors_fault_by_level() {
    assert_eq!(
        run("translation_faults", 0),
        [0x105, 0x107, 0x107, 0x205, 0x207]
    );
}

#[test]
pub fn an_abort_restores_the_base() {
    assert_eq!(run("base_restored", 0), [0, 0, 5, 0x107]);
}
