// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who took a line or a translation away that is missed later.

use super::CellId;
use super::switches::SwitchId;
use arm9::{Cause, Mva, Side, TlbSide};
use std::collections::BTreeMap;

/// What was missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An I-cache line.
    Instruction,
    /// A D-cache line.
    Data,
    /// A translation.
    Translation,
}

/// Whose doing a miss was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// Nobody's: it was never there since the ledger looks on.
    First,
    /// Somebody filled another one in its place.
    Replaced(CellId),
    /// Somebody invalidated it, or all of them.
    Invalidated(CellId),
}

/// Misses of a kind, of one owner, by the doing of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Miss {
    /// What was missed.
    pub kind: Kind,
    /// Whose doing it was.
    pub by: By,
    /// Who suffered it.
    pub of: CellId,
}

/// What was missed where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// What was missed.
    pub kind: Kind,
    /// Modified virtual address: of a line, or what a translation was wanted for.
    pub mva: u32,
    /// While pin 0 was high ([`super::Owner::timed`]).
    pub timed: bool,
}

/// How often, and how many cycles it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// Misses.
    pub count: u64,
    /// Core cycles, waits for writes before them among these.
    pub cycles: u64,
}

/// A miss whose cycles are known.
#[derive(Clone, Copy, Debug)]
pub struct Settled {
    pub miss: Miss,
    pub mva: Mva,
    pub cycles: u64,
    /// The change of task in which it was lost.
    pub switch: SwitchId,
}

type Doer = (CellId, SwitchId);

/// How something went.
#[derive(Clone, Copy, Debug)]
struct Gone {
    by: By,
    switch: SwitchId,
}

/// A line, by what became of it.
#[derive(Clone, Copy, Debug)]
struct Line {
    filled: u64,
    gone: Option<Gone>,
}

/// Lines and translations that are or were there.
#[derive(Clone, Debug)]
pub struct Lost {
    /// By address, with the side in bit 0.
    lines: BTreeMap<u32, Line>,
    /// The last invalidation of each whole cache.
    all: [Option<(u64, Gone)>; 2],
    /// What TLB entries hold: page, bytes.
    entries: BTreeMap<(u8, usize), (u32, u32)>,
    /// Pages that TLBs held, by side, address and bytes.
    pages: BTreeMap<(u8, u32, u32), Gone>,
    missed: BTreeMap<Miss, Missed>,
    by_line: BTreeMap<Place, Missed>,
    waiting: Option<Settled>,
}

fn side_bit(side: Side) -> u32 {
    u32::from(side == Side::Data)
}

fn tlb_bit(side: TlbSide) -> u8 {
    u8::from(side == TlbSide::Data)
}

impl Lost {
    pub(super) fn new() -> Lost {
        Lost {
            lines: BTreeMap::new(),
            all: [None; 2],
            entries: BTreeMap::new(),
            pages: BTreeMap::new(),
            missed: BTreeMap::new(),
            by_line: BTreeMap::new(),
            waiting: None,
        }
    }

    pub(super) fn missed(&self) -> &BTreeMap<Miss, Missed> {
        &self.missed
    }

    pub(super) fn by_line(&self) -> &BTreeMap<Place, Missed> {
        &self.by_line
    }

    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Cycles of the miss that was told of last.
    #[inline]
    pub(super) fn spent(&mut self, cause: Cause, cycles: i64) {
        if let Some(waiting) = &mut self.waiting {
            let counts = match waiting.miss.kind {
                Kind::Translation => cause == Cause::TableWalk,
                _ => !matches!(cause, Cause::Instruction | Cause::Interlock | Cause::Branch),
            };
            if counts {
                waiting.cycles += cycles.max(0) as u64;
            }
        }
    }

