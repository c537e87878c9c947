// SPDX-License-Identifier: MIT OR Apache-2.0
//! A DMA controller with one channel, for tests of this crate and of the observers. It copies words within RAM. The
//! module that includes this file has `Device`, `Memory` and `Unmodelled` in scope.

use super::{Device, Memory, Unmodelled};
use arm::Width;

/// Registers: source, destination, number of words, and start. A write to the start register starts the copy. The start
/// register reads as 1 when the copy is done.
#[derive(Clone, Default)]
pub(crate) struct Copier {
    registers: [u32; 4],
    /// Core cycle at which the copy begins.
    starts: Option<u64>,
}

arm::state!(Copier: registers, starts);

impl Device for Copier {
    fn part(&self) -> &'static str {
        "copier"
    }

    fn read(&mut self, _: u64, offset: u32, _: Width) -> Result<u32, Unmodelled> {
        Ok(self.registers[(offset >> 2 & 3) as usize])
    }

    fn write(&mut self, now: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        self.registers[(offset >> 2 & 3) as usize] = value;
        if offset == 12 {
            (self.registers[3], self.starts) = (0, Some(now));
        }
        Ok(())
    }

    fn deadline(&self) -> u64 {
        self.starts.unwrap_or(u64::MAX)
    }

    fn transfer(&mut self, _: u64, memory: &mut Memory<'_>) {
        let [from, to, count, _] = self.registers;
        if self.starts.take().is_none() {
            return;
        }
        let mut words = vec![0; count as usize];
        let copied = memory
            .read(from, &mut words)
            .and_then(|_| memory.write(to, &words));
        self.registers[3] = u32::from(copied.is_ok());
    }
}
