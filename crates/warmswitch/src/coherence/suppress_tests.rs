// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests which reports an entry covers, and which entries are rejected.

use std::fs;

use super::*;
use board::bus::dma::Purpose;

#[test]
fn what_a_series_mends_is_reported_of_kernels_that_have_it() {
    let mended = |name: &str| {
        let all = of_kernel(name).unwrap();
        all.iter().filter(|s| s.mended_by.is_some()).count()
    };
    let all = ["plain-xscale", "6.12/plain-multi", "fcse-guaranteed"].map(mended);
    assert_eq!(all, [7, 7, 1]);
    assert_eq!(
        ["6.12/fcse-xscale", "fcse-multi-best-effort"].map(mended),
        [0; 2]
    );
}

use crate::coherence::tests::report;

fn loaded(text: &str) -> Result<Vec<Suppression>> {
    let name = format!(
        "warmswitch-suppressions-{}-{:?}.toml",
        std::process::id(),
        std::thread::current().id()
    );
    let path = std::env::temp_dir().join(name);
    fs::write(&path, text).unwrap();
    let list = load(&path);
    fs::remove_file(&path).unwrap();
    list
}

const GOOD: &str = "[[suppression]]\nname='n'\nwrong=['stale-read']\naccess=['reader']\n\
                    writer=['user']\nreason='r'\n";

#[test]
fn an_entry_covers_only_reports_of_its_kind_and_functions() {
    let names = Names::by_hand(&[(0xc000_1000, "reader"), (0xc000_2000, "other")]);
    let entry = loaded(GOOD).unwrap().remove(0);
    let mut found = report();
    assert!(entry.covers(&found, &names));
    found.context.pc = 0xc000_2000;
    assert!(!entry.covers(&found, &names), "another reader");
    found = report();
    found.writer.pc = 0xc000_2000;
    assert!(!entry.covers(&found, &names), "another writer");
    found = report();
    found.kind = ReportKind::OldOverNewer;
    assert!(!entry.covers(&found, &names), "another kind");
    assert_eq!(entry.label(), "stale-read, used by reader, written by user");
}

#[test]
fn an_entry_that_asks_who_used_the_data_covers_no_victim() {
    let names = Names::by_hand(&[(0xc000_1000, "reader")]);
    let mut found = report();
    found.access = Access::WriteBack { victim: true };
    assert!(!loaded(GOOD).unwrap().remove(0).covers(&found, &names));
    let any_access = GOOD.replace("access=['reader']", "");
    let entry = loaded(&any_access).unwrap().remove(0);
    assert!(entry.covers(&found, &names));
}

#[test]
fn an_entry_may_ask_for_a_fetch() {
    let names = Names::by_hand(&[(0xc000_1000, "reader")]);
    let text = GOOD.replace("writer=", "fetched=true\nwriter=");
    let entry = loaded(&text).unwrap().remove(0);
    let mut found = report();
    assert!(!entry.covers(&found, &names), "a load");
    found.access = Access::Translation(Kind::Fetch);
    assert!(entry.covers(&found, &names));
    assert_eq!(
        entry.label(),
        "stale-read, fetched by reader, written by user"
    );
}

#[test]
fn a_fetch_and_a_load_of_one_instruction_are_two_causes() {
    let mut found = report();
    let mut by = |kind| {
        found.kind = ReportKind::StaleTranslation;
        found.access = Access::Translation(kind);
        found.cause()
    };
    assert_ne!(by(Kind::Fetch), by(Kind::Read));
    assert_eq!(by(Kind::Write), by(Kind::Read));
}

#[test]
fn an_entry_may_ask_for_a_caller_of_the_writer_that_has_not_returned() {
    let names = Names::by_hand(&[(0xc000_1000, "copy_mm"), (0xc000_2000, "sys_clone")]);
    let text = GOOD.replace("access=['reader']", "running=['copy_mm']");
    let entry = loaded(&text).unwrap().remove(0);
    let mut found = report();
    assert!(!entry.covers(&found, &names));
    found.trace.written = vec![0xc000_1008, 0xc000_2010];
    found.trace.running = vec![0xc000_2010];
    assert!(!entry.covers(&found, &names), "it has returned");
    found.trace.running = vec![0xc000_1008, 0xc000_2010];
    assert!(entry.covers(&found, &names));
    assert_eq!(entry.label(), "stale-read, written by user, during copy_mm");
}

