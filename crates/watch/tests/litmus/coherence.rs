// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the litmus programs under the coherence checker. If maintenance is complete, the checker must be silent. If
//! maintenance is missing, the checker must give exactly the expected report.
//!
//! An expected report has two lines. The first line has the kind, the label and address of the access, the label and
//! address of the writer, and the place of the newest data. The second line has the operation needed.

use crate::rig::{DATA, Rig, name_of};
use arm::Side;
use board::{Observed, Stop};
use watch::checker::{Checker, Movement, Newest, Path, Report};

fn writer(report: &Report) -> String {
    match report.writer.path {
        Path::Loaded => "the loader".to_owned(),
        Path::Call => "a call".to_owned(),
        Path::Dma => "a device".to_owned(),
        Path::Line | Path::Buffer => {
            format!("{} at {:#x}", name_of(report.writer.pc), report.writer.mva)
        }
    }
}

/// Returns a report as two lines: the error, and the necessary operation.
fn lines(report: &Report) -> [String; 2] {
    let place = match report.place {
        Newest::Dirty(mva) => format!("dirty at {:#x}", mva.0),
        Newest::Memory => "in memory".to_owned(),
        Newest::Buffer => "in the write buffer".to_owned(),
        Newest::Lost(event) => format!("lost by {} at {:#x}", name_of(event.pc), event.mva),
        Newest::Overwritten(event) => format!("overwritten from {:#x}", event.mva),
        Newest::Replaced => "replaced".to_string(),
    };
    let kind = report.kind.name();
    let pc = name_of(report.context.pc);
    let what = format!(
        "{kind}: {pc} at {:#x}, got {:#x}, not {:#x} by {}, {place}",
        report.mva.0,
        report.got,
        report.newest,
        writer(report)
    );
    assert!(report.since_is_whole, "{what}");
    [what, report.needed()]
}

fn reports_of(rig: &mut Rig<Observed<Checker>>) -> Vec<String> {
    let reports = rig.machine().observer().reports();
    reports.flat_map(|(report, _)| lines(report)).collect()
}

/// Runs a program and returns its reports.
fn reports(name: &str, variant: u32) -> Vec<String> {
    let mut rig = Rig::checked(name, variant);
    rig.run_to_end();
    reports_of(&mut rig)
}

fn device_to_memory(variant: u32) -> Vec<String> {
    let mut rig = Rig::checked("device_to_memory", variant);
    rig.run_to_device();
    rig.poke(DATA, 5);
    rig.go_on();
    rig.run_to_end();
    reports_of(&mut rig)
}

