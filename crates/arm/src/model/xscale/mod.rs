// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intel's XScale in the IXP42X: ARMv5TE with an accumulator, Harvard caches of 32 ways, a mini data cache, one TLB for
//! each side, descriptors with an X bit. Each set of a cache has a round-robin pointer. Manuals: IXP42X Developer's
//! Manual 252480-006 ("IXP42X"); the core's own manual, January 2004 ("XSC").

mod instructions;
mod registers;

use super::own::Own;
use super::rows::{Every, TwoTlbs};
use super::{
    Behaviour, Buffers, Core, Descriptors, Multiplier, Organisation, Replacement, Sctlr, Tagging,
    Timing, Version,
};
use crate::addr::Mva;
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::cpu::cp15::{Row, Rows};
use crate::mmu::Kind;

/// The core, as in the 400 MHz parts.
pub const CORE: Core = Core {
    name: "xscale-ixp42x",
    // R: the 266 MHz parts have 0x690541f1 (boot logs).
    midr: 0x6905_41d1,
    version: Version::V5E,
    // IXP42X p. 52, 61.
    ways: 32,
    tagging: Tagging::Virtual,
    cache_bytes: (32_768, 32_768),
    replacement: Replacement::Sets,
    // Write-back, lines are locked one by one.
    cache_class: 0b0101,
    uncached_stores_update: false,
    mini_cache: true,
    // IXP42X p. 194 ("must be aligned on an 8-byte boundary"), XSC 2.2.4 (recalled: an alignment exception).
    whole_doubles: true,
    asids: false,
    descriptors: Descriptors::Extended,
    test_and_clean: false,
    // IXP42X 3.5.1. B (big endian) is refused. Z, which enables the branch target buffer, is writable.
    sctlr: Sctlr {
        writable: 0x0000_3b07,
        reset: 0x78,
        refused: 1 << 7,
    },
    clocking: 0,
    // IXP42X 3.1.3: the TLB of instructions, the TLB of data.
    tlbs: &[
        Organisation::behind_locked(32),
        Organisation::behind_locked(32),
    ],
    buffers: Buffers::XSCALE,
    // IXP42X 3.9.4. D: read in the manual. R: written from recollection of its tables.
    timing: Timing {
        simple: 1,               // D
        shift_by_register: 2,    // D
        rotate_through_carry: 2, // D
        arithmetic_to_pc: 5,     // D: 4 in addition to the operation's own
        logical_to_pc: 5,        // D
        multiply: 1,             // R
        multiply_flags: 2,       // R: blocks for its latency
        multiply_long: 2,        // D
        multiply_long_flags: 3,  // R
        multiply_half: 1,        // R
        multiply_half_long: 2,   // R
        saturating: 1,           // R
        double: 2,               // D for STRD
        scaled_offset: 1,        // R
        load_to_pc: 7,           // D: LDR is 8
        block_to_pc_minimum: 10, // D: 10 + max(0, n - 3)
        block_minimum: 1,        // R
        block_extra: 2,          // R: LDM of two, D
        swap: 5,                 // R
        branch: 5,               // D: not predicted, or mispredicted
        branch_prefix: 1,        // R
        mrs: 1,                  // R
        msr_flags: 2,            // R
        msr_control: 6,          // R: writes the mode
        coprocessor: 2,          // R
        coprocessor_read: 4,     // R
        exception: 6,            // R
        exception_undefined: 6,  // R
        breakpoint: 1,           // D: no effect, because debugging is off
    },
    behaviour: Behaviour {
        issue_before_branch: true, // D: 4 + the table's
        multiplier: Multiplier::Bits,
        late_words: true,           // R
        scoreboard: true,           // D: 80200 B.2.1.3, B.2.1.4
        late_failure: true,         // D
        predicts_branches: true,    // D
        slow_moves: true,           // R
        preload_fills: true,        // D
        page_fill_policies: true,   // D: IXP42X p. 46
        uncached_reads_fence: true, // D: IXP42X table 5
        imprecise_external_aborts: true,
        one_fault_status: true,
    },
};

pub(crate) use instructions::{ENCODINGS, selectors};
pub(crate) use registers::Registers as XScaleRegisters;

/// Registers of its own, as at reset.
pub(crate) fn own_registers() -> Own {
    Own::XScale(XScaleRegisters::default())
}

/// Rows of CP15 (IXP42X 3.5.1) and CP14 (p. 87).
pub(crate) const fn cp15<B: Bus>() -> &'static Rows<B> {
    const {
        &Rows::new(&[
            Every::<B>::ROWS,
            TwoTlbs::<B>::ROWS,
            Registers::<B>::ROWS,
            Registers::<B>::CP14,
        ])
    }
}

/// ID of the performance monitoring unit, in PMNC.
const MONITOR_ID: u32 = 0x14 << 24;

struct Registers<B>(B);

