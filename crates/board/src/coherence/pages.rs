// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is left in caches and TLBs of a page that was freed and is somebody else's by now, before anybody's data is lost.
//!
//! Seen by the functions that Linux calls with every page that it frees and gives. What is left when a page is given may
//! still go at the next change of address space, on a kernel that flushes there; what is there behind it is reported.
//! Lines through the kernel's own addresses are none of this: the kernel writes to pages that it has freed for others.

use super::calls::Node;
use super::diagnosis::Found;
use super::report::{Access, Kept, Moment, Newest, PageMoves, Wrong};
use super::shadow::{Path, Writer};
use super::{Checker, Number};
use arm9::{Context, Event, Mva, Pa, Reaction, Side, Width};
use std::collections::BTreeMap;

/// What is known of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFunctions {
    /// Entry of `free_unref_page_commit(zone, lists, page, ...)`: one page is freed, or the first of some.
    pub freed: u32,
    /// Entry of `free_one_page(zone, page, number, order, ...)`: so many are.
    pub freed_some: u32,
    /// Entry of `get_page_from_freelist(flags, order, ...)`, which returns the first page of so many.
    pub given: u32,
    /// Physical address of the variable `mem_map`, which points to what the kernel has of its first page.
    pub map: u32,
    /// Addresses from here on are the kernel's.
    pub kernel: u32,
}

/// Frames of 4 KB.
const PAGE: u32 = 12;
/// Orders of pages that are given at once are below it (Linux, MAX_PAGE_ORDER).
const ORDERS: u32 = 11;
/// Slots of the table of I-cache lines; one that shares a slot with another is not followed.
const SLOTS: usize = 4096;
/// Fewest pages seen before their distance is believed.
const SEEN: u32 = 64;
/// What is left of pages and waits for a change of address space; more is not followed.
const WAITING: usize = 4096;
/// Calls that give pages at a time; of more the oldest are not followed.
const GIVING: usize = 32;
/// Bytes that a kernel may have of a page, fewest and most.
const MAPPED: [u32; 2] = [32, 128];
/// Bits M4:M0 of user mode.
const USER: u32 = 0x10;

/// When something was done with a page, by whom.
#[derive(Clone, Copy, Debug)]
struct Done {
    context: Context,
    node: Node,
}

/// Something of a page that was there when it was given.
#[derive(Clone, Copy, Debug)]
struct Left {
    kept: Kept,
    mva: u32,
    pa: u32,
    /// Its number, for a TLB entry.
    entry: Option<Number>,
    /// When it was filled, or became dirty.
    since: u64,
    writer: Writer,
    freed: Option<Done>,
    given: Done,
}

/// What is known of pages.
#[derive(Clone, Default)]
pub(super) struct Pages {
    known: Option<PageFunctions>,
    /// Greatest common divisor of all distances in the kernel's map, and of how many.
    bytes: u32,
    seen: u32,
    /// Calls that will give pages, of several tasks and interrupts: where each returns to, its stack pointer, and the
    /// order.
    giving: Vec<(u32, u32, u32)>,
    /// Who freed a page last, by its number.
    freed: BTreeMap<u32, Done>,
    /// Lines of the I-cache through user addresses: MVA, physical address, cycle.
    lines: Vec<(u32, u32, u64)>,
    waiting: Vec<Left>,
    /// All that waits was given under this table base: under it nothing is to be looked at.
    looked: Option<u32>,
}

impl Pages {
    /// From now on.
    pub fn follow(&mut self, known: PageFunctions) {
        self.known = Some(known);
        self.lines = vec![(0, 0, 0); SLOTS];
    }

    fn slot(&mut self, mva: Mva) -> Option<&mut (u32, u32, u64)> {
        let slot = (mva.0 >> 5) as usize % SLOTS;
        self.lines.get_mut(slot)
    }

