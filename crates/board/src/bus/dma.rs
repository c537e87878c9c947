// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to memory for bus masters other than the core.
//!
//! A device moves data in [`Device::transfer`](crate::device::Device::transfer), through the [`Memory`] that the call
//! gives it. Transfers read and write only RAM and bypass the core's caches, as in the hardware. A transfer has any
//! address and any number of bytes. The memory moves one word a beat, with byte lanes, so a beat takes the same time for
//! a byte, a half-word and a word. Each transfer occupies the memory for its time, and the core's accesses wait until the
//! transfer ends. A transfer does not wait for a burst of the core that is still in progress. Observers receive each
//! transfer.
//!
//! A device that reads or writes a register of another device returns an [`Access`] from
//! [`Device::begin_access`](crate::device::Device::begin_access). The bus carries it out as an access of the core: the
//! same map, the same cycles, the same refusals. The core does not wait for such an access, and observers do not receive
//! it.

use super::{Slot, SystemBus};
use crate::device::Device;
use crate::map::Region;
use crate::memory::Sdram;
use arm::{BusError, Width};

/// Longest burst, in words.
const BURST: usize = 16;

/// Bytes in the longest burst.
const BURST_BYTES: usize = 4 * BURST;

/// What a burst is for, as far as the device says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// The device does not say.
    #[default]
    Unknown,
    /// Data of a transfer without descriptors.
    Data,
    /// Data of the buffer that a descriptor of a ring or list names. The number is the descriptor's place, from 0.
    Buffer(u16),
    /// The descriptor at this place of a ring or list.
    Descriptor(u16),
}

/// An access of a bus master to a register of a device. An address in RAM is a bus error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Physical address.
    pub pa: u32,
    /// Width of the access.
    pub width: Width,
    /// The value of a write. `None` for a read.
    pub value: Option<u32>,
}

/// A burst of a bus master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Number of the bus master: its position among the devices of the board.
    pub master: u32,
    /// Core cycle at which the burst began.
    pub cycle: u64,
    /// Core cycles that the burst took.
    pub cycles: u32,
    /// Physical address of the first byte.
    pub pa: u32,
    /// Bytes that were read or written. The burst did not touch other bytes.
    pub bytes: Vec<u8>,
    /// Whether the burst wrote to memory.
    pub writes: bool,
    /// What the burst is for.
    pub purpose: Purpose,
}

impl Transfer {
    /// Returns the bytes as aligned words, half-words and bytes, each with its physical address, width and value.
    pub fn pieces(&self) -> impl Iterator<Item = (u32, Width, u32)> {
        let mut rest = self.bytes.as_slice();
        let mut pa = self.pa;
        core::iter::from_fn(move || {
            let width = match (pa & 3, rest.len()) {
                (_, 0) => return None,
                (0, 4..) => Width::Word,
                (0 | 2, 2..) => Width::Half,
                _ => Width::Byte,
            };
            let (piece, behind) = rest.split_at(width.bytes() as usize);
            let value = piece.iter().rev().fold(0, |v, b| v << 8 | u32::from(*b));
            let at = pa;
            pa = pa.wrapping_add(width.bytes());
            rest = behind;
            Some((at, width, value))
        })
    }
}

/// Access of a bus master to memory during one call.
pub struct Memory<'a> {
    ram: &'a mut Sdram,
    ram_base: u32,
    now: u64,
    master: u32,
    purpose: Purpose,
    transfers: &'a mut Vec<Transfer>,
}

