// SPDX-License-Identifier: MIT OR Apache-2.0
//! The newest events of cache lines.

use super::report::Access;
use arm::{Context, Mva, Pa, Side};

/// Movement of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// Filled from memory.
    Fill(Side),
    /// Dirty halves were written to memory.
    WriteBack {
        /// Bit 0 stands for the lower 16 bytes, bit 1 for the upper 16 bytes.
        halves: u8,
        /// Whether the line made room for another line. Otherwise, an operation cleaned it.
        victim: bool,
        /// Written words that did not hold the newest value. Bit 0 stands for the first word of the line.
        old: u8,
    },
    /// Discarded.
    Invalidate {
        /// Which cache.
        side: Side,
        /// Dirty halves, which are lost.
        halves: u8,
    },
    /// Everything in a cache was discarded.
    InvalidateAll(Side),
}

/// An event of a line, and the instruction that caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineEvent {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Virtual address of the instruction.
    pub pc: u32,
    /// MVA of the line's first byte.
    pub mva: u32,
    /// Physical address of the line's first byte.
    pub pa: u32,
    /// Movement of the line.
    pub movement: Movement,
}

/// Number of events kept: the newest million.
const KEPT: usize = 1 << 20;
/// Number of slots for each side in the table of last fills.
const FILLS: usize = 1 << 12;

/// A ring of the newest events.
#[derive(Clone, Default)]
pub(super) struct History {
    events: Vec<LineEvent>,
    next: usize,
    /// For each side, a slot holds the address filled last and the index of this fill in the ring.
    fills: [Vec<(u32, usize)>; 3],
}

/// Returns the slot of a line in [`History::fills`].
fn slot(mva: u32) -> usize {
    (mva >> 5) as usize % FILLS
}

impl History {
    #[inline]
    pub fn note(&mut self, context: &Context, mva: Mva, pa: Pa, movement: Movement) {
        let (cycle, pc) = (context.cycle, context.pc);
        let event = LineEvent {
            cycle,
            pc,
            mva: mva.0,
            pa: pa.0,
            movement,
        };
        let at = if self.events.len() < KEPT {
            self.events.push(event);
            self.events.len() - 1
        } else {
            let at = self.next;
            self.events[at] = event;
            self.next = (at + 1) % KEPT;
            at
        };
        if let Movement::Fill(side) = movement {
            let fills = &mut self.fills[side as usize];
            if fills.is_empty() {
                // No line begins at an odd address.
                fills.resize(FILLS, (1, 0));
            }
            fills[slot(event.mva)] = (event.mva, at);
        }
    }

    /// Returns the events, newest first.
    fn backwards(&self) -> impl Iterator<Item = &LineEvent> {
        let (newer, older) = self.events.split_at(self.next);
        newer.iter().rev().chain(older.iter().rev())
    }

    /// Returns the events from `cycle` on, oldest first. The events belong to all lines that hold the memory at `pa`.
    /// If `mva` is given, events of the D-cache line at `mva` are included, even if this line holds other memory. The
    /// flag says whether the ring reaches back to `cycle`.
    pub fn of_line(&self, pa: Pa, mva: Option<Mva>, cycle: u64) -> (Vec<LineEvent>, bool) {
        let (pa, mva) = (pa.0 & !31, mva.map(|mva| mva.0 & !31));
        let concerns = |e: &&LineEvent| match e.movement {
            Movement::InvalidateAll(_) => false,
            Movement::Fill(Side::Instruction | Side::Prefetch)
            | Movement::Invalidate {
                side: Side::Instruction,
                ..
            } => e.pa == pa,
            _ => e.pa == pa || Some(e.mva) == mva,
        };
        let since = self.backwards().take_while(|e| e.cycle >= cycle);
        let mut found: Vec<LineEvent> = since.filter(concerns).copied().collect();
        found.reverse();
        let oldest = self.backwards().last();
        let whole = self.events.len() < KEPT || oldest.is_some_and(|e| e.cycle <= cycle);
        (found, whole)
    }

