// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of a memory card and a DataFlash on a whole chip. The test uses the units' registers as a driver does.

use super::*;
use crate::device::card::Content;
use arm::{Bus as _, Pa, Width};

const RAM: u32 = 0x2000_0000;
const MCI: u32 = 0xfff8_0000;
const SPI: u32 = 0xfffa_4000;
const PIO_A: u32 = 0xffff_f200;
const PIO_E: u32 = 0xffff_fa00;

/// Returns a chip whose core runs an endless loop.
fn chip() -> Machine {
    let boot = Boot::Bare {
        load: RAM,
        entry: RAM,
        bytes: 0xeaff_fffeu32.to_le_bytes().to_vec(),
    };
    Machine::new(BoardSpec::named("sam9263-ek").unwrap(), &boot).unwrap()
}

fn content(first: u8) -> Content {
    let image: Vec<u8> = (0..1u32 << 20).map(|at| (at / 7) as u8 ^ first).collect();
    Content::of(image).unwrap()
}

fn get(m: &mut Machine, pa: u32) -> u32 {
    let now = m.now();
    let bus = &mut m.cpu_mut().bus;
    bus.read(now, Pa(pa), Width::Word).unwrap().0
}

/// Writes registers, with a pause for the unit behind each.
fn set(m: &mut Machine, writes: &[(u32, u32)]) {
    for (pa, value) in writes {
        let now = m.now();
        let bus = &mut m.cpu_mut().bus;
        bus.write(now, Pa(*pa), Width::Word, *value).unwrap();
        m.run_for(Duration::from_micros(10));
    }
}

/// Sends a command at 25 MHz, and returns the first word of the response.
fn command(m: &mut Machine, index: u32, argument: u32, kind: u32) -> u32 {
    set(
        m,
        &[(MCI + 0x10, argument), (MCI + 0x14, index | kind | 1 << 12)],
    );
    assert_eq!(get(m, MCI + 0x40) & 1, 1);
    get(m, MCI + 0x20)
}

/// Identifies the card, and starts to read 8 blocks from block 2 into RAM.
fn reading(m: &mut Machine) {
    set(m, &[(MCI, 1), (MCI + 4, 0x1801), (MCI + 8, 0x2f)]);
    command(m, 0, 0, 0);
    command(m, 8, 0x1aa, 1 << 6);
    for _ in 0..2 {
        command(m, 55, 0, 1 << 6);
        command(m, 41, 0x4030_0000, 1 << 6);
    }
    command(m, 2, 0, 2 << 6);
    for index in [3, 7] {
        command(m, index, 1 << 16, 1 << 6);
    }
    set(
        m,
        &[
            (MCI + 4, 0x9801),
            (MCI + 0x18, 512 << 16 | 8),
            (MCI + 0x100, RAM + 0x8002),
            (MCI + 0x104, 1024),
            (MCI + 0x44, 1 << 14),
        ],
    );
    command(m, 18, 2, 1 << 6 | 5 << 16 | 1 << 19);
    set(m, &[(MCI + 0x120, 1)]);
}

fn ram(m: &Machine, at: u32, count: u32) -> Vec<u8> {
    let ram = m.cpu().bus.ram();
    (at..at + count).map(|at| ram.peek(at).unwrap()).collect()
}

#[test]
fn the_switches_of_the_slot_show_a_card_that_can_be_written() {
    let mut m = chip();
    let switches = |m: &mut Machine| get(m, PIO_E + 0x3c) >> 18 & 3;
    assert_eq!(switches(&mut m), 1);
    m.cables().insert_card(&content(0)).unwrap();
    assert_eq!(
        (switches(&mut m), m.cables().card().unwrap().bytes()),
        (0, 1 << 20)
    );
    let now = m.now();
    m.cpu_mut().bus.insert_card(now, None).unwrap();
    assert_eq!(switches(&mut m), 1);
    let boot = Boot::Bare {
        load: 0,
        entry: 0,
        bytes: vec![0; 4],
    };
    let mut other = Machine::new(BoardSpec::named("sam9263").unwrap(), &boot).unwrap();
    assert!(other.cables().insert_card(&content(0)).is_err());
}

#[test]
fn a_machine_with_a_card_is_restored_in_the_middle_of_a_transfer_with_that_card_only() {
    let mut m = chip();
    m.cables().insert_card(&content(0)).unwrap();
    reading(&mut m);
    m.run_for(Duration::from_micros(700));
    let saved = m.snapshot().unwrap();
    let spec = || m.spec().clone();
    for wrong in [None, Some(&content(1))] {
        let restored = Machine::restored_with_card(spec(), &saved, wrong);
        assert!(matches!(restored, Err(RestoreError::Damaged(_))));
    }
    let mut other = Machine::restored_with_card(spec(), &saved, Some(&content(0))).unwrap();
    let mut fork = m.clone();
    for m in [&mut other, &mut fork] {
        let before = ram(m, 0x8002, 4096);
        m.run_for(Duration::from_millis(3));
        let mut expected = vec![0; 4096];
        m.cpu().bus.card().unwrap().read(1024, &mut expected);
        assert!(ram(m, 0x8002, 4096) == expected && before != expected);
        // The interrupt has reached the AIC: IPR.
        assert_eq!(get(m, 0xffff_f10c) >> 10 & 1, 1);
    }
    assert!(other.snapshot().unwrap() == fork.snapshot().unwrap());
}

#[test]
fn a_gpio_line_selects_the_flash() {
    let mut m = chip();
    // PA5 is an output, which is high. Then the SPI starts as a master with its PDC.
    set(
        &mut m,
        &[
            (PIO_A + 0x30, 1 << 5),
            (PIO_A + 0x10, 1 << 5),
            (PIO_A, 1 << 5),
        ],
    );
    set(
        &mut m,
        &[(SPI + 4, 0xe_0011), (SPI, 1), (SPI + 0x30, 0x702)],
    );
    let identify = |m: &mut Machine| {
        assert!(m.cpu_mut().bus.ram_mut().load(0x9001, &[0x9f, 0, 0, 0]));
        set(
            m,
            &[
                (SPI + 0x100, RAM + 0xa003),
                (SPI + 0x104, 4),
                (SPI + 0x108, RAM + 0x9001),
                (SPI + 0x10c, 4),
                (SPI + 0x120, 0x101),
            ],
        );
        assert_eq!(get(m, SPI + 0x10) >> 6 & 1, 1);
        ram(m, 0xa003, 4)
    };
    assert_eq!(identify(&mut m), [0xff; 4]);
    set(&mut m, &[(PIO_A + 0x34, 1 << 5)]);
    assert_eq!(identify(&mut m), [0xff, 0x1f, 0x28, 0]);
    assert!(m.notes().is_empty());
}