impl<B: Bus> Registers<B> {
    const ROWS: &[Row<B>] = &[
        // c1: auxiliary control.
        Row::at(0, 1, 0, 1)
            .read(|cpu| cpu.cp15.xscale().auxiliary)
            .write(Cpu::write_auxiliary)
            .modelled(0x33),
        // c5: fault status of the last abort, of data or of a fetch.
        Row::at(0, 5, 0, 0)
            .read(|cpu| cpu.cp15.dfsr)
            .write(|cpu, value| cpu.cp15.dfsr = value & 0x6ff),
        // c7: allocate a D-cache line, invalidate the branch target buffer.
        Row::at(0, 7, 2, 5)
            .write(|cpu, value| cpu.maintain(|cpu| cpu.allocate_line(Mva(value & !31)))),
        Row::at(0, 7, 10, 4).write(|cpu, _| cpu.drain_write_buffer()),
        Row::at(0, 7, 5, 6).write(|cpu, _| cpu.branches.forget()),
        // c9: lock an I-cache line, unlock the I-cache; lock what fills the D-cache, unlock the D-cache.
        Row::at(0, 9, 1, 0).write(|cpu, value| cpu.lock_icache_line(Mva(value))),
        Row::at(0, 9, 1, 1).write(|cpu, _| cpu.memory.icache_victims().unlock()),
        Row::at(0, 9, 2, 0)
            .read(|cpu| cpu.memory.dcache_victims().locking.into())
            .write(|cpu, value| {
                cpu.drain_write_buffer();
                cpu.memory.dcache_victims().locking = value & 1 != 0;
            }),
        Row::at(0, 9, 2, 1).write(|cpu, _| cpu.memory.dcache_victims().unlock()),
        // c10: translate and lock, for instructions and for data; unlock.
        Row::at(0, 10, 4, 0).write(|cpu, value| cpu.lock_translation(Kind::Fetch, Mva(value))),
        Row::at(0, 10, 8, 0).write(|cpu, value| cpu.lock_translation(Kind::Read, Mva(value))),
        Row::at(0, 10, 4, 1).write(|cpu, _| cpu.unlock_translations(Kind::Fetch)),
        Row::at(0, 10, 8, 1).write(|cpu, _| cpu.unlock_translations(Kind::Read)),
        // c15: coprocessor access.
        Row::at(0, 15, 1, 0)
            .read(|cpu| cpu.cp15.xscale().access)
            .write(|cpu, value| cpu.cp15.xscale_mut().access = value & 0x3fff),
    ];

    const CP14: &[Row<B>] = &[
        // Performance monitoring: control, clock counter, interrupts (none), overflow flags, event selection
        // (none), events.
        Row::cp14(0, 1)
            .read(|cpu| MONITOR_ID | cpu.cp15.xscale().clock.control())
            .write(|cpu, value| {
                let own = cpu.cp15.xscale_mut();
                own.clock.set_control(cpu.cycles, value);
                if value & 2 != 0 {
                    own.events = [0; 4];
                }
            }),
        Row::cp14(1, 1)
            .read(|cpu| cpu.cp15.xscale().clock.read(cpu.cycles))
            .write(|cpu, value| cpu.cp15.xscale_mut().clock.write(cpu.cycles, value)),
        Row::cp14(4, 1).read(|_| 0).write(|_, _| {}).modelled(0),
        Row::cp14(5, 1)
            .read(|cpu| cpu.cp15.xscale().clock.overflowed(cpu.cycles))
            .write(|cpu, value| {
                if value & 1 != 0 {
                    cpu.cp15.xscale_mut().clock.clear_overflow(cpu.cycles);
                }
            }),
        Row::cp14(8, 1).read(|_| u32::MAX).write(Cpu::select_events),
        Row::cp14(0, 2)
            .read(|cpu| cpu.cp15.xscale().events[0])
            .write(|cpu, value| cpu.cp15.xscale_mut().events[0] = value),
        Row::cp14(1, 2)
            .read(|cpu| cpu.cp15.xscale().events[1])
            .write(|cpu, value| cpu.cp15.xscale_mut().events[1] = value),
        Row::cp14(2, 2)
            .read(|cpu| cpu.cp15.xscale().events[2])
            .write(|cpu, value| cpu.cp15.xscale_mut().events[2] = value),
        Row::cp14(3, 2)
            .read(|cpu| cpu.cp15.xscale().events[3])
            .write(|cpu, value| cpu.cp15.xscale_mut().events[3] = value),
        // The clock configuration is fixed. Power mode: 1 waits for an interrupt (XSC 7.3.2; the IXP42X manual reserves
        // both).
        Row::cp14(6, 0).read(|_| 0).write(|_, _| {}).modelled(0),
        Row::cp14(7, 0)
            .read(|_| 0)
            .write(|cpu, value| {
                if value != 0 {
                    cpu.wait_for_interrupt();
                }
            })
            .modelled(1),
    ];
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod time_tests;