#[test]
fn an_entry_may_ask_for_a_call_that_is_older_than_the_data() {
    let names = Names::by_hand(&[(0xc000_1000, "reader")]);
    let text = GOOD.replace("writer=", "overlapping=true\nwriter=");
    let entry = loaded(&text).unwrap().remove(0);
    let mut found = report();
    assert!(!entry.covers(&found, &names));
    found.trace.circumstances.overlapping = true;
    assert!(entry.covers(&found, &names));
    assert_eq!(
        entry.label(),
        "stale-read, used by reader, written by user, overlapping the write"
    );
}

#[test]
fn an_entry_may_ask_for_a_caller_of_what_used_the_data() {
    let names = Names::by_hand(&[(0xc000_1000, "fault"), (0xc000_2000, "copy_mm")]);
    let text = GOOD.replace("access=['reader']", "access=[]\nused_in=['fault']");
    let entry = loaded(&text).unwrap().remove(0);
    let mut found = report();
    found.trace.used = vec![0xc000_2010];
    assert!(!entry.covers(&found, &names), "another caller");
    found.trace.used = vec![0xc000_2010, 0xc000_1008];
    assert!(entry.covers(&found, &names));
    assert_eq!(entry.label(), "stale-read, in fault, written by user");
}

#[test]
fn a_copy_to_user_land_by_memcpy_is_one() {
    let names = Names::by_hand(&[
        (0xc000_1000, "memcpy"),
        (0xc000_2000, "__copy_to_user_memcpy"),
        (0xc000_3000, "pipe_read"),
        (0xc000_4000, "other"),
    ]);
    let text = GOOD.replace("['reader']", "['arm_copy_to_user']\nused_in=['pipe_read']");
    let entries = loaded(&text).unwrap();
    let mut found = report();
    found.context.pc = 0xc000_1004;
    found.trace.used = vec![0xc000_2010, 0xc000_3010];
    assert!(entries[0].covers(&found, &names));
    found.trace.used = vec![0xc000_4010, 0xc000_2010, 0xc000_3010];
    assert!(!entries[0].covers(&found, &names), "another copy");
    found.trace.used = vec![0xc000_2010, 0xc000_3010];
    found.context.pc = 0xc000_4010;
    assert!(!entries[0].covers(&found, &names), "another function");
    // Another caller of memcpy is a report of its own, even within a copy to user land.
    let callers = distinctions(&entries, &names).direct_callers;
    assert!(callers.contains(&names.ranges("__copy_to_user_memcpy")[0]));
}

#[test]
fn a_short_copy_to_user_land_beside_copies_by_memcpy_is_one() {
    let names = Names::by_hand(&[
        (0xc000_1000, "__copy_to_user_std"),
        (0xc000_2000, "arm_copy_to_user"),
    ]);
    let entry = loaded(&GOOD.replace("reader", "arm_copy_to_user")).unwrap();
    let mut found = report();
    found.context.pc = 0xc000_1010;
    found.trace.used = vec![0xc000_2010];
    assert!(entry[0].covers(&found, &names));
}

#[test]
fn an_entry_may_ask_for_a_caller_of_the_writer() {
    let names = Names::by_hand(&[(0xc000_1000, "fallocate"), (0xc000_2000, "fault")]);
    let text = GOOD.replace("access=['reader']", "called_by=['fallocate']");
    let entry = loaded(&text).unwrap().remove(0);
    let mut found = report();
    found.trace.written = vec![0xc000_2010];
    assert!(!entry.covers(&found, &names), "another caller");
    found.trace.written = vec![0xc000_1008, 0xc000_2010];
    assert!(entry.covers(&found, &names));
    let label = "stale-read, written by user, called by fallocate";
    assert_eq!(entry.label(), label);
}

#[test]
fn a_bad_entry_is_named_by_file_key_and_nearest_name() {
    for (from, to, part) in [
        ("stale-read", "stale-raed", "did you mean \"stale-read\"?"),
        ("access=", "acess=", "acess"),
        (
            "access=['reader']\nwriter=['user']\n",
            "",
            "access or writer",
        ),
        ("reason='r'", "reason=' '", "reason: must not be empty"),
        ("reason='r'\n", "", "reason"),
        ("name='n'", "name=\"a\\nb\"", "one line of text"),
        ("['stale-read']", "[]", "at least one kind"),
    ] {
        let error = format!("{:#}", loaded(&GOOD.replace(from, to)).unwrap_err());
        assert!(
            error.contains("warmswitch-suppressions") && error.contains(part),
            "{error}"
        );
    }
}

