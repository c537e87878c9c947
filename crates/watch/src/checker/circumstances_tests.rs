// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of the lines at a write, as the checker derives it from events.

use super::*;
use crate::checker::tests::scripted::{CALLERS, FUNCTION, LOADED, STORED, Scripted};
use arm::{Event, Side};

impl Scripted {
    fn filled(&mut self, mva: u32, pa: u32) {
        let fill = Event::Fill {
            side: Side::Data,
            mva: Mva(mva),
            pa: Pa(pa),
        };
        self.send(FUNCTION, fill);
    }

    /// Returns the circumstances of the first report.
    fn met(&self) -> Circumstances {
        let (report, _) = self.checker.reports().next().expect("a report");
        report.trace.circumstances.clone()
    }
}

#[test]
fn a_line_was_filled_before_the_write_after_it_or_at_an_unknown_time() {
    for (before, after, expected) in [
        (true, false, Some(true)),
        (true, true, Some(false)),
        (false, false, None),
    ] {
        let mut script = Scripted::new(&CALLERS);
        let base = script.bus.ram_base();
        if before {
            script.filled(LOADED, base);
        }
        script.stored(0);
        if after {
            script.filled(LOADED, base);
        }
        script.loaded(0, FUNCTION + 4);
        assert_eq!(script.met().filled_before, expected);
    }
}

/// The second read follows another fill. The second read is another bug, so it gets another report.
#[test]
fn a_read_of_a_refilled_line_is_a_separate_report() {
    let mut script = Scripted::new(&CALLERS);
    let base = script.bus.ram_base();
    script.filled(LOADED, base);
    script.stored(0);
    script.loaded(0, FUNCTION + 4);
    script.filled(LOADED, base);
    script.loaded(0, FUNCTION + 4);
    script.loaded(0, FUNCTION + 4);
    let all = script.checker.reports();
    let all: Vec<_> = all
        .map(|(r, n)| (r.trace.circumstances.filled_before, n))
        .collect();
    assert_eq!(all, [(Some(true), 1), (Some(false), 1)]);
}

/// The test loads from a line, or writes a line back. Before or after the write, a store changes another word of this
/// line.
#[test]
fn a_line_was_dirty_before_the_write_or_became_dirty_after_it() {
    for (dirty_before, written_back) in [(true, false), (false, false), (true, true), (false, true)]
    {
        let mut script = Scripted::new(&CALLERS);
        let base = script.bus.ram_base();
        let neighbour = |script: &mut Scripted| {
            let store = Event::Store {
                mva: Mva(LOADED + 4),
                pa: Pa(base + 4),
                width: Width::Word,
                value: 1,
                cached: true,
            };
            script.send(FUNCTION, store);
        };
        if dirty_before {
            neighbour(&mut script);
        }
        script.stored(0);
        script.written_back(0, STORED, 7);
        if !dirty_before {
            neighbour(&mut script);
        }
        match written_back {
            true => script.written_back(0, LOADED, 0),
            false => script.loaded(0, FUNCTION + 4),
        }
        assert_eq!(script.met().dirty_before, dirty_before, "{written_back}");
    }
}

/// Returns the circumstances of a stale load. Tables map the page of line 0 at both addresses. After the store, the
/// writer's descriptor becomes `last` plus the start of RAM.
fn mapped(read_only: bool, last: u32) -> Circumstances {
    let mut script = Scripted::new(&CALLERS);
    let base = script.bus.ram_base();
    script.ttb = base + 0x4000;
    let tables = [base + 0x10_0000, base + 0x10_0400];
    for (mva, table) in [LOADED, STORED].into_iter().zip(tables) {
        script.puts(FUNCTION, script.ttb + 4 * (mva >> 20), table | 0x11);
    }
    let [reads, writes] = [0xaae, 0xffe];
    script.puts(
        FUNCTION,
        tables[0],
        base | if read_only { reads } else { writes },
    );
    script.puts(FUNCTION, tables[1], base | writes);
    script.stored(0);
    script.puts(FUNCTION, tables[1], base + last);
    script.loaded(0, FUNCTION + 4);
    script.met()
}

