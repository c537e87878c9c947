// SPDX-License-Identifier: MIT OR Apache-2.0

use crate::isa::testing::{COARSE, FINE, go, mapped, steps};

#[test]
fn code_goes_on_in_the_next_tiny_page_where_that_is() {
    let mut cpu = mapped();
    // Tiny pages at 128 KB and at 192 KB, one behind the other.
    cpu.bus.put(FINE, &[0x2_003f, 0x3_003f]);
    cpu.bus.put(0x2_0000, &[0xea00_00fe]); // b .+0x400
    cpu.bus.put(0x2_0400, &[0xe3a0_0001]); // mov r0, #1
    cpu.bus.put(0x3_0000, &[0xe3a0_0002]); // mov r0, #2
    cpu.set_pc(0x20_0000);
    steps(&mut cpu, 2);
    assert_eq!((cpu.r[0], cpu.pc), (2, 0x20_0404));
}

#[test]
fn code_does_not_go_on_into_a_quarter_that_it_may_not_read() {
    let mut cpu = mapped();
    // AP 2 in the first quarter and 1 in the others.
    cpu.bus.put(COARSE, &[0x2_056e]);
    cpu.bus.put(0x2_0000, &[0xea00_00fe]); // b .+0x400
    cpu.set_pc(0x10_0000);
    cpu.set_cpsr(0x10);
    steps(&mut cpu, 2);
    assert_eq!((cpu.pc, cpu.cp15.ifsr), (0xc, 0b1111));
}

#[test]
fn a_line_of_a_tiny_page_is_translated_once() {
    let mut cpu = mapped();
    cpu.bus.put(FINE, &[0x2_003f]);
    // Two words with the same set of the TLB as the code take its entry away.
    for page in [0x20_u32, 0x40] {
        cpu.bus.put(COARSE + 4 * page, &[0x3_0ffe]);
    }
    let code = [0xe591_0000, 0xe592_0000, 0xe1a0_0000, 0xe1a0_0000]; // ldr r0, [r1]; ldr r0, [r2]
    go(&mut cpu, 0x2_0000, &code);
    cpu.set_pc(0x20_0000);
    (cpu.r[1], cpu.r[2]) = (0x12_0000, 0x14_0000);
    steps(&mut cpu, 4);
    assert_eq!(cpu.counters.tlb_walks, 3);
}
