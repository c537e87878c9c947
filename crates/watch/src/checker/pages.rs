// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds lines and TLB entries that belong to the former owner of a page, before data is lost.
//!
//! The checker follows pages through the functions that Linux calls whenever it frees or allocates a page. A kernel may
//! flush at the next change of address space. Therefore, lines and entries that remain when a page is allocated are
//! reported only if they outlast that change. Lines at the kernel's own addresses are not reported, because the kernel
//! writes to freed pages on behalf of their next owners.

use super::calls::Node;
use super::diagnosis::Found;
use super::report::{Access, Kept, Moment, Newest, PageMoves, ReportKind};
use super::shadow::{Path, Writer};
use super::{Checker, Number};
use arm::{AddressSpace, Context, Event, Mva, Pa, Reaction, Side, Width};
use std::collections::BTreeMap;

/// Kernel functions and variables through which the checker follows pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFunctions {
    /// Entry of `free_unref_page_commit(zone, lists, page, ...)`, which frees one page or the first of a block.
    pub freed: u32,
    /// Entry of `free_one_page(zone, page, number, order, ...)`, which frees 2^order pages.
    pub freed_some: u32,
    /// Entry of `get_page_from_freelist(flags, order, ...)`, which returns the first of 2^order pages.
    pub given: u32,
    /// Physical address of the variable `mem_map`, which points to the `struct page` of the first page.
    pub map: u32,
    /// First address of the kernel.
    pub kernel: u32,
}

/// Log2 of the page size.
const PAGE: u32 = 12;
/// Orders are below this number (Linux, MAX_PAGE_ORDER).
const ORDERS: u32 = 11;
/// Slots of the table of I-cache lines. If several lines share a slot, the checker follows only the newest line.
const SLOTS: usize = 4096;
/// Number of `struct page` addresses after which the checker trusts its estimate of the size of a `struct page`.
const SEEN: u32 = 64;
/// Maximum number of lines and entries that wait for a change of address space. Further lines and entries are not
/// followed.
const WAITING: usize = 4096;
/// Maximum number of unfinished calls that allocate pages. If there are more, a new call replaces the oldest.
const GIVING: usize = 32;
/// Smallest and largest possible size of a `struct page`, in bytes.
const MAPPED: [u32; 2] = [32, 128];
/// Bits M4:M0 of user mode.
const USER: u32 = 0x10;

/// State of the core and call-tree node when a page was freed or allocated.
#[derive(Clone, Copy, Debug)]
struct PageEvent {
    context: Context,
    node: Node,
}

/// A line or TLB entry of a page that remained when the page was allocated.
#[derive(Clone, Copy, Debug)]
struct Left {
    kept: Kept,
    mva: u32,
    pa: u32,
    /// Number of a TLB entry.
    entry: Option<Number>,
    /// Cycle in which the line or entry was filled or became dirty.
    since: u64,
    writer: Writer,
    freed: Option<PageEvent>,
    given: PageEvent,
}

/// The state of pages.
#[derive(Clone, Default)]
pub(super) struct Pages {
    known: Option<PageFunctions>,
    /// Estimated size of a `struct page`: greatest common divisor of the offsets seen in the kernel's map. `seen`
    /// counts them.
    bytes: u32,
    seen: u32,
    /// Unfinished calls that allocate pages, from all tasks and interrupts. Each has its return address, stack pointer
    /// and order.
    giving: Vec<(u32, u32, u32)>,
    /// Bloom filter of the addresses at which a page may be freed or allocated. The filter is 0 if the functions are
    /// unknown.
    filter: u64,
    /// Last free of each page, by page number.
    freed: BTreeMap<u32, PageEvent>,
    /// I-cache lines of user addresses: MVA, physical address, cycle of the fill.
    lines: Vec<(u32, u32, u64)>,
    waiting: Vec<Left>,
    /// Address space in which the pages in `waiting` were allocated. User instructions in this address space need no
    /// check.
    looked: Option<AddressSpace>,
}

impl Pages {
    /// Follows pages through these functions from now on.
    pub fn follow(&mut self, known: PageFunctions) {
        self.known = Some(known);
        self.lines = vec![(0, 0, 0); SLOTS];
        self.find_filter();
    }

