// SPDX-License-Identifier: MIT OR Apache-2.0
//! For each miss of a line or translation, finds the code that evicted the line or translation.

use super::CellId;
use super::switches::SwitchId;
use super::table::Table;
use arm::{Cause, Mva, Side, TlbSide};

/// The kind of a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An I-cache line.
    Instruction,
    /// A D-cache line.
    Data,
    /// A translation.
    Translation,
    /// A D-cache line, missed by a store. The store fills no line and goes to memory. The cycles of the miss are waits
    /// for the write buffer.
    Store,
}

/// The cause of a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissCause {
    /// The ledger has not seen the line or translation present before.
    First,
    /// This cell replaced the line or translation with another.
    Replaced(CellId),
    /// This cell invalidated the line or translation, or the whole cache or TLB.
    Invalidated(CellId),
}

/// A kind of miss, with its victim and its evictor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Miss {
    /// Kind of the miss.
    pub kind: Kind,
    /// Cause of the miss, with the evictor.
    pub by: MissCause,
    /// Victim: the cell that missed.
    pub of: CellId,
}

impl Miss {
    /// Packs the miss into 64 bits. There are fewer than 2^30 cells.
    pub(super) fn key(self) -> u64 {
        let (how, by) = match self.by {
            MissCause::First => (0, 0),
            MissCause::Replaced(by) => (1, by),
            MissCause::Invalidated(by) => (2, by),
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
                0 => MissCause::First,
                1 => MissCause::Replaced(cell(30)),
                _ => MissCause::Invalidated(cell(30)),
            },
            of: cell(0),
        }
    }
}

/// Kind and address of a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Kind of the miss.
    pub kind: Kind,
    /// Modified virtual address of the line, or of the access that needed a translation.
    pub mva: u32,
    /// Whether pin 0 was high ([`super::Owner::timed`]).
    pub timed: bool,
}

/// Number and cycles of misses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// Number of misses.
    pub count: u64,
    /// Core cycles, including waits for writes ahead of the fills.
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
    /// Call of the scheduler during which the line or translation was evicted.
    pub switch: SwitchId,
    /// Whether a PLD began to fill the line, so that the miss is already counted. In this case, the cycles are only the
    /// wait for the rest of the fill.
    pub counted: bool,
}

type Doer = (CellId, SwitchId);

/// How a line or translation was evicted.
#[derive(Clone, Copy, Debug)]
struct Eviction {
    by: MissCause,
    switch: SwitchId,
}

impl Settled {
    /// Returns a miss without cycles. `eviction` is `None` if the line or translation was never present.
    fn new(kind: Kind, of: CellId, mva: Mva, eviction: Option<Eviction>) -> Settled {
        let by = eviction.map_or(MissCause::First, |eviction| eviction.by);
        Settled {
            miss: Miss { kind, by, of },
            mva,
            cycles: 0,
            switch: eviction.map_or(SwitchId::NONE, |eviction| eviction.switch),
            counted: false,
        }
    }
}

/// The history of a line.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// Cycle of the last fill. The cycle is 0 if the ledger has seen no fill.
    filled: u64,
    /// Eviction before the last fill.
    before: Option<Eviction>,
    eviction: Option<Eviction>,
    /// Misses while pin 0 was low, and while it was high.
    missed: [Missed; 2],
}

impl Line {
    /// Records a fill, and returns the eviction before the fill, if any. `all` is the last invalidation of the whole
    /// cache.
    fn fill(&mut self, cycle: u64, all: Option<(u64, Eviction)>) -> Option<Eviction> {
        self.before = self.eviction(all);
        (self.filled, self.eviction) = (cycle, None);
        self.before
    }

    /// Returns how the line was evicted, if it is absent. `all` is the last invalidation of the whole cache.
    fn eviction(&self, all: Option<(u64, Eviction)>) -> Option<Eviction> {
        // A line with an eviction but no fill was already present when the ledger began to observe.
        let known = self.filled > 0 || self.eviction.is_some();
        let since = |(at, _): &(u64, Eviction)| known && *at >= self.filled;
        self.eviction
            .or(all.filter(since).map(|(_, eviction)| eviction))
    }
}

/// Contents of a TLB entry.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// Address and size of the entry's page, in bytes.
    page: (u32, u32),
    /// A locked entry survives an invalidate of all entries.
    locked: bool,
}

