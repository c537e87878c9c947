// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to memory for bus masters other than the core.
//!
//! A device moves data in [`Device::transfer`](crate::device::Device::transfer), through the [`Memory`] that the call
//! gives it. Transfers read and write only RAM and bypass the core's caches, as in the hardware. Each transfer occupies
//! the memory for its time, and the core's accesses wait until the transfer ends. A transfer does not wait for a burst
//! of the core that is still in progress. Observers receive each transfer.

use super::{Slot, SystemBus};
use crate::device::Device;
use crate::memory::Sdram;
use arm::BusError;

/// Longest burst, in words.
const BURST: usize = 16;

/// A burst of a bus master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Number of the bus master: its position among the devices of the board.
    pub master: u32,
    /// Core cycle at which the burst began.
    pub cycle: u64,
    /// Core cycles that the burst took.
    pub cycles: u32,
    /// Physical address of the first word.
    pub pa: u32,
    /// Words that were read or written.
    pub words: Vec<u32>,
    /// Whether the burst wrote to memory.
    pub writes: bool,
}

/// Access of a bus master to memory during one call.
pub struct Memory<'a> {
    ram: &'a mut Sdram,
    ram_base: u32,
    now: u64,
    master: u32,
    transfers: &'a mut Vec<Transfer>,
}

impl<'a> Memory<'a> {
    pub(super) fn new(
        ram: &'a mut Sdram,
        ram_base: u32,
        now: u64,
        master: usize,
        transfers: &'a mut Vec<Transfer>,
    ) -> Memory<'a> {
        let now = now.max(ram.held_until());
        Memory {
            ram,
            ram_base,
            now,
            master: master as u32,
            transfers,
        }
    }

    /// Returns the core cycle at which the next transfer begins.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Reads words from RAM in bursts. Returns the core cycle at which the last burst ends.
    ///
    /// # Errors
    /// Fails when a word is not in RAM, or when the address is not a multiple of 4. In this case, it reads nothing.
    pub fn read(&mut self, pa: u32, words: &mut [u32]) -> Result<u64, BusError> {
        let offset = self.offset(pa, words.len())?;
        for (n, burst) in words.chunks_mut(BURST).enumerate() {
            let at = (4 * BURST * n) as u32;
            let time = self.ram.read_words(self.now, offset + at, burst);
            self.took(time.last, pa + at, burst.to_vec(), false);
        }
        Ok(self.now)
    }

    /// Writes words to RAM in bursts. Returns the core cycle at which the last burst ends.
    ///
    /// # Errors
    /// Fails as [`Memory::read`] does. In this case, it writes nothing.
    pub fn write(&mut self, pa: u32, words: &[u32]) -> Result<u64, BusError> {
        let offset = self.offset(pa, words.len())?;
        for (n, burst) in words.chunks(BURST).enumerate() {
            let at = (4 * BURST * n) as u32;
            let cycles = self.ram.write_words(self.now, offset + at, burst);
            self.took(cycles, pa + at, burst.to_vec(), true);
        }
        Ok(self.now)
    }

    fn offset(&self, pa: u32, words: usize) -> Result<u32, BusError> {
        let offset = pa.wrapping_sub(self.ram_base);
        let room = u64::from(self.ram.bytes());
        let fits = u64::from(offset) + 4 * words as u64 <= room;
        (fits && offset.is_multiple_of(4))
            .then_some(offset)
            .ok_or(BusError)
    }

    fn took(&mut self, cycles: u32, pa: u32, words: Vec<u32>, writes: bool) {
        self.transfers.push(Transfer {
            master: self.master,
            cycle: self.now,
            cycles,
            pa,
            words,
            writes,
        });
        self.now += u64::from(cycles);
        self.ram.hold(self.now);
    }
}

impl SystemBus {
    /// Returns whether [`SystemBus::take_transfers`] would return transfers.
    #[inline]
    pub(crate) fn has_transfers(&self) -> bool {
        !self.transfers.is_empty()
    }

    /// Takes the transfers of bus masters other than the core since the last call.
    pub(crate) fn take_transfers(&mut self) -> Vec<Transfer> {
        core::mem::take(&mut self.transfers)
    }

    /// Adds a part that is not in the machine file, at a free address and without wires. A machine with such a part
    /// gives no snapshot.
    ///
    /// # Errors
    /// Fails when the address range is not free, or does not consist of whole pages.
    pub fn attach(
        &mut self,
        name: &str,
        (base, size): (u32, u32),
        device: Box<dyn Device>,
    ) -> Result<(), String> {
        let end = u64::from(base) + u64::from(size);
        let ram_end = u64::from(self.ram_base) + u64::from(self.ram.bytes());
        let in_ram = u64::from(base) < ram_end && u64::from(self.ram_base) < end;
        let is_free = |page: u64| self.map.is_free(page as u32);
        let is_possible = (base | size) & 0xfff == 0 && size != 0 && end <= 1 << 32 && !in_ram;
        if !is_possible || !(u64::from(base) >> 12..end >> 12).all(is_free) {
            return Err(format!(
                "{name}: {base:#x} to {end:#x} is not a free range of whole pages"
            ));
        }
        let slot = Slot {
            name: name.to_string(),
            base,
            device,
            read_cycles: self.ignored_read_cycles,
            write_cycles: self.ignored_write_cycles,
            outputs: 0,
        };
        self.add(slot, size);
        self.attached = true;
        self.settle(0, self.slots.len() - 1);
        Ok(())
    }
}
