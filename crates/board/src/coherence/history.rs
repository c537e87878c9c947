// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened to cache lines, as far back as there is room.

use arm9::{Context, Mva, Pa, Side};

/// A movement of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// Filled from memory.
    Fill(Side),
    /// Dirty halves left for memory.
    WriteBack {
        /// Bit 0 the lower 16 bytes, bit 1 the upper.
        halves: u8,
        /// The line made room for another; false: an operation cleaned it.
        victim: bool,
        /// Words of them that were not the newest, bit 0 the first of the line.
        old: u8,
    },
    /// Discarded.
    Invalidate {
        /// Which cache.
        side: Side,
        /// Halves that were dirty, and are lost.
        halves: u8,
    },
    /// Everything in a cache was discarded.
    InvalidateAll(Side),
}

/// A movement, of which line, and by which instruction.
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
    /// What happened.
    pub movement: Movement,
}

/// Events kept: the newest million.
const KEPT: usize = 1 << 20;

/// A ring of the newest events.
#[derive(Clone, Default)]
pub(super) struct History {
    events: Vec<LineEvent>,
    next: usize,
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
        if self.events.len() < KEPT {
            self.events.push(event);
        } else {
            self.events[self.next] = event;
            self.next = (self.next + 1) % KEPT;
        }
    }

    /// Newest first.
    fn backwards(&self) -> impl Iterator<Item = &LineEvent> {
        let (newer, older) = self.events.split_at(self.next);
        newer.iter().rev().chain(older.iter().rev())
    }

    /// What happened from `cycle` on to lines with the memory at `pa`, and to the D-cache line at
    /// `mva` whatever its memory; oldest first. Also whether the ring reaches back that far.
    pub fn of_line(&self, pa: Pa, mva: Mva, cycle: u64) -> (Vec<LineEvent>, bool) {
        let (pa, mva) = (pa.0 & !31, mva.0 & !31);
        let concerns = |e: &&LineEvent| match e.movement {
            Movement::InvalidateAll(_) => false,
            Movement::Fill(Side::Instruction | Side::Prefetch)
            | Movement::Invalidate {
                side: Side::Instruction,
                ..
            } => e.pa == pa,
            _ => e.pa == pa || e.mva == mva,
        };
        let since = self.backwards().take_while(|e| e.cycle >= cycle);
        let mut found: Vec<LineEvent> = since.filter(concerns).copied().collect();
        found.reverse();
        let oldest = self.backwards().last();
        let whole = self.events.len() < KEPT || oldest.is_some_and(|e| e.cycle <= cycle);
        (found, whole)
    }

    /// The last time a cache's line at `mva` was filled.
    pub fn last_fill(&self, side: Side, mva: Mva) -> Option<&LineEvent> {
        let line = mva.0 & !31;
        self.backwards()
            .find(|e| e.mva == line && e.movement == Movement::Fill(side))
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
        let (events, whole) = history.of_line(Pa(0x8004), Mva(0x1008), 0);
        assert_eq!((cycles(&events), whole), (vec![1, 2, 3], true));
        // Lines that it loses have been told one by one.
        let all = Movement::InvalidateAll(Side::Data);
        let context = Context {
            cycle: 3,
            ..Context::default()
        };
        history.note(&context, Mva(0x1000), Pa(0x8000), all);
        let (events, _) = history.of_line(Pa(0x8004), Mva(0x1008), 2);
        assert_eq!(cycles(&events), [2, 3]);
        let fill = history.last_fill(Side::Data, Mva(0x1004));
        assert_eq!(fill.map(|e| e.pa), Some(0x9000));
        assert_eq!(history.last_fill(Side::Instruction, Mva(0x1004)), None);
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
        let (events, whole) = history.of_line(Pa(0x8000), Mva(0), 10);
        assert_eq!((events.len(), whole), (KEPT / 2, true));
        assert_eq!(events.first().map(|e| e.cycle), Some(10));
        assert_eq!(events.last().map(|e| e.cycle), Some(KEPT as u64 + 8));
        assert!(!history.of_line(Pa(0x8000), Mva(0), 9).1);
    }
}
