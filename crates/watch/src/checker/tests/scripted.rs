// SPDX-License-Identifier: MIT OR Apache-2.0
//! A checker that receives events written by hand. The tests are regression tests for bugs that an adversarial review
//! found and proved with scripted events.

use crate::checker::Checker;
use arm::{Context, Event, Kind, Mva, Pa, Side, TlbSide, Width};
use board::Observer as _;
use board::bus::SystemBus;
use board::spec::BoardSpec;

/// The function that writes and uses data, and two functions that call it.
pub(crate) const FUNCTION: u32 = 0xc000_2000;
pub(crate) const CALLERS: [u32; 2] = [0xc000_1000, 0xc000_3000];
/// Address of line 0 for stores, and for loads.
pub(crate) const STORED: u32 = 0xc100_0000;
pub(crate) const LOADED: u32 = 0xc200_0000;

/// A checker that receives events as a core would send them.
pub(crate) struct Scripted {
    pub(crate) bus: SystemBus,
    pub(crate) checker: Checker,
    pub(crate) cycle: u64,
    pub(crate) mode: u32,
    pub(crate) ttb: u32,
}

impl Scripted {
    pub(crate) fn new(distinctions: &[u32]) -> Scripted {
        let bus = SystemBus::new(&BoardSpec::named("sam9263").unwrap()).unwrap();
        let mut checker = Checker::new(&bus);
        let callers: Vec<_> = distinctions.iter().map(|at| *at..*at + 0x100).collect();
        checker.tell_apart(callers.into());
        Scripted {
            bus,
            checker,
            cycle: 0,
            mode: 0x13,
            ttb: 0x4000,
        }
    }

    pub(crate) fn send(&mut self, pc: u32, event: Event<'_>) {
        self.cycle += 1;
        let context = Context {
            cycle: self.cycle,
            pc,
            mode: self.mode,
            ttb: self.ttb,
            ..Context::default()
        };
        self.checker.observe(&self.bus, &context, event);
    }

    /// Executes an instruction outside RAM.
    fn fetched(&mut self, pc: u32, value: u32) {
        let mut registers = [0; 16];
        registers[13] = 0xc010_0000;
        let fetch = Event::Fetch {
            mva: Mva(pc),
            pa: Pa(u32::MAX - 3),
            width: Width::Word,
            value,
            cached: true,
            registers: &registers,
        };
        self.send(pc, fetch);
    }

    /// Calls the function from a caller, and runs `does` in it.
    pub(crate) fn called(&mut self, caller: u32, does: impl FnOnce(&mut Scripted)) {
        let call = 0xeb00_0000 | (FUNCTION.wrapping_sub(caller + 8) >> 2) & 0x00ff_ffff;
        self.fetched(caller, call);
        self.fetched(FUNCTION, 0);
        does(self);
        self.fetched(caller + 4, 0);
    }

    /// Stores to line `n` through one address, and loads the old data through the other.
    pub(crate) fn stored_and_loaded(&mut self, n: u32) {
        self.stored(n);
        self.loaded(n, FUNCTION + 4);
    }

    pub(crate) fn stored(&mut self, n: u32) {
        let store = Event::Store {
            mva: Mva(STORED + 64 * n),
            pa: Pa(self.bus.ram_base() + 64 * n),
            width: Width::Word,
            value: 7,
            cached: true,
        };
        self.send(FUNCTION, store);
    }

    /// Writes back the line of one of the addresses.
    pub(crate) fn written_back(&mut self, n: u32, address: u32, first: u32) {
        let back = Event::WriteBack {
            mva: Mva(address + 64 * n),
            pa: Pa(self.bus.ram_base() + 64 * n),
            halves: 1,
            data: &[first, 0, 0, 0, 0, 0, 0, 0],
            victim: true,
        };
        self.send(FUNCTION + 8, back);
    }

    /// Loads the old data.
    pub(crate) fn loaded(&mut self, n: u32, pc: u32) {
        let load = Event::Load {
            mva: Mva(LOADED + 64 * n),
            pa: Pa(self.bus.ram_base() + 64 * n),
            width: Width::Word,
            value: 0,
            cached: true,
        };
        self.send(pc, load);
    }
}

