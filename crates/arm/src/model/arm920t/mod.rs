// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARM920T: ARMv4T, Harvard caches of 64 ways, one TLB for each side, no branch predictor. The text of `DDI0151C` was
//! read in Samsung's S3C2410A manual. `DDI0184B` describes the ARM922T, whose caches have half the size.

use super::rows::{Arm, Every, TwoTlbs};
use super::{
    Behaviour, Buffers, Core, Descriptors, Multiplier, Organisation, Replacement, Sctlr, Tagging,
    Timing, Version,
};
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::cpu::cp15::{Row, Rows};
use crate::isa::timing::RAISES;
use crate::mmu::Kind;

/// Bits iA and nF: asynchronous clocking, as U-Boot leaves it (`DDI0151C 5.3`). The board's `sync_cpu` is the cost of
/// an access in this mode. The other modes are not modelled.
const ASYNCHRONOUS: u32 = 0b11 << 30;

/// The core.
pub const CORE: Core = Core {
    name: "arm920t",
    midr: 0x4112_9200,
    version: Version::V4,
    // `DDI0151C 4.1`.
    ways: 64,
    tagging: Tagging::Virtual,
    cache_bytes: (16_384, 16_384),
    replacement: Replacement::FromBase,
    // Write-back, clean operations in c7, lockdown format A.
    cache_class: 0b0110,
    // `DDI0151C 4.5`, implementation notes.
    uncached_stores_update: true,
    mini_cache: false,
    whole_doubles: false,
    asids: false,
    descriptors: Descriptors::Arm,
    test_and_clean: false,
    // B (big endian) is refused; the other bits, except the clock mode, read as at reset.
    sctlr: Sctlr {
        writable: 0x0000_7307,
        reset: ASYNCHRONOUS | 0x78,
        refused: 1 << 7,
    },
    clocking: ASYNCHRONOUS,
    // `DDI0151C 3.1`: the TLB of instructions, the TLB of data.
    tlbs: &[Organisation::from_base(), Organisation::from_base()],
    buffers: Buffers::ARM920T,
    // Issue cycles of the ARM9TDMI (`DDI0180A 7`), written from recollection of the manual. The ARM926EJ-S file gives
    // sources for the values that its ARM9E-S core shares.
    timing: Timing {
        simple: 1,
        shift_by_register: 2,
        rotate_through_carry: 1,
        arithmetic_to_pc: 3,
        logical_to_pc: 3,
        multiply: 2,
        multiply_flags: 2,
        multiply_long: 3,
        multiply_long_flags: 3,
        // Instructions of ARMv5TE, which this core does not have.
        multiply_half: 1,
        multiply_half_long: 2,
        saturating: 1,
        double: 2,
        scaled_offset: 1,
        load_to_pc: 4,
        block_to_pc_minimum: 0,
        block_minimum: 2,
        block_extra: 0,
        swap: 2,
        branch: 3,
        branch_prefix: 1,
        mrs: 1,
        msr_flags: 1,
        msr_control: 3,
        coprocessor: 1,
        coprocessor_read: 1,
        exception: 3,
        exception_undefined: 4,
        breakpoint: RAISES,
    },
    behaviour: Behaviour {
        multiplier: Multiplier::Bytes,
        ..Behaviour::ARM9
    },
};

pub(crate) use super::no_instructions::{ENCODINGS, selectors};
pub(crate) use super::own::no_registers as own_registers;

/// Rows of CP15 (`DDI0151C 2.3`; operations of c7: table 2-16). There is no context ID.
pub(crate) const fn cp15<B: Bus>() -> &'static Rows<B> {
    const {
        &Rows::new(&[
            Every::<B>::ROWS,
            Arm::<B>::ROWS,
            TwoTlbs::<B>::ROWS,
            Registers::<B>::ROWS,
        ])
    }
}

/// Does an operation by segment and index, which moves the victim pointer (`DDI0151C 4.4`).
fn at_index<B: Bus>(cpu: &mut Cpu<B>, index: u32, operation: fn(&mut Cpu<B>, usize)) {
    cpu.maintain_index(index, operation);
    cpu.memory.point_dcache_victims_at(index);
}

struct Registers<B>(B);

impl<B: Bus> Registers<B> {
    const ROWS: &[Row<B>] = &[
        // c7, D-cache by segment and index: clean, clean and invalidate.
        Row::at(0, 7, 10, 2).write(|cpu, value| at_index(cpu, value, Cpu::clean_line)),
        Row::at(0, 7, 14, 2)
            .write(|cpu, value| at_index(cpu, value, Cpu::clean_and_invalidate_line)),
        // c9: cache lockdown by a base.
        Row::at(0, 9, 0, 0)
            .read(|cpu| cpu.memory.dcache_victims().base() << 26)
            .write(|cpu, value| cpu.memory.dcache_victims().set_base(value >> 26)),
        Row::at(0, 9, 0, 1)
            .read(|cpu| cpu.memory.icache_victims().base() << 26)
            .write(|cpu, value| cpu.memory.icache_victims().set_base(value >> 26)),
        // c10: TLB lockdown.
        Row::at(0, 10, 0, 0)
            .read(|cpu| cpu.memory.tlb_lockdown(Kind::Read))
            .write(|cpu, value| cpu.memory.set_tlb_lockdown(Kind::Read, value)),
        Row::at(0, 10, 0, 1)
            .read(|cpu| cpu.memory.tlb_lockdown(Kind::Fetch))
            .write(|cpu, value| cpu.memory.set_tlb_lockdown(Kind::Fetch, value)),
    ];
}

