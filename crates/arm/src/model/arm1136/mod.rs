// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARM1136JF-S (DDI0211; where its pages were not at hand, the ARM1176JZF-S manual DDI0301H, whose integer core is the
//! same): ARMv6.
//!
//! The instructions, the status registers, the exclusive monitor and unaligned accesses are ARMv6's. MMU, TLBs, caches,
//! write buffer and issue cycles are not: they have the structure of the ARM926EJ-S. So no board may name these cores:
//! `EVERY` lists them and `ALL` does not. Translation tables of ARMv6's format (SCTLR.XP) end the run.

mod instructions;

use super::rows::Every;
use super::{
    Behaviour, Buffers, Core, Descriptors, Multiplier, Organisation, Replacement, Sctlr, Tagging,
    Timing, Version,
};
use crate::addr::Mva;
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::cpu::cp15::{Row, Rows, SCTLR_U};
use crate::isa::timing::RAISES;
use crate::observe::TlbSide;

/// Revision r0p4, as in the i.MX31 (D: boot log of a Sony VGF-CP1).
pub(super) mod r0p4 {
    pub(crate) use super::super::own::no_registers as own_registers;
    pub(crate) use super::instructions::{ENCODINGS, selectors};
    use super::{Bus, Core, Every, Registers, Rows, Version};

    /// The core.
    pub const CORE: Core = Core {
        name: "arm1136jfs-r0p4",
        midr: 0x4107_b364,
        version: Version::V6,
        ..super::BASE
    };

    /// Rows of CP15.
    pub(crate) const fn cp15<B: Bus>() -> &'static Rows<B> {
        const { &Rows::new(&[Every::<B>::ROWS, Registers::<B>::ROWS]) }
    }
}

/// Revision r1p3, as in the i.MX35. It has ARMv6K and the thread ID registers (`DDI0211K 3.3.37, 8.2`).
pub(super) mod r1p3 {
    pub(crate) use super::super::own::no_registers as own_registers;
    pub(crate) use super::instructions::{ENCODINGS, selectors};
    use super::{Bus, Core, Every, Registers, Rows, Threads, Version};

    /// The core.
    pub const CORE: Core = Core {
        name: "arm1136jfs-r1p3",
        midr: 0x4117_b363,
        version: Version::V6K,
        ..super::BASE
    };

    /// Rows of CP15.
    pub(crate) const fn cp15<B: Bus>() -> &'static Rows<B> {
        const { &Rows::new(&[Every::<B>::ROWS, Registers::<B>::ROWS, Threads::<B>::ROWS]) }
    }
}

/// What both revisions have in common.
const BASE: Core = Core {
    name: "",
    midr: 0,
    version: Version::V6,
    // `DDI0301H 7.3`.
    ways: 4,
    cache_bytes: (4096, 65_536),
    replacement: Replacement::Ways,
    cache_class: 0b1110,
    uncached_stores_update: false,
    mini_cache: false,
    // A2.7, table A2-10 (R).
    whole_doubles: true,
    descriptors: Descriptors::Arm,
    test_and_clean: false,
    // DDI0211K 3.3.6. Refused: B, XP, VE, EE, TRE and AFE, which change what the model does not cover.
    asids: false,
    tagging: Tagging::Virtual,
    sctlr: Sctlr {
        writable: 0x0020_fb07 | SCTLR_U,
        reset: 0x0005_0078,
        refused: 1 << 7 | 1 << 23 | 1 << 24 | 1 << 25 | 1 << 28 | 1 << 29,
    },
    clocking: 0,
    tlbs: &[Organisation::new(32, 2, 8)],
    buffers: Buffers::ARM926EJS,
    timing: TIMING,
    behaviour: Behaviour {
        multiplier: Multiplier::Fixed,
        ..Behaviour::ARM9
    },
};

/// Issue cycles (DDI0301H 16), without folded and predicted branches and without instructions that overlap. D: read in
/// the manual, R: recalled, E: a choice of this model.
const TIMING: Timing = Timing {
    simple: 1,               // D
    shift_by_register: 2,    // D
    rotate_through_carry: 1, // D
    arithmetic_to_pc: 7,     // D: 5 to 7
    logical_to_pc: 7,        // D: 5 to 7
    multiply: 2,             // D
    multiply_flags: 5,       // D
    multiply_long: 3,        // D
    multiply_long_flags: 6,  // D
    multiply_half: 1,        // D
    multiply_half_long: 2,   // D
    saturating: 1,           // R
    scaled_offset: 2,        // D, except for LSL #2
    load_to_pc: 7,           // R: LDR is 8
    block_to_pc_minimum: 8,  // D
    double: 2,               // E: 1 and a second memory cycle
    block_minimum: 1,        // E
    block_extra: 0,          // E
    swap: 2,                 // R
    branch: 5,               // D: 5 to 7 if not foreseen
    branch_prefix: 1,        // R
    mrs: 1,                  // R
    msr_flags: 1,            // R
    msr_control: 4,          // R
    coprocessor: 1,          // R
    coprocessor_read: 1,     // R
    exception: 8,            // R
    exception_undefined: 8,  // R
    breakpoint: RAISES,
};

