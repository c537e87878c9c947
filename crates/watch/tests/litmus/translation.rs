// SPDX-License-Identifier: MIT OR Apache-2.0
//! TLB, table walks and page sizes.

use crate::run;

/// Variants of the programs in `tlb.S`: those that do not invalidate the page's translation, and those that do.
const USELESS: [u32; 2] = [0, 3];
const USEFUL: [u32; 4] = [1, 2, 4, 5];

#[test]
pub fn a_translation_outlives_its_descriptor_until_invalidated() {
    for variant in USELESS {
        assert_eq!(
            run("changed_page_descriptor", variant),
            [0x11, 0x11],
            "variant {variant}"
        );
        assert_eq!(
            run("removed_page_descriptor", variant),
            [0x11, 0],
            "variant {variant}"
        );
        assert_eq!(
            run("tightened_permissions", variant),
            [0, 0x99],
            "variant {variant}"
        );
    }
    for variant in USEFUL {
        assert_eq!(
            run("changed_page_descriptor", variant),
            [0x11, 0x22],
            "variant {variant}"
        );
        assert_eq!(
            run("removed_page_descriptor", variant),
            [0, 0x107],
            "variant {variant}"
        );
        assert_eq!(
            run("tightened_permissions", variant),
            [0x10f, 0x11],
            "variant {variant}"
        );
    }
}

#[test]
pub fn a_missing_page_is_not_remembered() {
    assert_eq!(run("added_page_descriptor", 0), [0x107, 0x22]);
}

#[test]
pub fn a_locked_translation_survives_invalidate_all_but_not_by_mva() {
    let register = 1 << 26 | 1;
    assert_eq!(run("locked_translation", 0), [0x11, register, 0x11]);
    assert_eq!(run("locked_translation", 1), [0x11, register, 0x11]);
    assert_eq!(run("locked_translation", 2), [0x11, register, 0x22]);
}

#[test]
pub fn the_walker_does_not_see_descriptors_in_the_d_cache() {
    assert_eq!(run("descriptor_in_the_dcache", 0), [0x11]);
    assert_eq!(run("descriptor_in_the_dcache", 1), [0x11], "drained only");
    assert_eq!(run("descriptor_in_the_dcache", 2), [0x22]);
}

#[test]
pub fn the_walker_does_not_see_descriptors_in_the_write_buffer() {
    assert_eq!(run("descriptor_in_the_write_buffer", 0), [0x11, 0x23_0ff2]);
    assert_eq!(run("descriptor_in_the_write_buffer", 1), [0x22, 0x23_0ff2]);
}

#[test]
pub fn quarters_of_small_and_large_pages_have_their_own_permissions() {
    assert_eq!(run("subpages", 0), [0x5f]);
    assert_eq!(run("subpages", 1), [0x5f]);
}

#[test]
pub fn tiny_pages_are_1_kb_each() {
    assert_eq!(run("tiny_pages", 0), [0x13, 0x12, 0x11, 0x10]);
    assert_eq!(run("tiny_pages", 1), [0x13, 0x107, 0x10f, 0x10]);
}

#[test]
pub fn a_fine_table_holds_large_and_small_pages() {
    assert_eq!(run("pages_of_a_fine_table", 0), [0x21, 0x22, 0x21]);
}
