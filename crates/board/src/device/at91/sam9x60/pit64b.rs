// SPDX-License-Identifier: MIT OR Apache-2.0
//! PIT64B, the periodic interval timer of SAM9X60: 64 bits behind a prescaler. Facts: Linux 6.12
//! drivers/clocksource/timer-microchip-pit64b.c.
//!
//! The count runs up from 0 to the period, on the generic clock (MR.SGCLK) or the peripheral clock, divided by
//! MR.PRES + 1. At the period, ISR.PERIOD is set; in continuous mode the count starts again, otherwise it stops. A second
//! end before ISR is read sets OVRE. START starts the count from 0; SWRST stops it and resets all registers. The count
//! is computed from the core's cycles. A read of TLSB keeps the upper half for TMSB. A period of 0 ends at once in
//! one-shot mode, and is refused in continuous mode. Not modelled: write protection, the security reports.
//!
//! Values: `generic_hz` is the generic clock, default 5 MHz; the PMC has the same value and refuses another.
//!
//! Outputs: 0 = interrupt. No inputs. Clock: the peripheral clock at 200 MHz, unless the machine file gives another rate.

use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::Width;

const PART: &str = "sam9x60_pit64b";
const START: u32 = 1 << 0;
const RESET: u32 = 1 << 8;
const CONTINUOUS: u32 = 1 << 0;
const GENERIC: u32 = 1 << 3;
const PERIOD: u32 = 1 << 0;
const OVERRUN: u32 = 1 << 1;

/// The timer's registers and count. A reset makes a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    mode: u32,
    period: u64,
    mask: u32,
    flags: u32,
    /// Upper half of the count at the last read of the lower half.
    upper: u32,
    runs: bool,
    /// Tick of the divided clock at which the count was 0.
    since: u64,
    /// The count of a timer that does not run.
    stopped_at: u64,
}

arm::state!(Count: mode, period, mask, flags, upper, runs, since, stopped_at);

/// The timer's state.
#[derive(Clone, Debug)]
pub(super) struct Pit64b {
    peripheral: Clock,
    generic: Clock,
    count: Count,
}

arm::state!(Pit64b: count; peripheral, generic);

impl Pit64b {
    /// Makes a timer in its reset state.
    pub(super) fn new(peripheral: Clock, generic_hz: u64) -> Self {
        let generic = Clock {
            cpu_hz: peripheral.cpu_hz,
            hz: generic_hz.clamp(1, 10_000_000_000),
        };
        Pit64b {
            peripheral,
            generic,
            count: Count::default(),
        }
    }

    fn clock(&self) -> Clock {
        let clock = match self.count.mode & GENERIC {
            0 => self.peripheral,
            _ => self.generic,
        };
        let divisor = u64::from(self.count.mode >> 8 & 0xf) + 1;
        Clock {
            cpu_hz: clock.cpu_hz * divisor,
            hz: clock.hz,
        }
    }

    fn sync(&mut self, now: u64) {
        let ticks = self.clock().ticks(now);
        let count = &mut self.count;
        let elapsed = ticks.saturating_sub(count.since);
        if !count.runs || elapsed < count.period {
            return;
        }
        let (ends, rest) = match count.mode & CONTINUOUS {
            0 => (1, 0),
            _ => (elapsed / count.period.max(1), elapsed % count.period.max(1)),
        };
        if count.flags & PERIOD != 0 || ends > 1 {
            count.flags |= OVERRUN;
        }
        count.flags |= PERIOD;
        match count.mode & CONTINUOUS {
            0 => (count.runs, count.stopped_at) = (false, count.period),
            _ => count.since = ticks - rest,
        }
    }

    fn value(&self, now: u64) -> u64 {
        match self.count.runs {
            true => self.clock().ticks(now).saturating_sub(self.count.since),
            false => self.count.stopped_at,
        }
    }

    fn get(&mut self, now: u64, reg: u32) -> Option<u32> {
        self.sync(now);
        Some(match reg {
            0x00 | 0x10 | 0x14 => 0, // write-only
            0x04 => self.count.mode,
            0x08 => self.count.period as u32,
            0x0c => (self.count.period >> 32) as u32,
            0x18 => self.count.mask,
            0x1c => core::mem::take(&mut self.count.flags),
            0x20 => {
                let value = self.value(now);
                self.count.upper = (value >> 32) as u32;
                value as u32
            }
            0x24 => self.count.upper,
            _ => return None,
        })
    }

    fn set(&mut self, now: u64, reg: u32, value: u32) -> Result<(), &'static str> {
        self.sync(now);
        let wide = u64::from(value);
        match reg {
            0x00 if value & RESET != 0 => self.count = Count::default(),
            0x00 if value & START != 0 => return self.start(now),
            0x00 => {}
            0x04 if self.count.runs && value != self.count.mode => {
                return Err("a new mode while the count runs is not modelled");
            }
            0x04 if value & !(CONTINUOUS | GENERIC | 0xf00) != 0 => {
                return Err("the model has no such mode");
            }
            0x04 => self.count.mode = value,
            0x08 => self.count.period = self.count.period & !0xffff_ffff | wide,
            0x0c => self.count.period = self.count.period & 0xffff_ffff | wide << 32,
            0x10 => self.count.mask |= value & (PERIOD | OVERRUN),
            0x14 => self.count.mask &= !value,
            0x18..=0x24 => {} // read-only
            _ => return Err(regs::NO_REGISTER),
        }
        if self.count.runs && self.count.mode & CONTINUOUS != 0 && self.count.period == 0 {
            return Err("a period of 0 in continuous mode is not modelled");
        }
        Ok(())
    }

    fn start(&mut self, now: u64) -> Result<(), &'static str> {
        if self.count.mode & CONTINUOUS != 0 && self.count.period == 0 {
            return Err("a period of 0 in continuous mode is not modelled");
        }
        let since = self.clock().ticks(now);
        (self.count.runs, self.count.since) = (true, since);
        self.sync(now);
        Ok(())
    }
}

