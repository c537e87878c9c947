// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the AT91RM9200 as a whole chip with a bare program.

use super::*;

/// Where the program is: the start of the SDRAM.
const RAM: u32 = 0x2000_0000;

/// Lets the system timer interrupt every 256 ticks of the slow clock, as Linux's periodic tick does, and stops the core by
/// the PMC's SCDR. When the core runs again, the program reads IVR of the AIC and SR of the timer, writes EOICR, counts in
/// r3 and stops the core anew. Interrupts are masked throughout. If the core runs before the timer's interrupt, the
/// program ends in a loop.
const TICKS: &[u32] = &[
    // r4 = ST, r5 = AIC, r6 = PMC, r1 = 1
    0xe59f_4048,
    0xe59f_5048,
    0xe59f_6048,
    0xe3a0_3000,
    0xe3a0_0002,
    0xe585_0120,
    0xe3a0_1001,
    0xe585_1084,
    0xe3a0_0c01,
    0xe584_0004,
    0xe584_1014,
    0xe586_1004,
    0xe595_0100,
    0xe594_2010,
    0xe312_0001,
    0x0a00_0002,
    0xe585_0130,
    0xe283_3001,
    0xeaff_fff7,
    0xeaff_fffe,
    0xffff_fd00,
    0xffff_f000,
    0xffff_fc00,
];

fn chip(words: &[u32]) -> Machine {
    let boot = Boot::Bare {
        load: RAM,
        entry: RAM,
        bytes: words.iter().flat_map(|w| w.to_le_bytes()).collect(),
    };
    Machine::new(BoardSpec::named("at91rm9200-ek").unwrap(), &boot).unwrap()
}

#[test]
fn the_core_stops_until_the_system_timer_interrupts() {
    let mut m = chip(TICKS);
    m.run_for(Duration::from_millis(1_004));
    assert_eq!(m.cpu().register(3), 128);
    assert!(m.counters().idle_cycles > m.now() / 1000 * 999);
    assert!(m.notes().is_empty(), "{:?}", m.notes());
}

#[test]
fn a_stopped_core_that_is_restored_goes_on_alike() {
    let mut straight = chip(TICKS);
    straight.run_for(Duration::from_millis(100));
    let saved = straight.snapshot().unwrap();
    let mut other = Machine::restored(straight.spec().clone(), &saved).unwrap();
    for m in [&mut straight, &mut other] {
        m.run_for(Duration::from_millis(500));
    }
    assert_eq!(straight.cpu().register(3), 76);
    assert!(straight.snapshot().unwrap() == other.snapshot().unwrap());
}

/// Without the interrupt, nothing starts the core again.
#[test]
fn a_core_that_stops_for_good_ends_the_run() {
    let mut words = TICKS.to_vec();
    // Interrupts stay disabled in the timer.
    words[10] = 0xe1a0_0000;
    let mut m = chip(&words);
    assert_eq!(m.run_for(Duration::from_millis(100)), Stop::Asleep);
}
