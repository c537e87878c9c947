// SPDX-License-Identifier: MIT OR Apache-2.0
//! A DMA controller with one channel, for tests of this crate and of the observers. It copies bytes within RAM. The
//! module that includes this file has `Device`, `Memory` and `Unmodelled` in scope.

use super::{Device, Memory, Unmodelled};
use arm::Width;

/// Registers: source, destination, length, and start. A write to the start register starts the copy: 1 of words, 2 of
/// bytes. The start register reads as 1 when the copy is done.
#[derive(Clone, Default)]
pub(crate) struct Copier {
    registers: [u32; 4],
    /// Bytes in a unit of the length.
    unit: u32,
    /// Core cycle at which the copy begins.
    starts: Option<u64>,
}

arm::state!(Copier: registers, unit, starts);

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
            self.unit = if value == 2 { 1 } else { 4 };
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
        let mut bytes = vec![0; (count * self.unit) as usize];
        let copied = memory
            .read(from, &mut bytes)
            .and_then(|_| memory.write(to, &bytes));
        self.registers[3] = u32::from(copied.is_ok());
    }
}
