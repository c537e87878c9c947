// SPDX-License-Identifier: MIT OR Apache-2.0
//! D-cache line fills in the background. On XScale, a PLD begins such a fill. Other cores have none.

use super::Cpu;
use crate::bus::Bus;
use crate::observe::Cause;

/// Maximum number of lines that can be in a fill at the same time (IXP42X p. 62).
const FILL_BUFFERS: usize = 4;

/// The fills in the background: the lines, and the cycles at which the fills end, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fills([(u32, u64); FILL_BUFFERS]);

impl crate::State for Fills {
    fn save(&self, to: &mut Vec<u8>) {
        self.0.save(to);
    }

    fn restore(&mut self, from: &mut crate::Saved<'_>) -> Result<(), crate::Damaged> {
        self.0.restore(from)
    }
}

impl Fills {
    /// Latest end of a fill.
    pub fn latest(&self) -> u64 {
        let all = self.0.iter().map(|(_, ready)| *ready);
        all.max().unwrap_or(0)
    }

    /// Highest number of a line in a fill.
    pub fn last_line(&self) -> usize {
        let lines = self.0.iter().map(|(line, _)| *line);
        lines.max().unwrap_or(0) as usize
    }

    /// Records the fill of a line. The fill ends at `ready`.
    pub fn expect(&mut self, line: u32, ready: u64) {
        self.0.rotate_left(1);
        self.0[FILL_BUFFERS - 1] = (line, ready);
    }
}

impl<B: Bus> Cpu<B> {
    /// If all fill buffers are in use, waits for the oldest fill.
    pub(crate) fn wait_for_fill_buffer(&mut self) {
        let (filled, oldest) = self.fills.0[0];
        let first = self.cycles.max(oldest);
        if oldest > self.cycles {
            self.tell_awaited(filled as usize);
        }
        self.counters.dcache_fill_cycles += first - self.cycles;
        self.wait_until(Cause::DataMiss, first);
    }

    /// Waits for the fill of a line, if it is not complete.
    pub(crate) fn wait_for_fill(&mut self, line: usize) {
        for (filled, ready) in self.fills.0 {
            if filled == line as u32 && ready > self.cycles {
                self.tell_awaited(line);
                self.counters.dcache_fill_cycles += ready - self.cycles;
                self.wait_until(Cause::DataMiss, ready);
            }
        }
    }
}
