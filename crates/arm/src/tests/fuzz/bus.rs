// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bus of each of the two cores: RAM, a device that raises interrupts, and another bus master that writes to RAM. A
//! checksum covers every transaction and its time, so that any difference shows.

use super::program::{Event as Happening, Setup};
use crate::addr::{Mva, Pa};
use crate::bus::{BurstTime, Bus, BusError, Signals, Width};
use crate::mmu::Kind;
use crate::observe::{Context, Event, Reaction};

/// Size of the RAM, from address 0 on, in bytes.
pub const RAM: u32 = 2 << 20;
/// A page of device registers. A write raises or clears an interrupt a little later. A read returns the time.
pub const DEVICE: u32 = 0x40_0000;

/// Whether memory or a device responds at a physical address.
pub fn answers(pa: u32) -> bool {
    pa < RAM || pa & !0xfff == DEVICE
}

/// Events that the reference receives.
#[derive(Clone, Copy, Debug)]
pub enum Seen {
    /// A walk read a descriptor.
    Walked { mva: Mva, at: u32, value: u32 },
    /// A TLB entry was loaded.
    Loaded { mva: Mva, bytes: u32 },
    /// A translation was used.
    Used {
        mva: Mva,
        pa: u32,
        kind: Kind,
        privileged: bool,
    },
    /// An instruction executes.
    Fetched {
        pc: u32,
        mva: Mva,
        pa: u32,
        word: u32,
        registers: [u32; 16],
    },
}

/// The bus of a core with shortcuts or, if `PLAIN`, of an observed core without them.
#[derive(Clone)]
pub struct FuzzBus<const PLAIN: bool> {
    /// RAM, in words.
    pub ram: Vec<u32>,
    /// Events to come, by cycle.
    events: Vec<(u64, Happening)>,
    pub signals: Signals,
    /// Checksum of all transactions.
    pub log: u64,
    /// Events of the last step.
    pub seen: Vec<Seen>,
    single: u32,
    line: BurstTime,
}

impl<const PLAIN: bool> FuzzBus<PLAIN> {
    /// Returns a bus with these contents of RAM.
    pub fn new(setup: &Setup, ram: &[u32]) -> FuzzBus<PLAIN> {
        FuzzBus {
            ram: ram.to_vec(),
            events: Vec::new(),
            signals: Signals::default(),
            log: 0,
            seen: Vec::new(),
            single: setup.single,
            line: BurstTime {
                first: setup.first,
                last: setup.last,
            },
        }
    }

    /// Schedules an event at a cycle, after the events that are already scheduled for it.
    pub fn at(&mut self, cycle: u64, event: Happening) {
        let place = self.events.partition_point(|(at, _)| *at <= cycle);
        self.events.insert(place, (cycle, event));
    }

    /// Writes RAM as another bus master.
    fn write_behind(&mut self, pa: u32, words: &[u32]) {
        for (at, word) in (pa as usize / 4..).zip(words) {
            if let Some(stored) = self.ram.get_mut(at) {
                *stored = *word;
            }
        }
    }

    fn note(&mut self, kind: u32, now: u64, pa: u32, value: u32) {
        for word in [u64::from(kind), now, u64::from(pa), u64::from(value)] {
            self.log = (self.log ^ word)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(23);
        }
    }

    fn put(&mut self, now: u64, pa: u32, width: Width, value: u32) {
        let shift = match width {
            Width::Word => 0,
            Width::Half => 8 * (pa & 2),
            Width::Byte => 8 * (pa & 3),
        };
        if let Some(word) = self.ram.get_mut(pa as usize / 4) {
            let mask = width.mask() << shift;
            *word = *word & !mask | value << shift & mask;
        } else {
            let on = value & 1 != 0;
            let event = match value & 2 {
                0 => Happening::Irq(on),
                _ => Happening::Fiq(on),
            };
            self.at(now + u64::from(value >> 2 & 31), event);
        }
    }
}

impl<const PLAIN: bool> Bus for FuzzBus<PLAIN> {
    const OBSERVED: bool = PLAIN;
    const SHORTCUTS: bool = !PLAIN;

