// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARM926EJ-S (`DDI0198D`): ARMv5TEJ, Harvard caches of 4 ways, unified TLB, no branch predictor.
//!
//! The board file sets the cache sizes and the costs. The chip's integrator chooses the sizes, and the costs depend on
//! the chip's memory.

use super::rows::{Arm, Every};
use super::{
    Behaviour, Buffers, Core, Descriptors, Multiplier, Organisation, Replacement, Sctlr, Tagging,
    Timing, Version,
};
use crate::addr::Mva;
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::cpu::cp15::{FORCE_WRITE_THROUGH, Row, Rows};
use crate::isa::timing::RAISES;
use crate::mmu::Kind;
use crate::observe::TlbSide;

/// The core.
pub const CORE: Core = Core {
    name: "arm926ejs",
    // Revision r0p5, as in SAM9 boot logs.
    midr: 0x4106_9265,
    version: Version::V5J,
    // `DDI0198D 4.1`.
    ways: 4,
    tagging: Tagging::Virtual,
    cache_bytes: (4096, 131_072),
    replacement: Replacement::Ways,
    // Write-back, clean operations in c7, lockdown format C.
    cache_class: 0b1110,
    uncached_stores_update: false,
    mini_cache: false,
    whole_doubles: false,
    asids: false,
    descriptors: Descriptors::Arm,
    test_and_clean: true,
    // B (big endian) is refused; the other bits read as at reset.
    sctlr: Sctlr {
        writable: 0x0000_f307,
        reset: 0x0005_0078,
        refused: 1 << 7,
    },
    clocking: 0,
    // `DDI0198D 3.7`. MVA[24:20] selects the set of a section; this is a choice of the model.
    tlbs: &[Organisation::new(32, 2, 8)],
    buffers: Buffers::ARM926EJS,
    // `DDI0222B 8.1`. D: a manufacturer's document. G: GCC's arm926ejs pipeline description, which was written from
    // such a document. R: recollection of the TRM's tables. No source confirms a value that has only the R.
    timing: Timing {
        simple: 1,               // D
        shift_by_register: 2,    // D, G
        rotate_through_carry: 1, // D
        arithmetic_to_pc: 3,     // D
        logical_to_pc: 4,        // D
        multiply: 2,             // G, R
        multiply_flags: 4,       // R, and D for the ARM7EJ-S multiplier
        multiply_long: 3,        // G, R
        multiply_long_flags: 5,  // G, R
        multiply_half: 1,        // G, R
        multiply_half_long: 2,   // G, R
        saturating: 1,           // R
        scaled_offset: 2,        // D
        load_to_pc: 4,           // D
        block_to_pc_minimum: 0,
        double: 2,        // D
        block_minimum: 2, // D for LDM, R for STM
        block_extra: 0,
        swap: 2,                // R
        branch: 3,              // R
        branch_prefix: 1,       // R
        mrs: 2,                 // R
        msr_flags: 1,           // R
        msr_control: 3,         // R
        coprocessor: 1,         // R
        coprocessor_read: 1,    // R
        exception: 3,           // R
        exception_undefined: 4, // R
        breakpoint: RAISES,
    },
    behaviour: Behaviour {
        multiplier: Multiplier::Fixed,
        ..Behaviour::ARM9
    },
};

pub(crate) use super::no_instructions::{ENCODINGS, selectors};
pub(crate) use super::own::no_registers as own_registers;

/// Rows of CP15 (`DDI0198D 2.3`; operations of c7: 2.3.7, table 2-18).
pub(crate) const fn cp15<B: Bus>() -> &'static Rows<B> {
    const { &Rows::new(&[Every::<B>::ROWS, Arm::<B>::ROWS, Registers::<B>::ROWS]) }
}

struct Registers<B>(B);

