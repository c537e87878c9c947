// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the instruction tests share: a core on the test bus, executing single words.

use crate::config::{CacheGeometry, Config, Victims};
use crate::cost::CostTable;
use crate::cpu::Cpu;
use crate::psr::T;
use crate::testbus::TestBus;

/// Where single instructions pretend to be.
pub(crate) const HERE: u32 = 0x1000;

/// A core at power-on with 64 KB of RAM.
pub(crate) fn machine() -> Cpu<TestBus> {
    let cost = CostTable {
        bus_sync: 0,
        tail_exposed_256: 256,
        walk_overhead: 0,
        lines_tested_per_op: 8,
        cp15_busy: 0,
    };
    let cache = CacheGeometry {
        size: 4096,
        ways: 4,
    };
    let midr = 0x4106_9265;
    Cpu::new(
        Config {
            midr,
            icache: cache,
            dcache: cache,
            cost,
            victim_seed: 0,
            victims: Victims::Random,
        },
        TestBus::new(0x1_0000),
    )
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
