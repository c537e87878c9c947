// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens inside the core, told to whoever wants to know.
//!
//! A bus with [`crate::Bus::OBSERVED`] set is told of every access and every movement of a line.
//! Observing changes no result and no cycle. For other buses nothing of this is compiled in.

use crate::addr::{Mva, Pa};
use crate::bus::Width;
use crate::mmu::{Descriptors, Kind};

/// Under what circumstances an event happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Virtual address of the instruction.
    pub pc: u32,
    /// FCSE PID register, bits 31:25.
    pub pid: u32,
    /// Translation table base: tells address spaces apart.
    pub ttb: u32,
    /// Mode bits of the CPSR.
    pub mode: u32,
    /// Whether interrupts are masked: bit I of the CPSR.
    pub masked: bool,
    /// Control register.
    pub sctlr: u32,
    /// Domain access control register.
    pub dacr: u32,
    /// What the core's translation tables say.
    pub descriptors: Descriptors,
}

/// Which of the two caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Instruction cache.
    Instruction,
    /// Prefetch buffer of uncached instruction fetches, which it is only filled for.
    Prefetch,
    /// Data cache.
    Data,
}

/// What a core cycle went for. Every cycle goes for one of these; their sum is the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Issue of instructions, and CP15 accesses that are not of caches or TLBs.
    Instruction,
    /// A result that was not there yet.
    Interlock,
    /// The pipeline was empty behind a branch, or had to wait for the address it goes on at.
    Branch,
    /// Entering an exception: interrupts, aborts, SWI, undefined instructions.
    Exception,
    /// An I-cache line was filled.
    InstructionMiss,
    /// A D-cache line was filled.
    DataMiss,
    /// A dirty line that made room was on its way to memory, and whatever waited had to wait for that.
    Eviction,
    /// The write buffer was full, held what was to be read, was drained, or had the bus.
    WriteBuffer,
    /// A translation table walk.
    TableWalk,
    /// Operations of CP15 on caches and TLBs beside their issue cycle, and write-backs that they order.
    Maintenance,
    /// An uncached fetch or load, or a store that is not buffered.
    Uncached,
    /// Waiting for interrupt.
    Idle,
}

impl Cause {
    /// How many there are.
    pub const COUNT: usize = 12;

    /// All of them, in order.
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

/// Which TLB, or TLBs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TlbSide {
    /// The one that a core has for both, or both that it has.
    Both,
    /// That of instructions.
    Instruction,
    /// That of data.
    Data,
}

/// Something that happened. Addresses of lines are those of their first byte. Accesses have the
/// physical address their translation gives, lines that of their tag: when a mapping changes under
/// a line, a hit in it is not an access to the line's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the variants' documentation says what the fields are"
)]
pub enum Event<'a> {
    /// A load took `value` (zero-extended, not rotated), from a D-cache line or from the bus.
    Load {
        mva: Mva,
        pa: Pa,
        width: Width,
        value: u32,
        cached: bool,
    },
    /// A store put `value` into a D-cache line that becomes dirty, or into the write buffer.
    Store {
        mva: Mva,
        pa: Pa,
        width: Width,
        value: u32,
        cached: bool,
    },
    /// An instruction is about to be executed: the word or (Thumb) half-word it was decoded from,
    /// from an I-cache line or the prefetch buffer, and the registers that it finds.
    Fetch {
        mva: Mva,
        pa: Pa,
        width: Width,
        value: u32,
        cached: bool,
        registers: &'a [u32; 16],
    },
    /// A table walk for `mva` read a descriptor.
    Walk {
        mva: Mva,
        descriptor: Pa,
        value: u32,
    },
    /// A line was filled from memory.
    Fill { side: Side, mva: Mva, pa: Pa },
    /// A load, store or PLD waits next for the line of `mva`, which a PLD has begun to fill, to be there.
    FillAwaited { mva: Mva },
    /// The line of `mva` made room for one that is filled next.
    Replaced { side: Side, mva: Mva },
    /// A store to a cached page, or a run of stores to a line, did not find the line and went to memory, for which it
    /// waited so many cycles.
    StoreMissed { mva: Mva, cycles: u64 },
    /// A D-cache line came to be of `mva` without a word from memory.
    Claim { mva: Mva },
    /// Dirty halves of a line left for memory: because the line was a victim, or by an operation.
    WriteBack {
        mva: Mva,
        pa: Pa,
        halves: u8,
        data: &'a [u32; 8],
        victim: bool,
    },
    /// A line was discarded; `halves` were dirty and are lost.
    Invalidate {
        side: Side,
        mva: Mva,
        pa: Pa,
        halves: u8,
    },
    /// Everything in a cache was discarded; dirty lines have been told one by one before.
    InvalidateAll { side: Side },
    /// Entry `entry` of a TLB was loaded for `mva` and covers `bytes` around it. One that is `locked`
    /// stays when all are invalidated.
    TlbFill {
        side: TlbSide,
        entry: usize,
        mva: Mva,
        bytes: u32,
        locked: bool,
    },
    /// TLB entry `entry` translated `mva` to `pa` for an access that it allows. Told when the
    /// translation is first used and again after [`Reaction::DropTranslations`] and after a new
    /// translation table base.
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
    /// All entries of a TLB but the locked ones were invalidated.
    TlbInvalidateAll { side: TlbSide },
    /// No entry of a TLB is locked any more. They stay until they are replaced or invalidated.
    TlbUnlock { side: TlbSide },
}

/// What the observer asks for in return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing.
    Continue,
    /// Tell of the next use of every TLB entry again.
    DropTranslations,
    /// The same, and let [`crate::Cpu::run`] come back after this instruction ([`crate::Signals::attention`]).
    Stop,
}
