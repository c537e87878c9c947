// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::tests::bus::{TestBus, Transaction};

fn parts() -> (Biu, TestBus) {
    (Biu::new(0, Buffers::ARM926EJS), TestBus::new(65536))
}

#[test]
fn a_store_reaches_memory_only_when_its_turn_on_the_bus_comes() {
    let (mut biu, mut bus) = parts();
    let now = biu.store(&mut bus, 10, Pa(0x100), Width::Word, 7);
    assert_eq!((now, bus.word(0x100)), (10, 0));
    biu.retire(&mut bus, 10);
    assert_eq!(bus.word(0x100), 7);
}

#[test]
fn a_read_of_the_same_bytes_waits_and_walks_and_fetches_do_not_look() {
    let (mut biu, mut bus) = parts();
    // The first store occupies the bus from cycle 0 to 4; the second waits for it.
    biu.store(&mut bus, 0, Pa(0x200), Width::Word, 1);
    biu.retire(&mut bus, 0);
    biu.store(&mut bus, 1, Pa(0x300), Width::Byte, 9);
    let (walked, _) = biu
        .clone()
        .walk_read(&mut bus.clone(), 2, Pa(0x300))
        .unwrap();
    assert_eq!(walked, 0);
    let mut line = [1; 8];
    let fetched = biu
        .clone()
        .fetch_line(&mut bus.clone(), 2, Pa(0x300), &mut line);
    assert_eq!((fetched.unwrap().0, line[0]), (4, 0));
    let (read, done) = biu.read(&mut bus, 2, Pa(0x300), Width::Byte).unwrap();
    assert_eq!((read, done), (9, 12));
}

#[test]
fn sequential_words_share_an_address_and_leave_as_bursts_of_eight_four_and_one() {
    let (mut biu, mut bus) = parts();
    let words: Vec<u32> = (0..13).collect();
    biu.store_words(&mut bus, 0, Pa(0x400), &words);
    biu.drain(&mut bus, 0);
    let burst = Transaction::WriteWords;
    let last = Transaction::Write(0x430, Width::Word, 12);
    assert_eq!(bus.log, [burst(0x400, 8), burst(0x420, 4), last]);
}

#[test]
fn the_fifth_address_waits_for_the_first_to_leave() {
    let (mut biu, mut bus) = parts();
    let mut now = 0;
    // A line fill occupies the bus until cycle 15.
    let mut line = [0; 8];
    biu.read_line(&mut bus, 0, Pa(0x1000), &mut line).unwrap();
    for n in 0..4 {
        now = biu.store(&mut bus, now, Pa(0x100 + n * 64), Width::Word, n);
    }
    assert_eq!(now, 0);
    assert_eq!(biu.store(&mut bus, now, Pa(0x800), Width::Word, 4), 19);
}

#[test]
fn a_victim_goes_to_memory_after_the_fill_and_before_later_stores() {
    let (mut biu, mut bus) = parts();
    biu.evict(&mut bus, 5, Pa(0x500), 0b10, &[3; 8]);
    biu.store(&mut bus, 5, Pa(0x510), Width::Word, 8);
    biu.drain(&mut bus, 5);
    assert_eq!(bus.log[0], Transaction::WriteWords(0x510, 4));
    assert_eq!(
        (bus.word(0x50c), bus.word(0x510), bus.word(0x514)),
        (0, 8, 3)
    );
}

#[test]
fn xscales_has_eight_entries_each_within_16_bytes() {
    let (mut biu, mut bus) = (Biu::new(0, Buffers::XSCALE), TestBus::new(65536));
    biu.free_at = 1000;
    for n in 0..8 {
        assert_eq!(
            biu.store_words(&mut bus, 0, Pa(0x100 + 16 * n), &[n; 4]),
            0,
            "{n}"
        );
    }
    assert_eq!(biu.len, 8);
    assert!(
        biu.store_words(&mut bus, 0, Pa(0x400), &[1]) > 1000,
        "no more room"
    );
    biu.drain(&mut bus, 0);
    assert_eq!([0x100, 0x17c, 0x400].map(|pa| bus.word(pa)), [0, 7, 1]);
}

/// Returns the result of restoring the unit's own state with the word `there` replaced by `forged`.
fn forged(biu: &Biu, there: u32, forged: u32) -> Result<(), Damaged> {
    use crate::state::{Saved, State};
    let mut saved = Vec::new();
    biu.save(&mut saved);
    let bytes = there.to_le_bytes();
    let at = saved.windows(4).position(|four| four == bytes).unwrap();
    saved[at..at + 4].copy_from_slice(&forged.to_le_bytes());
    biu.clone().restore(&mut Saved::new(&saved))
}

/// A sequential burst from 0x13ff would have no word, and the run would never end.
#[test]
fn saved_words_at_a_byte_and_a_saved_victim_that_is_no_line_are_refused() {
    let (mut biu, mut bus) = (Biu::new(0, Buffers::ARM920T), TestBus::new(65536));
    biu.store_words(&mut bus, 0, Pa(0x13f8), &[1, 2]);
    assert_eq!(forged(&biu, 0x13f8, 0x13fc), Ok(()));
    assert!(forged(&biu, 0x13f8, 0x13ff).is_err());
    biu.evict(&mut bus, 0, Pa(0x2460), 3, &[3; 8]);
    assert_eq!(forged(&biu, 0x2460, 0x2480), Ok(()));
    assert!(forged(&biu, 0x2460, 0x2461).is_err());
}