#[test]
pub fn correct_maintenance_is_not_reported() {
    let right = [
        ("store_reaches_the_other_address", 1),
        ("store_reaches_a_cached_alias", 2),
        ("two_dirty_aliases", 1),
        ("old_data_over_new", 1),
        ("victim_over_new", 1),
        ("read_between_dirty_aliases", 1),
        ("rewritten_code", 3),
        ("rewritten_code", 4),
        ("rewritten_code_past_the_dcache", 1),
        ("code_in_the_write_buffer", 1),
        ("remapped_code", 1),
        ("code_at_two_addresses", 1),
        ("changed_page_descriptor", 1),
        ("changed_page_descriptor", 2),
        ("changed_page_descriptor", 4),
        ("changed_page_descriptor", 5),
        ("removed_page_descriptor", 1),
        ("tightened_permissions", 1),
        ("tightened_permissions", 2),
        ("write_after_a_read", 1),
        ("permissions_by_system_bits", 1),
        ("page_made_uncached", 1),
        ("new_table_base", 1),
        ("added_page_descriptor", 0),
        ("locked_translation", 2),
        ("descriptor_in_the_dcache", 2),
        ("descriptor_in_the_write_buffer", 1),
        ("invalidate_discards", 0),
        ("two_tasks_at_one_address", 2),
        ("test_and_clean_loop", 1),
        ("write_through", 1),
        ("write_buffer_order", 0),
        ("read_after_buffered_store", 0),
        ("swap", 0),
        ("swap", 1),
        ("swap", 2),
        ("dcache_off", 2),
        ("two_instructions_from_the_old_space", 0),
        ("two_instructions_from_the_old_space", 2),
        ("vectors", 0),
        ("subpages", 0),
        ("subpages", 1),
        ("tiny_pages", 1),
        ("pages_of_a_fine_table", 0),
        ("fault_address", 1),
    ];
    let mut wrong = Vec::new();
    for (name, variant) in right {
        let found = reports(name, variant);
        if !found.is_empty() {
            wrong.push((name, variant, found));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(device_to_memory(1), [""; 0]);
    assert_eq!(device_to_memory(2), [""; 0]);
}

const I_NEEDED: &str = "clean the D-cache line at MVA 0x70200000 (c7,c10,1), drain the write \
    buffer (c7,c10,4), then invalidate the I-cache line at MVA 0x70200000 (c7,c5,1)";

#[test]
pub fn a_read_through_another_address_needs_a_clean_before() {
    let found = reports("store_reaches_the_other_address", 0);
    let what = "stale-read: store_reaches_the_other_address.read at 0x80200000, got 0x1, not 0x2 \
        by store_reaches_the_other_address.write at 0x70200000, dirty at 0x70200000";
    let needed = "clean the D-cache line at MVA 0x70200000 (c7,c10,1) before the line at MVA \
        0x80200000 is filled";
    // A second instruction reads this word, so it gets a report, too.
    let past = "stale-read: store_reaches_the_other_address.past+0x4 at 0x40200000, got 0x1, not 0x2 \
        by store_reaches_the_other_address.write at 0x70200000, dirty at 0x70200000";
    let needed_there =
        "clean the D-cache line at MVA 0x70200000 (c7,c10,1) before it is read past the cache";
    assert_eq!(found, [what, needed, past, needed_there]);
}

#[test]
pub fn a_cached_alias_needs_what_was_left_out_of_clean_and_invalidate() {
    let what = "stale-read: store_reaches_a_cached_alias.read at 0x80200000, got 0x1, not 0x2 by \
        store_reaches_a_cached_alias.write at 0x70200000, ";
    for (variant, place, needed) in [
        (
            0,
            "dirty at 0x70200000",
            "clean the D-cache line at MVA 0x70200000 (c7,c10,1), and invalidate the line at MVA \
             0x80200000 (c7,c6,1), before the read",
        ),
        (
            1,
            "in memory",
            "invalidate the D-cache line at MVA 0x80200000 (c7,c6,1) after memory was written",
        ),
        (
            3,
            "dirty at 0x70200000",
            "clean the D-cache line at MVA 0x70200000 (c7,c10,1) before the line at MVA \
             0x80200000 is filled",
        ),
    ] {
        let found = reports("store_reaches_a_cached_alias", variant);
        let expected = [format!("{what}{place}"), needed.to_owned()];
        assert_eq!(found, expected, "variant {variant}");
    }
}

#[test]
pub fn reading_past_the_cache_needs_a_clean_before() {
    let found = reports("dcache_off", 1);
    let [what, needed] = found.as_slice() else {
        panic!("{found:#?}");
    };
    assert!(what.starts_with("stale-read: dcache_off+0x"), "{what}");
    assert!(what.ends_with("dirty at 0x70200000"), "{what}");
    let expected = "clean the D-cache line at MVA 0x70200000 (c7,c10,1) before it is read past \
        the cache";
    assert_eq!(needed, expected);
}

#[test]
pub fn of_two_dirty_aliases_the_second_write_back_is_reported() {
    let found = reports("two_dirty_aliases", 0);
    let what = "two-dirty-aliases: two_dirty_aliases.last at 0x80200000, got 0x1, not 0xa by \
        two_dirty_aliases.write_here at 0x70200000, overwritten from 0x80200000";
    let needed = "clean and invalidate the D-cache line at MVA 0x70200000 (c7,c14,1) before the \
        data is used through MVA 0x80200000, and vice versa";
    assert_eq!(found, [what, needed]);

    let found = reports("two_dirty_aliases", 2);
    let what = "two-dirty-aliases: two_dirty_aliases.last_of_2 at 0x70200004, got 0x1, not 0xb \
        by two_dirty_aliases.write_there at 0x80200004, overwritten from 0x70200000";
    let needed = "clean and invalidate the D-cache line at MVA 0x80200000 (c7,c14,1) before the \
        data is used through MVA 0x70200000, and vice versa";
    assert_eq!(found, [what, needed]);
}

#[test]
pub fn a_read_between_dirty_aliases_is_reported_as_two_dirty_aliases() {
    let found = reports("read_between_dirty_aliases", 0);
    let what = "two-dirty-aliases: read_between_dirty_aliases.read at 0x70200008, got 0x0, not \
        0xb by read_between_dirty_aliases.write at 0x80200008, dirty at 0x80200000";
    assert_eq!(found[0], what);
    assert_eq!(found.len(), 2, "{found:#?}");
}

#[test]
pub fn old_data_written_back_over_newer_is_reported_at_the_write_back() {
    let needed = "clean and invalidate the D-cache line at MVA 0x70200000 (c7,c14,1) before the \
        newer data was written";
    let by = |name: &str| {
        format!(
            " at 0x70200000, got 0x2, not 0x3 by {name}.write+0x8 at 0x40200000, overwritten from \
             0x70200000"
        )
    };
    let cleaned = format!(
        "old-over-newer: old_data_over_new.clean{}",
        by("old_data_over_new")
    );
    assert_eq!(reports("old_data_over_new", 0), [&cleaned, needed]);
    let evicted = format!(
        "old-over-newer: victim_over_new.write+0x14{}",
        by("victim_over_new")
    );
    assert_eq!(reports("victim_over_new", 0), [&evicted, needed]);
}

#[test]
pub fn a_stale_instruction_needs_what_was_left_out() {
    let what = "stale-instruction: 0x70200000 at 0x70200000, got 0xe3a00001, not 0xe3a00002 by \
        rewritten_code.write at 0x70200000, ";
    let invalidate = "invalidate the I-cache line at MVA 0x70200000 (c7,c5,1)";
    for (variant, place, needed) in [
        (0, "dirty at 0x70200000", I_NEEDED),
        (1, "in memory", invalidate),
        (2, "dirty at 0x70200000", I_NEEDED),
        (5, "in memory", invalidate),
    ] {
        let expected = [format!("{what}{place}"), needed.to_owned()];
        let found = reports("rewritten_code", variant);
        assert_eq!(found, expected, "variant {variant}");
    }
    let found = reports("rewritten_code_past_the_dcache", 0);
    assert_eq!(
        found[1],
        "invalidate the I-cache line at MVA 0x70200040 (c7,c5,1)"
    );
    let what = "stale-instruction: 0x70200100 at 0x70200100, got 0xe3a00001, not 0xe3a00002 by \
        code_in_the_write_buffer.write at 0x50200100, in the write buffer";
    let needed = "drain the write buffer (c7,c10,4) before the I-cache line at MVA 0x70200100 is \
        filled";
    assert_eq!(reports("code_in_the_write_buffer", 0), [what, needed]);
    assert_eq!(reports("code_at_two_addresses", 0).len(), 2);
}

#[test]
pub fn code_invalidated_in_the_d_cache_is_reported_as_lost() {
    let found = reports("rewritten_code", 6);
    let what = "lost-by-invalidate: 0x70200000 at 0x70200000, got 0xe3a00001, not 0xe3a00002 by \
        rewritten_code.write at 0x70200000, lost by rewritten_code.write+0x34 at 0x70200000";
    assert_eq!(found[0], what);
    assert_eq!(found.len(), 2, "{found:#?}");
}

#[test]
pub fn lines_that_outlive_the_mapping_of_their_address_are_reported() {
    let code = reports("remapped_code", 0);
    let what = "stale-instruction: 0x90000000 at 0x90000000, got 0xe3a00001, not 0xe3a00002 by \
        remapped_code+0x20 at 0x40201000, in memory";
    let needed = "invalidate the I-cache line at MVA 0x90000000 (c7,c5,1) when the mapping of that \
        address changed";
    assert_eq!(code, [what, needed]);

    let data = reports("two_tasks_at_one_address", 1);
    let needed = "clean and invalidate the D-cache line at MVA 0x90000800 (c7,c14,1) before the \
        mapping of that address changed";
    let first = "stale-read: two_tasks_at_one_address.read_3 at 0x90000800, got 0x2200, not 0x33 \
        by two_tasks_at_one_address+0x14 at 0x41100800, in memory";
    let second = "stale-read: two_tasks_at_one_address.read_2 at 0x90000800, got 0x3300, not \
        0x2200 by two_tasks_at_one_address.write_2 at 0x90000800, dirty at 0x90000800";
    assert_eq!(data[..4], [first, needed, second, needed]);
}

#[test]
pub fn a_pid_per_task_needs_nothing_until_memory_is_read_past_the_cache() {
    let found = reports("two_tasks_at_one_address", 0);
    let what = "stale-read: two_tasks_at_one_address.past_2+0x4 at 0x41000800, got 0x22, not \
        0x2200 by two_tasks_at_one_address.write_2 at 0x4000800, dirty at 0x4000800";
    assert_eq!(found[0], what);
    assert_eq!(found.len(), 4, "{found:#?}");
}

/// Program, variants with missing or wrong maintenance, label of the use, MVA, old and new descriptor, address of the
/// descriptor.
type Translated = (
    &'static str,
    &'static [u32],
    &'static str,
    u32,
    [u32; 2],
    u32,
);

const STALE_TRANSLATIONS: [Translated; 8] = [
    (
        "changed_page_descriptor",
        &[0, 3],
        "read",
        0x9000_3000,
        [0x22_0ff2, 0x23_0ff2],
        0x4000_800c,
    ),
    (
        "removed_page_descriptor",
        &[0, 3],
        "read",
        0x9000_4000,
        [0x22_0ff2, 0],
        0x4000_8010,
    ),
    (
        "tightened_permissions",
        &[0, 3],
        "store",
        0x9000_5000,
        [0x22_0ff2, 0x22_0aa2],
        0x4000_8014,
    ),
    (
        "write_after_a_read",
        &[0, 3],
        "store",
        0x9000_b000,
        [0x22_0ff2, 0x22_0aa2],
        0x4000_802c,
    ),
    (
        "permissions_by_system_bits",
        &[0],
        "read",
        0x9000_c000,
        [0x22_0ff2, 0x22_0002],
        0x4000_8030,
    ),
    (
        "locked_translation",
        &[0, 1],
        "read",
        0x9000_7000,
        [0x22_0ff2, 0x23_0ff2],
        0x4000_801c,
    ),
    (
        "page_made_uncached",
        &[0, 3],
        "read",
        0x9000_e000,
        [0x22_0ffe, 0x22_0ff2],
        0x4000_8038,
    ),
    (
        "new_table_base",
        &[0, 3],
        "read",
        0x9000_d000,
        [0x8011, 0x25_4011],
        0x4025_2400,
    ),
];

#[test]
pub fn a_translation_used_after_its_descriptor_or_the_table_base_changed_is_reported() {
    for (name, variants, used, mva, [old, new], descriptor) in STALE_TRANSLATIONS {
        let what = format!(
            "stale-translation: {name}.{used} at {mva:#x}, got {old:#x}, not {new:#x} by \
             {name}.write+0x8 at {descriptor:#x}, in memory"
        );
        let needed = format!(
            "invalidate the TLB entry for MVA {mva:#x} (c8,c7,1 or equivalent) after its \
             descriptor was written or the table base changed"
        );
        for variant in variants {
            let found = reports(name, *variant);
            assert_eq!(found, [&*what, &*needed], "{name}/{variant}");
        }
    }
}

#[test]
pub fn a_descriptor_the_walker_does_not_see_is_reported_at_the_walk() {
    let what = "unseen-descriptor: descriptor_in_the_dcache.read at 0x90008000, got 0x220ff2, not \
        0x230ff2 by descriptor_in_the_dcache.write at 0x70008020, dirty at 0x70008020";
    let needed = "clean the D-cache line at MVA 0x70008020 (c7,c10,1) and drain the write buffer \
        (c7,c10,4) after the descriptor was written";
    for variant in [0, 1] {
        let found = reports("descriptor_in_the_dcache", variant);
        assert_eq!(found, [what, needed], "variant {variant}");
    }
    let found = reports("descriptor_in_the_write_buffer", 0);
    let what = "unseen-descriptor: descriptor_in_the_write_buffer.read at 0x9000a000, got \
        0x220ff2, not 0x230ff2 by descriptor_in_the_write_buffer.write at 0x50008028, in the \
        write buffer";
    let needed = "drain the write buffer (c7,c10,4) after the descriptor was written";
    assert_eq!(found, [what, needed]);
}

#[test]
pub fn what_an_invalidate_lost_is_reported_when_it_is_read() {
    for (variant, by) in [(1, "0xc"), (2, "0x14")] {
        let what = format!(
            "lost-by-invalidate: invalidate_discards.read at 0x70200000, got 0x1, not 0x2 by \
             invalidate_discards.write at 0x70200000, lost by invalidate_discards.write+{by} at \
             0x70200000"
        );
        let needed = "clean the D-cache line at MVA 0x70200000 (c7,c10,1 or c7,c14,1) instead of \
            only invalidating it";
        let found = reports("invalidate_discards", variant);
        assert_eq!(found, [&what, needed], "variant {variant}");
    }
}

#[test]
pub fn a_line_older_than_what_a_device_wrote_is_reported_when_it_is_read() {
    let what = "stale-after-dma: device_to_memory.read at 0x70200000, got 0x1, not 0x5 by a \
        device, in memory";
    let needed = "invalidate the D-cache line at MVA 0x70200000 (c7,c6,1) before sysreg writes to \
        memory, and use the line only after that";
    assert_eq!(device_to_memory(0), [what, needed]);
    assert_eq!(device_to_memory(3), [what, needed]);
}

#[test]
pub fn the_history_begins_with_the_fill_of_the_line_that_was_used() {
    let mut rig = Rig::checked("store_reaches_a_cached_alias", 1);
    rig.run_to_end();
    let (report, _) = rig.machine().observer().reports().next().expect("a report");
    let (fill, rest) = report.since.split_first().expect("events");
    assert_eq!(fill.movement, Movement::Fill(Side::Data));
    assert_eq!((fill.mva, fill.pa), (0x8020_0000, DATA));
    assert!(fill.cycle < report.writer.cycle);
    let cleaned = Movement::WriteBack {
        halves: 1,
        victim: false,
        old: 0,
    };
    assert_eq!(rest.len(), 1);
    assert_eq!((rest[0].mva, rest[0].movement), (0x7020_0000, cleaned));
}

#[test]
pub fn one_cause_is_one_report_however_often_it_is_met() {
    let mut rig = Rig::checked("many_stale_words", 0);
    rig.run_to_end();
    let reports = rig.machine().observer().reports();
    let counts: Vec<u64> = reports.map(|(_, count)| count).collect();
    assert_eq!(counts, [100]);
}

#[test]
pub fn a_run_stops_at_a_report_when_asked_to() {
    let mut rig = Rig::checked("store_reaches_the_other_address", 0);
    let machine = rig.machine();
    machine.observer_mut().set_stop_at_report(true);
    assert_eq!(machine.run_until(5_000_000), Stop::Observer);
    let read = machine
        .observer()
        .reports()
        .next()
        .map(|(r, n)| (r.context.pc, n));
    let (pc, count) = read.expect("a report");
    assert_eq!(name_of(pc), "store_reaches_the_other_address.read");
    assert_eq!((machine.cpu().pc(), count), (pc + 4, 1));
}

#[test]
pub fn a_translation_older_than_what_a_device_wrote_is_reported_when_it_is_used() {
    let descriptor = |variant| {
        let mut rig = Rig::checked("descriptor_from_a_device", variant);
        rig.run_to_device();
        rig.poke(0x803c, DATA + 0x1ff2);
        rig.go_on();
        (rig.run_to_end(), reports_of(&mut rig))
    };
    let what = "stale-translation: descriptor_from_a_device.read at 0x9000f000, got 0x200ff2, not \
        0x201ff2 by a device, in memory";
    let needed = "invalidate the TLB entry for MVA 0x9000f000 (c8,c7,1 or equivalent) after its \
        descriptor was written or the table base changed";
    let reports = [what, needed].map(str::to_owned).to_vec();
    assert_eq!(descriptor(0), (vec![1, 1], reports));
    assert_eq!(descriptor(1), (vec![1, 2], Vec::new()));
}
