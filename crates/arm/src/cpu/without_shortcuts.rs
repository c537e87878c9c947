// SPDX-License-Identifier: MIT OR Apache-2.0
//! Execution without shortcuts ([`Bus::SHORTCUTS`]). This code defines the behaviour of the instruction loop.

use super::Cpu;
use crate::bus::Bus;

impl<B: Bus> Cpu<B> {
    /// Executes one instruction. Looks it up and decodes it again each time. The core keeps only the location of the
    /// current line, not its operations.
    pub(super) fn execute_plainly(&mut self) {
        let (pc, thumb) = (self.pc, self.fetch.thumb());
        let size = if thumb { 2 } else { 4 };
        if self.fetch.holds(pc) {
            self.assert_current_line(pc);
        } else if let Err(fault) = self.enter_line_anew(pc, thumb) {
            return self.prefetch_abort(fault);
        }
        let word = self.current_word(pc, thumb);
        let op = if thumb {
            self.decode.thumb((word >> (8 * (pc & 2))) as u16)
        } else {
            self.decode.arm(word)
        };
        self.pc = pc.wrapping_add(size);
        self.r[15] = self.pc.wrapping_add(size);
        self.counters.instructions += 1;
        if B::OBSERVED {
            self.tell_fetch(pc);
        }
        self.wait_and_execute(op);
    }
}
