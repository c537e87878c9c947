// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests share: a core on the test bus, executing single words, and one with its MMU on.

use crate::bus::Bus;
use crate::config::Config;
use crate::cost::CostTable;
use crate::cpu::Cpu;
use crate::model::{ARM926EJS, Core};
use crate::psr::T;
use crate::tests::bus::TestBus;

/// Where single instructions pretend to be.
pub(crate) const HERE: u32 = 0x1000;

/// A core at power-on with 64 KB of RAM.
pub(crate) fn machine() -> Cpu<TestBus> {
    on(&ARM926EJS, TestBus::new(0x1_0000))
}

pub(crate) fn on<B: Bus>(core: &'static Core, bus: B) -> Cpu<B> {
    let cost = CostTable {
        bus_sync: 0,
        tail_exposed_256: 256,
        walk_overhead: 0,
        lines_tested_per_op: 8,
        cp15_busy: 0,
    };
    let least = core.cache_bytes.0;
    Cpu::new(Config::new(core, least, least, cost).unwrap(), bus)
}

/// Executes one A32 instruction at [`HERE`], whatever its condition.
pub(crate) fn arm(cpu: &mut Cpu<TestBus>, insn: u32) {
    cpu.control &= !T;
    let op = cpu.decode.arm(insn);
    cpu.pc = HERE + 4;
    cpu.r[15] = HERE + 8;
    cpu.cycles += op.cycles();
    (op.exec)(cpu, op);
    cpu.biu_idle();
}

/// Executes one Thumb instruction at `at`, whatever its condition.
pub(crate) fn thumb_at(cpu: &mut Cpu<TestBus>, at: u32, half: u16) {
    cpu.control |= T;
    let op = cpu.decode.thumb(half);
    cpu.pc = at + 2;
    cpu.r[15] = at + 4;
    cpu.cycles += op.cycles();
    (op.exec)(cpu, op);
    cpu.biu_idle();
}

/// Executes one Thumb instruction at [`HERE`], whatever its condition.
pub(crate) fn thumb(cpu: &mut Cpu<TestBus>, half: u16) {
    thumb_at(cpu, HERE, half);
}

impl Cpu<TestBus> {
    /// Lets buffered stores reach the RAM without taking time.
    fn biu_idle(&mut self) {
        let cycles = self.cycles;
        self.drain_write_buffer();
        self.cycles = cycles;
    }
}

/// A core that has executed `insn` on registers r0, r1, r2...
pub(crate) fn after(insn: u32, registers: &[u32]) -> Cpu<TestBus> {
    let mut cpu = machine();
    cpu.r[..registers.len()].copy_from_slice(registers);
    arm(&mut cpu, insn);
    cpu
}

/// Table of the second megabyte of [`mapped`]'s addresses, for large and small pages.
pub(crate) const COARSE: u32 = 0x8000;
/// Table of the third megabyte, for pages of every size.
pub(crate) const FINE: u32 = 0xc000;

/// A core with 1 MB of RAM, MMU and caches on. The first megabyte of its addresses is the RAM,
/// written back; the fourth and the fifth are, too, not cached, the fifth buffered; the second and
/// the third have no page yet.
pub(crate) fn mapped() -> Cpu<TestBus> {
    mapped_on(&ARM926EJS, TestBus::new(1 << 20), |bus| bus)
}

/// The same of another core, on a bus that is made from the RAM.
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

/// Executes so many instructions.
pub(crate) fn steps<B: Bus>(cpu: &mut Cpu<B>, count: usize) {
    for _ in 0..count {
        assert_eq!(cpu.step(), None);
    }
}
