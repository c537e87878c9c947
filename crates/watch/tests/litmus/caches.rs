// SPDX-License-Identifier: MIT OR Apache-2.0
//! Coherence of caches and write buffer with memory, with each other, and between lines of one cache.

use crate::rig::DATA;
use crate::{Rig, run};

#[test]
pub fn one_page_at_two_mvas_is_incoherent_until_cleaned() {
    assert_eq!(run("store_reaches_the_other_address", 0), [1, 1]);
    assert_eq!(run("store_reaches_the_other_address", 1), [2, 2]);
}

#[test]
pub fn a_cached_alias_stays_old_until_one_is_cleaned_and_the_other_invalidated() {
    assert_eq!(run("store_reaches_a_cached_alias", 0), [1]);
    assert_eq!(run("store_reaches_a_cached_alias", 1), [1], "cleaned only");
    assert_eq!(
        run("store_reaches_a_cached_alias", 3),
        [1],
        "invalidated only"
    );
    assert_eq!(run("store_reaches_a_cached_alias", 2), [2]);
}

#[test]
pub fn of_two_dirty_aliases_the_last_one_written_back_wins() {
    assert_eq!(run("two_dirty_aliases", 0), [1, 0xb]);
    assert_eq!(run("two_dirty_aliases", 2), [0xa, 1]);
    assert_eq!(run("two_dirty_aliases", 1), [0xa, 0xb]);
}

#[test]
pub fn a_late_write_back_puts_old_data_over_new() {
    assert_eq!(run("old_data_over_new", 0), [3, 2, 2]);
    assert_eq!(run("old_data_over_new", 1), [3, 3, 3]);
}

#[test]
pub fn rewritten_code_runs_only_when_d_is_cleaned_and_i_invalidated() {
    assert_eq!(run("rewritten_code", 0), [1, 1]);
    assert_eq!(
        run("rewritten_code", 1),
        [1, 1],
        "D cleaned, I not invalidated"
    );
    assert_eq!(
        run("rewritten_code", 2),
        [1, 1],
        "I invalidated, D not cleaned"
    );
    assert_eq!(
        run("rewritten_code", 5),
        [1, 1],
        "another line of I invalidated"
    );
    assert_eq!(
        run("rewritten_code", 6),
        [1, 1],
        "D invalidated without cleaning"
    );
    assert_eq!(run("rewritten_code", 3), [1, 2]);
    assert_eq!(run("rewritten_code", 4), [1, 2], "I invalidated by MVA");
}

#[test]
pub fn code_stored_past_the_d_cache_still_needs_i_invalidated() {
    assert_eq!(run("rewritten_code_past_the_dcache", 0), [1, 1]);
    assert_eq!(run("rewritten_code_past_the_dcache", 1), [1, 2]);
}

#[test]
pub fn a_fetch_does_not_see_code_in_the_write_buffer() {
    assert_eq!(run("code_in_the_write_buffer", 0), [1, 1]);
    assert_eq!(run("code_in_the_write_buffer", 1), [1, 2]);
}

#[test]
pub fn the_i_cache_is_tagged_by_address_not_by_memory() {
    assert_eq!(run("code_at_two_addresses", 0), [1, 1]);
    assert_eq!(run("code_at_two_addresses", 1), [1, 2]);
}

/// Returns the values that the program reads before and after a device writes 5.
fn device_to_memory(variant: u32) -> Vec<u32> {
    let mut rig = Rig::new("device_to_memory", variant);
    rig.run_to_device();
    rig.poke(DATA, 5);
    rig.go_on();
    rig.finish()
}

#[test]
pub fn what_a_device_writes_is_seen_after_invalidating_only() {
    assert_eq!(device_to_memory(0), [1, 1]);
    assert_eq!(device_to_memory(3), [1, 1], "cleaned only");
    assert_eq!(device_to_memory(1), [1, 5]);
    assert_eq!(device_to_memory(2), [1, 5], "cleaned and invalidated");
}

/// Returns the value that a device reads after the program has overwritten 1 with 2.
fn memory_to_device(variant: u32) -> u32 {
    let mut rig = Rig::new("memory_to_device", variant);
    rig.run_to_device();
    rig.peek(DATA)
}

#[test]
pub fn a_device_sees_what_was_written_after_cleaning_only() {
    assert_eq!(memory_to_device(0), 1);
    assert_eq!(memory_to_device(1), 2);
    assert_eq!(memory_to_device(2), 2, "by test and clean");
}

#[test]
pub fn invalidating_discards_dirty_data() {
    assert_eq!(run("invalidate_discards", 0), [2]);
    assert_eq!(run("invalidate_discards", 1), [1]);
    assert_eq!(run("invalidate_discards", 2), [1], "all");
}

#[test]
pub fn a_store_that_misses_does_not_allocate() {
    assert_eq!(run("store_miss", 0), [3]);
    assert_eq!(
        run("store_miss", 1),
        [2],
        "a store that hits stays in the cache"
    );
}

#[test]
pub fn only_dirty_halves_are_written_back() {
    assert_eq!(run("dirty_halves", 0), [0xa, 1, 4, 0x55]);
    assert_eq!(run("dirty_halves", 1), [0xa, 1, 0xa, 5]);
    assert_eq!(run("dirty_halves", 2), [0, 0x11, 0xa, 5]);
}

#[test]
pub fn round_robin_keeps_the_last_lines_of_a_set_and_random_does_not() {
    assert_eq!(run("replacement", 1), [16]);
    assert!(
        run("replacement", 0)[0] < 8,
        "four random victims in a row are seldom all different"
    );
}

#[test]
pub fn a_locked_way_keeps_its_line() {
    assert_eq!(run("locked_way", 0), [0xfff0, 2, 0xfff0]);
    assert_eq!(run("locked_way", 1), [0xfff0, 1, 0xfff1]);
}

#[test]
pub fn test_clean_and_invalidate_ends_with_everything_written_and_gone() {
    assert_eq!(run("test_and_clean_loop", 0), [1, 0, 0, 0]);
    assert_eq!(run("test_and_clean_loop", 1), [2, 0x77, 0x77, 1]);
    assert_eq!(
        run("test_and_clean_loop", 2),
        [2, 0, 0, 1],
        "test and clean leaves lines valid"
    );
}

#[test]
pub fn a_write_through_page_is_never_dirty() {
    assert_eq!(run("write_through", 0), [2, 1, 1]);
    assert_eq!(run("write_through", 1), [2, 2, 2]);
}

#[test]
pub fn buffered_stores_to_one_word_keep_their_order_across_aliases() {
    assert_eq!(run("write_buffer_order", 0), [0]);
    assert_eq!(
        run("write_buffer_order", 1),
        [0],
        "the second store unbuffered"
    );
}

#[test]
pub fn a_read_waits_for_pending_writes_to_its_address() {
    assert_eq!(
        run("read_after_buffered_store", 0),
        [0x1122_5544, 0x55, 0x1122_3344]
    );
}

#[test]
pub fn swp_exchanges_in_every_kind_of_page() {
    for variant in 0..3 {
        assert_eq!(
            run("swap", variant),
            [0x1122_3344, 7, 7, 0x99],
            "variant {variant}"
        );
    }
}

#[test]
pub fn switching_the_d_cache_off_hides_dirty_data() {
    assert_eq!(run("dcache_off", 0), [2]);
    assert_eq!(run("dcache_off", 1), [1]);
    assert_eq!(run("dcache_off", 2), [2], "cleaned before");
}