    /// A line of the I-cache came or went.
    #[inline]
    pub fn moved(&mut self, context: &Context, event: &Event<'_>) {
        let Some(known) = self.known else { return };
        let side = Side::Instruction;
        match *event {
            Event::Fill { side: of, mva, pa } if of == side && mva.0 < known.kernel => {
                if let Some(slot) = self.slot(mva) {
                    *slot = (mva.0, pa.0, context.cycle);
                }
            }
            Event::Replaced { side: of, mva } | Event::Invalidate { side: of, mva, .. }
                if of == side =>
            {
                if let Some(slot) = self.slot(mva).filter(|slot| slot.0 == mva.0) {
                    *slot = (0, 0, 0);
                }
            }
            Event::InvalidateAll { side: of } if of == side => self.lines.fill((0, 0, 0)),
            _ => {}
        }
    }

    /// Number of the page behind an address in the kernel's map of so many pages, when the distance is known. What
    /// cannot be in the map is no page: registers are a guest's.
    fn number(&mut self, page: u32, map: u32, pages: u32) -> Option<u32> {
        let distance = page.wrapping_sub(map);
        if distance % 4 != 0 || distance / MAPPED[1] >= pages {
            return None;
        }
        let (mut a, mut b) = (self.bytes, distance);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        self.bytes = a;
        self.seen += 1;
        (self.seen > SEEN && a >= MAPPED[0])
            .then(|| distance / a)
            .filter(|n| *n < pages)
    }

    /// A call that will give pages begins.
    fn begins(&mut self, back: u32, sp: u32, order: u32) {
        // What was called with this stack pointer before is over.
        self.giving.retain(|call| call.1 != sp);
        if self.giving.len() == GIVING {
            self.giving.remove(0);
        }
        self.giving.push((back, sp, order));
    }

    /// The order of the call that comes back here, which is over.
    fn ends(&mut self, pc: u32, sp: u32) -> Option<u32> {
        let call = self.giving.iter().rposition(|c| (c.0, c.1) == (pc, sp))?;
        Some(self.giving.remove(call).2)
    }
}

/// Whether a line or an entry belongs to one of so many pages.
fn is_of(pa: u32, first: u32, count: u32) -> bool {
    (pa >> PAGE).wrapping_sub(first) < count
}

impl Checker {
    /// Follows pages by these functions from now on.
    pub fn follow_pages(&mut self, known: PageFunctions) {
        self.pages.follow(known);
    }

    /// An instruction is about to be executed: a page may be freed or given, or an address space have changed.
    #[inline]
    pub(super) fn pages_at(&mut self, context: &Context, registers: &[u32; 16]) -> Reaction {
        let Some(known) = self.pages.known else {
            return Reaction::Continue;
        };
        let pc = context.pc;
        let giving = &self.pages.giving;
        let comes = giving
            .iter()
            .any(|(back, sp, _)| pc == *back && registers[13] == *sp);
        if pc == known.given {
            self.pages
                .begins(registers[14], registers[13], registers[1]);
        } else if comes || pc == known.freed || pc == known.freed_some {
            self.page_moves(context, registers, known);
        } else if !self.pages.waiting.is_empty()
            && context.mode & 0x1f == USER
            && self.pages.looked != Some(context.ttb)
        {
            return self.look_again(context);
        }
        Reaction::Continue
    }

    #[cold]
    fn page_moves(&mut self, context: &Context, registers: &[u32; 16], known: PageFunctions) {
        let map = self.shadow.newest(known.map, Width::Word).unwrap_or(0);
        let (page, order) = match context.pc {
            pc if pc == known.freed => (registers[2], 0),
            pc if pc == known.freed_some => (registers[1], registers[3]),
            _ => {
                let order = self.pages.ends(context.pc, registers[13]);
                (registers[0], order.unwrap_or(0))
            }
        };
        if page == 0 || order >= ORDERS {
            return;
        }
        let pages = self.shadow.bytes() >> PAGE;
        let Some(number) = self.pages.number(page, map, pages) else {
            return;
        };
        // The map begins with the first page of RAM.
        let first = number + (self.shadow.base() >> PAGE);
        let count = (1 << order).min(pages - number);
        let done = Done {
            context: *context,
            node: self.calls.now(context),
        };
        if context.pc == known.freed || context.pc == known.freed_some {
            for page in first..first + count {
                self.pages.freed.insert(page, done);
            }
            return;
        }
        let mut left = self.left_of(first, count, known.kernel);
        let room = WAITING.saturating_sub(self.pages.waiting.len());
        left.truncate(room);
        for left in &mut left {
            left.given = done;
            left.freed = self.pages.freed.get(&(left.pa >> PAGE)).copied();
        }
        self.pages.looked = self.pages.looked.filter(|_| left.is_empty());
        self.pages.waiting.extend(left);
        // Who freed it before is not who frees it next.
        for page in first..first + count {
            self.pages.freed.remove(&page);
        }
    }

