// SPDX-License-Identifier: MIT OR Apache-2.0
//! Peripherals: a folder for each family, a file for each part, and the trait that parts share. A family names no part
//! of another one.

mod ethernet;
mod flash;
pub mod parts;
mod primecell;
mod regs;
mod versatile;

use crate::bus::dma::Memory;
use crate::link::{Fate, Rate, Sent};
use arm::{State, Width};

/// An access the model does not cover. The run stops with a message made from it; it is never
/// guessed at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmodelled(pub String);

/// A memory-mapped part. Time is core cycles since power-on; a device converts with the
/// [`crate::time::Clock`] it was made with.
pub trait Device: State + Duplicate + Send + Sync {
    /// Part name as in its manual, in lower case: `"pl011"`.
    fn part(&self) -> &'static str;

    /// Reads a register. `offset` is within the device's region, `width` what the core asked for.
    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled>;

    /// Writes a register.
    fn write(&mut self, now: u64, offset: u32, width: Width, value: u32) -> Result<(), Unmodelled>;

    /// When [`Device::tick`] must be called at the latest; `u64::MAX` when nothing is pending.
    /// Depends on state only, so the bus may cache it between calls on this device.
    fn deadline(&self) -> u64 {
        u64::MAX
    }

    /// Brings the device's state up to `now`.
    fn tick(&mut self, _now: u64) {}

    /// Moves data between memory and the device, as a bus master. Called behind each [`Device::tick`].
    fn transfer(&mut self, _now: u64, _memory: &mut Memory<'_>) {}

    /// Levels of the output wires, bit n is output n (interrupt requests first, then pins).
    fn outputs(&self) -> u32 {
        0
    }

    /// An input wire changed (interrupt controllers, GPIO).
    fn input(&mut self, _now: u64, _pin: u32, _level: bool) {}

    /// Bytes from outside (a serial line's receive side). Returns how many were taken.
    fn receive(&mut self, _now: u64, _bytes: &[u8]) -> usize {
        0
    }

    /// Bytes the device sent to the outside since the last call.
    fn transmitted(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Ethernet frames the device sent since the last call, without preamble and checksum.
    fn take_frames(&mut self) -> Vec<Sent> {
        Vec::new()
    }

    /// What the guest has it do that is modelled only in part, in a sentence.
    fn note(&self) -> Option<&'static str> {
        None
    }

    /// Offers a received Ethernet frame (without preamble and checksum) to the device.
    fn give_frame(&mut self, _now: u64, _frame: &[u8], _bad_checksum: bool) -> Fate {
        Fate::NoLink
    }

    /// The network cable is plugged in, with this rate, or out.
    fn set_cable(&mut self, _now: u64, _rate: Option<Rate>) {}
}

/// What can be forked.
pub trait Duplicate {
    /// A copy of the whole state.
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
