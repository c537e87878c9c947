// SPDX-License-Identifier: MIT OR Apache-2.0

use super::super::rig_tests::{self, Rig};
use super::*;
use arm::{Saved, State};

/// ENDRX, ENDTX, TXBUFE and RXBUFF of an idle PDC.
const PDC_IDLE: u32 = 1 << 3 | 1 << 4 | 1 << 11 | 1 << 12;

const CLOCK: Clock = Clock {
    cpu_hz: 200_000_000,
    hz: 100_000_000,
};
/// Ten bits at 100 MHz / (16 * 54), in cycles of 200 MHz.
const FRAME: u64 = 10 * 16 * 54 * 2;

fn usart() -> Usart {
    Usart::new(Kind::Usart { version: 0x1_0302 }, CLOCK, 115_200)
}

fn dbgu() -> Usart {
    let kind = Kind::Debug {
        version: 0x1_0202,
        chip: (0x0196_07a0, 0),
    };
    Usart::new(kind, CLOCK, 115_200)
}

fn get(u: &mut Usart, now: u64, reg: u32) -> u32 {
    u.read(now, reg, Width::Word).unwrap()
}

fn set(u: &mut Usart, now: u64, reg: u32, value: u32) {
    u.write(now, reg, Width::Word, value).unwrap();
}

#[test]
fn a_character_takes_its_bits_and_the_next_waits_in_the_holding_register() {
    for mut u in [usart(), dbgu()] {
        assert_eq!(get(&mut u, 0, 0x20), 54);
        set(&mut u, 100, 0x1c, 0x41);
        assert_eq!(get(&mut u, 100, 0x14) & (TXRDY | TXEMPTY), TXRDY);
        set(&mut u, 100, 0x1c, 0x42);
        assert_eq!(get(&mut u, 100 + FRAME - 1, 0x14) & (TXRDY | TXEMPTY), 0);
        assert_eq!(u.deadline(), 100 + FRAME);
        u.tick(100 + FRAME);
        assert_eq!(u.transmitted(), b"A");
        assert_eq!(get(&mut u, 100 + FRAME, 0x14) & (TXRDY | TXEMPTY), TXRDY);
        assert_eq!(get(&mut u, 100 + 2 * FRAME, 0x14) & TXEMPTY, TXEMPTY);
        assert_eq!((u.transmitted(), u.deadline()), (b"B".to_vec(), u64::MAX));
    }
}

#[test]
fn frames_have_the_bits_of_the_mode() {
    let mut u = usart();
    // 7 data bits, even parity, 2 stop bits: 11 bits, at MCK/8.
    set(&mut u, 0, 0x04, 2 << 6 | 2 << 12 | 1 << 4);
    assert_eq!(u.frame(), FRAME / 10 * 11 * 8);
    set(&mut u, 0, 0x20, 0);
    set(&mut u, 0, 0x1c, 1);
    assert_eq!(u.deadline(), u64::MAX, "no baud rate");
}

#[test]
fn a_host_waits_until_the_guest_reads() {
    let mut u = usart();
    set(&mut u, 0, 0x08, RXRDY);
    assert_eq!(u.receive(0, b"xy"), 2);
    u.tick(FRAME);
    assert_eq!((u.outputs(), get(&mut u, FRAME, 0x14) & RXRDY), (1, RXRDY));
    u.tick(9 * FRAME);
    assert_eq!(get(&mut u, 9 * FRAME, 0x14) & OVRE, 0);
    assert_eq!((get(&mut u, 9 * FRAME, 0x18), u.outputs()), (0x78, 0));
    u.tick(10 * FRAME);
    assert_eq!((u.outputs(), get(&mut u, 10 * FRAME, 0x18)), (1, 0x79));
}

#[test]
fn a_time_out_follows_the_last_character() {
    let mut u = usart();
    set(&mut u, 0, 0x24, 30);
    set(&mut u, 0, 0x00, CR_STTTO);
    set(&mut u, 0, 0x08, TIMEOUT);
    u.tick(50 * FRAME);
    assert_eq!(u.outputs(), 0, "it waits for a character");
    u.receive(50 * FRAME, b"a");
    u.tick(51 * FRAME);
    get(&mut u, 51 * FRAME, 0x18);
    assert_eq!(u.deadline(), 54 * FRAME);
    u.tick(54 * FRAME);
    assert_eq!(
        (u.outputs(), get(&mut u, 54 * FRAME, 0x14) & TIMEOUT),
        (1, TIMEOUT)
    );
    set(&mut u, 54 * FRAME, 0x00, CR_STTTO);
    assert_eq!(u.outputs(), 0);
}

#[test]
fn resets_and_disables_stop_each_direction() {
    let mut u = usart();
    set(&mut u, 0, 0x00, CR_TXDIS | CR_RXDIS);
    set(&mut u, 0, 0x1c, 0x41);
    u.receive(0, b"b");
    u.tick(9 * FRAME);
    assert_eq!(
        (u.transmitted(), get(&mut u, 9 * FRAME, 0x14)),
        (vec![], PDC_IDLE)
    );
    set(&mut u, 9 * FRAME, 0x00, CR_TXEN | CR_RXEN);
    u.tick(10 * FRAME);
    assert_eq!(get(&mut u, 10 * FRAME, 0x18), 0x62, "the line was held");
    set(&mut u, 10 * FRAME, 0x1c, 1);
    set(&mut u, 10 * FRAME, 0x00, CR_RSTTX | CR_TXEN);
    u.tick(20 * FRAME);
    assert!(u.transmitted().is_empty());
}

