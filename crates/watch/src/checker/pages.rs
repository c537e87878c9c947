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
use arm::{Context, Event, Mva, Pa, Reaction, Side, Width};
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
struct PageEvent {
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
    freed: Option<PageEvent>,
    given: PageEvent,
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
    /// A bit for each that one of the addresses has at which a page may be freed or given; none when nothing is known.
    filter: u64,
    /// Who freed a page last, by its number.
    freed: BTreeMap<u32, PageEvent>,
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
        self.find_filter();
    }

    fn find_filter(&mut self) {
        let known = self.known.iter();
        let functions = known.flat_map(|known| [known.freed, known.freed_some, known.given]);
        let backs = self.giving.iter().map(|call| call.0);
        let all = functions.chain(backs);
        self.filter = all.fold(0, |bits, pc| bits | bit(pc));
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
        if !distance.is_multiple_of(4) || distance / MAPPED[1] >= pages {
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
        self.find_filter();
    }

    /// The order of the call that comes back here, which is over.
    fn ends(&mut self, pc: u32, sp: u32) -> Option<u32> {
        let call = self.giving.iter().rposition(|c| (c.0, c.1) == (pc, sp))?;
        let order = self.giving.remove(call).2;
        self.find_filter();
        Some(order)
    }
}

/// An address' bit in [`Pages::filter`].
fn bit(pc: u32) -> u64 {
    1 << (pc >> 2 & 63)
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
        let may_move = self.pages.filter & bit(context.pc) != 0;
        if !may_move && self.pages.waiting.is_empty() {
            return Reaction::Continue;
        }
        self.pages_may_move(context, registers)
    }

    #[inline(never)]
    fn pages_may_move(&mut self, context: &Context, registers: &[u32; 16]) -> Reaction {
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
        let done = PageEvent {
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
        let nobody = PageEvent {
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
        let moment = |done: PageEvent| Moment {
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
#[path = "pages_left_tests.rs"]
mod left_tests;
#[cfg(test)]
#[path = "pages_tests.rs"]
mod tests;
