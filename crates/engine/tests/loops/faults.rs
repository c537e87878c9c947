// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fetches that fault where code of the host goes on to the next line.

use super::*;

/// The last line of a page ends with an instruction, and the next page has no translation. The table walk takes time.
fn faults_after(core: &'static Core, last: u32) {
    let mut words = vec![NOP; 1024];
    let first = [
        0xe3a0_998d_u32, // mov r9, #0x234000: the table of small pages, without the cache
        0xe3a0_a000,     // mov r10, #0
        0xe589_a044,     // str r10, [r9, #0x44]: no page at 0x411000
        0xe3a0_8000,     // mov r8, #0: the handler goes to the first word
        0xe3a0_9841,     // mov r9, #0x410000
        0xe289_9efe,     // add r9, r9, #0xfe0
        0xe12f_ff19,     // bx r9
    ];
    words[..first.len()].copy_from_slice(&first);
    words[1023] = last;
    run_words(core, &words);
}

#[test]
fn the_next_page_faults_while_results_are_pending() {
    for core in [&ARM920T, &ARM926EJS, &IXP42X] {
        // Nothing; a word; a byte, which is late; the flags of a product.
        for last in [NOP, 0xe590_b000, 0xe5d0_b000, 0xe01b_0190] {
            faults_after(core, last);
        }
    }
}