/// Bits of the fault status registers: status 3:0 and 10, domain 7:4, write 11 (B4.6).
const FAULT_STATUS: u32 = 0xcff;

struct Registers<B>(B);

impl<B: Bus> Registers<B> {
    const ROWS: &[Row<B>] = &[
        // c0: TCM type (none); TLB type: unified, 8 lockable entries (R).
        Row::at(0, 0, 0, 2).read(|_| 0),
        Row::at(0, 0, 0, 3).read(|_| 0x800),
        // c5: fault status of data, fault status of instructions.
        Row::at(0, 5, 0, 0)
            .read(|cpu| cpu.cp15.dfsr)
            .write(|cpu, value| cpu.cp15.dfsr = value & FAULT_STATUS),
        Row::at(0, 5, 0, 1)
            .read(|cpu| cpu.cp15.ifsr)
            .write(|cpu, value| cpu.cp15.ifsr = value & FAULT_STATUS),
        // c7: wait for interrupt.
        Row::at(0, 7, 0, 4).write(|cpu, _| cpu.wait_for_interrupt()),
        // c7, I-cache: invalidate by set and way, flush the prefetch buffer; prediction: flush all, flush by MVA.
        Row::at(0, 7, 5, 2)
            .write(|cpu, value| cpu.maintain(|cpu| cpu.invalidate_icache_index(value))),
        Row::at(0, 7, 5, 4)
            .write(|cpu, _| cpu.flush_prefetched())
            .in_user_mode(),
        Row::at(0, 7, 5, 6).opc2_up_to(7).write(|_, _| {}),
        // c7, D-cache by set and way: invalidate, clean, clean and invalidate.
        Row::at(0, 7, 6, 2)
            .write(|cpu, value| cpu.maintain_index(value, Cpu::invalidate_dcache_line)),
        Row::at(0, 7, 10, 2).write(|cpu, value| cpu.maintain_index(value, Cpu::clean_line)),
        Row::at(0, 7, 14, 2)
            .write(|cpu, value| cpu.maintain_index(value, Cpu::clean_and_invalidate_line)),
        // c7, D-cache: clean all, clean and invalidate all, clean and invalidate by MVA.
        Row::at(0, 7, 10, 0).write(|cpu, _| while cpu.test_and_clean() == 0 {}),
        Row::at(0, 7, 14, 0).write(|cpu, _| while cpu.test_clean_and_invalidate() == 0 {}),
        Row::at(0, 7, 14, 1)
            .write(|cpu, value| cpu.maintain_line(value, Cpu::clean_and_invalidate_line)),
        // c7: data synchronization barrier, data memory barrier. Both drain the write buffer (E).
        Row::at(0, 7, 10, 4)
            .write(|cpu, _| cpu.drain_write_buffer())
            .in_user_mode(),
        Row::at(0, 7, 10, 5)
            .write(|cpu, _| cpu.drain_write_buffer())
            .in_user_mode(),
        // c7: status of a block operation, stop of a prefetch range. Neither is ever under way.
        Row::at(0, 7, 12, 4).read(|_| 0).in_user_mode(),
        Row::at(0, 7, 12, 5).write(|_, _| {}).in_user_mode(),
        // c7: prefetch of an I-cache line. c15, which Linux writes at its start, is no operation of this core (I).
        Row::at(0, 7, 13, 1).write(|cpu, value| cpu.prefetch_line(Mva(value))),
        Row::at(0, 7, 15, 0).write(|_, _| {}),
        // c8: invalidate all TLB entries; invalidate by MVA.
        Row::at(0, 8, 5, 0)
            .crm_up_to(7)
            .write(|cpu, _| cpu.invalidate_tlb(TlbSide::Both)),
        Row::at(0, 8, 5, 1)
            .crm_up_to(7)
            .write(|cpu, value| cpu.invalidate_tlb_entry(TlbSide::Both, Mva(value))),
        // c13: context ID.
        Row::at(0, 13, 0, 1)
            .read(|cpu| cpu.cp15.context_id)
            .write(|cpu, value| cpu.cp15.context_id = value),
    ];
}

struct Threads<B>(B);

impl<B: Bus> Threads<B> {
    /// c13: thread IDs. User mode may write the first, and read the first two.
    const ROWS: &[Row<B>] = &[
        Row::at(0, 13, 0, 2)
            .read(|cpu| cpu.cp15.thread_ids[0])
            .write(|cpu, value| cpu.cp15.thread_ids[0] = value)
            .in_user_mode(),
        Row::at(0, 13, 0, 3)
            .read(|cpu| cpu.cp15.thread_ids[1])
            .write(|cpu, value| cpu.cp15.thread_ids[1] = value)
            .read_in_user_mode(),
        Row::at(0, 13, 0, 4)
            .read(|cpu| cpu.cp15.thread_ids[2])
            .write(|cpu, value| cpu.cp15.thread_ids[2] = value),
    ];
}

#[cfg(test)]
mod tests;
