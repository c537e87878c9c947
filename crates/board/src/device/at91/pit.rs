// SPDX-License-Identifier: MIT OR Apache-2.0
//! PIT, the periodic interval timer of SAM926x: 20 bits at MCK/16, and a count of 12 bits of the missed periods. Facts:
//! Linux 6.12 drivers/clocksource/timer-atmel-pit.c.
//!
//! The count runs from 0 to PIV while PITEN is set. When PITEN is cleared, the count runs on until it is 0. PITS is set
//! at the end of each period; a read of PIVR clears PITS and PICNT.
//!
//! Outputs: 0 = interrupt. No inputs. Clock: MCK at 99,959,589 Hz, unless the machine file gives another rate.

use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::Width;

const ENABLE: u32 = 1 << 24;
const INTERRUPT: u32 = 1 << 25;
const LIMIT: u32 = 0xf_ffff;

/// The timer's state.
#[derive(Clone, Debug)]
pub(crate) struct Pit {
    /// MCK/16.
    clock: Clock,
    mode: u32,
    runs: bool,
    raised: bool,
    periods: u32,
    /// Tick at which the count was 0.
    since: u64,
}

arm::state!(Pit: mode, runs, raised, periods, since; clock);

impl Pit {
    /// Makes a timer in its reset state.
    pub(crate) fn new(mck: Clock) -> Self {
        Pit {
            clock: Clock {
                cpu_hz: mck.cpu_hz * 16,
                hz: mck.hz,
            },
            mode: LIMIT,
            runs: false,
            raised: false,
            periods: 0,
            since: 0,
        }
    }

    fn period(&self) -> u64 {
        u64::from(self.mode & LIMIT) + 1
    }

    fn sync(&mut self, now: u64) {
        let ticks = self.clock.ticks(now).saturating_sub(self.since);
        let mut wraps = ticks / self.period();
        if !self.runs || wraps == 0 {
            return;
        }
        if self.mode & ENABLE == 0 {
            // The count stops at its first wrap.
            (self.runs, wraps) = (false, 1);
        }
        self.raised = true;
        self.periods = (u64::from(self.periods) + wraps) as u32 & 0xfff;
        self.since += wraps * self.period();
    }

    fn value(&self, now: u64) -> u32 {
        let count = match self.runs {
            true => self.clock.ticks(now).saturating_sub(self.since) as u32 & LIMIT,
            false => 0,
        };
        self.periods << 20 | count
    }

    fn get(&mut self, now: u64, reg: u32) -> Option<u32> {
        self.sync(now);
        Some(match reg {
            0x0 => self.mode,
            0x4 => self.raised.into(),
            0x8 => {
                let value = self.value(now);
                (self.raised, self.periods) = (false, 0);
                value
            }
            0xc => self.value(now),
            _ => return None,
        })
    }

    fn set(&mut self, now: u64, reg: u32, value: u32) -> Result<(), &'static str> {
        self.sync(now);
        match reg {
            0x0 => {
                self.mode = value & (LIMIT | ENABLE | INTERRUPT);
                if value & ENABLE != 0 && !self.runs {
                    (self.runs, self.since) = (true, self.clock.ticks(now));
                }
                self.sync(now);
            }
            0x4..=0xc => {} // read-only
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Pit {
    fn part(&self) -> &'static str {
        "at91_pit"
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("at91_pit", None, offset, width, |reg| self.get(now, reg))
    }

    fn write(&mut self, now: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("at91_pit", None, offset, value, |reg, v| {
            self.set(now, reg, v)
        })
    }

    fn deadline(&self) -> u64 {
        if !self.runs || self.raised || self.mode & INTERRUPT == 0 {
            return u64::MAX;
        }
        self.clock.cycles(self.since.saturating_add(self.period()))
    }

    fn tick(&mut self, now: u64) {
        self.sync(now);
    }

    fn outputs(&self) -> u32 {
        u32::from(self.raised && self.mode & INTERRUPT != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(pit: &mut Pit, now: u64, reg: u32) -> u32 {
        pit.read(now, reg, Width::Word).unwrap()
    }

    /// Makes a timer with a period of 1000 ticks, each of 32 cycles.
    fn started() -> Pit {
        let mut pit = Pit::new(Clock { cpu_hz: 2, hz: 1 });
        pit.write(0, 0, Width::Word, 999 | ENABLE | INTERRUPT)
            .unwrap();
        pit
    }

    #[test]
    fn periods_interrupt_and_missed_ones_are_counted() {
        let mut pit = started();
        assert_eq!(pit.deadline(), 32_000);
        pit.tick(32_000);
        assert_eq!(pit.outputs(), 1);
        assert_eq!(get(&mut pit, 3 * 32_000 + 320, 0xc), 3 << 20 | 10);
        assert_eq!(get(&mut pit, 3 * 32_000 + 320, 0x8), 3 << 20 | 10);
        assert_eq!((pit.outputs(), pit.deadline()), (0, 4 * 32_000));
    }

    #[test]
    fn a_disabled_count_runs_to_its_end() {
        let mut pit = started();
        pit.write(3200, 0, Width::Word, 999).unwrap();
        assert_eq!(get(&mut pit, 6400, 0x8), 200);
        assert_eq!(get(&mut pit, 40_000, 0x8), 1 << 20);
        assert_eq!(get(&mut pit, 80_000, 0x8), 0);
    }
}
