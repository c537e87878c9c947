// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared helpers: a core on the test bus that executes single words, and a core with its MMU on.

use crate::bus::Bus;
use crate::config::Config;
use crate::cost::CostTable;
use crate::cpu::Cpu;
use crate::model::{ARM926EJS, ARM1136_R1P3, Core};
use crate::psr::T;
use crate::tests::bus::TestBus;

/// Address of instructions that execute alone.
pub(crate) const HERE: u32 = 0x1000;

/// Returns a core at power-on with 64 KB of RAM.
pub(crate) fn machine() -> Cpu<TestBus> {
    on(&ARM926EJS, TestBus::new(0x1_0000))
}

/// Returns an ARMv6 core at power-on with 64 KB of RAM.
pub(crate) fn machine_v6() -> Cpu<TestBus> {
    on(&ARM1136_R1P3, TestBus::new(0x1_0000))
}

pub(crate) fn on<B: Bus>(core: &'static Core, bus: B) -> Cpu<B> {
    Cpu::new(config(core, core.cache_bytes.0), bus)
}

/// Returns a core with caches of `bytes` bytes.
pub(crate) fn config(core: &'static Core, bytes: u32) -> Config {
    let cost = CostTable {
        bus_sync: 0,
        tail_exposed_256: 256,
        walk_overhead: 0,
        lines_tested_per_op: 8,
        cp15_busy: 0,
    };
    Config::new(core, bytes, bytes, cost).unwrap()
}

/// Executes one A32 instruction at [`HERE`] without checking its condition.
pub(crate) fn arm(cpu: &mut Cpu<TestBus>, insn: u32) {
    cpu.control &= !T;
    let op = cpu.decoder().arm(insn);
    cpu.pc = HERE + 4;
    cpu.r[15] = HERE + 8;
    cpu.cycles += op.cycles();
    (op.exec)(cpu, op);
    cpu.biu_idle();
}

/// Executes one Thumb instruction at `at` without checking its condition.
pub(crate) fn thumb_at(cpu: &mut Cpu<TestBus>, at: u32, half: u16) {
    cpu.control |= T;
    let op = cpu.decoder().thumb(half);
    cpu.pc = at + 2;
    cpu.r[15] = at + 4;
    cpu.cycles += op.cycles();
    (op.exec)(cpu, op);
    cpu.biu_idle();
}

/// Executes one Thumb instruction at [`HERE`] without checking its condition.
pub(crate) fn thumb(cpu: &mut Cpu<TestBus>, half: u16) {
    thumb_at(cpu, HERE, half);
}

impl Cpu<TestBus> {
    /// Drains the write buffer to RAM without taking time.
    fn biu_idle(&mut self) {
        let cycles = self.cycles;
        self.drain_write_buffer();
        self.cycles = cycles;
    }
}

/// Returns a core that has executed `insn` with these values in r0, r1, r2...
pub(crate) fn after(insn: u32, registers: &[u32]) -> Cpu<TestBus> {
    let mut cpu = machine();
    cpu.r[..registers.len()].copy_from_slice(registers);
    arm(&mut cpu, insn);
    cpu
}

/// Returns an ARMv6 core that has executed `insn` with these values in r0, r1, r2...
pub(crate) fn after_on_v6(insn: u32, registers: &[u32]) -> Cpu<TestBus> {
    let mut cpu = machine_v6();
    cpu.r[..registers.len()].copy_from_slice(registers);
    arm(&mut cpu, insn);
    cpu
}

/// Second-level table of [`mapped`] for the second megabyte, with large and small pages.
pub(crate) const COARSE: u32 = 0x8000;
/// Second-level table of [`mapped`] for the third megabyte, with pages of every size.
pub(crate) const FINE: u32 = 0xc000;

/// Returns a core with 1 MB of RAM, and with MMU and caches on. The first megabyte of its addresses maps the RAM as
/// write-back. The fourth and the fifth megabyte map the RAM as uncached, the fifth also as buffered. The second and
/// the third megabyte have no pages yet.
pub(crate) fn mapped() -> Cpu<TestBus> {
    mapped_on(&ARM926EJS, TestBus::new(1 << 20), |bus| bus)
}

/// Returns a mapped core of another model, on a bus that `bus` makes from the RAM.
pub(crate) fn mapped_on<B: Bus>(
    core: &'static Core,
    mut ram: TestBus,
    bus: impl FnOnce(TestBus) -> B,
) -> Cpu<B> {
    let sections = [0xc0e, COARSE | 1, FINE | 3, 0xc02, 0xc06];
    ram.put(0x4000, &sections);
    let mut cpu = on(core, bus(ram));
    let kept = core.sctlr.reset & core.clocking;
    let written = [(2, 0x4000), (3, 1), (1, kept | 0x1005)]; // TTB; DACR; SCTLR: M, C, I
    for (register, value) in written {
        cpu.cp15_write(0, register, 0, 0, value);
    }
    cpu
}

/// Executes `count` instructions.
pub(crate) fn steps<B: Bus>(cpu: &mut Cpu<B>, count: usize) {
    for _ in 0..count {
        assert_eq!(cpu.step(), None);
    }
}
