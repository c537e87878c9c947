// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bus master reads and writes memory, takes the memory's time, and is saved like every device.

use super::dma::Memory;
use super::tests::{bus, get, set};
use super::*;
use crate::Machine;
use crate::device::{Device, Unmodelled};
use crate::machine::busy_tests::{STORE, cached_in};
use arm::{Bus as _, Pa, Saved, State as _};

#[path = "copier_tests.rs"]
mod copier;

use copier::Copier;

const COPIER: u32 = 0x5000_0000;

fn with_copier() -> SystemBus {
    let mut bus = bus();
    attach(&mut bus);
    bus
}

fn attach(bus: &mut SystemBus) {
    let copier = Box::new(Copier::default());
    bus.attach("copier", (COPIER, 0x1000), copier).unwrap();
}

/// Starts a copy of `count` words.
fn start(bus: &mut SystemBus, now: u64, [from, to, count]: [u32; 3]) {
    for (n, value) in [from, to, count, 1].into_iter().enumerate() {
        set(bus, now, COPIER + 4 * n as u32, value);
    }
}

/// Starts a copy of `count` bytes.
fn start_bytes(bus: &mut SystemBus, now: u64, [from, to, count]: [u32; 3]) {
    for (n, value) in [from, to, count, 2].into_iter().enumerate() {
        set(bus, now, COPIER + 4 * n as u32, value);
    }
}

/// Returns a board that computes and stores in a loop.
fn stores() -> Machine {
    let program = [0xe088_8006, 0xe028_8003, STORE];
    cached_in("sam9263", program, 4 << 20)
}

#[test]
fn a_bus_master_copies_within_ram_and_its_transfers_are_told() {
    let mut bus = with_copier();
    for n in 0..20 {
        set(&mut bus, 0, 0x1000 + 4 * n, 100 + n);
    }
    start(&mut bus, 1000, [0x1000, 0x2000, 20]);
    assert_eq!(bus.next_event(), 1000);
    bus.advance(1000);
    assert_eq!(get(&mut bus, 5000, 0x2000 + 4 * 19), 119);
    assert_eq!(get(&mut bus, 5000, COPIER + 12), 1);
    let transfers = bus.take_transfers();
    let summary = |t: &dma::Transfer| (t.pa, t.bytes.len(), t.writes);
    // A burst has at most 16 words.
    assert_eq!(
        transfers.iter().map(summary).collect::<Vec<_>>(),
        [
            (0x1000, 64, false),
            (0x1040, 16, false),
            (0x2000, 64, true),
            (0x2040, 16, true)
        ]
    );
    // Each burst begins at the end of the previous one.
    for pair in transfers.windows(2) {
        assert_eq!(pair[0].cycle + u64::from(pair[0].cycles), pair[1].cycle);
    }
    assert_eq!(transfers[0].cycle, 1000);
}

#[test]
fn a_bus_master_copies_any_bytes_and_leaves_their_neighbours() {
    let byte = |at: u32| (at * 7 + 1) as u8;
    for (from, to, count) in [(1, 2, 1), (3, 1, 2), (0, 3, 5), (2, 2, 64), (3, 0, 131)] {
        let mut bus = with_copier();
        let bytes: Vec<u8> = (0..256).map(byte).collect();
        assert!(bus.ram_mut().load(0x1000, &bytes));
        assert!(bus.ram_mut().load(0x2000, &[0xee; 256]));
        start_bytes(&mut bus, 1000, [0x1000 + from, 0x2010 + to, count]);
        bus.advance(1000);
        for at in 0..256u32 {
            let copied = at.checked_sub(0x10 + to).filter(|n| *n < count);
            let expected = copied.map_or(0xee, |n| byte(from + n));
            assert_eq!(bus.ram().peek(0x2000 + at), Some(expected), "{at}");
        }
        let (written, read): (Vec<_>, Vec<_>) =
            bus.take_transfers().into_iter().partition(|t| t.writes);
        for (transfers, pa) in [(read, 0x1000 + from), (written, 0x2010 + to)] {
            let told: Vec<u8> = transfers.iter().flat_map(|t| t.bytes.clone()).collect();
            let expected: Vec<u8> = (from..from + count).map(byte).collect();
            assert_eq!((transfers[0].pa, told), (pa, expected));
            // A later burst begins on a word, and no burst has more than 16 words.
            assert!(transfers[1..].iter().all(|t| t.pa & 3 == 0));
            assert!(
                transfers
                    .iter()
                    .all(|t| t.pa % 4 + t.bytes.len() as u32 <= 64)
            );
        }
    }
}