    /// What there is of so many pages through addresses below `kernel`.
    fn left_of(&self, first: u32, count: u32, kernel: u32) -> Vec<Left> {
        let nobody = Done {
            context: Context::default(),
            node: 0,
        };
        let left = |kept, mva: u32, pa: u32, since| Left {
            kept,
            mva,
            pa,
            entry: None,
            since,
            writer: self.shadow.writer(pa),
            freed: None,
            given: nobody,
        };
        let dirty = self.dirty.all().filter(|line| line.mva < kernel);
        let dirty = dirty.filter(|line| is_of(line.pa, first, count));
        let dirty = dirty.map(|line| {
            let (pa, writer) = self.last_into(line.mva, line.pa);
            Left {
                writer,
                ..left(Kept::DirtyLine, line.mva | pa & 31, pa, line.since)
            }
        });
        let lines = self.pages.lines.iter();
        let lines = lines.filter(|(_, pa, since)| *since != 0 && is_of(*pa, first, count));
        let lines = lines.map(|(mva, pa, since)| left(Kept::Instructions, *mva, *pa, *since));
        let entries = self.translations.all();
        let entries = entries.filter(|e| e.mva < kernel && is_of(e.pa, first, count));
        let entries = entries.map(|e| Left {
            entry: Some(e.number),
            ..left(Kept::Translation, e.mva, e.pa, e.cycle)
        });
        dirty.chain(lines).chain(entries).collect()
    }

    /// Who stored to a line last, and which word.
    fn last_into(&self, mva: u32, pa: u32) -> (u32, Writer) {
        let words = (0..32).step_by(4).map(|n| pa | n);
        let writers = words.map(|pa| (pa, self.shadow.writer(pa)));
        let into = writers.filter(|(_, w)| w.path == Path::Line && w.mva & !31 == mva);
        let last = into.max_by_key(|(_, writer)| writer.cycle);
        last.unwrap_or((pa, self.shadow.writer(pa)))
    }

    /// Behind a change of address space: what is still there?
    #[cold]
    fn look_again(&mut self, context: &Context) -> Reaction {
        let mut reaction = Reaction::Continue;
        let all = core::mem::take(&mut self.pages.waiting);
        self.pages.looked = Some(context.ttb);
        for left in all {
            if left.given.context.ttb == context.ttb {
                self.pages.waiting.push(left);
            } else if self.is_there(&left) && self.outlives(left) == Reaction::Stop {
                reaction = Reaction::Stop;
            }
        }
        reaction
    }

    fn is_there(&mut self, left: &Left) -> bool {
        match left.kept {
            Kept::DirtyLine => {
                let mut lines = self.dirty.all();
                let line = (left.mva & !31, left.pa & !31, left.since);
                lines.any(|l| (l.mva, l.pa, l.since) == line)
            }
            Kept::Instructions => {
                let slot = self.pages.slot(Mva(left.mva)).map(|slot| *slot);
                slot == Some((left.mva, left.pa, left.since))
            }
            Kept::Translation => {
                let mut entries = self.translations.all();
                entries.any(|e| Some(e.number) == left.entry && e.cycle == left.since)
            }
        }
    }