    fn observe(&mut self, context: &Context, event: Event<'_>) -> Reaction {
        self.seen.push(match event {
            Event::Walk {
                mva,
                descriptor: Pa(at),
                value,
            } => Seen::Walked { mva, at, value },
            Event::TlbFill { mva, bytes, .. } => Seen::Loaded { mva, bytes },
            Event::TlbUse {
                mva,
                pa: Pa(pa),
                kind,
                privileged,
                ..
            } => Seen::Used {
                mva,
                pa,
                kind,
                privileged,
            },
            Event::Fetch {
                mva,
                pa: Pa(pa),
                value: word,
                registers,
                ..
            } => Seen::Fetched {
                pc: context.pc,
                mva,
                pa,
                word,
                registers: *registers,
            },
            _ => return Reaction::Continue,
        });
        Reaction::Continue
    }

    fn read(&mut self, now: u64, pa: Pa, width: Width) -> Result<(u32, u32), BusError> {
        self.note(1, now, pa.0, width.bytes());
        if !answers(pa.0) {
            return Err(BusError);
        }
        let word = self.ram.get(pa.0 as usize / 4).copied();
        let word = word.unwrap_or(now as u32 ^ pa.0);
        Ok((word >> (8 * (pa.0 & 3)) & width.mask(), self.single))
    }

    fn write(&mut self, now: u64, pa: Pa, width: Width, value: u32) -> Result<u32, BusError> {
        self.note(2 + width.bytes(), now, pa.0, value);
        if !answers(pa.0) {
            return Err(BusError);
        }
        self.put(now, pa.0, width, value);
        Ok(self.single)
    }

    fn read_line(&mut self, now: u64, pa: Pa, line: &mut [u32; 8]) -> Result<BurstTime, BusError> {
        self.note(7, now, pa.0, 0);
        if !answers(pa.0) {
            return Err(BusError);
        }
        let first = pa.0 as usize / 32 * 8;
        for (at, word) in (first..).zip(line) {
            *word = self.ram.get(at).copied().unwrap_or(0xe1a0_f00e); // mov pc, lr
        }
        Ok(self.line)
    }

    fn read_words(&mut self, now: u64, pa: Pa, words: &mut [u32]) -> Result<BurstTime, BusError> {
        self.note(10, now, pa.0, words.len() as u32);
        if !answers(pa.0) {
            return Err(BusError);
        }
        let first = pa.0 as usize / 4;
        let last = self.single + words.len() as u32 - 1;
        for (at, word) in (first..).zip(words) {
            *word = self
                .ram
                .get(at)
                .copied()
                .unwrap_or(now as u32 ^ (4 * at) as u32);
        }
        let first = self.single;
        Ok(BurstTime { first, last })
    }

    fn write_words(&mut self, now: u64, pa: Pa, words: &[u32]) -> Result<u32, BusError> {
        self.note(8, now, pa.0, words.len() as u32);
        if !answers(pa.0) {
            return Err(BusError);
        }
        for (at, word) in (pa.0..).step_by(4).zip(words) {
            self.note(9, now, at, *word);
            self.put(now, at, Width::Word, *word);
        }
        Ok(self.single + words.len() as u32)
    }

    fn advance(&mut self, now: u64) -> Signals {
        while self.events.first().is_some_and(|(at, _)| *at <= now) {
            match self.events.remove(0).1 {
                Happening::Irq(level) => self.signals.irq = level,
                Happening::Fiq(level) => self.signals.fiq = level,
                Happening::Write(pa, words) => self.write_behind(pa, &words),
            }
        }
        self.signals
    }

    fn next_event(&self) -> u64 {
        self.events.first().map_or(u64::MAX, |(at, _)| *at)
    }

    fn peek(&self, pa: Pa) -> Option<u8> {
        let word = self.ram.get(pa.0 as usize / 4)?;
        Some((word >> (8 * (pa.0 & 3))) as u8)
    }

    fn poke(&mut self, _: Pa, _: u8) -> bool {
        false
    }
}