impl Device for Pit64b {
    fn part(&self) -> &'static str {
        PART
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read(PART, None, offset, width, |reg| self.get(now, reg))
    }

    fn write(&mut self, now: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write(PART, None, offset, value, |reg, v| self.set(now, reg, v))
    }

    fn deadline(&self) -> u64 {
        let count = &self.count;
        let news = count.mask & (PERIOD | OVERRUN) & !count.flags != 0;
        match count.runs && news {
            true => self
                .clock()
                .cycles(count.since.saturating_add(count.period)),
            false => u64::MAX,
        }
    }

    fn tick(&mut self, now: u64) {
        self.sync(now);
    }

    fn outputs(&self) -> u32 {
        u32::from(self.count.flags & self.count.mask != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arm::{Saved, State};

    /// Core cycles of a tick of the generic clock.
    const TICK: u64 = 120;

    fn timer() -> Pit64b {
        let peripheral = Clock {
            cpu_hz: 600_000_000,
            hz: 200_000_000,
        };
        Pit64b::new(peripheral, 5_000_000)
    }

    fn get(timer: &mut Pit64b, now: u64, reg: u32) -> u32 {
        timer.read(now, reg, Width::Word).unwrap()
    }

    /// Sets the timer up as Linux does for an event or a tick.
    fn start(timer: &mut Pit64b, now: u64, mode: u32, ticks: u32) {
        for (reg, value) in [
            (0x00, RESET),
            (0x04, mode | GENERIC),
            (0x0c, 0),
            (0x08, ticks),
            (0x10, PERIOD),
            (0x00, START),
        ] {
            timer.write(now, reg, Width::Word, value).unwrap();
        }
    }

    #[test]
    fn an_event_comes_once_and_a_copy_sees_it_too() {
        let mut timer = timer();
        start(&mut timer, 0, 0, 1000);
        assert_eq!(timer.deadline(), 1000 * TICK);
        timer.tick(1000 * TICK - 1);
        assert_eq!(timer.outputs(), 0);
        let mut saved = Vec::new();
        timer.save(&mut saved);
        let mut copy = self::timer();
        copy.restore(&mut Saved::new(&saved)).unwrap();
        for timer in [&mut timer, &mut copy] {
            timer.tick(1000 * TICK);
            assert_eq!((timer.outputs(), timer.deadline()), (1, u64::MAX));
            assert_eq!(get(timer, 1001 * TICK, 0x1c), PERIOD);
            assert_eq!((timer.outputs(), get(timer, 5000 * TICK, 0x20)), (0, 1000));
        }
    }

    #[test]
    fn a_tick_comes_again_and_again_and_missed_ones_are_told() {
        let mut timer = timer();
        start(&mut timer, 0, CONTINUOUS, 1000);
        timer.tick(1000 * TICK);
        assert_eq!(get(&mut timer, 1000 * TICK, 0x1c), PERIOD);
        assert_eq!(timer.deadline(), 2000 * TICK);
        assert_eq!(get(&mut timer, 4005 * TICK, 0x1c), PERIOD | OVERRUN);
        assert_eq!(get(&mut timer, 4005 * TICK, 0x20), 5);
    }

    #[test]
    fn the_upper_half_is_of_the_same_instant_as_the_lower() {
        let mut timer = timer();
        start(&mut timer, 0, 0, 1000);
        timer.write(0, 0x0c, Width::Word, 1).unwrap();
        let now = (1 << 32) * TICK;
        assert_eq!(get(&mut timer, now + 5 * TICK, 0x20), 5);
        assert_eq!(get(&mut timer, now + 5 * TICK, 0x24), 1);
    }

    #[test]
    fn periods_of_nothing_and_of_all_bits() {
        let mut timer = timer();
        start(&mut timer, 0, 0, 0);
        assert_eq!(timer.outputs(), 1, "at once");
        timer.write(0, 0x00, Width::Word, RESET).unwrap();
        timer.write(0, 0x04, Width::Word, CONTINUOUS).unwrap();
        assert!(timer.write(0, 0x00, Width::Word, START).is_err());
        for reg in [0x08, 0x0c] {
            timer.write(0, reg, Width::Word, u32::MAX).unwrap();
        }
        timer.write(0, 0x10, Width::Word, PERIOD).unwrap();
        timer.write(0, 0x00, Width::Word, START).unwrap();
        assert_eq!(timer.deadline(), u64::MAX);
        timer.tick(u64::MAX);
        assert!(timer.write(0, 0x04, Width::Word, 0).is_err());
    }
}
