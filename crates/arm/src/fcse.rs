// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fast Context Switch Extension (`DDI0198D 2.3.13`). Only this file turns a [`Va`] into an [`Mva`].
//!
//! `MVA = VA + (PID << 25)` if VA[31:25] is zero, else `MVA = VA`. While the MMU is on, this rule holds for instruction
//! and data addresses in every mode. The operands of cache and TLB operations by address are already MVAs. The two
//! instructions after a write of the PID register were fetched under the old PID.

use core::mem::offset_of;

use crate::addr::{Mva, Va};

/// The PID that applies to instruction addresses or to data addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Relocation {
    /// PID in bits 31:25; zero while the MMU is off.
    base: u32,
}

crate::state!(Relocation: base);

impl Relocation {
    /// Returns the relocation for a value of CP15 c13,c0,0. While the MMU is off, addresses are not relocated.
    pub fn new(register: u32, mmu_on: bool) -> Relocation {
        Relocation {
            base: if mmu_on { register & 0xfe00_0000 } else { 0 },
        }
    }

    /// Returns the modified virtual address of `va`.
    #[inline(always)]
    pub fn apply(self, va: Va) -> Mva {
        Mva(if va.0 < 1 << 25 {
            va.0 | self.base
        } else {
            va.0
        })
    }
}

/// The PIDs of the data side and of the instructions in the pipeline.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Fcse {
    data: Relocation,
    /// PIDs of the next instruction and of the one after it. Both instructions are fetched already.
    fetch: Relocation,
    following: Relocation,
}

crate::state!(Fcse: data, fetch, following);

impl Fcse {
    /// Offsets of the PIDs of data accesses and of the next instruction, in bits 31:25.
    pub(crate) const OFFSETS: [usize; 2] = [offset_of!(Fcse, data), offset_of!(Fcse, fetch)];

    /// Returns the modified virtual address of a data access.
    #[inline(always)]
    pub fn data(self, va: Va) -> Mva {
        self.data.apply(va)
    }

    /// Returns the modified virtual address of the next instruction.
    #[inline(always)]
    pub fn fetch(self, pc: Va) -> Mva {
        self.fetch.apply(pc)
    }

    /// Changes the PID register or SCTLR.M, for data accesses and for instructions that are not fetched yet.
    #[inline]
    pub fn set(&mut self, register: u32, mmu_on: bool) {
        self.data = Relocation::new(register, mmu_on);
    }

    /// Whether the pipeline holds an instruction that was fetched before a PID write. After the write, it holds two
    /// such instructions, unless a branch or an exception flushes the pipeline (`DDI0198D 2.3.13`).
    #[inline(always)]
    pub fn fetched_under_old_pid(self) -> bool {
        [self.fetch, self.following] != [self.data; 2]
    }

    /// Advances the pipeline by one instruction. Returns whether the next instruction has a different PID from the
    /// last.
    #[inline]
    pub fn advance(&mut self) -> bool {
        let changed = self.fetch != self.following;
        self.fetch = self.following;
        changed
    }

    /// Flushes the pipeline: the next instructions are fetched under the current PID. Returns whether the PID of any of
    /// these instructions changes.
    ///
    /// This function is inlined into every branch, because a call would make each branch save registers of the host.
    #[inline]
    pub fn refill(&mut self) -> bool {
        let changed = self.fetched_under_old_pid();
        self.fetch = self.data;
        self.following = self.data;
        changed
    }

    /// Sets the PID of the instruction after the next one.
    #[inline]
    pub fn set_following(&mut self, following: Relocation) {
        self.following = following;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_lowest_32_mb_move_and_only_with_the_mmu_on() {
        let r = Relocation::new(3 << 25 | 0x1ff_ffff, true);
        assert_eq!(r.apply(Va(0x0123_4567)), Mva(0x0723_4567));
        assert_eq!(r.apply(Va(0x01ff_ffff)), Mva(0x07ff_ffff));
        assert_eq!(r.apply(Va(0x0200_0000)), Mva(0x0200_0000));
        assert_eq!(r.apply(Va(0xffff_0018)), Mva(0xffff_0018));
        assert_eq!(
            Relocation::new(3 << 25, false).apply(Va(0x1000)),
            Mva(0x1000)
        );
    }
}
