// SPDX-License-Identifier: MIT OR Apache-2.0
//! Peripherals: a folder for each family, a file for each part, and the trait that all parts implement. No family uses
//! a part of another family.

mod at91;
pub mod card;
mod ethernet;
mod fcs;
mod flash;
pub mod parts;
mod phy;
mod primecell;
mod regs;
mod versatile;

use crate::bus::dma::{Access, Memory};
use crate::link::{Fate, Frame, Rate, Sent};
use arm::{BusError, State, Width};
use card::Slot;

/// Message of an access that the model does not cover. The access ends the run, because the model never guesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmodelled(pub String);

/// A memory-mapped part. Times are core cycles since power-on. A part converts times with the [`crate::time::Clock`]
/// that its constructor gets.
pub trait Device: State + Duplicate + Send + Sync {
    /// Returns the part's name in its manual, in lower case: `"pl011"`.
    fn part(&self) -> &'static str;

    /// Reads a register. `offset` is relative to the device's region, and `width` is the width of the core's access.
    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled>;

    /// Writes a register.
    fn write(&mut self, now: u64, offset: u32, width: Width, value: u32) -> Result<(), Unmodelled>;

    /// Returns the latest cycle at which [`Device::tick`] must be called, or `u64::MAX` when nothing is pending. The
    /// result depends only on the device's state, so the bus may cache it between calls of this device.
    fn deadline(&self) -> u64 {
        u64::MAX
    }

    /// Brings the device's state up to `now`.
    fn tick(&mut self, _now: u64) {}

    /// Moves data between memory and the device, as a bus master. The bus calls it after each [`Device::tick`].
    fn transfer(&mut self, _now: u64, _memory: &mut Memory<'_>) {}

    /// Returns the access to a register that the device makes now, as a bus master. The bus calls it after each
    /// [`Device::transfer`], carries the access out as one of the core, and calls [`Device::end_access`].
    fn begin_access(&mut self) -> Option<Access> {
        None
    }

    /// Takes the result of the access that [`Device::begin_access`] returned: the value of a read, or 0 for a write.
    /// The access ends at `now`.
    fn end_access(&mut self, _now: u64, _result: Result<u32, BusError>) {}

    /// Returns the levels of the output wires: bit n is output n (interrupt requests first, then pins).
    fn outputs(&self) -> u32 {
        0
    }

    /// Takes a new level of an input wire (interrupt controllers, GPIO).
    fn input(&mut self, _now: u64, _pin: u32, _level: bool) {}

    /// Takes bytes from outside (the receive side of a serial line). Returns the number of bytes that it took.
    fn receive(&mut self, _now: u64, _bytes: &[u8]) -> usize {
        0
    }

    /// Returns the bytes that the device sent to the outside since the last call.
    fn transmitted(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Returns the Ethernet frames that the device sent since the last call, without preamble and checksum.
    fn take_frames(&mut self) -> Vec<Sent> {
        Vec::new()
    }

    /// Returns a sentence if the guest uses the device in a way that is modelled only in part.
    fn note(&self) -> Option<&'static str> {
        None
    }

    /// Offers a received Ethernet frame (without preamble and checksum) to the device.
    fn give_frame(&mut self, _now: u64, _frame: &[u8], _bad_checksum: bool) -> Fate {
        Fate::NoLink
    }

    /// Returns the device's slot for a memory card.
    fn card_slot(&self) -> Option<&Slot> {
        None
    }

    /// Returns the device's slot, to put a card into it.
    fn card_slot_mut(&mut self) -> Option<&mut Slot> {
        None
    }

    /// Returns whether the device receives a frame while its bits arrive. Then the bus calls [`Device::begin_frame`].
    fn takes_beginnings(&self) -> bool {
        false
    }

    /// Tells the device that the first bit of a frame arrives. [`Device::give_frame`] follows with the frame's last
    /// bit, unless the cable is unplugged before.
    fn begin_frame(&mut self, _now: u64, _frame: &Frame) {}

    /// Plugs the network cable in at this rate. Without a rate, unplugs it.
    fn set_cable(&mut self, _now: u64, _rate: Option<Rate>) {}
}

/// Copies a device for a fork of the machine.
pub trait Duplicate {
    /// Returns a copy of the whole state.
    fn duplicate(&self) -> Box<dyn Device>;
}

impl<T: Device + Clone + 'static> Duplicate for T {
    fn duplicate(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Device> {
    fn clone(&self) -> Self {
        (**self).duplicate()
    }
}
