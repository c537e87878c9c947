// SPDX-License-Identifier: MIT OR Apache-2.0

use crate::addr::Mva;
use crate::bus::Width;
use crate::isa::testing::{COARSE, arm, mapped};

/// Nothing answers there.
const NOWHERE: u32 = 0x1000_0000;

#[test]
fn a_line_fill_that_fails_writes_its_victim_back() {
    let mut cpu = mapped();
    cpu.cp15_write(0, 1, 0, 0, 0x5005); // round robin
    // Write-back pages: one of nothing, and four whose lines have the same set.
    cpu.bus.put(COARSE, &[NOWHERE | 0xffe]);
    for va in [0x2_0000, 0x2_0400, 0x2_0800, 0x2_0c00] {
        assert!(cpu.load(va, Width::Word).is_ok());
        assert!(cpu.store(va, Width::Word, va).is_ok());
    }
    assert!(cpu.load(0x10_0000, Width::Word).is_err());
    assert!(cpu.dcache.find(Mva(0x2_0000)).is_none());
    assert_eq!(cpu.load(0x2_0000, Width::Word), Ok(0x2_0000));
}

/// The abort that an instruction at [`HERE`] with r0 = 1 and r1 = the first page of the second
/// megabyte takes: FSR and FAR. Nothing is behind that page, described by these bits.
fn abort(insn: u32, bits: u32) -> Option<(u32, u32)> {
    let mut cpu = mapped();
    cpu.bus.put(COARSE, &[NOWHERE | bits]);
    (cpu.r[0], cpu.r[1]) = (1, 0x10_0000);
    arm(&mut cpu, insn);
    (cpu.pc == 0x10).then_some((cpu.cp15.dfsr, cpu.cp15.far))
}

#[test]
fn the_bus_aborts_reads_and_stores_that_the_core_waits_for() {
    let uncached = [0xff2, 0xff6]; // not buffered, buffered
    let external = Some((0b1010, 0x10_0000));
    let str = uncached.map(|bits| abort(0xe581_0000, bits)); // str r0, [r1]
    assert_eq!(str, [external, None]);
    let strb = uncached.map(|bits| abort(0xe5c1_0000, bits)); // strb r0, [r1]
    assert_eq!(strb, [external, None]);
    let ldr = uncached.map(|bits| abort(0xe591_0000, bits)); // ldr r0, [r1]
    assert_eq!(ldr, [external; 2]);
    // Write-through: a miss goes to the buffer.
    assert_eq!(abort(0xe581_0000, 0xffa), None);
}
