// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of a whole chip with a bare program.

use super::*;

#[path = "device_fuzz_tests.rs"]
mod device_fuzz;
#[path = "forged_chip_tests.rs"]
mod forged_chips;

/// Where the program is: the start of the SDRAM.
const RAM: u32 = 0x2000_0000;

/// Lets channel 2 of TCB0 interrupt after 33 ticks of the slow clock, again and again, as Linux's tick does. The loop
/// waits for the interrupt, and reads IVR and ISR of the AIC and SR of the channel. It raises PE0, prints a letter on the
/// DBGU, lowers PE0, starts the channel anew, and writes EOICR. After 100 interrupts, or if a value is wrong, the program
/// resets the chip. Interrupts are masked throughout.
const TICKS: &[u32] = &[
    // r4 = DBGU, r5 = AIC, r6 = TCB0, r9 = PIOE; r3 = 0; SVR[19] = 19; IECR = 1 << 19; PE0 is an output
    0xe59f_40b0,
    0xe59f_50b0,
    0xe59f_60b0,
    0xe59f_90b0,
    0xe3a0_3000,
    0xe3a0_0013,
    0xe585_00cc,
    0xe3a0_0702,
    0xe585_0120,
    0xe3a0_0001,
    0xe589_0010,
    0xe59f_0094,
    0xe586_0084,
    0xe3a0_0021,
    0xe586_009c,
    0xe3a0_0010,
    0xe586_00a4,
    0xe3a0_7005,
    0xe586_7080,
    0xe3a0_0000,
    0xee07_0f90,
    0xe595_0100,
    0xe595_1108,
    0xe150_0001,
    0x1a00_0010,
    0xe596_20a0,
    0xe312_0010,
    0x0a00_000d,
    0xe3a0_0001,
    0xe589_0030,
    0xe594_1014,
    0xe311_0002,
    0x0aff_fffc,
    0xe203_100f,
    0xe281_1061,
    0xe584_101c,
    0xe589_0034,
    0xe586_7080,
    0xe585_0130,
    0xe283_3001,
    0xe353_0064,
    0x1aff_ffe8,
    0xe59f_001c,
    0xe59f_101c,
    0xe581_0000,
    0xeaff_fffe,
    0xffff_ee00,
    0xffff_f000,
    0xfff7_c000,
    0xffff_fa00,
    0x0000_c044,
    0xa500_0005,
    0xffff_fd00,
];

fn chip(words: &[u32]) -> Machine {
    let boot = Boot::Bare {
        load: RAM,
        entry: RAM,
        bytes: words.iter().flat_map(|w| w.to_le_bytes()).collect(),
    };
    Machine::new(BoardSpec::named("sam9263-ek").unwrap(), &boot).unwrap()
}

#[test]
fn ticks_of_the_slow_clock_reach_the_core_through_the_aic() {
    let mut m = chip(TICKS);
    assert_eq!(m.run_for(Duration::from_millis(200)), Stop::Reset);
    let console = String::from_utf8_lossy(m.console_log()).into_owned();
    // The last letter is still on the wire.
    assert_eq!(console, "abcdefghijklmnop".repeat(7)[..99]);
    // An interrupt comes 33 periods of 32,768 Hz after the first edge behind the start of the channel.
    let seconds = 100.0 * 34.0 / 32_768.0;
    assert!((m.seconds() - seconds).abs() < 0.001, "{}", m.seconds());
    let rises: Vec<u64> = m
        .edges()
        .iter()
        .filter(|e| e.level)
        .map(|e| e.cycle)
        .collect();
    assert_eq!((rises.len(), m.edges()[0].pin), (100, 0));
    let ticks = rises.windows(2).map(|pair| pair[1] - pair[0]);
    let cycles = 34.0 * 199_919_178.0 / 32_768.0;
    assert!(ticks.clone().all(|t| (t as f64 - cycles).abs() < 7000.0));
    assert!(m.counters().idle_cycles > m.now() / 10 * 9);
    assert!(m.notes().is_empty(), "{:?}", m.notes());
}

#[test]
fn a_chip_that_is_restored_in_the_middle_goes_on_alike() {
    let mut straight = chip(TICKS);
    for at in [100_000, 5_000_001, 7_777_777] {
        straight.run_until(at);
        let saved = straight.snapshot().unwrap();
        let mut other = Machine::restored(straight.spec().clone(), &saved).unwrap();
        let mut fork = straight.clone();
        for m in [&mut other, &mut fork] {
            assert_eq!(m.run_for(Duration::from_millis(200)), Stop::Reset);
        }
        assert_eq!(other.console_log(), fork.console_log());
        assert_eq!((other.now(), other.edges()), (fork.now(), fork.edges()));
    }
}

/// ldr r0, [pc]; ldr r1, [r0]; a literal. The vectors at 0 have no owner either, so one abort follows the other.
#[test]
fn an_address_without_a_unit_gives_an_abort_and_a_note() {
    let mut m = chip(&[0xe59f_0000, 0xe590_1000, 0xffff_fe00]);
    assert_eq!(m.run_for(Duration::from_millis(1)), Stop::ExceptionLoop);
    let notes = m.notes();
    let end = "no unit owns the address; the first is a read from 0xfffffe00";
    assert!(notes.len() == 1 && notes[0].ends_with(end), "{notes:?}");
}

/// ldrex r0, [r1]; the vectors have no owner.
#[test]
fn an_instruction_of_a_later_version_is_undefined_and_gives_a_note() {
    let mut m = chip(&[0xe191_0f9f]);
    assert_eq!(m.run_for(Duration::from_millis(1)), Stop::ExceptionLoop);
    let notes = m.notes();
    let is_told = notes[1].starts_with("the instruction `ldrex r0, [r1]` at 0x")
        && notes[1]
            .ends_with("is of ARMv6; the board's core is ARMv5TEJ, on which it is undefined");
    assert!(is_told, "{notes:?}");
}

/// ldr r0, [pc, #8]; ldr r1, [r0]; str r1, [r0, #0x34]; b .; a literal.
#[test]
fn a_unit_that_is_not_modelled_is_told_with_its_node() {
    let mut m = chip(&[
        0xe59f_0008,
        0xe590_1000,
        0xe580_1034,
        0xeaff_fffe,
        0x00a0_0000,
    ]);
    m.run_for(Duration::from_millis(1));
    assert_eq!(m.cpu().register(1), 0x10);
    let notes = m.notes();
    assert!(
        notes.len() == 1
            && notes[0].starts_with("ohci is not modelled (")
            && notes[0].ends_with(
                "1 reads, 1 writes; the first is a read from 0x00a00000 (register 0x0, node \
                 /ahb/ohci@a00000)"
            ),
        "{notes:?}"
    );
}
