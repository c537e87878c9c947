// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes of the control byte of the CPSR, with and without a pending interrupt.

use super::*;

#[test]
fn the_i_bit_changes_alone_or_with_others() {
    let words = [
        0xe10f_8000_u32, // mrs r8, cpsr
        0xe3c8_9080,     // bic r9, r8, #0x80
        0xe121_f009,     // msr cpsr_c, r9: lets interrupts in
        0xe28c_c001,     // add r12, r12, #1
        0xe389_8080,     // orr r8, r9, #0x80
        0xe121_f008,     // msr cpsr_c, r8
        0xe31c_0007,     // tst r12, #7
        0x0321_f053,     // msreq cpsr_c, #0x53
        0xe321_f0d3,     // msr cpsr_c, #0xd3
        0xe321_f0d2,     // msr cpsr_c, #0xd2: IRQ mode
        0xe321_f0d3,
        0xe28a_a001, // add r10, r10, #1
        0xe321_f013, // msr cpsr_c, #0x13: also the F bit
        0xe10f_b000, // mrs r11, cpsr
        0xe321_f0d3,
    ];
    for core in [&ARM920T, &ARM926EJS, &IXP42X] {
        run_words(core, &words);
    }
}
