// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random accesses to the registers of whole chips, with random descriptors in memory, random frames on the wire, random
//! bytes on the serial line and a card in the slot. Nothing may panic. A saved state that is restored in another board
//! gives the same bytes when it is saved again.
//!
//! - `FUZZ_SEEDS=A..B` runs these seeds, and `FUZZ_SEEDS=A..` all seeds from A on.
//! - `FUZZ_HOURS=H` stops after H hours of the host's time.

use std::time::{Duration, Instant};

use super::*;
use crate::device::card::Content;
use crate::random::Random;
use arm::{Bus as _, Pa, Saved, State as _, Width};

/// The whole chips.
const BOARDS: [&str; 4] = ["sam9263-ek", "sam9g20-ek", "at91rm9200-ek", "sam9x60-ek"];

/// Bytes of SDRAM, so that most of the likely addresses are in it.
const RAM_BYTES: u32 = 1 << 20;

/// Accesses of one seed.
const STEPS: u32 = 4000;

/// A board, and what is done to it.
struct Shaken {
    spec: BoardSpec,
    bus: SystemBus,
    random: Random,
    now: u64,
    /// Devices that get the accesses for a while, as a driver would give them.
    busy: usize,
}

impl Shaken {
    fn new(name: &str, seed: u64) -> Shaken {
        let mut spec = BoardSpec::named(name).unwrap();
        spec.ram_bytes = RAM_BYTES;
        let mut bus = SystemBus::new(&spec).unwrap();
        let mut random = Random::new(seed);
        if random.below(2) == 0 {
            let card = Content::empty(1 << 20).unwrap();
            // A board without a slot refuses the card.
            let _ = bus.insert_card(0, Some(&card));
        }
        Shaken {
            spec,
            bus,
            random,
            now: 0,
            busy: 0,
        }
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.random.below(all.len() as u64) as usize]
    }

    /// Returns a likely value of a register or of a descriptor: an address, a count, single bits or any number.
    fn value(&mut self) -> u32 {
        let any = self.random.below(1 << 32) as u32;
        let base = self.bus.ram_base();
        match self.random.below(8) {
            0 => any,
            1 => base + any % RAM_BYTES,
            2 => base + ((any % RAM_BYTES) & !0xff),
            3 => base + RAM_BYTES - any % 64,
            4 => any % 0x800,
            5 => 1 << (any % 32),
            6 => !(1 << (any % 32)),
            _ => self.one_of(&[0, !0, 0x8000_0000, 0xffff, 0x1_0000, 3, 512]),
        }
    }

    fn access(&mut self) {
        let device = &self.spec.peripherals.devices[self.busy];
        let (base, size) = (device.base, device.size);
        // The registers of most units are at the start of their region.
        let span = self.one_of(&[0x40, 0x200, size]).min(size);
        let width = self.one_of(&[
            Width::Word,
            Width::Word,
            Width::Word,
            Width::Half,
            Width::Byte,
        ]);
        let mask = match width {
            Width::Word => !3,
            Width::Half => !1,
            Width::Byte => !0,
        };
        let pa = Pa(base + (self.random.below(u64::from(span)) as u32 & mask));
        let taken = match self.random.below(3) {
            0 => self.bus.read(self.now, pa, width).map(|(_, cycles)| cycles),
            _ => {
                let value = self.value();
                self.bus.write(self.now, pa, width, value)
            }
        };
        self.now += taken.map_or(1, u64::from);
        // A refused access ends the run of a machine, but not this one.
        let _ = self.bus.take_stop();
    }

    /// Writes a few words to memory, as descriptors are written.
    fn describe(&mut self) {
        let at = self.bus.ram_base() + (self.random.below(u64::from(RAM_BYTES)) as u32 & !0xff);
        for word in 0..self.random.below(16) as u32 {
            let bytes = self.value().to_le_bytes();
            self.bus.ram_mut().load(at + 4 * word, &bytes);
        }
    }

    /// Sends bytes to the console and a frame to the network, of any length.
    fn send(&mut self) {
        self.bus.send(self.now, b"abc");
        let length = self.random.below(2000) as usize;
        let first = self.one_of(&[0xff, 2, 1]);
        let (pad, bad) = (self.random.below(2) == 0, self.random.below(8) == 0);
        let frame = vec![first; length.max(1)];
        let now = self.now;
        if self.spec.peripherals.network.is_some() {
            self.bus.with_link(|link| link.send(now, frame, pad, bad));
        }
    }

    fn wait(&mut self) {
        let until = self.now + self.random.below(200_000);
        for _ in 0..200 {
            let next = self.bus.next_event();
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            self.bus.advance(self.now);
        }
        self.now = self.now.max(until);
        let _ = self.bus.take_stop();
    }

    fn saved(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.bus.save(&mut bytes);
        bytes
    }

    /// Goes on with a board that was restored from the saved state. A board whose run has ended is not saved.
    fn restore(&mut self) {
        if !self.bus.can_be_saved() {
            return;
        }
        let bytes = self.saved();
        let mut other = SystemBus::new(&self.spec).unwrap();
        if self.bus.card().is_some() {
            let card = Content::empty(1 << 20).unwrap();
            other.insert_card(0, Some(&card)).unwrap();
        }
        other.restore(&mut Saved::new(&bytes)).unwrap();
        self.bus = other;
        assert_eq!(self.saved(), bytes, "saved again");
    }

    fn step(&mut self) {
        match self.random.below(64) {
            0 => {
                self.busy = self
                    .random
                    .below(self.spec.peripherals.devices.len() as u64)
                    as usize
            }
            1..=4 => self.describe(),
            5 => self.send(),
            6..=12 => self.wait(),
            13 if self.random.below(4) == 0 => self.restore(),
            _ => self.access(),
        }
    }
}

fn seeds() -> (u64, u64) {
    let text = std::env::var("FUZZ_SEEDS").unwrap_or_else(|_| "0..8".to_string());
    let (first, end) = text.split_once("..").expect("FUZZ_SEEDS=A..B");
    let number = |text: &str| text.parse().expect("FUZZ_SEEDS=A..B");
    (
        number(first),
        if end.is_empty() {
            u64::MAX
        } else {
            number(end)
        },
    )
}

#[test]
fn random_accesses_to_devices_never_panic() {
    let hours = std::env::var("FUZZ_HOURS").ok();
    let hours = hours.map(|text| text.parse::<f64>().expect("FUZZ_HOURS=H"));
    let limit = hours.map(|hours| Duration::from_secs_f64(hours * 3600.0));
    let began = Instant::now();
    let (first, end) = seeds();
    let mut count = 0;
    for seed in first..end {
        for name in BOARDS {
            println!("{name}, seed {seed}");
            let mut shaken = Shaken::new(name, seed);
            for _ in 0..STEPS {
                shaken.step();
            }
            count += u64::from(STEPS);
        }
        if limit.is_some_and(|limit| began.elapsed() > limit) {
            break;
        }
    }
    println!("{count} steps");
}
