// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of lines and TLB entries that remain after a page has changed owners, and of lines and entries that do not
//! remain.

use super::tests::{BACK, KNOWN, Kernel, NUMBER, OTHER, store};
use super::*;
use arm::TlbSide;

/// A line of the page, and a user address in the line.
const LINE: u32 = NUMBER << PAGE | 0x40;
const AT: u32 = 0x0001_0040;
/// First address space of the page.
const TTB: u32 = 0x4000;

impl Kernel {
    /// Frees the page and allocates it for another owner.
    fn changes_hands(&mut self) {
        self.frees(NUMBER);
        self.gives(NUMBER, 0);
    }

    /// Executes a user instruction in an address space, and returns all reports so far.
    fn goes_on(&mut self, ttb: u32) -> Vec<(ReportKind, Access)> {
        self.runs(ttb);
        let reports = self.script.checker.reports();
        reports.map(|(r, _)| (r.kind, r.access)).collect()
    }
}

fn past_the_caches(at: u32, value: u32) -> Event<'static> {
    Event::Store {
        mva: Mva(0xc000_0000 + at),
        pa: Pa(at),
        width: Width::Word,
        value,
        cached: false,
    }
}

fn outlives(kept: Kept) -> Vec<(ReportKind, Access)> {
    vec![(ReportKind::OutlivesPage, Access::Outlives(kept))]
}

#[test]
fn a_dirty_line_that_remains_after_a_change_of_address_space_is_reported_once() {
    let mut script = Kernel::new();
    script.send(USER, 0x8000, store(AT, LINE, 7));
    script.changes_hands();
    assert_eq!(script.goes_on(TTB), []);
    assert_eq!(script.goes_on(OTHER), outlives(Kept::DirtyLine));
    assert_eq!(script.goes_on(TTB).len(), 1);
    let (report, _) = script.script.checker.reports().next().unwrap();
    assert_eq!(
        (report.writer.pc, report.mva, report.pa),
        (0x8000, Mva(AT), Pa(LINE))
    );
    let page = report.page.as_ref().unwrap();
    assert_eq!(page.freed.as_ref().map(|freed| freed.pc), Some(KNOWN.freed));
    assert_eq!(page.given.pc, BACK);
}

#[test]
fn a_cleaned_line_and_a_line_of_the_kernel_or_of_another_page_are_not_reported() {
    let clean = Event::WriteBack {
        mva: Mva(AT & !31),
        pa: Pa(LINE),
        halves: 1,
        data: &[7, 0, 0, 0, 0, 0, 0, 0],
        victim: false,
    };
    let mut script = Kernel::new();
    script.send(USER, 0x8000, store(AT, LINE, 7));
    script.changes_hands();
    script.send(0x13, 0xc000_0000, clean);
    script.send(USER, 0x8000, store(AT, LINE, 8));
    assert_eq!(script.goes_on(OTHER), []);
    let mut script = Kernel::new();
    script.send(0x13, 0xc000_0000, store(0xc123_4040, LINE, 7));
    script.changes_hands();
    assert_eq!(script.goes_on(OTHER), []);
    let mut script = Kernel::new();
    script.send(USER, 0x8000, store(AT, LINE + 4096, 7));
    script.changes_hands();
    assert_eq!(script.goes_on(OTHER), []);
}

#[test]
fn an_i_cache_line_is_reported_unless_it_was_invalidated_or_replaced() {
    let fill = Event::Fill {
        side: Side::Instruction,
        mva: Mva(AT),
        pa: Pa(LINE),
    };
    for (gone, expected) in [
        (None, outlives(Kept::Instructions)),
        (
            Some(Event::InvalidateAll {
                side: Side::Instruction,
            }),
            vec![],
        ),
        (
            Some(Event::Replaced {
                side: Side::Instruction,
                mva: Mva(AT),
            }),
            vec![],
        ),
    ] {
        let mut script = Kernel::new();
        script.send(USER, 0x8000, fill);
        script.changes_hands();
        if let Some(gone) = gone {
            script.send(0x13, 0xc000_0000, gone);
        }
        assert_eq!(script.goes_on(OTHER), expected);
    }
}

#[test]
fn a_tlb_entry_is_reported_unless_it_was_invalidated() {
    let side = TlbSide::Both;
    for (gone, expected) in [(false, outlives(Kept::Translation)), (true, vec![])] {
        let mut script = Kernel::new();
        for (descriptor, value) in [(0x4000, 0x5011), (0x5040, NUMBER << PAGE | 0xffe)] {
            let walk = Event::Walk {
                mva: Mva(AT),
                descriptor: Pa(descriptor),
                value,
            };
            script.send(USER, 0x8000, past_the_caches(descriptor, value));
            script.send(USER, 0x8000, walk);
        }
        let fill = Event::TlbFill {
            side,
            entry: 3,
            mva: Mva(AT),
            bytes: 4096,
            locked: false,
        };
        script.send(USER, 0x8000, fill);
        script.changes_hands();
        if gone {
            script.send(0x13, 0xc000_0000, Event::TlbInvalidate { side, entry: 3 });
        }
        assert_eq!(script.goes_on(OTHER), expected);
    }
}
