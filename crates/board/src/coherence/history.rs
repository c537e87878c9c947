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

    /// What happened to the line that holds `pa` from `cycle` on, oldest first, and whether the
    /// ring reaches back that far.
    pub fn of_line(&self, pa: Pa, cycle: u64) -> (Vec<LineEvent>, bool) {
        let line = pa.0 & !31;
        let (newer, older) = self.events.split_at(self.next);
        let mut found: Vec<LineEvent> = newer
            .iter()
            .rev()
            .chain(older.iter().rev())
            .take_while(|e| e.cycle >= cycle)
            .filter(|e| e.pa == line || matches!(e.movement, Movement::InvalidateAll(_)))
            .copied()
            .collect();
        found.reverse();
        let oldest = older.first().or(newer.first());
        let whole = self.events.len() < KEPT || oldest.is_some_and(|e| e.cycle <= cycle);
        (found, whole)
    }

    /// The last movements of the line that holds `pa`, oldest first, at most `most`.
    pub fn last(&self, pa: Pa, most: usize) -> Vec<LineEvent> {
        let line = pa.0 & !31;
        let (newer, older) = self.events.split_at(self.next);
        let mut found: Vec<LineEvent> = newer
            .iter()
            .rev()
            .chain(older.iter().rev())
            .filter(|e| e.pa == line && !matches!(e.movement, Movement::InvalidateAll(_)))
            .take(most)
            .copied()
            .collect();
        found.reverse();
        found
    }
}
