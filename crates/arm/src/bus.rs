// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface between the core and the memory system. It carries bus transactions, the time of the next event, and
//! events for an observer.

use crate::addr::Pa;
use crate::observe::{Cause, Context, Event, Reaction};

/// Width of a single transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 8 bits.
    Byte,
    /// 16 bits.
    Half,
    /// 32 bits.
    Word,
}

impl Width {
    /// Mask of the bits that a value of this width uses.
    #[inline]
    pub const fn mask(self) -> u32 {
        match self {
            Width::Byte => 0xff,
            Width::Half => 0xffff,
            Width::Word => u32::MAX,
        }
    }

    /// Number of bytes transferred.
    #[inline]
    pub const fn bytes(self) -> u32 {
        match self {
            Width::Byte => 1,
            Width::Half => 2,
            Width::Word => 4,
        }
    }
}

/// The bus answered with an error response, or nothing is mapped at the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusError;

/// Duration of a read burst, in core cycles from the bus grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BurstTime {
    /// Cycles until the critical (first) word is in the core.
    pub first: u32,
    /// Cycles until the last word is in the core and the bus is free again.
    pub last: u32,
}

/// Input signals of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Signals {
    /// Level of nIRQ; true means asserted.
    pub irq: bool,
    /// Level of nFIQ; true means asserted.
    pub fiq: bool,
    /// The chip has stopped the core's clock. An interrupt request starts it again, even if the core masks interrupts.
    pub stopped: bool,
    /// The host wants [`crate::Cpu::run`] to return now, because a pin moved or a model limit was reached.
    pub attention: bool,
}

/// The memory system outside the core. `now` is always core cycles since power-on.
///
/// The memory map may hold devices with side effects. Each transaction is therefore exactly one call. The calls are in
/// the order in which the core and its write buffer issue the transactions.
pub trait Bus: 'static {
    /// Whether the core reports its internal events to [`Bus::observe`]. If false, the reports are not
    /// compiled in.
    const OBSERVED: bool = false;

    /// Whether the core also reports loads and stores. If false, hits take the fast path.
    const ACCESSES_OBSERVED: bool = Self::OBSERVED;

    /// Whether the core uses shortcuts. They only make the host faster: grants, a table of checked translations,
    /// I-cache hints, decoded operations, and several instructions between two checks of the horizon. Tests compare
    /// against a core without shortcuts.
    const SHORTCUTS: bool = true;

    /// Receives an event inside the core. Called only if [`Bus::OBSERVED`] is true.
    fn observe(&mut self, _context: &Context, _event: Event<'_>) -> Reaction {
        Reaction::Continue
    }

    /// Receives `cycles` that were charged to `cause`; a negative number is a refund. The cycles belong to the
    /// instruction of the last [`Event::Fetch`]. The only exception is an instruction fetch, whose cycles are reported
    /// before its `Event::Fetch`. Called only if [`Bus::OBSERVED`] is true.
    fn spent(&mut self, _cause: Cause, _cycles: i64) {}

    /// Makes one non-burst read. Returns the value and the duration in core cycles from the bus grant. The value is
    /// zero-extended and is always in the low bits, regardless of the byte lanes that the address selects.
    fn read(&mut self, now: u64, pa: Pa, width: Width) -> Result<(u32, u32), BusError>;

    /// Makes one non-burst write. Returns the number of core cycles for which the bus is busy.
    fn write(&mut self, now: u64, pa: Pa, width: Width, value: u32) -> Result<u32, BusError>;

    /// Reads the 32-byte line that holds `pa` in a WRAP8 burst, which transfers the word at `pa` first. `line[0]` is
    /// the word at the line's base address.
    fn read_line(&mut self, now: u64, pa: Pa, line: &mut [u32; 8]) -> Result<BurstTime, BusError>;

    /// Makes a read burst of words that starts at the word-aligned `pa`. A burst has at most 16 words and does not
    /// cross 1 KB. Uncached loads use it.
    fn read_words(&mut self, now: u64, pa: Pa, words: &mut [u32]) -> Result<BurstTime, BusError>;

    /// Makes a write burst of words that starts at the word-aligned `pa`. A burst has at most 16 words and does not
    /// cross 1 KB. Write-backs and stores use it. Returns the number of core cycles for which the bus is busy.
    fn write_words(&mut self, now: u64, pa: Pa, words: &[u32]) -> Result<u32, BusError>;

    /// Lets devices catch up to `now`. Returns the signals that they drive.
    fn advance(&mut self, now: u64) -> Signals;

    /// Returns the latest cycle at which the core must call [`Bus::advance`] again. If that cycle is not in the future,
    /// the core calls `advance` at once. After every access that may have reached a device, the core asks for this
    /// cycle.
    fn next_event(&self) -> u64;

    /// Reads memory without time or side effects, for debuggers, hashes and disassembly. Returns `None` for devices and
    /// for addresses without memory.
    fn peek(&self, pa: Pa) -> Option<u8>;

    /// Writes memory without time or side effects, for debuggers and loaders. Returns false for addresses
    /// without memory.
    fn poke(&mut self, pa: Pa, value: u8) -> bool;
}