    fn outlives(&mut self, left: Left) -> Reaction {
        let value = self.shadow.newest(left.pa, Width::Word).unwrap_or(0);
        let found = Found {
            context: left.given.context,
            access: Access::Outlives(left.kept),
            mva: Mva(left.mva),
            pa: Pa(left.pa),
            width: Width::Word,
            got: value,
            newest: value,
            writer: left.writer,
        };
        let place = match (left.kept, left.writer.path) {
            (Kept::DirtyLine, Path::Line) => Newest::Dirty(Mva(left.mva & !31)),
            _ => Newest::Memory,
        };
        let mut report = found.report(&self.history, Wrong::OutlivesPage, place);
        report.filled = Some(left.since);
        let moment = |done: Done| Moment {
            cycle: done.context.cycle,
            pc: done.context.pc,
            callers: self.calls.callers(done.node),
        };
        report.page = Some(PageMoves {
            freed: left.freed.map(moment),
            given: moment(left.given),
        });
        self.report(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coherence::told::Told;
    use crate::observed::Observer as _;
    use arm9::TlbSide;

    const KNOWN: PageFunctions = PageFunctions {
        freed: 0xc000_1000,
        freed_some: 0xc000_2000,
        given: 0xc000_3000,
        map: 0x0000_0100,
        kernel: 0xbf00_0000,
    };
    /// Where the kernel's map is, and what it has of each page.
    const MAP: u32 = 0xc0f0_0000;
    const BYTES: u32 = 36;
    /// Where calls that give pages come back to.
    const BACK: u32 = 0xc000_4000;
    const SP: u32 = 0xc010_0000;
    /// A user's address.
    const USERS: u32 = 0x0001_0000;
    /// A page of the RAM, from its first.
    const NUMBER: u32 = 700;

    /// A kernel that has freed and given many pages.
    struct Kernel {
        told: Told,
        cycle: u64,
    }

    impl Kernel {
        fn new() -> Kernel {
            let mut told = Told::new(&[]);
            assert_eq!(told.bus.ram_base(), KNOWN.map & !0xfff);
            told.checker.follow_pages(KNOWN);
            let mut kernel = Kernel { told, cycle: 0 };
            kernel.that(0x13, MAP, store(MAP, KNOWN.map, MAP));
            for n in 0..2 * SEEN {
                kernel.frees(n);
            }
            kernel
        }

        fn that(&mut self, mode: u32, pc: u32, event: Event<'_>) {
            self.cycle += 1;
            let context = Context {
                cycle: self.cycle,
                pc,
                mode,
                ttb: self.told.ttb,
                ..Context::default()
            };
            self.told.checker.observe(&self.told.bus, &context, event);
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
            self.that(mode, pc, fetch);
        }

        fn frees(&mut self, n: u32) {
            let mut registers = [0; 16];
            (registers[2], registers[13]) = (page(n), SP);
            self.at(0x13, KNOWN.freed, registers);
        }

        fn frees_some(&mut self, page: u32, order: u32) {
            let mut registers = [0; 16];
            (registers[1], registers[3], registers[13]) = (page, order, SP);
            self.at(0x13, KNOWN.freed_some, registers);
        }

        /// A call that gives a page begins, and ends.
        fn begins(&mut self, sp: u32, order: u32) {
            let mut registers = [0; 16];
            (registers[1], registers[13], registers[14]) = (order, sp, BACK);
            self.at(0x13, KNOWN.given, registers);
        }

        fn ends(&mut self, sp: u32, page: u32) {
            let mut registers = [0; 16];
            (registers[0], registers[13]) = (page, sp);
            self.at(0x13, BACK, registers);
        }

        fn gives(&mut self, n: u32, order: u32) {
            self.begins(SP, order);
            self.ends(SP, page(n));
        }

        /// A user's store to a page makes a line dirty.
        fn dirties(&mut self, n: u32) {
            let pa = self.told.bus.ram_base() + (n << PAGE);
            self.that(USER, USERS, store(USERS + (n << PAGE), pa, 7));
        }

        /// An instruction of a user of that address space.
        fn runs(&mut self, ttb: u32) {
            self.told.ttb = ttb;
            self.at(USER, USERS, [0; 16]);
        }

        /// What was reported, who freed its page, and how often.
        fn reports(&self) -> Vec<(Access, Option<u64>, u64)> {
            let all = self.told.checker.reports();
            let all = all.map(|(r, count)| {
                let page = r.page.as_ref();
                let freed = page.and_then(|page| page.freed.as_ref());
                (r.access, freed.map(|freed| freed.cycle), count)
            });
            all.collect()
        }
    }

    fn store(mva: u32, pa: u32, value: u32) -> Event<'static> {
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
    const OTHER: u32 = 0x8000;

    #[test]
    fn a_dirty_line_of_a_page_that_was_given_is_reported_behind_the_next_change_of_address_space() {
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
    fn nothing_is_said_of_a_line_that_went_in_between_and_of_one_that_became_dirty_for_the_new_owner()
     {
        let mut kernel = Kernel::new();
        kernel.dirties(NUMBER);
        kernel.frees(NUMBER);
        kernel.gives(NUMBER, 0);
        let gone = Event::Invalidate {
            side: Side::Data,
            mva: Mva(USERS + (NUMBER << PAGE)),
            pa: Pa(kernel.told.bus.ram_base() + (NUMBER << PAGE)),
            halves: 1,
        };
        kernel.that(0x13, BACK, gone);
        kernel.dirties(NUMBER);
        kernel.runs(OTHER);
        assert_eq!(kernel.reports(), []);
    }

    #[test]
    fn a_call_that_gives_nothing_gives_nothing() {
        let mut kernel = Kernel::new();
        kernel.dirties(0);
        kernel.begins(SP, 0);
        kernel.ends(SP, 0);
        kernel.ends(SP, page(0));
        kernel.runs(OTHER);
        assert_eq!(kernel.reports(), []);
    }

    /// An interrupt's call, or another task's, comes between begin and end of one.
    #[test]
    fn each_of_two_calls_that_give_pages_at_a_time_gives_one() {
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

    /// Entries of the I-cache and of the TLB that lead to the same page, whose first word nobody wrote.
    #[test]
    fn a_line_of_instructions_hides_no_entry_of_the_tlb() {
        let mut kernel = Kernel::new();
        let base = kernel.told.bus.ram_base();
        let (mva, pa) = (USERS, base + (NUMBER << PAGE));
        let fill = Event::Fill {
            side: Side::Instruction,
            mva: Mva(mva),
            pa: Pa(pa),
        };
        kernel.that(USER, mva, fill);
        for (at, value) in [(base + 0x4000, base | 0x11), (base, pa | 0xffe)] {
            let walk = Event::Walk {
                mva: Mva(mva),
                descriptor: Pa(at),
                value,
            };
            kernel.that(0x13, mva, walk);
        }
        let entry = Event::TlbFill {
            side: TlbSide::Both,
            entry: 0,
            mva: Mva(mva),
            bytes: 4096,
            locked: false,
        };
        kernel.that(0x13, mva, entry);
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
    fn who_freed_a_page_is_not_who_freed_it_before_it_was_given_last() {
        let mut kernel = Kernel::new();
        kernel.frees(NUMBER);
        kernel.gives(NUMBER, 0);
        kernel.dirties(NUMBER);
        kernel.gives(NUMBER, 0);
        kernel.runs(OTHER);
        assert_eq!(kernel.reports(), [(LINE, None, 1)]);
    }

    /// The registers are a guest's.
    #[test]
    fn whatever_a_guest_calls_pages_what_is_kept_of_them_is_bounded() {
        let mut kernel = Kernel::new();
        let last = 0xffff_ffe0;
        kernel.that(USER, USERS, store(USERS, last, 7));
        for n in 0..1 << 12 {
            kernel.frees_some(page(n << 14), ORDERS - 1);
            kernel.begins(SP - 8 * n, n);
        }
        assert_eq!(kernel.told.checker.pages.giving.len(), GIVING);
        let number = (last >> PAGE) - (kernel.told.bus.ram_base() >> PAGE);
        kernel.gives(number, 0);
        kernel.gives(number - 3, 2);
        for order in [ORDERS, 31, 32, u32::MAX] {
            kernel.frees_some(page(1), order);
            kernel.gives(1, order);
        }
        kernel.runs(OTHER);
        let pages = &kernel.told.checker.pages;
        assert!(pages.freed.len() <= 1 << 16, "{}", pages.freed.len());
    }

    /// What is no page says nothing of how far pages lie apart.
    #[test]
    fn what_is_no_page_changes_nothing() {
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
}
