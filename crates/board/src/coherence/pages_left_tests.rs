// SPDX-License-Identifier: MIT OR Apache-2.0
//! A checker that is told of pages that are freed and given.

use super::*;
use crate::bus::SystemBus;
use crate::observed::Observer as _;
use crate::spec::BoardSpec;
use arm9::TlbSide;

const KNOWN: PageFunctions = PageFunctions {
    freed: 0xc000_3000,
    freed_some: 0xc000_4000,
    given: 0xc000_5000,
    map: 0x100,
    kernel: 0xbf00_0000,
};
/// Where the kernel's map is, and bytes of it for a page.
const MAP: u32 = 0xc080_0000;
const BYTES: u32 = 36;
/// The page that is looked at, a line of it, and a user's address of that.
const NUMBER: u32 = 0x1234;
const LINE: u32 = NUMBER << PAGE | 0x40;
const AT: u32 = 0x0001_0040;
const BACK: u32 = 0xc000_6000;
const TTBS: [u32; 2] = [0x4000, 0x8000];

struct Told {
    bus: SystemBus,
    checker: Checker,
    cycle: u64,
}

impl Told {
    fn new() -> Told {
        let bus = SystemBus::new(&BoardSpec::named("sam9263").unwrap()).unwrap();
        let mut checker = Checker::new(&bus);
        checker.follow_pages(KNOWN);
        let mut told = Told {
            bus,
            checker,
            cycle: 0,
        };
        told.that(
            0xc000_0000,
            TTBS[0],
            store(0xc000_0100, KNOWN.map, MAP, false),
        );
        for n in 1..=SEEN + 1 {
            told.calls(KNOWN.freed, 2, n * n);
        }
        told
    }

    fn that(&mut self, pc: u32, ttb: u32, event: Event<'_>) {
        self.cycle += 1;
        let context = Context {
            cycle: self.cycle,
            pc,
            mode: if pc < KNOWN.kernel { USER } else { 0x13 },
            ttb,
            ..Context::default()
        };
        self.checker.observe(&self.bus, &context, event);
    }

    fn at(&mut self, pc: u32, ttb: u32, registers: [u32; 16]) {
        let fetch = Event::Fetch {
            mva: Mva(pc),
            pa: Pa(u32::MAX - 3),
            width: Width::Word,
            value: 0,
            cached: true,
            registers: &registers,
        };
        self.that(pc, ttb, fetch);
    }

    /// A function is called with a page in a register.
    fn calls(&mut self, function: u32, register: usize, number: u32) {
        let mut registers = [0; 16];
        registers[register] = MAP + number * BYTES;
        self.at(function, TTBS[0], registers);
    }

    /// The page is freed, and comes back from the one that gives it.
    fn changes_hands(&mut self) {
        self.calls(KNOWN.freed, 2, NUMBER);
        let mut registers = [0; 16];
        (registers[13], registers[14]) = (0xc010_0000, BACK);
        self.at(KNOWN.given, TTBS[0], registers);
        registers[0] = MAP + NUMBER * BYTES;
        self.at(BACK, TTBS[0], registers);
    }

    /// A user's instruction in that address space; what was reported by then.
    fn goes_on(&mut self, ttb: u32) -> Vec<(Wrong, Access)> {
        self.at(0x8000, ttb, [0; 16]);
        let reports = self.checker.reports();
        reports.map(|(r, _)| (r.wrong, r.access)).collect()
    }
}

fn store(mva: u32, pa: u32, value: u32, cached: bool) -> Event<'static> {
    Event::Store {
        mva: Mva(mva),
        pa: Pa(pa),
        width: Width::Word,
        value,
        cached,
    }
}

fn outlives(kept: Kept) -> Vec<(Wrong, Access)> {
    vec![(Wrong::OutlivesPage, Access::Outlives(kept))]
}

#[test]
fn a_dirty_line_that_is_there_behind_a_change_of_address_space_is_reported_once() {
    let mut told = Told::new();
    told.that(0x8000, TTBS[0], store(AT, LINE, 7, true));
    told.changes_hands();
    assert_eq!(told.goes_on(TTBS[0]), []);
    assert_eq!(told.goes_on(TTBS[1]), outlives(Kept::DirtyLine));
    assert_eq!(told.goes_on(TTBS[0]).len(), 1);
    let (report, _) = told.checker.reports().next().unwrap();
    assert_eq!(
        (report.writer.pc, report.mva, report.pa),
        (0x8000, Mva(AT), Pa(LINE))
    );
    let page = report.page.as_ref().unwrap();
    assert_eq!(page.freed.as_ref().map(|freed| freed.pc), Some(KNOWN.freed));
    assert_eq!(page.given.pc, BACK);
}

#[test]
fn what_is_cleaned_or_becomes_dirty_again_or_is_the_kernels_is_not() {
    let clean = Event::WriteBack {
        mva: Mva(AT & !31),
        pa: Pa(LINE),
        halves: 1,
        data: &[7, 0, 0, 0, 0, 0, 0, 0],
        victim: false,
    };
    let mut told = Told::new();
    told.that(0x8000, TTBS[0], store(AT, LINE, 7, true));
    told.changes_hands();
    told.that(0xc000_0000, TTBS[0], clean);
    told.that(0x8000, TTBS[0], store(AT, LINE, 8, true));
    assert_eq!(told.goes_on(TTBS[1]), []);
    let mut told = Told::new();
    told.that(0xc000_0000, TTBS[0], store(0xc123_4040, LINE, 7, true));
    told.changes_hands();
    assert_eq!(told.goes_on(TTBS[1]), []);
    let mut told = Told::new();
    told.that(0x8000, TTBS[0], store(AT, LINE + 4096, 7, true));
    told.changes_hands();
    assert_eq!(told.goes_on(TTBS[1]), []);
}

#[test]
fn a_line_of_the_i_cache_is_reported_and_one_that_was_invalidated_is_not() {
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
        let mut told = Told::new();
        told.that(0x8000, TTBS[0], fill);
        told.changes_hands();
        if let Some(gone) = gone {
            told.that(0xc000_0000, TTBS[0], gone);
        }
        assert_eq!(told.goes_on(TTBS[1]), expected);
    }
}

#[test]
fn a_tlb_entry_is_reported_and_one_that_was_invalidated_is_not() {
    let side = TlbSide::Both;
    for (gone, expected) in [(false, outlives(Kept::Translation)), (true, vec![])] {
        let mut told = Told::new();
        for (descriptor, value) in [(0x4000, 0x5011), (0x5040, NUMBER << PAGE | 0xffe)] {
            let walk = Event::Walk {
                mva: Mva(AT),
                descriptor: Pa(descriptor),
                value,
            };
            told.that(
                0x8000,
                TTBS[0],
                store(0xc000_0000 + descriptor, descriptor, value, false),
            );
            told.that(0x8000, TTBS[0], walk);
        }
        let fill = Event::TlbFill {
            side,
            entry: 3,
            mva: Mva(AT),
            bytes: 4096,
            locked: false,
        };
        told.that(0x8000, TTBS[0], fill);
        told.changes_hands();
        if gone {
            told.that(
                0xc000_0000,
                TTBS[0],
                Event::TlbInvalidate { side, entry: 3 },
            );
        }
        assert_eq!(told.goes_on(TTBS[1]), expected);
    }
}
