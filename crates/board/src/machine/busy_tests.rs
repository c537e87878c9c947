// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program that keeps a board busy, for tests of this crate and of the observers. The module that includes this file
//! has `Boot`, `BoardSpec` and `Machine` in scope.

use super::{BoardSpec, Boot, Machine};

/// Vectors at 0. Timer 0 interrupts every 100 us, and the handler counts in r3. The loop updates words 64 bytes apart
/// within 16 KB at 1 MB. Every 256 turns it moves GPIO 0 pin 0 and prints a letter; every 1024 turns it waits for an
/// interrupt. The I-cache is on.
pub(crate) const BUSY: &[u32] = &[
    // b reset; six vectors b .; b irq; b .
    0xea00_0006,
    0xeaff_fffe,
    0xeaff_fffe,
    0xeaff_fffe,
    0xeaff_fffe,
    0xeaff_fffe,
    0xea00_0027,
    // reset: r4 = UART0, r9 = GPIO0, r10 = timer 0, r11 = VIC; all pins out
    0xeaff_fffe,
    0xe59f_40a4,
    0xe59f_90a4,
    0xe59f_a0a4,
    0xe59f_b0a4,
    0xe3a0_00ff,
    0xe589_0400,
    // load 2400; control: periodic, interrupt, 32 bits; VIC line 4; SCTLR.I
    0xe3a0_0e96,
    0xe58a_0000,
    0xe3a0_00e2,
    0xe58a_0008,
    0xe3a0_0010,
    0xe58b_0010,
    0xee11_0f10,
    // r5 = 1 MB, r6 = 0, r3 = 0; msr cpsr_c, #0x53; loop: and r7, r6, #0x3fc0
    0xe380_0a01,
    0xee01_0f10,
    0xe3a0_5601,
    0xe3a0_6000,
    0xe3a0_3000,
    0xe321_f053,
    0xe206_7dff,
    // ldr r8, [r5, r7]; add r8, r8, r6; eor r8, r8, r3; str; add r6, #1; tst r6, #0xff; bne loop
    0xe795_8007,
    0xe088_8006,
    0xe028_8003,
    0xe785_8007,
    0xe286_6001,
    0xe316_00ff,
    0x1aff_fff7,
    // pin 0 = r6[8]; print 'A' + r6[12:8]
    0xe206_0c01,
    0xe1a0_0420,
    0xe589_0004,
    0xe206_0c1f,
    0xe1a0_0420,
    0xe280_0041,
    0xe584_0000,
    // tst r6, #0x300; bne loop; wait for interrupt; b loop; irq: clear the timer
    0xe316_0c03,
    0x1aff_ffee,
    0xe3a0_0000,
    0xee07_0f90,
    0xeaff_ffeb,
    0xe3a0_d001,
    0xe58a_d00c,
    // add r3, r3, #1; subs pc, lr, #4; literals
    0xe283_3001,
    0xe25e_f004,
    0x101f_1000,
    0x101e_4000,
    0x101e_2000,
    0x1014_0000,
];

/// Returns whether [`BUSY`] runs on a board: whether the board has the Versatile's peripherals.
pub(crate) fn runs_on(board: &&str) -> bool {
    BoardSpec::named(board).unwrap().peripherals.name == "versatilepb"
}

/// str r8, [r5, r7]: makes the line dirty.
pub(crate) const STORE: u32 = 0xe785_8007;

/// Makes a machine that runs [`BUSY`] with identity page tables, write-back RAM, MMU and caches. The loop loads a word
/// from a line that it has not used before, computes with the word, and executes `second`.
pub(crate) fn cached(board: &str, second: u32) -> Machine {
    // add r8, r8, r6; eor r8, r8, r3
    cached_with(board, [0xe088_8006, 0xe028_8003, second])
}

/// Makes a machine like [`cached`] whose loop executes these three instructions after its load.
pub(crate) fn cached_with(board: &str, executed: [u32; 3]) -> Machine {
    cached_in(board, executed, 16 << 20)
}

/// Makes a machine like [`cached_with`], with `ram_bytes` of RAM.
pub(crate) fn cached_in(board: &str, executed: [u32; 3], ram_bytes: u32) -> Machine {
    const TABLE: usize = 0x4000;
    const START: usize = 0x3000;
    // r0 = 0x4000: table base; r0 = -1: domains; SCTLR.M and C; b 0
    const ON: [u32; 8] = [
        0xe3a0_0901,
        0xee02_0f10,
        0xe3e0_0000,
        0xee03_0f10,
        0xee11_0f10,
        0xe380_0005,
        0xee01_0f10,
        0xe3a0_f000,
    ];
    let mut words = BUSY.to_vec();
    // mov r7, r6, lsl #6
    let mask = words.iter().position(|w| *w == 0xe206_7dff).unwrap();
    words[mask] = 0xe1a0_7306;
    let store = words.iter().position(|w| *w == STORE).unwrap();
    words[store - 2..=store].copy_from_slice(&executed);
    // mov r0, #1; mcr p14, 0, r0, c7, c0, 0
    let sleep = words.iter().position(|w| *w == 0xee07_0f90).unwrap();
    let mut spec = BoardSpec::named(board).unwrap();
    if spec.core.core.name == "xscale-ixp42x" {
        words.splice(sleep - 1..=sleep, [0xe3a0_0001, 0xee07_0e10]);
    }
    words.resize(START / 4, 0);
    words.extend(ON);
    words.resize(TABLE / 4, 0);
    let section = |n: u32| n << 20 | if n < 128 { 0xc1e } else { 0xc12 };
    words.extend((0..4096).map(section));
    let boot = Boot::Bare {
        load: 0,
        entry: START as u32,
        bytes: words.iter().flat_map(|w| w.to_le_bytes()).collect(),
    };
    spec.ram_bytes = ram_bytes;
    Machine::new(spec, &boot).unwrap()
}
