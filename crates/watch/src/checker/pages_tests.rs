// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages that are freed and allocated. Most of these tests come from adversarial reviews.

use super::*;
use crate::checker::tests::scripted::Scripted;
use arm::TlbSide;
use board::Observer as _;

pub(super) const KNOWN: PageFunctions = PageFunctions {
    freed: 0xc000_1000,
    freed_some: 0xc000_2000,
    given: 0xc000_3000,
    map: 0x0000_0100,
    kernel: 0xbf00_0000,
};
/// Address of the kernel's map, and size of a `struct page` in it.
const MAP: u32 = 0xc0f0_0000;
const BYTES: u32 = 36;
/// Return address of calls that allocate pages.
pub(super) const BACK: u32 = 0xc000_4000;
const SP: u32 = 0xc010_0000;
/// A user address.
const USERS: u32 = 0x0001_0000;
/// Number of a page in RAM.
pub(super) const NUMBER: u32 = 700;

/// A kernel that has freed many pages.
pub(super) struct Kernel {
    pub(super) script: Scripted,
    cycle: u64,
}

impl Kernel {
    pub(super) fn new() -> Kernel {
        let mut script = Scripted::new(&[]);
        assert_eq!(script.bus.ram_base(), KNOWN.map & !0xfff);
        script.checker.follow_pages(KNOWN);
        let mut kernel = Kernel { script, cycle: 0 };
        kernel.send(0x13, MAP, store(MAP, KNOWN.map, MAP));
        for n in 0..2 * SEEN {
            kernel.frees(n);
        }
        kernel
    }

    pub(super) fn send(&mut self, mode: u32, pc: u32, event: Event<'_>) {
        self.cycle += 1;
        let context = Context {
            cycle: self.cycle,
            pc,
            mode,
            ttb: self.script.ttb,
            ..Context::default()
        };
        self.script
            .checker
            .observe(&self.script.bus, &context, event);
    }

    fn at(&mut self, mode: u32, pc: u32, registers: [u32; 16]) {
        let fetch = Event::Fetch {
            mva: Mva(pc),
            pa: Pa(u32::MAX - 3),
            width: Width::Word,
            value: 0,
            cached: true,
            registers: &registers,
        };
        self.send(mode, pc, fetch);
    }

    pub(super) fn frees(&mut self, n: u32) {
        let mut registers = [0; 16];
        (registers[2], registers[13]) = (page(n), SP);
        self.at(0x13, KNOWN.freed, registers);
    }

    fn frees_some(&mut self, page: u32, order: u32) {
        let mut registers = [0; 16];
        (registers[1], registers[3], registers[13]) = (page, order, SP);
        self.at(0x13, KNOWN.freed_some, registers);
    }

    /// Enters the function that allocates pages.
    fn begins(&mut self, sp: u32, order: u32) {
        let mut registers = [0; 16];
        (registers[1], registers[13], registers[14]) = (order, sp, BACK);
        self.at(0x13, KNOWN.given, registers);
    }

    /// Returns from the function that allocates pages, with a page.
    fn ends(&mut self, sp: u32, page: u32) {
        let mut registers = [0; 16];
        (registers[0], registers[13]) = (page, sp);
        self.at(0x13, BACK, registers);
    }

    pub(super) fn gives(&mut self, n: u32, order: u32) {
        self.begins(SP, order);
        self.ends(SP, page(n));
    }

    /// Makes a line of a page dirty with a user store.
    fn dirties(&mut self, n: u32) {
        let pa = self.script.bus.ram_base() + (n << PAGE);
        self.send(USER, USERS, store(USERS + (n << PAGE), pa, 7));
    }

    /// Executes a user instruction in an address space.
    pub(super) fn runs(&mut self, ttb: u32) {
        self.script.ttb = ttb;
        self.at(USER, USERS, [0; 16]);
    }

    /// Returns for each report: the access, the cycle of the free, and the count.
    fn reports(&self) -> Vec<(Access, Option<u64>, u64)> {
        let all = self.script.checker.reports();
        let all = all.map(|(r, count)| {
            let page = r.page.as_ref();
            let freed = page.and_then(|page| page.freed.as_ref());
            (r.access, freed.map(|freed| freed.cycle), count)
        });
        all.collect()
    }
}

pub(super) fn store(mva: u32, pa: u32, value: u32) -> Event<'static> {
    Event::Store {
        mva: Mva(mva),
        pa: Pa(pa),
        width: Width::Word,
        value,
        cached: true,
    }
}

fn page(n: u32) -> u32 {
    MAP.wrapping_add(BYTES.wrapping_mul(n))
}

const LINE: Access = Access::Outlives(Kept::DirtyLine);
pub(super) const OTHER: u32 = 0x8000;

#[test]
fn a_dirty_line_of_a_given_page_is_reported_after_the_next_change_of_address_space() {
    let mut kernel = Kernel::new();
    kernel.dirties(NUMBER);
    kernel.frees(NUMBER);
    let freed = kernel.cycle;
    kernel.gives(NUMBER, 0);
    kernel.runs(0x4000);
    assert_eq!(kernel.reports(), []);
    kernel.runs(OTHER);
    assert_eq!(kernel.reports(), [(LINE, Some(freed), 1)]);
}