    /// Returns the last fill of the line at `mva` in one cache.
    pub fn last_fill(&self, side: Side, mva: Mva) -> Option<&LineEvent> {
        let line = mva.0 & !31;
        let is = |e: &&LineEvent| e.mva == line && e.movement == Movement::Fill(side);
        match self.fills[side as usize].get(slot(line)) {
            // If this index has another event, the fill has left the ring.
            Some((mva, at)) if *mva == line => self.events.get(*at).filter(is),
            // Another line took the slot.
            Some(_) => self.backwards().find(is),
            None => None,
        }
    }

    /// Returns the fill of the line that an access used.
    pub fn fill_of(&self, access: Access, mva: Mva) -> Option<&LineEvent> {
        let side = match access {
            Access::Load { cached: true } | Access::WriteBack { .. } => Side::Data,
            Access::Fetch { cached: true } => Side::Instruction,
            Access::Fetch { cached: false } => Side::Prefetch,
            _ => return None,
        };
        self.last_fill(side, mva)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(history: &mut History, cycle: u64, mva: u32, pa: u32) {
        let context = Context {
            cycle,
            ..Context::default()
        };
        history.note(&context, Mva(mva), Pa(pa), Movement::Fill(Side::Data));
    }

    fn cycles(events: &[LineEvent]) -> Vec<u64> {
        events.iter().map(|e| e.cycle).collect()
    }

    #[test]
    fn a_line_is_found_by_its_memory_and_by_its_address() {
        let mut history = History::default();
        note(&mut history, 1, 0x1000, 0x8000);
        note(&mut history, 2, 0x2000, 0x8000);
        note(&mut history, 3, 0x1000, 0x9000);
        note(&mut history, 4, 0x2000, 0x9000);
        let (events, whole) = history.of_line(Pa(0x8004), Some(Mva(0x1008)), 0);
        assert_eq!((cycles(&events), whole), (vec![1, 2, 3], true));
        // InvalidateAll is not an event of this line. Each dirty line that it discards has a separate event.
        let all = Movement::InvalidateAll(Side::Data);
        let context = Context {
            cycle: 3,
            ..Context::default()
        };
        history.note(&context, Mva(0x1000), Pa(0x8000), all);
        let (events, _) = history.of_line(Pa(0x8004), Some(Mva(0x1008)), 2);
        assert_eq!(cycles(&events), [2, 3]);
        let fill = history.last_fill(Side::Data, Mva(0x1004));
        assert_eq!(fill.map(|e| e.pa), Some(0x9000));
        assert_eq!(history.last_fill(Side::Instruction, Mva(0x1004)), None);
    }

    #[test]
    fn the_last_fill_is_found_if_another_line_shares_its_slot() {
        let mut history = History::default();
        let other = 0x1000 + 32 * FILLS as u32;
        for (cycle, mva) in [(1, 0x1000), (2, other), (3, 0x2000)] {
            note(&mut history, cycle, mva, 0x8000);
        }
        let filled = |mva| history.last_fill(Side::Data, Mva(mva)).map(|e| e.cycle);
        assert_eq!(
            [0x1004, other, 0x2000, 0x3000].map(filled),
            [Some(1), Some(2), Some(3), None]
        );
    }

    #[test]
    fn the_ring_keeps_the_newest_and_says_when_it_does_not_reach_back() {
        let mut history = History::default();
        for cycle in 0..KEPT as u64 + 10 {
            note(
                &mut history,
                cycle,
                0x1000,
                0x8000 + 32 * (cycle as u32 & 1),
            );
        }
        let (events, whole) = history.of_line(Pa(0x8000), Some(Mva(0)), 10);
        assert_eq!((events.len(), whole), (KEPT / 2, true));
        assert_eq!(events.first().map(|e| e.cycle), Some(10));
        assert_eq!(events.last().map(|e| e.cycle), Some(KEPT as u64 + 8));
        assert!(!history.of_line(Pa(0x8000), Some(Mva(0)), 9).1);
    }
}
