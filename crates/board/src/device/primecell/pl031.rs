// SPDX-License-Identifier: MIT OR Apache-2.0
//! PL031 real-time clock (DDI 0224): a 32-bit count of seconds with load and match registers.
//!
//! Value: `epoch` is the number of seconds since 1970 at power-on (default 1700000000). The default is fixed, so that
//! runs are repeatable.
//!
//! Outputs: 0 = RTCINTR. No inputs. Clock: CLK1HZ at 1 Hz, unless the machine file gives another rate.

use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::Width;

const PERIPHID: u32 = 0x0004_1031;

/// The clock's state.
#[derive(Clone, Debug)]
pub(crate) struct Pl031 {
    clock: Clock,
    /// Count at tick 0 of the 1 Hz clock (wrapping).
    offset: u32,
    load: u32,
    target: u32,
    mask: bool,
    raised: bool,
    /// Core cycle of the next match.
    match_at: u64,
}

arm::state!(Pl031: offset, load, target, mask, raised, match_at; clock);

impl Pl031 {
    /// Makes a clock that shows `epoch` at power-on.
    pub(crate) fn new(clock: Clock, epoch: u32) -> Self {
        let mut rtc = Pl031 {
            clock,
            offset: epoch,
            load: epoch,
            target: 0,
            mask: false,
            raised: false,
            match_at: 0,
        };
        rtc.replan(0);
        rtc
    }

    fn count(&self, now: u64) -> u32 {
        self.offset.wrapping_add(self.clock.ticks(now) as u32)
    }

    /// Computes the next match after `now`.
    fn replan(&mut self, now: u64) {
        let wait = match self.target.wrapping_sub(self.count(now)) {
            0 => 1 << 32,
            n => u64::from(n),
        };
        self.match_at = self.clock.cycles(self.clock.ticks(now) + wait);
    }

    fn sync(&mut self, now: u64) {
        if now >= self.match_at {
            self.raised = true;
            self.replan(now);
        }
    }

    fn get(&mut self, now: u64, reg: u32) -> Option<u32> {
        self.sync(now);
        Some(match reg {
            0x00 => self.count(now),
            0x04 => self.target,
            0x08 => self.load,
            0x0c => 1, // started; it cannot be stopped
            0x10 => u32::from(self.mask),
            0x14 => u32::from(self.raised),
            0x18 => u32::from(self.raised && self.mask),
            0x1c => 0, // write-only
            _ => return None,
        })
    }

    fn set(&mut self, now: u64, reg: u32, value: u32) -> Result<(), &'static str> {
        self.sync(now);
        match reg {
            0x04 => {
                self.target = value;
                self.raised |= value == self.count(now);
                self.replan(now);
            }
            0x08 => {
                self.load = value;
                self.offset = value.wrapping_sub(self.clock.ticks(now) as u32);
                self.replan(now);
            }
            0x00 | 0x0c | 0x14 | 0x18 => {} // read-only; CR has only its start bit
            0x10 => self.mask = value & 1 != 0,
            0x1c => self.raised &= value & 1 == 0,
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Pl031 {
    fn part(&self) -> &'static str {
        "pl031"
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("pl031", Some(PERIPHID), offset, width, |reg| {
            self.get(now, reg)
        })
    }

    fn write(&mut self, now: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("pl031", Some(PERIPHID), offset, value, |reg, v| {
            self.set(now, reg, v)
        })
    }

    fn deadline(&self) -> u64 {
        if self.mask && !self.raised {
            self.match_at
        } else {
            u64::MAX
        }
    }

    fn tick(&mut self, now: u64) {
        self.sync(now);
    }

    fn outputs(&self) -> u32 {
        u32::from(self.raised && self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1000;

    fn rtc() -> Pl031 {
        Pl031::new(
            Clock {
                cpu_hz: SECOND,
                hz: 1,
            },
            500,
        )
    }

    #[test]
    fn it_counts_seconds_from_the_epoch_and_from_a_load() {
        let mut r = rtc();
        assert_eq!(r.read(3 * SECOND, 0, Width::Word), Ok(503));
        r.write(3 * SECOND + 1, 8, Width::Word, 9000).unwrap();
        assert_eq!(r.read(5 * SECOND, 0, Width::Word), Ok(9002));
    }

    #[test]
    fn a_match_interrupts_at_its_second() {
        let mut r = rtc();
        r.write(0, 0x10, Width::Word, 1).unwrap();
        r.write(0, 0x04, Width::Word, 510).unwrap();
        assert_eq!(r.deadline(), 10 * SECOND);
        r.tick(10 * SECOND);
        assert_eq!((r.outputs(), r.deadline()), (1, u64::MAX));
        r.write(10 * SECOND, 0x1c, Width::Word, 1).unwrap();
        assert_eq!(r.outputs(), 0);
        assert!(r.deadline() > 11 * SECOND, "once, not for the whole second");
    }
}