#[test]
fn a_beat_takes_as_long_for_a_byte_as_for_a_word() {
    let cycles = |copied: [u32; 3]| {
        let mut bus = with_copier();
        start_bytes(&mut bus, 1000, copied);
        bus.advance(1000);
        let transfers = bus.take_transfers();
        transfers.iter().map(|t| t.cycles).collect::<Vec<_>>()
    };
    let word = cycles([0x1000, 0x2000, 4]);
    for narrow in [
        [0x1000, 0x2000, 1],
        [0x1001, 0x2002, 2],
        [0x1003, 0x2001, 1],
    ] {
        assert_eq!(cycles(narrow), word);
    }
    // These two bytes are in two words.
    assert!(cycles([0x1003, 0x2001, 2])[0] > word[0]);
}

#[test]
fn pieces_are_aligned_and_are_the_bytes_of_the_transfer() {
    for pa in 0x100..0x104u32 {
        for count in 0..12u32 {
            let transfer = dma::Transfer {
                master: 0,
                cycle: 0,
                cycles: 1,
                pa,
                bytes: (0..count as u8).collect(),
                writes: true,
                purpose: dma::Purpose::Data,
            };
            let mut at = pa;
            let mut bytes: Vec<u8> = Vec::new();
            for (piece, width, value) in transfer.pieces() {
                assert_eq!((piece, piece % width.bytes()), (at, 0));
                bytes.extend(&value.to_le_bytes()[..width.bytes() as usize]);
                at += width.bytes();
            }
            assert_eq!(bytes, transfer.bytes);
        }
    }
}

#[test]
fn the_core_waits_while_a_bus_master_has_the_memory() {
    let mut bus = with_copier();
    let cost = |bus: &mut SystemBus, now| bus.read(now, Pa(0x1000), Width::Word).unwrap().1;
    cost(&mut bus, 100);
    let alone = cost(&mut bus, 1000);
    start(&mut bus, 1000, [0x1000, 0x1100, 16]);
    bus.advance(1000);
    let transfers = bus.take_transfers();
    let end = transfers.last().map(|t| t.cycle + u64::from(t.cycles));
    let end = end.unwrap();
    assert!(end > 1010);
    assert_eq!(
        u64::from(cost(&mut bus, 1010)),
        end - 1010 + u64::from(alone)
    );
    assert_eq!(cost(&mut bus, end), alone);
}

#[test]
fn a_copy_from_or_to_no_ram_fails_and_changes_nothing() {
    let mut bus = with_copier();
    let ram = bus.ram().bytes();
    set(&mut bus, 0, 0x2000, 7);
    for wrong in [
        [ram - 4, 0x2000, 2],
        [0x1000, ram - 4, 2],
        [ram - 2, 0x2000, 1],
        [u32::MAX - 3, 0x2000, 1],
    ] {
        start(&mut bus, 0, wrong);
        bus.advance(0);
        assert_eq!(get(&mut bus, 0, COPIER + 12), 0, "{wrong:x?}");
        assert_eq!(get(&mut bus, 0, 0x2000), 7);
    }
}

#[test]
fn a_part_is_attached_at_a_free_place_only() {
    let mut bus = with_copier();
    for place in [
        (COPIER, 0x1000),
        (0x1000_0000, 0x1000),
        (0, 0x1000),
        (0x6000_0800, 0x1000),
        (0x6000_0000, 0),
        // Beyond the end of the address space.
        (0xffff_f000, 0x2000),
        (0x7000_0000, 0xa000_0000),
    ] {
        let attached = bus.attach("other", place, Box::new(Copier::default()));
        assert!(attached.is_err(), "{place:x?}");
    }
}

#[test]
fn a_copy_that_waits_and_memory_that_is_held_are_saved() {
    let mut bus = with_copier();
    set(&mut bus, 0, 0x1000, 5);
    start(&mut bus, 100, [0x1000, 0x2000, 1]);
    let mut saved = Vec::new();
    bus.save(&mut saved);
    let mut other = with_copier();
    other.restore(&mut Saved::new(&saved)).unwrap();
    other.advance(100);
    assert_eq!(get(&mut other, 5000, 0x2000), 5);
    let mut saved = Vec::new();
    other.save(&mut saved);
    let mut third = with_copier();
    third.restore(&mut Saved::new(&saved)).unwrap();
    let cost = |bus: &mut SystemBus| bus.read(101, Pa(0x3000), Width::Word).unwrap().1;
    assert_eq!(cost(&mut other), cost(&mut third));
}