    fn find_filter(&mut self) {
        let known = self.known.iter();
        let functions = known.flat_map(|known| [known.freed, known.freed_some, known.given]);
        let returns = self.giving.iter().map(|call| call.0);
        let all = functions.chain(returns);
        self.filter = all.fold(0, |bits, pc| bits | bit(pc));
    }

    fn slot(&mut self, mva: Mva) -> Option<&mut (u32, u32, u64)> {
        let slot = (mva.0 >> 5) as usize % SLOTS;
        self.lines.get_mut(slot)
    }

    /// Follows the fills and removals of I-cache lines.
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

    /// Returns the number of the page whose `struct page` is at `page`. The kernel's array of `pages` such structures
    /// is at `map`. Returns `None` until the size of a structure is known. Also returns `None` for an address that
    /// cannot be in the array, because `page` comes from a guest's register and may have any value.
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

    /// Records the start of a call that allocates pages.
    fn begins(&mut self, back: u32, sp: u32, order: u32) {
        // An earlier call with this stack pointer is over.
        self.giving.retain(|call| call.1 != sp);
        if self.giving.len() == GIVING {
            self.giving.remove(0);
        }
        self.giving.push((back, sp, order));
        self.find_filter();
    }

    /// Ends the call that returns here, and returns its order.
    fn ends(&mut self, pc: u32, sp: u32) -> Option<u32> {
        let call = self.giving.iter().rposition(|c| (c.0, c.1) == (pc, sp))?;
        let order = self.giving.remove(call).2;
        self.find_filter();
        Some(order)
    }
}

/// Returns the bit of an address in [`Pages::filter`].
fn bit(pc: u32) -> u64 {
    1 << (pc >> 2 & 63)
}

/// Returns whether a physical address is in one of `count` pages from `first` on.
fn is_of(pa: u32, first: u32, count: u32) -> bool {
    (pa >> PAGE).wrapping_sub(first) < count
}

impl Checker {
    /// Follows pages through these functions from now on.
    pub fn follow_pages(&mut self, known: PageFunctions) {
        self.pages.follow(known);
    }

    /// Follows an instruction that is about to be executed. The instruction may free or allocate a page, or may be the
    /// first in another address space.
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
        let returns = giving
            .iter()
            .any(|(back, sp, _)| pc == *back && registers[13] == *sp);
        if pc == known.given {
            self.pages
                .begins(registers[14], registers[13], registers[1]);
        } else if returns || pc == known.freed || pc == known.freed_some {
            self.page_moves(context, registers, known);
        } else if !self.pages.waiting.is_empty()
            && context.mode & 0x1f == USER
            && self.pages.looked != Some(context.space())
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
        // The previous owner did this free. Later reports must not show it.
        for page in first..first + count {
            self.pages.freed.remove(&page);
        }
    }

    /// Returns the lines and entries of `count` pages with addresses below `kernel`.
    fn left_of(&self, first: u32, count: u32, kernel: u32) -> Vec<Left> {
        let placeholder = PageEvent {
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
            given: placeholder,
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

    /// Returns the physical address of the last word stored to a line, and its writer.
    fn last_into(&self, mva: u32, pa: u32) -> (u32, Writer) {
        let words = (0..32).step_by(4).map(|n| pa | n);
        let writers = words.map(|pa| (pa, self.shadow.writer(pa)));
        let into = writers.filter(|(_, w)| w.path == Path::Line && w.mva & !31 == mva);
        let last = into.max_by_key(|(_, writer)| writer.cycle);
        last.unwrap_or((pa, self.shadow.writer(pa)))
    }

    /// Reports the lines and entries that still remain after a change of address space.
    #[cold]
    fn look_again(&mut self, context: &Context) -> Reaction {
        let mut reaction = Reaction::Continue;
        let all = core::mem::take(&mut self.pages.waiting);
        self.pages.looked = Some(context.space());
        for left in all {
            if left.given.context.space() == context.space() {
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
        let mut report = found.report(&self.history, ReportKind::OutlivesPage, place);
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