#[test]
fn the_list_of_this_tree_is_read() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../linux/6.12/coherence-suppressions.toml");
    load(&path).unwrap();
}

/// Returns whether [`GOOD`] with one additional key covers the changed report.
fn fits(key: &str, change: impl FnOnce(&mut Report)) -> bool {
    let names = Names::by_hand(&[(0xc000_1000, "reader"), (0xc000_2000, "flush")]);
    let entry = loaded(&GOOD.replace("writer=", &format!("{key}\nwriter=")))
        .unwrap()
        .remove(0);
    let mut found = report();
    change(&mut found);
    entry.covers(&found, &names)
}

#[test]
fn an_entry_may_ask_where_the_newest_was() {
    let memory = |found: &mut Report| found.place = Newest::Memory;
    assert!(fits("newest='dirty'", |_| ()) && !fits("newest='dirty'", memory));
    assert!(fits("newest='memory'", memory) && !fits("newest='memory'", |_| ()));
}

#[test]
fn an_entry_may_ask_when_the_line_was_filled_and_unknown_is_neither() {
    let set = |before| move |found: &mut Report| found.trace.circumstances.filled_before = before;
    for (key, before) in [("filled='before'", true), ("filled='after'", false)] {
        assert!(fits(key, set(Some(before))), "{key}");
        assert!(
            !fits(key, set(Some(!before))) && !fits(key, set(None)),
            "{key}"
        );
    }
}

#[test]
fn an_entry_may_ask_for_the_state_of_lines_and_mappings() {
    type Change = fn(&mut Report);
    let dirty: Change = |found| found.trace.circumstances.dirty_before = true;
    let read_only: Change = |found| found.trace.circumstances.read_only = true;
    let maps: Change = |found| {
        let met = &mut found.trace.circumstances;
        (met.writer_maps, met.writer_leads) = (true, true);
    };
    let leads: Change = |found| found.trace.circumstances.writer_leads = true;
    let permissions: Change = |found| found.trace.circumstances.permissions_only = true;
    let remapped: Change = |found| found.filled_from = Some(arm::Pa(0x1000));
    let asked = [
        ("dirty_before=true", dirty),
        ("read_only=true", read_only),
        ("writer_maps=true", maps),
        ("permissions_only=true", permissions),
        ("remapped=true", remapped),
    ];
    for (key, change) in asked {
        assert!(fits(key, change) && !fits(key, |_| ()), "{key}");
    }
    for (key, fitting) in [("writer_maps=true", false), ("writer_maps=false", false)] {
        assert_eq!(fits(key, leads), fitting, "mapped to be read: {key}");
    }
    assert!(fits("writer_maps=false", |_| ()) && !fits("writer_maps=false", maps));
}

#[test]
fn an_entry_may_ask_what_was_called_between_the_events() {
    const FLUSH: u32 = 0xc000_2000;
    type Field = fn(&mut watch::checker::Between) -> &mut Vec<u32>;
    let asked: [(&str, Field); 3] = [
        ("then_called=['flush']", |b| &mut b.then_called),
        ("filled_in=['flush']", |b| &mut b.filled_in),
        ("suspended_in=['flush']", |b| &mut b.suspended_in),
    ];
    for (key, field) in asked {
        let called = |at: u32| {
            move |found: &mut Report| field(&mut found.trace.circumstances.between).push(at)
        };
        assert!(fits(key, called(FLUSH)), "{key}");
        assert!(
            !fits(key, called(0xc000_1000)) && !fits(key, |_| ()),
            "{key}"
        );
    }
}