#[test]
fn a_line_invalidated_in_between_or_made_dirty_by_the_new_owner_is_not_reported() {
    let mut kernel = Kernel::new();
    kernel.dirties(NUMBER);
    kernel.frees(NUMBER);
    kernel.gives(NUMBER, 0);
    let invalidate = Event::Invalidate {
        side: Side::Data,
        mva: Mva(USERS + (NUMBER << PAGE)),
        pa: Pa(kernel.script.bus.ram_base() + (NUMBER << PAGE)),
        halves: 1,
    };
    kernel.send(0x13, BACK, invalidate);
    kernel.dirties(NUMBER);
    kernel.runs(OTHER);
    assert_eq!(kernel.reports(), []);
}

#[test]
fn a_call_that_returns_no_page_gives_none() {
    let mut kernel = Kernel::new();
    kernel.dirties(0);
    kernel.begins(SP, 0);
    kernel.ends(SP, 0);
    kernel.ends(SP, page(0));
    kernel.runs(OTHER);
    assert_eq!(kernel.reports(), []);
}

/// Between the start and the end of a call, an interrupt or another task makes a call of its own.
#[test]
fn each_of_two_nested_calls_gives_its_page() {
    let mut kernel = Kernel::new();
    for n in [NUMBER, NUMBER + 8] {
        kernel.dirties(n);
        kernel.frees(n);
    }
    kernel.begins(SP, 0);
    kernel.begins(SP - 0x100, 0);
    kernel.ends(SP - 0x100, page(NUMBER + 8));
    kernel.ends(SP, page(NUMBER));
    kernel.runs(OTHER);
    let counts: u64 = kernel.reports().iter().map(|r| r.2).sum();
    assert_eq!(counts, 2);
}

/// An I-cache line and a TLB entry lead to one page. The first word of this page was never written.
#[test]
fn an_i_cache_line_hides_no_tlb_entry() {
    let mut kernel = Kernel::new();
    let base = kernel.script.bus.ram_base();
    let (mva, pa) = (USERS, base + (NUMBER << PAGE));
    let fill = Event::Fill {
        side: Side::Instruction,
        mva: Mva(mva),
        pa: Pa(pa),
    };
    kernel.send(USER, mva, fill);
    for (at, value) in [(base + 0x4000, base | 0x11), (base, pa | 0xffe)] {
        let walk = Event::Walk {
            mva: Mva(mva),
            descriptor: Pa(at),
            value,
        };
        kernel.send(0x13, mva, walk);
    }
    let entry = Event::TlbFill {
        side: TlbSide::Both,
        entry: 0,
        mva: Mva(mva),
        bytes: 4096,
        locked: false,
    };
    kernel.send(0x13, mva, entry);
    kernel.frees(NUMBER);
    kernel.gives(NUMBER, 0);
    kernel.runs(OTHER);
    let reports = kernel.reports();
    for kept in [Kept::Instructions, Kept::Translation] {
        let is = |r: &&(Access, _, _)| r.0 == Access::Outlives(kept);
        assert_eq!(reports.iter().filter(is).count(), 1, "{kept:?} {reports:?}");
    }
}

#[test]
fn a_free_before_the_last_owner_is_not_reported() {
    let mut kernel = Kernel::new();
    kernel.frees(NUMBER);
    kernel.gives(NUMBER, 0);
    kernel.dirties(NUMBER);
    kernel.gives(NUMBER, 0);
    kernel.runs(OTHER);
    assert_eq!(kernel.reports(), [(LINE, None, 1)]);
}

/// The guest controls the registers, so any value may arrive.
#[test]
fn a_guest_cannot_make_the_state_of_pages_grow_without_bound() {
    let mut kernel = Kernel::new();
    let last = 0xffff_ffe0;
    kernel.send(USER, USERS, store(USERS, last, 7));
    for n in 0..1 << 12 {
        kernel.frees_some(page(n << 14), ORDERS - 1);
        kernel.begins(SP - 8 * n, n);
    }
    assert_eq!(kernel.script.checker.pages.giving.len(), GIVING);
    let number = (last >> PAGE) - (kernel.script.bus.ram_base() >> PAGE);
    kernel.gives(number, 0);
    kernel.gives(number - 3, 2);
    for order in [ORDERS, 31, 32, u32::MAX] {
        kernel.frees_some(page(1), order);
        kernel.gives(1, order);
    }
    kernel.runs(OTHER);
    let pages = &kernel.script.checker.pages;
    assert!(pages.freed.len() <= 1 << 16, "{}", pages.freed.len());
}

/// An address that does not point to a `struct page` does not change the known size of a `struct page`.
#[test]
fn an_address_that_is_no_page_changes_nothing() {
    let mut kernel = Kernel::new();
    for odd in [1, MAP + 1, MAP.wrapping_sub(4), u32::MAX] {
        kernel.frees_some(odd, 0);
    }
    kernel.dirties(NUMBER);
    kernel.frees(NUMBER);
    kernel.gives(NUMBER, 0);
    kernel.runs(OTHER);
    assert_eq!(kernel.reports().len(), 1);
}
