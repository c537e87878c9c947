// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who took a line or a translation away that is missed later.

use super::CellId;
use super::switches::SwitchId;
use super::table::Table;
use arm::{Cause, Mva, Side, TlbSide};

/// What was missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An I-cache line.
    Instruction,
    /// A D-cache line.
    Data,
    /// A translation.
    Translation,
    /// A D-cache line, for a store, which goes to memory then and fills none. Its cycles are waits for the write buffer.
    Store,
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

impl Miss {
    /// All of it in 64 bits. There are less than 2^30 cells.
    pub(super) fn key(self) -> u64 {
        let (how, by) = match self.by {
            By::First => (0, 0),
            By::Replaced(by) => (1, by),
            By::Invalidated(by) => (2, by),
        };
        (self.kind as u64) << 62 | how << 60 | u64::from(by) << 30 | u64::from(self.of)
    }

    pub(super) fn of_key(key: u64) -> Miss {
        let cell = |at: u32| (key >> at) as u32 & ((1 << 30) - 1);
        Miss {
            kind: match key >> 62 {
                0 => Kind::Instruction,
                1 => Kind::Data,
                2 => Kind::Translation,
                _ => Kind::Store,
            },
            by: match key >> 60 & 3 {
                0 => By::First,
                1 => By::Replaced(cell(30)),
                _ => By::Invalidated(cell(30)),
            },
            of: cell(0),
        }
    }
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

impl Missed {
    pub(super) fn add(&mut self, settled: &Settled) {
        self.count += u64::from(!settled.counted);
        self.cycles += settled.cycles;
    }
}

/// A miss whose cycles are known.
#[derive(Clone, Copy, Debug)]
pub struct Settled {
    pub miss: Miss,
    pub mva: Mva,
    pub cycles: u64,
    /// The change of task in which it was lost.
    pub switch: SwitchId,
    /// It was counted before, when a PLD began to fill the line: this is what waits for the rest of the fill.
    pub counted: bool,
}

type Doer = (CellId, SwitchId);

/// How something went.
#[derive(Clone, Copy, Debug)]
struct Eviction {
    by: By,
    switch: SwitchId,
}

impl Settled {
    /// One that went so, or was never there.
    fn new(kind: Kind, of: CellId, mva: Mva, gone: Option<Eviction>) -> Settled {
        let by = gone.map_or(By::First, |gone| gone.by);
        Settled {
            miss: Miss { kind, by, of },
            mva,
            cycles: 0,
            switch: gone.map_or(SwitchId::NONE, |gone| gone.switch),
            counted: false,
        }
    }
}

/// A line, by what became of it.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// When it was filled last; 0 before the ledger looked on.
    filled: u64,
    /// How it had gone before that.
    before: Option<Eviction>,
    gone: Option<Eviction>,
    /// Misses of it; while pin 0 was high.
    missed: [Missed; 2],
}

impl Line {
    /// It is there from this cycle on; how it had gone before, if it had been there. `all` as in [`Line::gone`].
    fn fill(&mut self, cycle: u64, all: Option<(u64, Eviction)>) -> Option<Eviction> {
        self.before = self.gone(all);
        (self.filled, self.gone) = (cycle, None);
        self.before
    }

    /// How it went, if it is not there. `all`: the last invalidation of its whole cache.
    fn gone(&self, all: Option<(u64, Eviction)>) -> Option<Eviction> {
        // One that was never filled may have been there before the ledger looked on, and have gone since.
        let known = self.filled > 0 || self.gone.is_some();
        let since = |(at, _): &(u64, Eviction)| known && *at >= self.filled;
        self.gone.or(all.filter(since).map(|(_, gone)| gone))
    }
}

/// What an entry of a TLB holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// Its page, and how many bytes that has.
    page: (u32, u32),
    /// It stays when all entries are invalidated.
    locked: bool,
}