#[cfg(test)]
mod tests {
    use super::CORE;
    use crate::addr::Mva;
    use crate::cpu::{Cpu, Exit};
    use crate::psr::{Q, T};
    use crate::tests::bus::TestBus;
    use crate::tests::core::{COARSE, arm, mapped_on, on, steps};

    fn machine() -> Cpu<TestBus> {
        on(&CORE, TestBus::new(0x1_0000))
    }

    #[test]
    fn the_registers_are_the_chips() {
        let mut cpu = machine();
        for (insn, value) in [
            (0xee10_0f10, 0x4112_9200), // mrc p15, 0, r0, c0, c0, 0
            (0xee10_0f30, 0x0d17_2172), // c0, c0, 1
            (0xee11_0f10, 0xc000_0078), // c1, c0, 0
        ] {
            arm(&mut cpu, insn);
            assert_eq!(cpu.r[0], value, "{insn:#x}");
        }
    }

    #[test]
    fn what_the_926_has_and_this_core_has_not_ends_the_run() {
        for insn in [
            0xee1d_0f30, // mrc p15, 0, r0, c13, c0, 1: context id
            0xee17_0f7a, // c7, c10, 3: test and clean
            0xee08_0f37, // mcr c8, c7, 1: one entry of both TLBs
            0xee07_0f55, // mcr c7, c5, 2: I-cache line by index
        ] {
            let mut cpu = machine();
            cpu.bus.put(0, &[insn]);
            let exit = cpu.run(1000);
            assert!(
                matches!(exit, Exit::UnmodelledCp15 { .. }),
                "{insn:#x}: {exit:?}"
            );
        }
    }

    /// c9 and c10: caches and TLBs of data and of instructions.
    #[test]
    fn each_side_has_lockdown_registers_of_its_own() {
        let mut cpu = machine();
        let registers = [(9, 0), (9, 1), (10, 0), (10, 1)];
        for (n, (crn, opc2)) in (1..).zip(registers) {
            cpu.cp15_write(0, crn, 0, opc2, n << 26);
        }
        let read = registers.map(|(crn, opc2)| cpu.cp15_read(0, crn, 0, opc2));
        assert_eq!(read, [1, 2, 3, 4].map(|n| n << 26));
        let bases = [cpu.dcache().victim.base(), cpu.icache().victim.base()];
        assert_eq!(bases, [1, 2]);
    }

    #[test]
    fn the_clock_mode_stays() {
        for (value, ends) in [(0xc000_0078, false), (0x4000_0078, true), (0x78, true)] {
            let mut cpu = machine();
            cpu.r[0] = value;
            cpu.bus.put(0, &[0xee01_0f10]); // mcr p15, 0, r0, c1, c0, 0
            let exit = cpu.run(40);
            assert_eq!(
                matches!(exit, Exit::UnmodelledCp15 { .. }),
                ends,
                "{value:#x}"
            );
        }
    }

    #[test]
    fn instructions_of_armv5_are_undefined() {
        for insn in [
            0xe16f_0f11_u32, // clz
            0xe12f_ff31,     // blx r1
            0xfa00_0000,     // blx
            0xe120_0070,     // bkpt
            0xe102_0051,     // qadd
            0xe100_0281,     // smlabb
            0xe1c0_00d0,     // ldrd
            0xf5d0_f000,     // pld
        ] {
            let mut cpu = machine();
            cpu.bus.put(0, &[insn]);
            cpu.step();
            assert_eq!(
                cpu.pc(),
                4,
                "{insn:#x}: the vector of undefined instructions"
            );
            assert_eq!(cpu.cpsr() & 0x1f, 0x1b, "{insn:#x}");
        }
    }

    #[test]
    fn loads_to_the_pc_do_not_change_the_state_and_there_is_no_q() {
        let mut cpu = machine();
        cpu.bus.put(0x100, &[0x201]);
        cpu.r[1] = 0x100;
        arm(&mut cpu, 0xe591_f000); // ldr pc, [r1]
        assert_eq!((cpu.pc(), cpu.cpsr() & T), (0x200, 0));
        let mut cpu = machine();
        cpu.r[0] = 0xffff_ffff;
        arm(&mut cpu, 0xe128_f000); // msr CPSR_f, r0
        assert_eq!(cpu.cpsr() >> 27, 0b11110);
        assert_eq!(cpu.cpsr() & Q, 0);
    }