#[test]
fn the_tables_decide_read_only_writer_maps_and_writer_leads() {
    let [reads, writes, elsewhere] = [0xaae, 0xffe, 0x1ffe];
    for (read_only, last, maps, leads) in [
        (true, writes, true, true),
        (false, writes, true, true),
        (false, reads, false, true),
        (false, elsewhere, false, false),
    ] {
        let found = mapped(read_only, last);
        assert_eq!(
            (found.read_only, found.writer_maps, found.writer_leads),
            (read_only, maps, leads)
        );
    }
}

#[test]
fn a_descriptor_that_leads_elsewhere_or_is_zero_differs_in_more_than_its_permissions() {
    let (mva, first) = (0xc100_0000, 0x10_0000);
    for (newest, is) in [
        (0x20_0aae, true),
        (0x20_1aae, false),
        (0x20_0aa6, false),
        (0, false),
    ] {
        let mut script = Scripted::new(&CALLERS);
        let base = script.bus.ram_base();
        script.ttb = base + 0x4000;
        let table = base + first;
        let levels = [
            (script.ttb + 4 * (mva >> 20), table | 0x11),
            (table, base + 0x20_0ffe),
        ];
        for (at, value) in levels {
            script.puts(FUNCTION, at, value);
        }
        script.walked(mva, &levels, 4096);
        script.puts(FUNCTION, table, if newest == 0 { 0 } else { base + newest });
        script.wrote(mva, base + 0x20_0000);
        assert_eq!(script.met().permissions_only, is, "{newest:x}");
    }
}

/// One instruction first runs from an I-cache line of other memory. Suppressions with `remapped` cover this case.
/// Later, the instruction runs from a line of its own memory that was not invalidated. Suppressions with `remapped` do
/// not cover this case. Both cases have the same writer.
#[test]
fn a_line_of_other_memory_hides_no_line_of_the_same_memory() {
    let mut script = Scripted::new(&CALLERS);
    let base = script.bus.ram_base();
    for from in [base + 0x1000, base] {
        let fill = Event::Fill {
            side: Side::Instruction,
            mva: Mva(LOADED),
            pa: Pa(from),
        };
        script.send(FUNCTION, fill);
        script.stored(0);
        script.written_back(0, STORED, 7);
        let fetch = Event::Fetch {
            mva: Mva(LOADED),
            pa: Pa(base),
            width: Width::Word,
            value: 3,
            cached: true,
            registers: &[0; 16],
        };
        script.send(LOADED, fetch);
    }
    let all: Vec<_> = script
        .checker
        .reports()
        .map(|(r, n)| (r.filled_from.is_some(), n))
        .collect();
    assert_eq!(all, [(true, 1), (false, 1)]);
}

/// Many stale words have their newest value in memory. Suppressions with `newest = "memory"` cover them. After these
/// words comes a word whose newest value is still in a dirty line.
#[test]
fn another_state_is_a_report_however_often_a_covered_state_was_met() {
    for covered in [63, 64] {
        let mut script = Scripted::new(&CALLERS);
        for n in 0..covered {
            script.stored(n);
            script.written_back(n, STORED, 7);
            script.loaded(n, FUNCTION + 4);
        }
        script.stored(covered);
        script.loaded(covered, FUNCTION + 4);
        let all: Vec<_> = script
            .checker
            .reports()
            .map(|(r, n)| (r.place, n))
            .collect();
        assert_eq!(all.len(), 2, "after {covered}: {all:?}");
    }
}

/// XScale's extended small pages have type 3 and one AP field (IXP42X 3.1.1; Linux: PTE_TYPE_EXT). The suppression
/// `fork_window` names the writer cpu_xscale_set_pte_ext, which makes read-only pages write-through (erratum 40).
#[test]
fn an_extended_small_page_may_differ_in_its_permissions_only() {
    let (context, writer) = (arm::Context::default(), crate::checker::Writer::default());
    let met = |used, newest| Difference {
        context: &context,
        access: Access::Translation(arm::Kind::Write),
        mva: Mva(0x1_0000),
        pa: Pa(0x4000),
        writer: &writer,
        filled: Some(1),
        values: [used, newest],
    };
    assert!(met(0x20_003f, 0x20_002f).permissions_only());
    assert!(met(0x20_003f, 0x20_002b).permissions_only());
    assert!(!met(0x20_003f, 0x20_0027).permissions_only(), "C differs");
    assert!(!met(0x20_003f, 0x20_102f).permissions_only());
    assert!(!met(0x20_007f, 0x20_002f).permissions_only(), "X differs");
}