/// Lines and translations that are or were there.
#[derive(Clone, Debug)]
pub struct Lost {
    /// By [`line_key`].
    lines: Table<Line>,
    /// The last invalidation of each whole cache.
    all: [Option<(u64, Eviction)>; 2],
    /// What the entries of each TLB hold.
    entries: [Vec<Option<Held>>; 2],
    /// Pages that TLBs held and what became of them, by [`page_key`].
    pages: Table<Option<Eviction>>,
    /// By [`Miss::key`].
    missed: Table<Missed>,
    waiting: Option<Settled>,
    /// The line that it is of, by [`line_key`].
    line: Option<u64>,
    /// What was waited for writes that have the bus before it.
    writes: u64,
}

fn side_bit(side: Side) -> u32 {
    u32::from(side == Side::Data)
}

fn kind_of(side: Side) -> Kind {
    match side {
        Side::Data => Kind::Data,
        _ => Kind::Instruction,
    }
}

fn tlb_bit(side: TlbSide) -> usize {
    usize::from(side == TlbSide::Data)
}

/// A line's address, with the side in bit 0.
fn line_key(side: Side, mva: Mva) -> u64 {
    u64::from(mva.0 & !31 | side_bit(side))
}

/// A page of a TLB, whose size is a power of two from 1 KB on.
fn page_key(side: usize, (page, bytes): (u32, u32)) -> u64 {
    u64::from(page) << 8 | u64::from(bytes.trailing_zeros()) << 1 | side as u64
}

impl Lost {
    pub(super) fn new() -> Lost {
        Lost {
            lines: Table::new(),
            all: [None; 2],
            entries: Default::default(),
            pages: Table::new(),
            missed: Table::new(),
            waiting: None,
            line: None,
            writes: 0,
        }
    }

