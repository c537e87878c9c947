// SPDX-License-Identifier: MIT OR Apache-2.0
//! States of whole chips with one forged field, while transfers are under way. A board either refuses the state or
//! goes on with it. It never panics. A state that is not forged goes on alike on another board.
//!
//! - `FORGE_STEP=N` forges every Nth byte.

use super::*;
use crate::device::card::Content;
use crate::link::Rate;
use arm::{Bus as _, Pa, Saved, State, Width};

/// Forged values. At an offset inside a field, a value overwrites parts of two fields.
const FORGED: [&[u8]; 6] = [
    &[0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    &[0xff; 8],
    &[0xff; 4],
    &[0, 0, 0, 0, 0, 0, 0, 0x40],
    &[200],
    &[0],
];

const BOARDS: [&str; 4] = ["sam9263-ek", "sam9g20-ek", "at91rm9200-ek", "sam9x60-ek"];

/// Returns the distance between two forged offsets, in bytes.
fn step() -> usize {
    std::env::var("FORGE_STEP").map_or(61, |text| text.parse().expect("FORGE_STEP=N"))
}

fn spec(name: &str) -> BoardSpec {
    let mut spec = BoardSpec::named(name).unwrap();
    spec.ram_bytes = 1 << 16;
    spec
}

fn saved(part: &impl State) -> Vec<u8> {
    let mut bytes = Vec::new();
    part.save(&mut bytes);
    bytes
}

/// A board, and the time on it.
#[derive(Clone)]
struct Busy {
    spec: BoardSpec,
    bus: SystemBus,
    now: u64,
}

impl Busy {
    fn new(spec: BoardSpec) -> Busy {
        let mut bus = SystemBus::new(&spec).unwrap();
        let card = Content::empty(1 << 20).unwrap();
        // A board without a slot refuses the card.
        let _ = bus.insert_card(0, Some(&card));
        Busy { spec, bus, now: 0 }
    }

    /// Returns a board some cycles after the start of transfers. `index` is the command of the card's transfers.
    fn at_work(spec: &BoardSpec, index: u32, cycles: u64) -> Busy {
        let mut busy = Busy::new(spec.clone());
        busy.start_all(index);
        busy.wait(cycles);
        busy
    }

    /// Returns another board with this state, unless the state is refused.
    fn restored(busy: &Busy, bytes: &[u8]) -> Option<Busy> {
        let mut other = Busy::new(busy.spec.clone());
        other.now = busy.now;
        let mut from = Saved::new(bytes);
        other.bus.restore(&mut from).ok()?;
        from.end().ok()?;
        Some(other)
    }

    /// Returns the addresses of the units that are this part.
    fn units(&self, part: &str) -> Vec<u32> {
        let devices = self.spec.peripherals.devices.iter();
        let is = devices.filter(|device| device.part == part);
        is.map(|device| device.base).collect()
    }

    fn set(&mut self, unit: u32, writes: &[(u32, u32)]) {
        for (offset, value) in writes {
            let _ = self
                .bus
                .write(self.now, Pa(unit + offset), Width::Word, *value);
            self.now += 10;
        }
    }

    fn wait(&mut self, cycles: u64) {
        let until = self.now + cycles;
        for _ in 0..400 {
            let next = self.bus.next_event();
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            self.bus.advance(self.now);
        }
        self.now = self.now.max(until);
    }

    /// Starts a read or a write of many blocks by MCI.
    fn start_mci(&mut self, unit: u32, slot: u32, index: u32) {
        let ram = self.bus.ram_base();
        let proof = 3 << 11 | 1;
        self.set(unit, &[(0, 1 << 7), (0, 1), (4, proof), (0x0c, slot)]);
        for (index, argument, kind) in COMMANDS {
            self.set(
                unit,
                &[(0x10, argument), (0x14, index | [0, 1, 2, 1][kind] << 6)],
            );
            self.wait(400_000);
        }
        let reads = if index == 18 { 1 << 18 } else { 0 };
        self.set(
            unit,
            &[
                (4, 512 << 16 | 1 << 15 | proof),
                (0x18, 4 << 16 | 512),
                (0x100, ram + 0x8000),
                (0x104, 512),
                (0x108, ram + 0x8000),
                (0x10c, 512),
                (0x10, 3),
                (0x14, index | 1 << 6 | 1 << 16 | 1 << 19 | reads),
                (0x120, 0x101),
            ],
        );
    }

    /// Starts a read or a write of many blocks by ADMA2.
    fn start_sdmmc(&mut self, unit: u32, index: u32) {
        let ram = self.bus.ram_base();
        let clock = 0xe << 16 | 3 << 8 | 1 << 5 | 5;
        self.set(
            unit,
            &[(0x2c, 1 << 24), (0x34, !0), (0x38, !0), (0x2c, clock)],
        );
        self.set(unit, &[(0x28, 0xf00 | 2 << 3)]);
        for (index, argument, kind) in COMMANDS {
            let kind = [0, 2, 1, 3][kind];
            self.set(unit, &[(0x08, argument), (0x0c, index << 24 | kind << 16)]);
            self.wait(400_000);
        }
        let descriptor = [
            0x21u32 | 700 << 16,
            ram + 0x8000,
            0x23 | 9000 << 16,
            ram + 0x9001,
        ];
        let bytes: Vec<u8> = descriptor.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.bus.ram_mut().load(ram + 0x7000, &bytes);
        let mode = if index == 18 { 0x37 } else { 0x27 };
        self.set(
            unit,
            &[
                (0x58, ram + 0x7000),
                (0x04, 4 << 16 | 512),
                (0x08, 3),
                (0x0c, index << 24 | 0x3a << 16 | mode),
            ],
        );
    }

    /// Starts a frame in each direction.
    fn start_emac(&mut self, unit: u32) {
        let ram = self.bus.ram_base();
        self.bus.plug(self.now, Some(Rate::Hundred));
        let rings = [ram + 0x8001, 0, ram + 0x8103, 0];
        let bytes: Vec<u8> = rings.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.bus.ram_mut().load(ram + 0x6000, &bytes);
        let rings = [ram + 0x9001, 700, ram + 0x9103, 1 << 30 | 1 << 15 | 300];
        let bytes: Vec<u8> = rings.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.bus.ram_mut().load(ram + 0x6100, &bytes);
        self.set(
            unit,
            &[(4, 1 << 4), (0x18, ram + 0x6000), (0x28, !0), (0, 0x1c)],
        );
        match self.spec.peripherals.name.as_str() {
            "at91rm9200" => self.set(unit, &[(0x0c, ram + 0x9001), (0x10, 300), (0x10, 400)]),
            _ => self.set(unit, &[(0x1c, ram + 0x6100), (0, 0x21c)]),
        }
        let now = self.now;
        self.bus
            .with_link(|link| link.send(now, vec![0xff; 600], true, false));
    }

    /// Starts transfers of serial units.
    fn start_serial(&mut self) {
        let pdc = |ram| {
            [
                (0x100, ram + 0xa000),
                (0x104, 20),
                (0x108, ram + 0xb000),
                (0x10c, 20),
                (0x110, ram + 0xa000),
                (0x114, 20),
                (0x118, ram + 0xb000),
                (0x11c, 20),
                (0x120, 0x101),
            ]
        };
        let pdc = pdc(self.bus.ram_base());
        for unit in ["at91_usart", "at91_dbgu"]
            .map(|part| self.units(part))
            .concat()
        {
            let on = [(0, 0x50), (4, 0x8c0 | 2 << 14), (0x20, 20), (0, 1 << 11)];
            self.set(unit, &on);
            self.set(unit, &pdc);
        }
        for unit in self.units("at91_usart") {
            self.set(unit, &[(0x24, 40), (0, 1 << 11)]);
        }
        for unit in self.units("at91_spi") {
            let on = [(4, 0xe_0001), (0, 1), (0x30, 0x0802), (0x34, 0x0802)];
            self.set(unit, &on);
            self.set(unit, &pdc);
        }
        for unit in self.units("sam9x60_flexcom") {
            let on = [
                (0, 1),
                (0x200, 0x50),
                (0x204, 0x8c0),
                (0x220, 20),
                (0x21c, 65),
            ];
            self.set(unit, &on);
        }
    }

    fn start_all(&mut self, index: u32) {
        for unit in self.units("at91_mci") {
            (0..2).for_each(|slot| self.start_mci(unit, slot, index));
        }
        for unit in self.units("sam9x60_sdmmc") {
            self.start_sdmmc(unit, index);
        }
        for unit in self.units("at91_emac") {
            self.start_emac(unit);
        }
        self.start_serial();
        let _ = self.bus.take_stop();
    }

    /// Lets the board go on, and uses every part.
    fn use_all(&mut self) {
        self.bus.send(self.now, b"x");
        self.wait(300_000);
        let devices: Vec<_> = self
            .spec
            .peripherals
            .devices
            .iter()
            .map(|device| (device.base, device.size))
            .collect();
        for (base, size) in devices {
            for at in (0..0x130).step_by(4).filter(|at| *at < size) {
                let _ = self.bus.read(self.now, Pa(base + at), Width::Word);
            }
        }
        let now = self.now;
        self.bus
            .with_link(|link| link.send(now, vec![0xff; 100], true, false));
        let _ = self.bus.take_stop();
        self.wait(300_000);
        self.bus.plug(self.now, Some(Rate::Ten));
        let _ = self.bus.take_stop();
        self.bus.save(&mut Vec::new());
    }
}

/// Commands that select the card, with their arguments and the kind of their response: none, short, long, busy.
const COMMANDS: [(u32, u32, usize); 9] = [
    (0, 0, 0),
    (8, 0x1aa, 1),
    (55, 0, 1),
    (41, 0x4030_0000, 1),
    (55, 0, 1),
    (41, 0x4030_0000, 1),
    (2, 0, 2),
    (3, 0, 1),
    (7, 1 << 16, 3),
];

#[test]
fn forged_chips_are_refused_or_used_and_never_panic() {
    for name in BOARDS {
        for (index, cycles) in [(18, 150_000), (25, 60_000)] {
            let busy = Busy::at_work(&spec(name), index, cycles);
            let (bytes, ram) = (saved(&busy.bus), saved(busy.bus.ram()));
            // The internal memories are zero.
            let is_used = |at: &usize| {
                let around = at.saturating_sub(800)..bytes.len().min(*at + 800);
                bytes[around].iter().any(|byte| *byte != 0)
            };
            let offsets = (ram.len()..bytes.len() - 8).step_by(step()).filter(is_used);
            let (mut refused, mut used) = (0, 0);
            for (at, forged) in offsets.flat_map(|at| FORGED.map(|forged| (at, forged))) {
                let mut bytes = bytes.clone();
                bytes[at..at + forged.len()].copy_from_slice(forged);
                match Busy::restored(&busy, &bytes) {
                    Some(mut other) => {
                        other.use_all();
                        used += 1;
                    }
                    None => refused += 1,
                }
            }
            assert!(refused > 5 && used > 50, "{name}: {refused} {used}");
        }
    }
}

#[test]
fn chips_that_are_restored_during_transfers_go_on_alike() {
    for name in BOARDS {
        for index in [18, 25] {
            let mut busy = Busy::at_work(&spec(name), index, 0);
            let mut compared = 0;
            for n in 0..100u64 {
                busy.wait(500 + n * 1037 % 6000);
                if !busy.bus.can_be_saved() {
                    continue;
                }
                let mut other = Busy::restored(&busy, &saved(&busy.bus)).unwrap();
                let mut fork = busy.clone();
                other.use_all();
                fork.use_all();
                assert!(saved(&other.bus) == saved(&fork.bus), "{name} {index} {n}");
                compared += 1;
            }
            assert!(compared > 50, "{name} {index} {compared}");
        }
    }
}
