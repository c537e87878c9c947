// SPDX-License-Identifier: MIT OR Apache-2.0
//! The display of the AT91SAM9263-EK as `atmel_lcdfb.c` sets it up, errors, and state.

use super::super::rig_tests::{CLOCK, Rig};
use super::*;

/// 240 by 320 pixels of 16 bits, in bursts of 8 words.
const WORDS: u32 = 240 * 320 / 2;
const SET_UP: [(u32, u32); 8] = [
    (DMACON, 0),
    (DMABADDR1, 0x1_0000),
    (DMAFRMCFG, 7 << 24 | WORDS),
    // Pixel clock: master clock / 18.
    (LCDCON1, 8 << 12),
    (LCDCON2, 4 << 5 | 2),
    // 1 line and 1 pixel of each porch and pulse.
    (TIM1, 1 << 24 | 1 << 8 | 1),
    (TIM2, 0),
    (LCDFRMCFG, 239 << 21 | 319),
];
/// Core cycles of a frame: two for each cycle of the master clock.
const FRAME: u64 = 2 * 18 * (240 + 3) * (320 + 3);

fn rig() -> Rig {
    let mut rig = Rig::new(Box::new(Lcdc::new(CLOCK)));
    rig.write_all(&SET_UP);
    rig
}

fn switch_on(rig: &mut Rig) {
    rig.write_all(&[(DMACON, ENABLED), (PWRCON, 2 | POWER)]);
}

/// Runs for a time and returns address and length of each burst.
fn bursts(rig: &mut Rig, cycles: u64) -> Vec<(u32, usize)> {
    let end = rig.now + cycles;
    let mut transfers = Vec::new();
    // A transfer ends a step of the rig.
    while rig.now < end {
        rig.run(end.min(rig.now + 100));
        transfers.extend(rig.bus.take_transfers());
    }
    assert!(transfers.iter().all(|transfer| !transfer.writes));
    transfers.iter().map(|t| (t.pa, t.bytes.len())).collect()
}

#[test]
fn frames_are_read_in_bursts_at_the_pace_of_the_pixels() {
    let mut rig = rig();
    assert_eq!(bursts(&mut rig, FRAME), []);
    switch_on(&mut rig);
    let read = bursts(&mut rig, FRAME);
    let frame = WORDS as usize / 8;
    // The pace is rounded to a tick of the master clock for each burst.
    assert!(
        (frame..frame + frame / 100).contains(&read.len()),
        "{}",
        read.len()
    );
    for (n, burst) in read.iter().enumerate() {
        assert_eq!(*burst, (0x1_0000 + 32 * (n % frame) as u32, 32));
    }
    assert_eq!(rig.read(ISR), END_OF_FRAME);
    // The next frame begins at the address of that moment.
    rig.write_all(&[(DMABADDR1, 0x8_0000), (ICR, !0)]);
    let read = bursts(&mut rig, FRAME);
    assert_eq!(read.last().map(|burst| burst.0 >= 0x8_0000), Some(true));
    assert_eq!(rig.read(DMACON), ENABLED | BUSY);
    rig.write(PWRCON, 2);
    assert_eq!((rig.read(PWRCON), rig.read(DMACON)), (2, ENABLED));
    rig.bus.take_transfers();
    assert_eq!(bursts(&mut rig, FRAME), []);
}

#[test]
fn the_end_of_a_frame_interrupts_if_it_is_enabled() {
    let mut rig = rig();
    rig.write(IER, END_OF_FRAME);
    switch_on(&mut rig);
    bursts(&mut rig, FRAME);
    assert_eq!((rig.read(IMR), rig.read(ISR)), (END_OF_FRAME, END_OF_FRAME));
    let mut unit = Lcdc::new(CLOCK);
    unit.status = END_OF_FRAME;
    assert_eq!(unit.outputs(), 0);
    unit.mask = END_OF_FRAME;
    assert_eq!(unit.outputs(), 1);
}

#[test]
fn a_frame_buffer_outside_memory_ends_the_dma_with_an_error() {
    let mut rig = rig();
    for base in [0xffff_fff0, 0x7000_0000] {
        rig.write_all(&[(DMABADDR1, base), (ICR, !0)]);
        switch_on(&mut rig);
        assert_eq!(bursts(&mut rig, FRAME), []);
        assert_eq!((rig.read(ISR), rig.read(DMACON)), (MEMORY_ERROR, 0));
    }
}

#[test]
fn what_is_not_modelled_is_refused() {
    let mut rig = rig();
    for (register, value) in [(DMACON, TWO_DIMENSIONS), (LCDCON2, DUAL_SCAN)] {
        assert!(rig.try_write(register, value).is_err());
        let stop = format!("{:?}", rig.bus.take_stop());
        assert!(stop.contains("not modelled"), "{stop}");
    }
}

#[test]
fn a_restored_board_reads_the_rest_of_the_frame() {
    let mut one = rig();
    switch_on(&mut one);
    bursts(&mut one, FRAME / 3);
    let (now, saved) = (one.now, one.saved());
    let mut other = rig();
    other.restore(now, &saved);
    assert_eq!(bursts(&mut one, FRAME), bursts(&mut other, FRAME));
    assert_eq!(one.saved(), other.saved());
}

#[test]
fn no_value_of_a_register_is_a_panic_or_an_endless_loop() {
    let registers: Vec<u32> = (0..0x860).step_by(4).collect();
    let mut rig = Rig::new(Box::new(Lcdc::new(CLOCK)));
    rig.shake(&registers, &[0, 1, !0, 0x7f_ffff, 0x7f00_0001]);
}