    /// The loop with which Linux cleans the cache, as in the manual (`DDI0151C 4.4`).
    #[test]
    fn a_loop_over_segments_and_indexes_cleans_everything() {
        let mut cpu = mapped_on(&CORE, TestBus::new(1 << 20), |bus| bus);
        cpu.memory.dcache_victims().set_round_robin(true);
        cpu.r[2] = 0x55;
        for n in 0..600u32 {
            cpu.r[1] = 0x4_0000 + 32 * n;
            arm(&mut cpu, 0xe591_3000); // ldr r3, [r1]
            arm(&mut cpu, 0xe581_2000); // str r2, [r1]
        }
        let dirty = |cpu: &Cpu<TestBus>| {
            let lines = 0..cpu.dcache().lines();
            lines
                .filter(|line| {
                    cpu.dcache()
                        .state(*line)
                        .is_some_and(|(_, halves)| halves != 0)
                })
                .count()
        };
        assert_eq!(dirty(&cpu), 512);
        for segment in 0..8u32 {
            for index in 0..64u32 {
                cpu.r[0] = index << 26 | segment << 5;
                arm(&mut cpu, 0xee07_0f5e); // mcr p15, 0, r0, c7, c14, 2
            }
        }
        assert_eq!(dirty(&cpu), 0);
        assert_eq!(cpu.data_line(Mva(0x4_0000)), None);
    }

    /// `DDI0151C 4.5`: an uncached store also updates a line; an uncached load reads the bus.
    #[test]
    fn a_store_past_the_cache_updates_a_line_that_has_its_address() {
        for cb in [0, 4] {
            let mut cpu = mapped_on(&CORE, TestBus::new(1 << 20), |bus| bus);
            [cpu.r[0], cpu.r[1], cpu.r[2]] = [0x10_0000, 0x10_0000, 0x1234];
            cpu.bus.put(COARSE, &[0x5_0000 | 0xff0 | 0xc | 2]);
            arm(&mut cpu, 0xe591_3000); // ldr r3, [r1]: fills
            cpu.bus.put(COARSE, &[0x5_0000 | 0xff0 | cb | 2]);
            arm(&mut cpu, 0xee08_0f36); // mcr p15, 0, r0, c8, c6, 1
            arm(&mut cpu, 0xe581_2000); // str r2, [r1]
            assert_eq!(cpu.bus.word(0x5_0000), 0x1234);
            let line = cpu.data_line(Mva(0x10_0000)).unwrap();
            assert_eq!(cpu.dcache().line(line)[0], 0x1234);
            assert_eq!(cpu.dcache().state(line).unwrap().1, 0, "it is not dirty");
            cpu.bus.put(0x5_0000, &[0x77]);
            arm(&mut cpu, 0xe591_3000);
            assert_eq!(cpu.r[3], 0x77);
        }
    }

    #[test]
    fn each_side_has_a_tlb_of_its_own() {
        let mut ram = TestBus::new(1 << 20);
        let load = 0xe591_3000; // ldr r3, [r1]
        let next_line = 0xea00_0004;
        // mcr p15, 0, r0, c8: c5 of instructions, c6 of data, c7 of both
        for (n, invalidate) in (0..).zip([0xee08_0f15, 0xee08_0f16, 0xee08_0f17, load]) {
            ram.put(0x2000 + 32 * n, &[load, invalidate, next_line]);
        }
        let mut cpu = mapped_on(&CORE, ram, |bus| bus);
        cpu.r[1] = 0x5_0000;
        cpu.jump(0x2000);
        let walks = [0; 4].map(|_: u8| {
            let before = cpu.counters.tlb_walks;
            steps(&mut cpu, 3);
            cpu.counters.tlb_walks - before
        });
        assert_eq!(walks, [2, 1, 1, 2]);
    }

    /// `DDI0180A 7.2`. The manual's table gives m for 8, 16, 24 or 32 significant bits of the second factor.
    #[test]
    fn a_multiply_ends_early() {
        let cycles = |insn: u32, factor: u32| {
            let mut cpu = machine();
            cpu.r[2] = factor;
            arm(&mut cpu, insn);
            cpu.cycles()
        };
        for (factor, signed, unsigned) in [
            (0, 1, 1),
            (0xff, 1, 1),
            (0x100, 2, 2),
            (0xffff, 2, 2),
            (0x1_0000, 3, 3),
            (0x100_0000, 4, 4),
            (0xffff_ffff, 1, 4),
            (0xffff_ff00, 1, 4),
            (0xffff_0000, 2, 4),
        ] {
            let took = [0xe000_0291, 0xe0c4_0291, 0xe084_0291].map(|insn| cycles(insn, factor));
            // mul r0, r1, r2; smull; umull
            assert_eq!(took, [2 + signed, 3 + signed, 3 + unsigned], "{factor:#x}");
        }
    }
}