#[test]
fn an_entry_may_ask_what_was_called_since_the_fill_and_with_which_bits_of_an_argument() {
    let bits = |mask| Some(Bits { register: 2, mask });
    let met = |is_whole, called: &'static [(u32, Option<Bits>)]| {
        move |found: &mut Report| {
            let between = &mut found.trace.circumstances.between;
            between.is_whole_since_fill = is_whole;
            between.called_since_fill = called.to_vec();
        }
    };
    const FLUSH: (u32, Option<Bits>) = (0xc000_2000, None);
    const READER: (u32, Option<Bits>) = (0xc000_1000, None);
    const FOUR: Bits = Bits {
        register: 2,
        mask: 4,
    };
    const FLUSH_FOUR: (u32, Option<Bits>) = (0xc000_2000, Some(FOUR));
    assert_eq!(with_bits("flush(r2 & 4)"), ("flush", bits(4)));
    let plain = "called_since_fill=['flush']";
    assert!(fits(plain, met(false, &[FLUSH])));
    assert!(!fits(plain, met(false, &[READER])) && !fits(plain, met(false, &[FLUSH_FOUR])));
    let with_bit = "called_since_fill=['flush(r2 & 4)']";
    assert!(fits(with_bit, met(false, &[FLUSH_FOUR])) && !fits(with_bit, met(false, &[FLUSH])));
    let not = "not_called_since_fill=['flush(r2 & 4)']";
    assert!(fits(not, met(true, &[FLUSH, READER])) && !fits(not, met(true, &[FLUSH_FOUR])));
    assert!(!fits(not, met(false, &[])), "the calls are not known");
    let bad = GOOD.replace("writer=", "called_since_fill=['f(r4 & 4)']\nwriter=");
    let error = format!("{:#}", loaded(&bad).unwrap_err());
    assert!(
        error.contains("f(r4 & 4)") && error.contains("f(r2 & 4)"),
        "{error}"
    );
}

#[test]
fn an_entry_may_ask_that_nothing_was_called_and_that_is_known() {
    let key = "not_called_since=['flush']";
    let set = |is_whole, called: &'static [u32]| {
        move |found: &mut Report| {
            let between = &mut found.trace.circumstances.between;
            (between.is_whole, between.called_since) = (is_whole, called.to_vec());
        }
    };
    assert!(fits(key, set(true, &[])) && fits(key, set(true, &[0xc000_1000])));
    assert!(!fits(key, set(false, &[])) && !fits(key, set(true, &[0xc000_2000])));
}

#[test]
fn what_entries_ask_for_is_told_apart_each_in_its_list() {
    let names = Names::by_hand(&[(0xc000_1000, "reader"), (0xc000_2000, "flush")]);
    let flush = names.ranges("flush");
    for (key, list) in [
        ("called_by", 0),
        ("then_called", 1),
        ("filled_in", 2),
        ("called_since_fill", 3),
        ("not_called_since_fill", 3),
        ("not_called_since", 4),
        ("suspended_in", 5),
    ] {
        let text = GOOD.replace("writer=", &format!("{key}=['flush']\nwriter="));
        let all = distinctions(&loaded(&text).unwrap(), &names);
        let lists = [
            all.callers,
            all.then_called,
            all.filled_in,
            all.called_since_fill
                .into_iter()
                .map(|given| given.function)
                .collect(),
            all.called_since,
            all.suspended_in,
        ];
        for (n, found) in lists.iter().enumerate() {
            assert_eq!(*found == flush, n == list, "{key}");
        }
    }
}

#[test]
fn two_entries_of_one_name_are_refused() {
    let error = format!("{:#}", loaded(&GOOD.repeat(2)).unwrap_err());
    assert!(
        error.contains("an earlier entry is called \"n\""),
        "{error}"
    );
}

#[test]
fn an_entry_that_asks_for_a_reader_in_user_land_covers_no_device() {
    let names = Names::by_hand(&[(0xc000_1000, "reader")]);
    let text = "[[suppression]]\nname='n'\nwrong=['lost-by-invalidate', 'stale-dma-read']\naccess=['user']\nreason='r'\n";
    let entry = loaded(text).unwrap().remove(0);
    for wrong in [ReportKind::LostByInvalidate, ReportKind::StaleDmaRead] {
        let mut found = report();
        found.kind = wrong;
        found.access = Access::Dma {
            master: 3,
            purpose: Purpose::Data,
            writes: false,
        };
        found.context = arm::Context::default();
        assert!(!entry.covers(&found, &names), "{}", wrong.name());
    }
}

#[test]
fn an_entry_that_asks_for_a_writer_in_user_land_covers_no_device() {
    let names = Names::by_hand(&[(0xc000_1000, "reader")]);
    let text = GOOD.replace("stale-read", "stale-instruction");
    let entry = loaded(&text).unwrap().remove(0);
    let mut found = report();
    found.kind = ReportKind::StaleInstruction;
    found.access = Access::Fetch { cached: true };
    found.writer = watch::checker::Writer {
        path: watch::checker::Path::Dma,
        ..Default::default()
    };
    assert!(!entry.covers(&found, &names));
}