#[test]
fn a_part_that_begins_below_ram_and_ends_in_it_is_refused() {
    let mut bus = with_copier();
    bus.ram_base = 0x7000_0000;
    let attached = bus.attach("other", (0x6fff_f000, 0x2000), Box::new(Copier::default()));
    assert!(attached.is_err());
}

#[test]
fn a_forged_end_of_the_memory_s_use_is_refused_or_does_no_harm() {
    for forged in [u64::MAX, u64::MAX - 15, 0x4000_0000_0000_0000, 0xffff_ffff] {
        let bus = with_copier();
        let mut saved = Vec::new();
        bus.ram().save(&mut saved);
        let at = saved.len() - 8;
        saved[at..].copy_from_slice(&forged.to_le_bytes());
        let mut other = with_copier();
        if other.ram.restore(&mut Saved::new(&saved)).is_err() {
            continue;
        }
        let _ = other.read(0, Pa(0x1000), Width::Word);
        let _ = other.write(0, Pa(0x1000), Width::Word, 1);
        start(&mut other, 100, [0x1000, 0x2000, 1]);
        other.advance(100);
    }
}

#[test]
fn an_empty_copy_and_copies_at_both_ends_of_ram_succeed() {
    let mut bus = with_copier();
    let ram = bus.ram().bytes();
    for right in [[ram, ram, 0], [0, ram - 4, 1], [ram - 68, 0x100, 17]] {
        start(&mut bus, 0, right);
        bus.advance(0);
        assert_eq!(get(&mut bus, 0, COPIER + 12), 1, "{right:x?}");
    }
}

#[test]
fn a_machine_with_an_attached_part_gives_no_snapshot() {
    let mut machine = stores();
    assert!(machine.snapshot().is_some());
    attach(&mut machine.cpu_mut().bus);
    assert!(machine.snapshot().is_none());
}

#[test]
fn copies_take_the_same_cycles_plain_and_observed() {
    #[derive(Clone)]
    struct Sees(usize);
    impl crate::Observer for Sees {
        fn observe(&mut self, _: &SystemBus, _: &arm::Context, _: arm::Event<'_>) -> arm::Reaction {
            arm::Reaction::Continue
        }
        fn transferred(&mut self, _: &dma::Transfer) -> arm::Reaction {
            self.0 += 1;
            arm::Reaction::DropTranslations
        }
    }
    let mut machine = stores();
    attach(&mut machine.cpu_mut().bus);
    let mut other = machine.clone().observed_by(Sees(0));
    for n in 0..40 {
        let until = machine.now() + 20_000 + 7 * n;
        machine.run_until(until);
        other.run_until(until);
        assert_eq!(machine.now(), other.now());
        start(
            &mut machine.cpu_mut().bus,
            until,
            [0x10_0000, 0x20_0000, 500],
        );
        let bus = crate::observed::BoardBus::system_mut(&mut other.cpu_mut().bus);
        start(bus, until, [0x10_0000, 0x20_0000, 500]);
    }
    assert_eq!(machine.now(), other.now());
    assert_eq!(machine.memory_hash(), other.memory_hash());
    assert!(other.observer().0 > 100);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    machine.cpu().bus.save(&mut a);
    crate::observed::BoardBus::system(&other.cpu().bus).save(&mut b);
    assert!(a == b);
}

#[test]
fn two_bus_masters_take_turns_and_time_never_goes_backwards() {
    let mut bus = with_copier();
    bus.attach(
        "second",
        (COPIER + 0x1000, 0x1000),
        Box::new(Copier::default()),
    )
    .unwrap();
    start(&mut bus, 1000, [0x1000, 0x2000, 40]);
    for (n, value) in [0x2000, 0x3000, 40, 1].into_iter().enumerate() {
        set(&mut bus, 1000, COPIER + 0x1000 + 4 * n as u32, value);
    }
    bus.advance(1000);
    let first = bus.take_transfers();
    for pair in first.windows(2) {
        assert!(pair[0].cycle + u64::from(pair[0].cycles) <= pair[1].cycle);
    }
    start(&mut bus, 1001, [0x1000, 0x2000, 1]);
    bus.advance(1001);
    let second = bus.take_transfers();
    let last = first.last().unwrap();
    assert!(second[0].cycle >= last.cycle + u64::from(last.cycles));
}