impl<'a> Memory<'a> {
    pub(crate) fn new(
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
            purpose: Purpose::Unknown,
            transfers,
        }
    }

    /// Says what the following transfers of this call are for. Observers receive it, and it has no other effect.
    pub fn set_purpose(&mut self, purpose: Purpose) {
        self.purpose = purpose;
    }

    /// Returns the core cycle at which the next transfer begins.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Reads bytes from RAM in bursts. Returns the core cycle at which the last burst ends.
    ///
    /// # Errors
    /// Fails when a byte is not in RAM. In this case, it reads nothing.
    pub fn read(&mut self, pa: u32, bytes: &mut [u8]) -> Result<u64, BusError> {
        let mut offset = self.offset(pa, bytes.len())?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (burst, behind) = rest.split_at_mut(first_burst(offset, rest.len()));
            let cycles = self.ram.read_bytes(self.now, offset, burst);
            self.took(cycles, offset, burst, false);
            offset += burst.len() as u32;
            rest = behind;
        }
        Ok(self.now)
    }

    /// Writes bytes to RAM in bursts. Returns the core cycle at which the last burst ends.
    ///
    /// # Errors
    /// Fails as [`Memory::read`] does. In this case, it writes nothing.
    pub fn write(&mut self, pa: u32, bytes: &[u8]) -> Result<u64, BusError> {
        let mut offset = self.offset(pa, bytes.len())?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (burst, behind) = rest.split_at(first_burst(offset, rest.len()));
            let cycles = self.ram.write_bytes(self.now, offset, burst);
            self.took(cycles, offset, burst, true);
            offset += burst.len() as u32;
            rest = behind;
        }
        Ok(self.now)
    }

    /// Reads a word, such as a field of a descriptor.
    ///
    /// # Errors
    /// Fails as [`Memory::read`] does.
    pub fn read_word(&mut self, pa: u32) -> Result<u32, BusError> {
        let mut bytes = [0; 4];
        self.read(pa, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Writes a word, such as a field of a descriptor. Returns the core cycle at which the access ends.
    ///
    /// # Errors
    /// Fails as [`Memory::read`] does. In this case, it writes nothing.
    pub fn write_word(&mut self, pa: u32, word: u32) -> Result<u64, BusError> {
        self.write(pa, &word.to_le_bytes())
    }

    /// Returns whether RAM has all these bytes.
    pub fn has(&self, pa: u32, bytes: usize) -> bool {
        self.offset(pa, bytes).is_ok()
    }

    fn offset(&self, pa: u32, bytes: usize) -> Result<u32, BusError> {
        let offset = pa.wrapping_sub(self.ram_base);
        let room = u64::from(self.ram.bytes());
        let fits = u64::from(offset) + bytes as u64 <= room;
        fits.then_some(offset).ok_or(BusError)
    }

    fn took(&mut self, cycles: u32, offset: u32, bytes: &[u8], writes: bool) {
        self.transfers.push(Transfer {
            master: self.master,
            cycle: self.now,
            cycles,
            pa: self.ram_base.wrapping_add(offset),
            bytes: bytes.to_vec(),
            writes,
            purpose: self.purpose,
        });
        self.now += u64::from(cycles);
        self.ram.hold(self.now);
    }
}

/// Returns how many of `bytes` the first burst moves. The burst has at most [`BURST`] words, and its first word may be
/// used in part.
fn first_burst(offset: u32, bytes: usize) -> usize {
    bytes.min(BURST_BYTES - (offset & 3) as usize)
}

impl SystemBus {
    /// Carries out an access of device `index` to a register.
    #[cold]
    pub(super) fn access(&mut self, now: u64, index: usize, access: Access) {
        let result = if self.is_ram(access.pa) {
            Err(BusError)
        } else if let Some(value) = access.value {
            let cycles = self.write_device(now, access.pa, access.width, value);
            cycles.map(|cycles| (0, cycles))
        } else {
            self.read_device(now, access.pa, access.width)
        };
        let cycles = result.as_ref().map_or(0, |(_, cycles)| *cycles);
        let value = result.map(|(value, _)| value);
        let device = self.slots[index].device.as_mut();
        device.end_access(now + u64::from(cycles), value);
    }

    /// Returns whether [`SystemBus::take_transfers`] would return transfers.
    #[inline]
    pub(crate) fn has_transfers(&self) -> bool {
        !self.transfers.is_empty()
    }

    /// Takes the transfers of bus masters other than the core since the last call.
    pub(crate) fn take_transfers(&mut self) -> Vec<Transfer> {
        core::mem::take(&mut self.transfers)
    }

    /// Returns the devices' names. The position of a name is the device's number as a bus master.
    pub fn device_names(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().map(|slot| slot.name.as_str())
    }

    /// Returns the number of the device whose registers are at this address.
    pub fn device_at(&self, pa: u32) -> Option<usize> {
        match self.map.at(pa) {
            Region::Device(number) => Some(usize::from(number)),
            _ => None,
        }
    }

    /// Returns whether an address is in RAM.
    #[inline]
    pub fn is_ram(&self, pa: u32) -> bool {
        pa.wrapping_sub(self.ram_base) < self.ram.bytes()
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