    pub(super) fn missed(&self) -> impl Iterator<Item = (Miss, Missed)> + use<'_> {
        self.missed
            .iter()
            .map(|(key, missed)| (Miss::of_key(key), *missed))
    }

    pub(super) fn by_line(&self) -> impl Iterator<Item = (Place, Missed)> + use<'_> {
        let of = |(key, line): (u64, &Line)| {
            let kind = match key & 1 {
                0 => Kind::Instruction,
                _ => Kind::Data,
            };
            let mva = key as u32 & !31;
            let place = |timed| Place { kind, mva, timed };
            let [untimed, timed] = line.missed;
            [(place(false), untimed), (place(true), timed)]
        };
        let all = self.lines.iter().flat_map(of);
        all.filter(|(_, missed)| missed.count > 0 || missed.cycles > 0)
    }

    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Cycles of the miss that was told of last: its own wait, and just before that those for writes. Returns whether all
    /// of it is known: what its instruction waits for behind that is not the miss's.
    #[inline]
    pub(super) fn spent(&mut self, cause: Cause, cycles: i64) -> bool {
        let Some(waiting) = &mut self.waiting else {
            return false;
        };
        let cycles = cycles.max(0) as u64;
        let (own, writes) = match waiting.miss.kind {
            Kind::Instruction => (Cause::InstructionMiss, self.writes),
            Kind::Data | Kind::Store => (Cause::DataMiss, self.writes),
            Kind::Translation => (Cause::TableWalk, 0),
        };
        match cause {
            Cause::WriteBuffer | Cause::Eviction | Cause::Maintenance => self.writes += cycles,
            cause if cause == own => waiting.cycles = writes + cycles,
            _ => self.writes = 0,
        }
        cause == own
    }

    /// What the last miss took.
    pub(super) fn settle(&mut self, timed: bool) -> Option<Settled> {
        let settled = self.waiting.take()?;
        self.missed.at(settled.miss.key()).add(&settled);
        if let Some(line) = self.line.take() {
            self.lines.at(line).missed[usize::from(timed)].add(&settled);
        }
        Some(settled)
    }

    pub(super) fn filled(&mut self, of: CellId, side: Side, mva: Mva, cycle: u64) {
        let key = line_key(side, mva);
        let all = self.all[side_bit(side) as usize];
        let gone = self.lines.at(key).fill(cycle, all);
        self.begin(kind_of(side), of, mva, gone);
        self.line = Some(key);
    }

    /// A D-cache line that was filled before is not there yet: whose doing its miss was, the wait is.
    pub(super) fn awaited(&mut self, of: CellId, mva: Mva) {
        let key = line_key(Side::Data, mva);
        let gone = self.lines.at(key).before;
        self.begin(Kind::Data, of, mva, gone);
        self.waiting.iter_mut().for_each(|miss| miss.counted = true);
        self.line = Some(key);
    }

    /// A store, whose wait is over.
    pub(super) fn store_missed(&mut self, of: CellId, mva: Mva, cycles: u64) -> Settled {
        let line = self.lines.at(line_key(Side::Data, mva));
        let gone = line.gone(self.all[side_bit(Side::Data) as usize]);
        let mut settled = Settled::new(Kind::Store, of, Mva(mva.0 & !31), gone);
        settled.cycles = cycles;
        self.missed.at(settled.miss.key()).add(&settled);
        settled
    }

    fn begin(&mut self, kind: Kind, of: CellId, mva: Mva, gone: Option<Eviction>) {
        self.waiting = Some(Settled::new(kind, of, mva, gone));
        self.writes = 0;
    }

    pub(super) fn claimed(&mut self, mva: Mva, cycle: u64) {
        let all = self.all[side_bit(Side::Data) as usize];
        self.lines.at(line_key(Side::Data, mva)).fill(cycle, all);
    }

    fn line_gone(&mut self, side: Side, mva: Mva, gone: Eviction) {
        self.lines.at(line_key(side, mva)).gone = Some(gone);
    }

    pub(super) fn replaced(&mut self, (by, switch): Doer, side: Side, mva: Mva) {
        let by = By::Replaced(by);
        self.line_gone(side, mva, Eviction { by, switch });
    }

    pub(super) fn invalidated(&mut self, (by, switch): Doer, side: Side, mva: Mva) {
        let by = By::Invalidated(by);
        self.line_gone(side, mva, Eviction { by, switch });
    }

    pub(super) fn all_invalidated(&mut self, (by, switch): Doer, side: Side, cycle: u64) {
        let by = By::Invalidated(by);
        self.all[side_bit(side) as usize] = Some((cycle, Eviction { by, switch }));
    }

    /// Entry `number` of a TLB holds the page of `mva` now.
    pub(super) fn tlb_filled(
        &mut self,
        (of, switch): Doer,
        (side, number): (TlbSide, usize),
        mva: Mva,
        (bytes, locked): (u32, bool),
    ) {
        let side = tlb_bit(side);
        let page = (mva.0 & !(bytes - 1), bytes);
        let gone = self.pages.at(page_key(side, page)).take();
        let entries = &mut self.entries[side];
        if entries.len() <= number {
            entries.resize(number + 1, None);
        }
        if let Some(old) = entries[number].replace(Held { page, locked }) {
            let by = By::Replaced(of);
            *self.pages.at(page_key(side, old.page)) = Some(Eviction { by, switch });
        }
        self.begin(Kind::Translation, of, mva, gone);
    }

    pub(super) fn tlb_invalidated(&mut self, by: Doer, (side, number): (TlbSide, usize)) {
        let held = self.entries[tlb_bit(side)].get_mut(number);
        if let Some(old) = held.and_then(Option::take) {
            self.page_invalidated(by, side, old);
        }
    }

    /// All entries of a TLB were invalidated, but for locked ones.
    pub(super) fn tlb_all_invalidated(&mut self, by: Doer, side: TlbSide) {
        for number in 0..self.entries[tlb_bit(side)].len() {
            let held = &mut self.entries[tlb_bit(side)][number];
            if let Some(old) = held.take_if(|held| !held.locked) {
                self.page_invalidated(by, side, old);
            }
        }
    }

    fn page_invalidated(&mut self, (by, switch): Doer, side: TlbSide, old: Held) {
        let by = By::Invalidated(by);
        *self.pages.at(page_key(tlb_bit(side), old.page)) = Some(Eviction { by, switch });
    }

    /// No entry of a TLB is locked any more.
    pub(super) fn tlb_unlocked(&mut self, side: TlbSide) {
        let held = self.entries[tlb_bit(side)].iter_mut().flatten();
        held.for_each(|held| held.locked = false);
    }
}