/// Events of translations.
impl Scripted {
    /// Stores to memory, bypassing the caches.
    pub(crate) fn puts(&mut self, pc: u32, at: u32, value: u32) {
        let store = Event::Store {
            mva: Mva(at),
            pa: Pa(at),
            width: Width::Word,
            value,
            cached: false,
        };
        self.send(pc, store);
    }

    /// Walks the tables: reads descriptors and loads a TLB entry.
    pub(crate) fn walked(&mut self, mva: u32, descriptors: &[(u32, u32)], bytes: u32) {
        for (at, value) in descriptors {
            let walk = Event::Walk {
                mva: Mva(mva),
                descriptor: Pa(*at),
                value: *value,
            };
            self.send(FUNCTION, walk);
        }
        let fill = Event::TlbFill {
            side: TlbSide::Both,
            entry: 0,
            mva: Mva(mva),
            bytes,
            locked: false,
        };
        self.send(FUNCTION, fill);
    }

    /// Loads through the TLB entry.
    fn uses(&mut self, mva: u32, pa: u32) {
        self.goes_by_entry(mva, pa, Kind::Read);
    }

    /// Stores through the TLB entry in user mode.
    pub(crate) fn wrote(&mut self, mva: u32, pa: u32) {
        self.goes_by_entry(mva, pa, Kind::Write);
    }

    fn goes_by_entry(&mut self, mva: u32, pa: u32, kind: Kind) {
        let used = Event::TlbUse {
            side: TlbSide::Both,
            entry: 0,
            mva: Mva(mva),
            pa: Pa(pa),
            kind,
            privileged: kind == Kind::Read,
        };
        self.send(FUNCTION + 4, used);
    }

    /// Returns the writer in each report.
    fn writers(&self) -> Vec<u32> {
        let reports = self.checker.reports();
        reports.map(|(report, _)| report.writer.pc).collect()
    }
}

/// A 64 KB entry is made from the first of its 16 descriptors. Two writers change two other descriptors, and in one
/// case the first descriptor is written again. One instruction uses both changed pages.
#[test]
fn each_descriptor_of_a_large_page_counts() {
    for first_again in [false, true] {
        let mut script = Scripted::new(&[]);
        let base = script.bus.ram_base();
        script.ttb = base + 0x4000;
        let (mva, table) = (0xc100_0000, base + 0x10_0000);
        let first = (script.ttb + 4 * (mva >> 20), table | 0x11);
        let page = base + 0x20_0000;
        let large = page | 0xffd;
        script.puts(FUNCTION, first.0, first.1);
        for n in 0..16 {
            script.puts(FUNCTION, table + 4 * n, large);
        }
        script.walked(mva, &[first, (table, large)], 0x1_0000);
        script.puts(CALLERS[0], table + 4, base + 0x30_0ffe);
        script.puts(CALLERS[1], table + 8, base + 0x30_1ffe);
        if first_again {
            script.puts(FUNCTION, table, large);
        }
        for n in [1, 2] {
            script.uses(mva + 0x1000 * n, page + 0x1000 * n);
        }
        assert_eq!(script.writers(), CALLERS, "{first_again}");
    }
}

/// The first-level table is outside RAM, and the second-level table is in RAM. A descriptor in the second-level table
/// is written again with an equal value.
#[test]
fn tables_outside_ram_are_not_reported() {
    let mut script = Scripted::new(&[]);
    script.ttb = 0xf000_0000;
    let (mva, table) = (0xc100_0000, script.bus.ram_base() + 0x10_0000);
    let levels = [
        (script.ttb + 4 * (mva >> 20), table | 0x11),
        (table, 0x0123_4ffe),
    ];
    for (at, value) in levels {
        script.puts(FUNCTION, at, value);
    }
    script.walked(mva, &levels, 4096);
    script.puts(FUNCTION, table, 0x0123_4ffe);
    script.uses(mva, 0x0123_4000);
    assert_eq!(script.writers(), []);
}

