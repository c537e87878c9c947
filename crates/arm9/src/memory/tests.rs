// SPDX-License-Identifier: MIT OR Apache-2.0

use crate::bus::Width;
use crate::isa::testing::{COARSE, mapped};

/// Nothing answers there.
const NOWHERE: u32 = 0x1000_0000;

#[test]
fn a_line_fill_that_fails_writes_its_victim_back() {
    let mut cpu = mapped();
    // Write-back pages: one of nothing, and four whose lines have the same set.
    cpu.bus.put(COARSE, &[NOWHERE | 0xffe]);
    let lines = [0x2_0000, 0x2_0400, 0x2_0800, 0x2_0c00];
    for va in lines {
        assert!(cpu.load(va, Width::Word).is_ok());
        assert!(cpu.store(va, Width::Word, va).is_ok());
    }
    let filled =
        |cpu: &crate::cpu::Cpu<_>| lines.map(|va| cpu.dcache.find(crate::Mva(va)).is_some());
    while filled(&cpu) == [true; 4] {
        assert!(cpu.load(0x10_0000, Width::Word).is_err());
    }
    cpu.drain_write_buffer();
    let kept = filled(&cpu);
    for (va, kept) in lines.into_iter().zip(kept) {
        assert_eq!(cpu.bus.word(va), if kept { 0 } else { va });
    }
}