/// Lines and translations that are or were present, and their misses.
#[derive(Clone, Debug)]
pub struct Lost {
    /// By [`line_key`].
    lines: Table<Line>,
    /// Last invalidation of each whole cache.
    all: [Option<(u64, Eviction)>; 2],
    /// Contents of the entries of each TLB.
    entries: [Vec<Option<Held>>; 2],
    /// Evictions of the pages that TLBs held, by [`page_key`].
    pages: Table<Option<Eviction>>,
    /// By [`Miss::key`].
    missed: Table<Missed>,
    /// The last miss, while its cycles are not yet known.
    waiting: Option<Settled>,
    /// The line of the last miss, by [`line_key`].
    line: Option<u64>,
    /// Cycles of waits for writes that use the bus, before the last miss.
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

/// Returns the key of a line: its address, with the side in bit 0.
fn line_key(side: Side, mva: Mva) -> u64 {
    u64::from(mva.0 & !31 | side_bit(side))
}

/// Returns the key of a page in a TLB. The page size is a power of two and at least 1 KB.
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
        let places = |(key, line): (u64, &Line)| {
            let kind = match key & 1 {
                0 => Kind::Instruction,
                _ => Kind::Data,
            };
            let mva = key as u32 & !31;
            let place = |timed| Place { kind, mva, timed };
            let [untimed, timed] = line.missed;
            [(place(false), untimed), (place(true), timed)]
        };
        let all = self.lines.iter().flat_map(places);
        all.filter(|(_, missed)| missed.count > 0 || missed.cycles > 0)
    }

    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Adds cycles to the last miss. The cycles of a miss include the miss's own wait and the waits for writes just
    /// before the miss. Returns whether all cycles of the miss are known. Later waits of the instruction do not belong
    /// to the miss.
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

    /// Ends the last miss and returns it with its cycles.
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
        let eviction = self.lines.at(key).fill(cycle, all);
        self.begin(kind_of(side), of, mva, eviction);
        self.line = Some(key);
    }

    /// Begins a wait for a D-cache line whose fill has begun. The wait has the same evictor as the fill.
    pub(super) fn awaited(&mut self, of: CellId, mva: Mva) {
        let key = line_key(Side::Data, mva);
        let eviction = self.lines.at(key).before;
        self.begin(Kind::Data, of, mva, eviction);
        self.waiting.iter_mut().for_each(|miss| miss.counted = true);
        self.line = Some(key);
    }

    /// Records a store that missed, after its wait.
    pub(super) fn store_missed(&mut self, of: CellId, mva: Mva, cycles: u64) -> Settled {
        let line = self.lines.at(line_key(Side::Data, mva));
        let eviction = line.eviction(self.all[side_bit(Side::Data) as usize]);
        let mut settled = Settled::new(Kind::Store, of, Mva(mva.0 & !31), eviction);
        settled.cycles = cycles;
        self.missed.at(settled.miss.key()).add(&settled);
        settled
    }

    fn begin(&mut self, kind: Kind, of: CellId, mva: Mva, eviction: Option<Eviction>) {
        self.waiting = Some(Settled::new(kind, of, mva, eviction));
        self.writes = 0;
    }

    pub(super) fn claimed(&mut self, mva: Mva, cycle: u64) {
        let all = self.all[side_bit(Side::Data) as usize];
        self.lines.at(line_key(Side::Data, mva)).fill(cycle, all);
    }

    fn line_evicted(&mut self, side: Side, mva: Mva, eviction: Eviction) {
        self.lines.at(line_key(side, mva)).eviction = Some(eviction);
    }

    pub(super) fn replaced(&mut self, (by, switch): Doer, side: Side, mva: Mva) {
        let by = MissCause::Replaced(by);
        self.line_evicted(side, mva, Eviction { by, switch });
    }

    pub(super) fn invalidated(&mut self, (by, switch): Doer, side: Side, mva: Mva) {
        let by = MissCause::Invalidated(by);
        self.line_evicted(side, mva, Eviction { by, switch });
    }

    pub(super) fn all_invalidated(&mut self, (by, switch): Doer, side: Side, cycle: u64) {
        let by = MissCause::Invalidated(by);
        self.all[side_bit(side) as usize] = Some((cycle, Eviction { by, switch }));
    }

    /// Records that entry `number` of a TLB now holds the page of `mva`.
    pub(super) fn tlb_filled(
        &mut self,
        (of, switch): Doer,
        (side, number): (TlbSide, usize),
        mva: Mva,
        (bytes, locked): (u32, bool),
    ) {
        let side = tlb_bit(side);
        let page = (mva.0 & !(bytes - 1), bytes);
        let eviction = self.pages.at(page_key(side, page)).take();
        let entries = &mut self.entries[side];
        if entries.len() <= number {
            entries.resize(number + 1, None);
        }
        if let Some(old) = entries[number].replace(Held { page, locked }) {
            let by = MissCause::Replaced(of);
            *self.pages.at(page_key(side, old.page)) = Some(Eviction { by, switch });
        }
        self.begin(Kind::Translation, of, mva, eviction);
    }

    pub(super) fn tlb_invalidated(&mut self, by: Doer, (side, number): (TlbSide, usize)) {
        let held = self.entries[tlb_bit(side)].get_mut(number);
        if let Some(old) = held.and_then(Option::take) {
            self.page_invalidated(by, side, old);
        }
    }

    /// Records an invalidation of all entries of a TLB except locked ones.
    pub(super) fn tlb_all_invalidated(&mut self, by: Doer, side: TlbSide) {
        for number in 0..self.entries[tlb_bit(side)].len() {
            let held = &mut self.entries[tlb_bit(side)][number];
            if let Some(old) = held.take_if(|held| !held.locked) {
                self.page_invalidated(by, side, old);
            }
        }
    }

    fn page_invalidated(&mut self, (by, switch): Doer, side: TlbSide, old: Held) {
        let by = MissCause::Invalidated(by);
        *self.pages.at(page_key(tlb_bit(side), old.page)) = Some(Eviction { by, switch });
    }

    /// Unlocks all entries of a TLB.
    pub(super) fn tlb_unlocked(&mut self, side: TlbSide) {
        let held = self.entries[tlb_bit(side)].iter_mut().flatten();
        held.for_each(|held| held.locked = false);
    }
}