    /// What the last miss took.
    pub(super) fn settle(&mut self, timed: bool) -> Option<Settled> {
        let settled = self.waiting.take()?;
        let place = Place {
            kind: settled.miss.kind,
            mva: settled.mva.0,
            timed,
        };
        let missed = self.missed.entry(settled.miss).or_default();
        for missed in [missed, self.by_line.entry(place).or_default()] {
            missed.count += 1;
            missed.cycles += settled.cycles;
        }
        Some(settled)
    }

    pub(super) fn filled(&mut self, of: CellId, side: Side, mva: Mva, cycle: u64) {
        let kind = match side {
            Side::Data => Kind::Data,
            _ => Kind::Instruction,
        };
        let now = Line {
            filled: cycle,
            gone: None,
        };
        let before = self.lines.insert(mva.0 | side_bit(side), now);
        let all = self.all[side_bit(side) as usize];
        let gone = before.and_then(|line| {
            let since = |(at, _): &(u64, Gone)| *at >= line.filled;
            line.gone.or(all.filter(since).map(|(_, gone)| gone))
        });
        self.begin(kind, of, mva, gone);
    }

    fn begin(&mut self, kind: Kind, of: CellId, mva: Mva, gone: Option<Gone>) {
        let by = gone.map_or(By::First, |gone| gone.by);
        self.waiting = Some(Settled {
            miss: Miss { kind, by, of },
            mva,
            cycles: 0,
            switch: gone.map_or(SwitchId::NONE, |gone| gone.switch),
        });
    }

    pub(super) fn claimed(&mut self, mva: Mva, cycle: u64) {
        let now = Line {
            filled: cycle,
            gone: None,
        };
        self.lines.insert(mva.0 & !31 | side_bit(Side::Data), now);
    }

    fn line_gone(&mut self, side: Side, mva: Mva, gone: Gone) {
        let line = self.lines.entry(mva.0 & !31 | side_bit(side));
        // One from before the ledger looked on, too.
        let line = line.or_insert(Line {
            filled: 0,
            gone: None,
        });
        line.gone = Some(gone);
    }

    pub(super) fn replaced(&mut self, (by, switch): Doer, side: Side, mva: Mva) {
        let by = By::Replaced(by);
        self.line_gone(side, mva, Gone { by, switch });
    }

    pub(super) fn invalidated(&mut self, (by, switch): Doer, side: Side, mva: Mva) {
        let by = By::Invalidated(by);
        self.line_gone(side, mva, Gone { by, switch });
    }

    pub(super) fn all_invalidated(&mut self, (by, switch): Doer, side: Side, cycle: u64) {
        let by = By::Invalidated(by);
        self.all[side_bit(side) as usize] = Some((cycle, Gone { by, switch }));
    }

    pub(super) fn tlb_filled(
        &mut self,
        (of, switch): Doer,
        (side, entry): (TlbSide, usize),
        mva: Mva,
        bytes: u32,
    ) {
        let side = tlb_bit(side);
        let page = mva.0 & !(bytes - 1);
        let gone = self.pages.remove(&(side, page, bytes));
        if let Some((old, bytes)) = self.entries.insert((side, entry), (page, bytes)) {
            let by = By::Replaced(of);
            self.pages.insert((side, old, bytes), Gone { by, switch });
        }
        self.begin(Kind::Translation, of, mva, gone);
    }

    pub(super) fn tlb_invalidated(&mut self, (by, switch): Doer, (side, entry): (TlbSide, usize)) {
        let side = tlb_bit(side);
        if let Some((page, bytes)) = self.entries.remove(&(side, entry)) {
            let by = By::Invalidated(by);
            self.pages.insert((side, page, bytes), Gone { by, switch });
        }
    }

    pub(super) fn tlb_all_invalidated(&mut self, (by, switch): Doer, side: TlbSide) {
        let side = tlb_bit(side);
        let by = By::Invalidated(by);
        let pages = &mut self.pages;
        self.entries.retain(|(of, _), (page, bytes)| {
            if *of == side {
                pages.insert((side, *page, *bytes), Gone { by, switch });
            }
            *of != side
        });
    }
}
