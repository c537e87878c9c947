// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events inside the core, for an observer.
//!
//! A bus with [`crate::Bus::OBSERVED`] set receives every access and every movement of a line. Observation changes no
//! result and no cycle. For other buses, the code that reports events is not compiled in.

use crate::addr::{Mva, Pa};
use crate::bus::Width;
use crate::mmu::{Descriptors, Kind};

/// State of the core at an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Virtual address of the instruction.
    pub pc: u32,
    /// FCSE PID register, bits 31:25.
    pub pid: u32,
    /// Translation table base. [`Context::space`] distinguishes address spaces.
    pub ttb: u32,
    /// Address-space identifier of non-global translations. Zero on a core without ASIDs.
    pub asid: u8,
    /// Mode bits of the CPSR.
    pub mode: u32,
    /// Whether IRQs are masked: bit I of the CPSR.
    pub masked: bool,
    /// Control register.
    pub sctlr: u32,
    /// Domain access control register.
    pub dacr: u32,
    /// Format of the core's translation-table descriptors.
    pub descriptors: Descriptors,
}

impl Context {
    /// Address space of the event.
    #[inline(always)]
    pub fn space(&self) -> AddressSpace {
        AddressSpace::new(self.ttb, self.asid)
    }
}

/// Identity of an address space: its first-level table and its ASID. Cores without ASIDs have the ASID 0. Then the table
/// alone distinguishes address spaces. With ASIDs, neither suffices: software changes the two registers one after the
/// other, and gives an ASID to another table after a roll-over.
///
/// A process may also have an FCSE PID, which is not part of this identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressSpace(u32);

/// Bits of a translation table base that hold no address. The table is aligned to more than that.
const NOT_OF_A_TABLE: u32 = 0xff;

impl AddressSpace {
    /// Returns the address space of a translation table base and an ASID. The attributes of table walks, in the low bits
    /// of the base, do not matter.
    #[inline(always)]
    pub const fn new(ttb: u32, asid: u8) -> AddressSpace {
        AddressSpace(ttb & !NOT_OF_A_TABLE | asid as u32)
    }

    /// Physical address of the first-level table.
    #[inline(always)]
    pub const fn table(self) -> u32 {
        self.0 & !NOT_OF_A_TABLE
    }

    /// ASID, or 0.
    #[inline(always)]
    pub const fn asid(self) -> u8 {
        self.0 as u8
    }
}

/// Cache or buffer of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Instruction cache.
    Instruction,
    /// Prefetch buffer of uncached instruction fetches. Only its fills are reported.
    Prefetch,
    /// Data cache.
    Data,
}

/// Cause to which a core cycle is charged. Every cycle has one cause, so the cycles of all causes add up to the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Issue of instructions, and CP15 accesses other than cache and TLB operations.
    Instruction,
    /// Waiting for a result of an earlier instruction.
    Interlock,
    /// Refilling the pipeline after a branch, or waiting for the branch's target address.
    Branch,
    /// Entering an exception: interrupt, abort, SWI, undefined instruction.
    Exception,
    /// Waiting for an I-cache line fill.
    InstructionMiss,
    /// Waiting for a D-cache line fill.
    DataMiss,
    /// Waiting for the write-back of an evicted dirty line.
    Eviction,
    /// Waiting for the write buffer, because it was full, held the data to be read, was drained, or had the bus.
    WriteBuffer,
    /// A translation-table walk.
    TableWalk,
    /// CP15 operations on caches and TLBs, and the write-backs that these operations cause. The issue cycle is not
    /// included.
    Maintenance,
    /// Waiting for an uncached fetch or load, or for an unbuffered store.
    Uncached,
    /// Waiting for an interrupt.
    Idle,
}

impl Cause {
    /// Number of causes.
    pub const COUNT: usize = 12;

    /// All causes, in order.
    pub const ALL: [Cause; Cause::COUNT] = [
        Cause::Instruction,
        Cause::Interlock,
        Cause::Branch,
        Cause::Exception,
        Cause::InstructionMiss,
        Cause::DataMiss,
        Cause::Eviction,
        Cause::WriteBuffer,
        Cause::TableWalk,
        Cause::Maintenance,
        Cause::Uncached,
        Cause::Idle,
    ];
}

/// TLB or TLBs of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TlbSide {
    /// The unified TLB of a core with one TLB, or both TLBs of a core with two.
    Both,
    /// The TLB of instructions.
    Instruction,
    /// The TLB of data.
    Data,
}