impl<B: Bus> Registers<B> {
    const ROWS: &[Row<B>] = &[
        // c0: TCM status (none); the unused opcodes 2 of c0,c0 read the main ID.
        Row::at(0, 0, 0, 2).read(|_| 0),
        Row::at(0, 0, 0, 3).opc2_up_to(7).read(|cpu| cpu.cp15.midr),
        // c7 by set and way: invalidate in the I-cache; invalidate, clean, clean and invalidate in the
        // D-cache.
        Row::at(0, 7, 5, 2)
            .write(|cpu, value| cpu.maintain(|cpu| cpu.invalidate_icache_index(value))),
        Row::at(0, 7, 6, 2)
            .write(|cpu, value| cpu.maintain_index(value, Cpu::invalidate_dcache_line)),
        Row::at(0, 7, 10, 2).write(|cpu, value| cpu.maintain_index(value, Cpu::clean_line)),
        Row::at(0, 7, 14, 2)
            .write(|cpu, value| cpu.maintain_index(value, Cpu::clean_and_invalidate_line)),
        // c7: test and clean; test, clean and invalidate.
        Row::at(0, 7, 10, 3).read(Cpu::test_and_clean),
        Row::at(0, 7, 14, 3).read(Cpu::test_clean_and_invalidate),
        // c8: invalidate all TLB entries; invalidate by MVA. The TLB is unified, so both sides name the same TLB.
        Row::at(0, 8, 5, 0)
            .crm_up_to(7)
            .write(|cpu, _| cpu.invalidate_tlb(TlbSide::Both)),
        Row::at(0, 8, 5, 1)
            .crm_up_to(7)
            .write(|cpu, value| cpu.invalidate_tlb_entry(TlbSide::Both, Mva(value))),
        // c9: way lockdown, format C; TCM regions, of size 0.
        Row::at(0, 9, 0, 0)
            .read(|cpu| cpu.memory.dcache_victims().locked & 15 | 0xfff0)
            .write(|cpu, value| cpu.memory.dcache_victims().locked = value & 15),
        Row::at(0, 9, 0, 1)
            .read(|cpu| cpu.memory.icache_victims().locked & 15 | 0xfff0)
            .write(|cpu, value| cpu.memory.icache_victims().locked = value & 15),
        Row::at(0, 9, 1, 0)
            .opc2_up_to(1)
            .read(|_| 0)
            .write(|_, _| {}),
        // c10: TLB lockdown.
        Row::at(0, 10, 0, 0)
            .read(|cpu| cpu.memory.tlb_lockdown(Kind::Read))
            .write(|cpu, value| cpu.memory.set_tlb_lockdown(Kind::Read, value)),
        // c13: context ID.
        Row::at(0, 13, 0, 1)
            .read(|cpu| cpu.cp15.context_id)
            .write(|cpu, value| cpu.cp15.context_id = value),
        // c15: debug override (no bit is modelled), cache debug control.
        Row::at(0, 15, 0, 0)
            .read(|_| 0)
            .write(|_, _| {})
            .modelled(0),
        Row::at(7, 15, 0, 0)
            .read(|cpu| cpu.cp15.cache_debug)
            .write(Cpu::write_cache_debug)
            .modelled(FORCE_WRITE_THROUGH),
    ];
}

#[cfg(test)]
mod tests {
    use super::CORE;
    use crate::config::Config;
    use crate::cost::CostTable;

    fn ctr(icache: u32, dcache: u32) -> u32 {
        let cache = |size| CORE.cache(size).expect("a size");
        CORE.cache_type(cache(icache), cache(dcache))
    }

    #[test]
    fn cache_type_follows_the_documented_fields() {
        assert_eq!(ctr(16384, 16384), 0x1d15_2152);
        assert_eq!(ctr(16384, 8192), 0x1d11_2152);
        assert_eq!(ctr(32768, 32768), 0x1d19_2192);
    }

    #[test]
    fn absurd_cache_sizes_are_refused() {
        let cost = CostTable {
            bus_sync: 0,
            tail_exposed_256: 0,
            walk_overhead: 0,
            lines_tested_per_op: 8,
            cp15_busy: 1,
        };
        for bytes in [0, 1, 2048, 12_000, 262_144, u32::MAX] {
            assert!(
                Config::new(&CORE, bytes, 16384, cost)
                    .unwrap_err()
                    .contains("instruction cache")
            );
        }
        assert!(Config::new(&CORE, 131_072, 4096, cost).is_ok());
    }
}