#[test]
fn in_local_loopback_the_part_hears_itself() {
    let mut u = dbgu();
    set(&mut u, 0, 0x04, LOCAL_LOOP << 14 | 4 << 9);
    set(&mut u, 0, 0x1c, 0x55);
    u.tick(FRAME);
    assert_eq!((get(&mut u, FRAME, 0x18), u.transmitted().len()), (0x55, 0));
    set(&mut u, FRAME, 0x1c, 1);
    set(&mut u, FRAME, 0x1c, 2);
    u.tick(9 * FRAME);
    assert_eq!(get(&mut u, 9 * FRAME, 0x14) & OVRE, OVRE);
}

#[test]
fn identification_tells_the_two_parts_apart() {
    let (mut u, mut d) = (usart(), dbgu());
    assert_eq!([get(&mut u, 0, 0xf0), get(&mut u, 0, 0xfc)], [0, 0x1_0302]);
    assert_eq!(
        [get(&mut d, 0, 0x40), get(&mut d, 0, 0xfc)],
        [0x0196_07a0, 0x1_0202]
    );
    assert!(d.read(0, 0x24, Width::Word).is_err());
    for (reg, value) in [(0x04, 1 << 14), (0x04, 4), (0x128, 1)] {
        assert!(u.write(0, reg, Width::Word, value).is_err(), "{reg:#x}");
    }
}

#[test]
fn a_copy_restored_in_the_middle_of_a_character_goes_on_alike() {
    let mut straight = usart();
    set(&mut straight, 7, 0x1c, 0x41);
    straight.receive(9, b"q");
    let mut saved = Vec::new();
    straight.save(&mut saved);
    let mut other = usart();
    other.restore(&mut Saved::new(&saved)).unwrap();
    for u in [&mut straight, &mut other] {
        assert_eq!(u.deadline(), 7 + FRAME);
        u.tick(20 * FRAME);
        assert_eq!(
            (u.transmitted(), get(u, 20 * FRAME, 0x18)),
            (b"A".to_vec(), 0x71)
        );
    }
}

/// A USART in local loopback, whose PDC sends 6 bytes and receives them in two buffers, as `atmel_serial.c` does.
fn looped() -> Rig {
    let kind = Kind::Usart { version: 0x1_0302 };
    let mut rig = Rig::new(Box::new(Usart::new(kind, rig_tests::CLOCK, 115_200)));
    rig.load(0x1001, b"abcdef");
    rig.write_all(&[
        (0x04, LOCAL_LOOP << 14 | 3 << 6 | 4 << 9),
        (0x24, 30),
        (0x100, 0x2001),
        (0x104, 4),
        (0x110, 0x3003),
        (0x114, 4),
        (0x120, 1),
        (0x00, CR_STTTO),
        (0x108, 0x1001),
        (0x10c, 6),
        (0x120, 0x100),
    ]);
    rig
}

#[test]
fn the_pdc_sends_and_receives_at_the_pace_of_the_line() {
    let mut rig = looped();
    let begun = rig.now;
    let status = rig.wait(0x14, 1 << 3);
    assert_eq!(
        status & (1 << 3 | 1 << 12),
        1 << 3,
        "the first buffer is full, the next is not"
    );
    let frame = 10 * 16 * 49 * 2;
    assert!((4 * frame..4 * frame + 1000).contains(&(rig.now - begun)));
    rig.wait(0x14, TIMEOUT);
    assert_eq!(
        rig.read(0x14) & (TXEMPTY | 1 << 11 | OVRE),
        TXEMPTY | 1 << 11
    );
    assert_eq!(
        (rig.ram(0x2001, 5), rig.ram(0x3003, 3)),
        (b"abcd\0".to_vec(), b"ef\0".to_vec())
    );
    assert_eq!(
        (rig.read(0x110), rig.read(0x100), rig.read(0x104)),
        (0x3003, 0x3005, 2)
    );
}

#[test]
fn a_transfer_that_is_saved_continues_in_another_machine() {
    let mut rig = looped();
    for _ in 0..5 {
        rig.run(rig.now + 17_001);
        let (now, saved) = (rig.now, rig.saved());
        let [mut once, mut often] = [looped(), looped()];
        for other in [&mut once, &mut often] {
            other.restore(now, &saved);
        }
        for n in 0..200 {
            often.run(now + 1000 * n);
        }
        once.run(now + 200_000);
        often.run(now + 200_000);
        assert!(once.saved() == often.saved());
        assert_eq!(once.ram(0x3003, 2), b"ef");
    }
}

#[test]
fn the_pdc_stops_at_an_address_outside_ram() {
    let mut rig = looped();
    let ram = rig.bus.ram().bytes();
    rig.write_all(&[(0x110, ram - 1), (0x114, 2)]);
    rig.run(rig.now + 200_000);
    assert_eq!((rig.read(0x124), rig.read(0x104)), (0x100, 1));
    assert!(
        rig.bus
            .notes()
            .iter()
            .any(|note| note.contains("not in RAM"))
    );
    rig.shake(
        &[
            0, 4, 0x14, 0x18, 0x1c, 0x20, 0x24, 0x100, 0x104, 0x108, 0x10c, 0x114, 0x11c, 0x120,
        ],
        &[
            0x50,
            0xa0,
            0x8c0,
            LOCAL_LOOP << 14 | 0x8c0,
            49,
            1,
            0x101,
            0x202,
            0x1000,
            ram - 5,
            20,
        ],
    );
}
