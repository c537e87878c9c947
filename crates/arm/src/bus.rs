// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the core asks of its surroundings: five bus transactions, and the time of the next event.

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
    /// Ones where a value of this width has its bits.
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

/// The bus answered with an error response, or nothing is mapped there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusError;

/// How long a read burst takes, in core cycles from the moment the bus was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BurstTime {
    /// Until the critical (first) word is in the core.
    pub first: u32,
    /// Until the last word is in the core and the bus is free again.
    pub last: u32,
}

/// What the surroundings want of the core at a given moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Signals {
    /// Level of nIRQ, active true.
    pub irq: bool,
    /// Level of nFIQ, active true.
    pub fiq: bool,
    /// The host wants [`crate::Cpu::run`] to return now (a pin moved, a model limit was hit).
    pub attention: bool,
}

/// The memory system outside the core. `now` is always core cycles since power-on.
///
/// Reads and writes go to a memory map that may hold devices with side effects: each call is one
/// bus transaction, made exactly once, in program order as the write buffer lets it out.
pub trait Bus: 'static {
    /// Whether the core tells [`Bus::observe`] what happens inside it. When false, none of the
    /// telling is compiled in.
    const OBSERVED: bool = false;

    /// Whether it tells of loads and stores, too. When false, those that hit go their quick way.
    const ACCESSES_OBSERVED: bool = Self::OBSERVED;

    /// Whether the core uses what is there for the host's speed alone: grants, translations and lines
    /// at hand, kept operations, several instructions between two looks at the horizon. Without any
    /// of it the core is the definition that tests compare it with.
    const SHORTCUTS: bool = true;

    /// Something happened inside the core. Never called unless [`Bus::OBSERVED`].
    fn observe(&mut self, _context: &Context, _event: Event<'_>) -> Reaction {
        Reaction::Continue
    }

    /// So many core cycles went for `cause`; less than zero: as many of those told before did not, after all. Of the
    /// instruction that [`Event::Fetch`] told of last, but for what its own fetch took, which is told before it.
    /// Never called unless [`Bus::OBSERVED`].
    fn spent(&mut self, _cause: Cause, _cycles: i64) {}

    /// One non-burst read. Returns the value zero-extended (in the low bits, whatever the
    /// address's lane) and the core cycles it takes once the bus is granted.
    fn read(&mut self, now: u64, pa: Pa, width: Width) -> Result<(u32, u32), BusError>;

    /// One non-burst write. Returns the core cycles the bus is busy.
    fn write(&mut self, now: u64, pa: Pa, width: Width, value: u32) -> Result<u32, BusError>;

    /// WRAP8 burst: the 32-byte line that holds `pa`, the word at `pa` first on the wire.
    /// `line[0]` is the word at the line's base address.
    fn read_line(&mut self, now: u64, pa: Pa, line: &mut [u32; 8]) -> Result<BurstTime, BusError>;

    /// A burst of words from the word-aligned `pa` on, at most 16 and within 1 KB (loads past the cache).
    fn read_words(&mut self, now: u64, pa: Pa, words: &mut [u32]) -> Result<BurstTime, BusError>;

    /// A burst of words from the word-aligned `pa` on, at most 16 and within 1 KB (cache write-back,
    /// stores). Returns the core cycles the bus is busy.
    fn write_words(&mut self, now: u64, pa: Pa, words: &[u32]) -> Result<u32, BusError>;

    /// Lets devices catch up to `now` and returns the signals they drive.
    fn advance(&mut self, now: u64) -> Signals;

    /// The cycle at which [`Bus::advance`] must next be called at the latest. Re-read by the core
    /// after every access that may have reached a device; `<= now` means at once.
    fn next_event(&self) -> u64;

    /// Reads memory without time or side effects, for debuggers, hashes and disassembly.
    /// `None` where there is no memory (devices included).
    fn peek(&self, pa: Pa) -> Option<u8>;

    /// Writes memory without time or side effects, for debuggers and loaders.
    fn poke(&mut self, pa: Pa, value: u8) -> bool;
}
