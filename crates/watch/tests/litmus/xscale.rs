// SPDX-License-Identifier: MIT OR Apache-2.0
//! Litmus tests on XScale. They leave out tests of features that XScale does not have: ways and entries locked by a
//! register, test and clean, random victims, a fault status of fetches, and a unified TLB. Tests whose reports name
//! other program places on XScale are also left out.

use crate::rig::on_xscale;

macro_rules! on_xscale {
    ($($room:ident: $($test:ident)*;)*) => {
        $(mod $room {
            $(#[test]
            fn $test() {
                super::on_xscale(super::super::$room::$test);
            })*
        })*
    };
}

on_xscale! {
    caches:
        one_page_at_two_mvas_is_incoherent_until_cleaned
        a_cached_alias_stays_old_until_one_is_cleaned_and_the_other_invalidated
        of_two_dirty_aliases_the_last_one_written_back_wins
        a_late_write_back_puts_old_data_over_new
        rewritten_code_runs_only_when_d_is_cleaned_and_i_invalidated
        code_stored_past_the_d_cache_still_needs_i_invalidated
        a_fetch_does_not_see_code_in_the_write_buffer
        the_i_cache_is_tagged_by_address_not_by_memory
        what_a_device_writes_is_seen_after_invalidating_only
        a_device_sees_what_was_written_after_cleaning_only
        invalidating_discards_dirty_data
        a_store_that_misses_does_not_allocate
        only_dirty_halves_are_written_back
        a_write_through_page_is_never_dirty
        buffered_stores_to_one_word_keep_their_order_across_aliases
        a_read_waits_for_pending_writes_to_its_address
        swp_exchanges_in_every_kind_of_page
        switching_the_d_cache_off_hides_dirty_data
    ;
    fcse:
        two_pids_share_an_address_without_maintenance_and_page_tables_do_not
        a_relocated_address_and_its_mva_are_one_line
        cache_operations_take_an_mva
        tlb_operations_take_an_mva
        two_instructions_behind_the_write_come_from_the_old_space
        the_pid_has_no_effect_with_the_mmu_off
        low_vectors_are_relocated_and_high_vectors_are_not
        far_holds_the_mva_and_the_link_register_the_va
    ;
    translation:
        a_missing_page_is_not_remembered
        the_walker_does_not_see_descriptors_in_the_d_cache
        the_walker_does_not_see_descriptors_in_the_write_buffer
        quarters_of_small_and_large_pages_have_their_own_permissions
        tiny_pages_are_1_kb_each
        a_fine_table_holds_large_and_small_pages
    ;
    faults:
        unaligned_words_rotate_unless_alignment_is_checked
        permissions_follow_ap_s_and_r
        user_mode_is_held_to_its_permissions
        an_abort_restores_the_base
    ;
    coherence:
        a_read_through_another_address_needs_a_clean_before
        a_cached_alias_needs_what_was_left_out_of_clean_and_invalidate
        reading_past_the_cache_needs_a_clean_before
        of_two_dirty_aliases_the_second_write_back_is_reported
        a_read_between_dirty_aliases_is_reported_as_two_dirty_aliases
        a_stale_instruction_needs_what_was_left_out
        code_invalidated_in_the_d_cache_is_reported_as_lost
        lines_that_outlive_the_mapping_of_their_address_are_reported
        a_pid_per_task_needs_nothing_until_memory_is_read_past_the_cache
        what_an_invalidate_lost_is_reported_when_it_is_read
        a_line_older_than_what_a_device_wrote_is_reported_when_it_is_read
        the_history_begins_with_the_fill_of_the_line_that_was_used
        one_cause_is_one_report_however_often_it_is_met
        a_run_stops_at_a_report_when_asked_to
        a_translation_older_than_what_a_device_wrote_is_reported_when_it_is_used
    ;
}