/// An event inside the core. The address of a line is the address of its first byte. The physical address of an access
/// comes from its translation, and the physical address of a line from its tag. If a mapping changes while a line is
/// cached, the two differ for a hit in that line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the variants' documentation says what the fields are"
)]
pub enum Event<'a> {
    /// A load read `value` (zero-extended, not rotated) from a D-cache line or from the bus.
    Load {
        mva: Mva,
        pa: Pa,
        width: Width,
        value: u32,
        cached: bool,
    },
    /// A store wrote `value` into a D-cache line or into the write buffer. The D-cache line becomes dirty.
    Store {
        mva: Mva,
        pa: Pa,
        width: Width,
        value: u32,
        cached: bool,
    },
    /// An instruction is about to execute. `value` is its word or Thumb half-word, as the I-cache line or the prefetch
    /// buffer holds it. `registers` are the registers before it executes.
    Fetch {
        mva: Mva,
        pa: Pa,
        width: Width,
        value: u32,
        cached: bool,
        registers: &'a [u32; 16],
    },
    /// A translation-table walk for `mva` read a descriptor.
    Walk {
        mva: Mva,
        descriptor: Pa,
        value: u32,
    },
    /// A line was filled from memory.
    Fill { side: Side, mva: Mva, pa: Pa },
    /// A load, store or PLD is about to wait for the line of `mva`, which a PLD is filling.
    FillAwaited { mva: Mva },
    /// The line of `mva` was evicted for a line fill that follows.
    Replaced { side: Side, mva: Mva },
    /// A store to a cacheable page, or a run of stores within a line, missed the D-cache and went to memory. The core
    /// waited for `cycles`.
    StoreMissed { mva: Mva, cycles: u64 },
    /// A line allocation gave a D-cache line the address `mva` without reading memory.
    Claim { mva: Mva },
    /// Dirty halves of a line were written back, because the line was a victim or an operation cleaned it.
    WriteBack {
        mva: Mva,
        pa: Pa,
        halves: u8,
        data: &'a [u32; 8],
        victim: bool,
    },
    /// A line was invalidated. Its dirty `halves` are lost.
    Invalidate {
        side: Side,
        mva: Mva,
        pa: Pa,
        halves: u8,
    },
    /// A whole cache was invalidated. For a D-cache, an [`Event::Invalidate`] for each line comes before this event.
    InvalidateAll { side: Side },
    /// Entry `entry` of a TLB was loaded for `mva` and covers `bytes` around it. A `locked` entry survives an
    /// invalidate-all.
    TlbFill {
        side: TlbSide,
        entry: usize,
        mva: Mva,
        bytes: u32,
        locked: bool,
    },
    /// TLB entry `entry` translated `mva` to `pa` for an access that it allows. Reported at the first use of
    /// a translation, and again after [`Reaction::DropTranslations`] and after a new translation table base.
    TlbUse {
        side: TlbSide,
        entry: usize,
        mva: Mva,
        pa: Pa,
        kind: Kind,
        privileged: bool,
    },
    /// TLB entry `entry` was invalidated.
    TlbInvalidate { side: TlbSide, entry: usize },
    /// All entries of a TLB were invalidated, except locked ones.
    TlbInvalidateAll { side: TlbSide },
    /// All entries of a TLB were unlocked. They stay valid until they are replaced or invalidated.
    TlbUnlock { side: TlbSide },
}

/// Request of the observer in reply to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing.
    Continue,
    /// Report the next use of every TLB entry again.
    DropTranslations,
    /// Report the next uses again, as for [`Reaction::DropTranslations`], and end the loop after this instruction.
    /// [`crate::Signals::attention`] then makes [`crate::Cpu::run`] return.
    Stop,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_space_is_a_table_and_an_asid() {
        let space = AddressSpace::new(0x0123_4000, 7);
        assert_eq!((space.table(), space.asid()), (0x0123_4000, 7));
        // The attributes of the walks.
        assert_eq!(AddressSpace::new(0x0123_405b, 7), space);
        assert_ne!(AddressSpace::new(0x0123_4000, 8), space);
        assert_ne!(AddressSpace::new(0x0123_8000, 7), space);
        let context = Context {
            ttb: 0x0123_4008,
            asid: 7,
            ..Context::default()
        };
        assert_eq!(context.space(), space);
    }
}