/// An entry is stale under two table bases. The core uses it under both bases alternately. Only the first 64 uses are
/// diagnosed.
#[test]
fn a_stale_entry_under_two_table_bases_is_counted() {
    let mut script = Scripted::new(&[]);
    let (mva, base) = (0xc100_0000, script.bus.ram_base());
    let tables = [base + 0x4000, base + 0x8000];
    let at = |ttb: u32| ttb + 4 * (mva >> 20);
    script.ttb = tables[0];
    for value in [0x0010_0c12, 0x0020_0c12] {
        for ttb in tables {
            script.puts(FUNCTION, at(ttb), value);
        }
        if value == 0x0010_0c12 {
            script.walked(mva, &[(at(tables[0]), value)], 1 << 20);
        }
    }
    for n in 0..400 {
        script.ttb = tables[n & 1];
        script.uses(mva, 0x0010_0000);
    }
    let counts: Vec<u64> = script.checker.reports().map(|(_, count)| count).collect();
    assert_eq!(counts, [400]);
}

/// One instruction comes from a stale word and loads that same word.
#[test]
fn a_fetch_hides_no_load() {
    let mut script = Scripted::new(&[]);
    script.stored(0);
    let fetch = Event::Fetch {
        mva: Mva(LOADED),
        pa: Pa(script.bus.ram_base()),
        width: Width::Word,
        value: 0,
        cached: true,
        registers: &[0; 16],
    };
    script.send(LOADED, fetch);
    script.loaded(0, LOADED);
    let all: Vec<_> = script
        .checker
        .reports()
        .map(|(r, _)| r.kind.name())
        .collect();
    assert_eq!(all, ["stale-instruction", "stale-read"]);
}

/// After a million events, the line at the writer's address is dirty again, for another process.
#[test]
fn a_destructive_write_back_is_reported_even_if_the_writers_line_is_dirty_again() {
    for other in [false, true] {
        let mut script = Scripted::new(&[]);
        script.stored(0);
        script.written_back(0, STORED, 7);
        for n in 0..1 << 20 {
            let at = 0x4000_0000 + 32 * (n & 0xffff);
            let fill = Event::Fill {
                side: Side::Data,
                mva: Mva(at),
                pa: Pa(at),
            };
            script.send(FUNCTION, fill);
        }
        if other {
            let store = Event::Store {
                mva: Mva(STORED),
                pa: Pa(script.bus.ram_base() + 0x1000),
                width: Width::Word,
                value: 9,
                cached: true,
            };
            script.send(FUNCTION, store);
        }
        script.written_back(0, LOADED, 0);
        assert_eq!(script.checker.reports().count(), 1, "{other}");
    }
}

/// A cached read-only page of memory. Writes to this memory bypass the cache. The page is mapped before or after the
/// write.
#[test]
fn a_private_view_is_one_that_was_mapped_before_the_data_was_written() {
    for mapped_after in [false, true] {
        let mut script = Scripted::new(&CALLERS);
        let base = script.bus.ram_base();
        script.ttb = base + 0x4000;
        let (tables, page) = ([base + 0x10_0000, base + 0x10_0400], base + 0x20_0000);
        let [read_only, writable] = [page | 0xaae, page | 0xff2];
        for (mva, table) in [LOADED, STORED].into_iter().zip(tables) {
            script.puts(FUNCTION, script.ttb + 4 * (mva >> 20), table | 0x11);
        }
        script.puts(FUNCTION, tables[1], writable);
        script.puts(FUNCTION, tables[0], read_only);
        let store = Event::Store {
            mva: Mva(STORED),
            pa: Pa(page),
            width: Width::Word,
            value: 7,
            cached: false,
        };
        script.send(FUNCTION, store);
        if mapped_after {
            script.puts(FUNCTION, tables[0], 0);
            script.puts(FUNCTION, tables[0], read_only);
        }
        let load = Event::Load {
            mva: Mva(LOADED),
            pa: Pa(page),
            width: Width::Word,
            value: 0,
            cached: true,
        };
        script.send(FUNCTION + 4, load);
        let is =
            |(report, _): (&crate::checker::Report, u64)| report.trace.circumstances.private_view;
        let all: Vec<bool> = script.checker.reports().map(is).collect();
        assert_eq!(all, [!mapped_after]);
    }
}
