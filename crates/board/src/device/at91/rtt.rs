// SPDX-License-Identifier: MIT OR Apache-2.0
//! RTT, the real-time timer of SAM926x: a counter of 32 bits behind a prescaler of the slow clock. Facts: Linux 6.12
//! drivers/rtc/rtc-at91sam9.c and drivers/irqchip/irq-atmel-aic-common.c.
//!
//! The count is computed from the core's cycles, from power-on or from the last RTTRST. ALMS is set when the count
//! becomes AR + 1, RTTINC at each step. A read of SR clears both.
//!
//! Outputs: 0 = interrupt. No inputs. Clock: the slow clock at 32,768 Hz, unless the machine file gives another rate.

use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::Width;

const ALARM_ENABLE: u32 = 1 << 16;
const STEP_ENABLE: u32 = 1 << 17;
const RESTART: u32 = 1 << 18;
const ALARM: u32 = 1;
const STEP: u32 = 2;

/// The timer's state.
#[derive(Clone, Debug)]
pub(crate) struct Rtt {
    clock: Clock,
    mode: u32,
    alarm: u32,
    status: u32,
    /// Tick of the slow clock at which the count was 0, and the count at the last update.
    since: u64,
    count: u64,
}

arm::state!(Rtt: mode, alarm, status, since, count; clock);

impl Rtt {
    /// Makes a timer in its reset state. `clock` is the slow clock.
    pub(crate) fn new(clock: Clock) -> Self {
        Rtt {
            clock,
            mode: 0x8000,
            alarm: u32::MAX,
            status: 0,
            since: 0,
            count: 0,
        }
    }

    fn period(&self) -> u64 {
        match self.mode & 0xffff {
            0 => 1 << 16,
            prescaler => prescaler.into(),
        }
    }

    /// Returns the next count at which the alarm is due.
    fn alarm_count(&self) -> u64 {
        let ahead = (u64::from(self.alarm) + 1).wrapping_sub(self.count + 1) & 0xffff_ffff;
        self.count + 1 + ahead
    }

    fn sync(&mut self, now: u64) {
        let ticks = self.clock.ticks(now).saturating_sub(self.since);
        let count = ticks / self.period();
        if count > self.count {
            if self.alarm_count() <= count {
                self.status |= ALARM;
            }
            self.status |= STEP;
            self.count = count;
        }
    }

    fn restart(&mut self, now: u64) {
        (self.since, self.count) = (self.clock.ticks(now), 0);
    }

    fn interrupts(&self) -> u32 {
        self.mode >> 16 & (ALARM | STEP)
    }

    fn get(&mut self, now: u64, reg: u32) -> Option<u32> {
        self.sync(now);
        Some(match reg {
            0x0 => self.mode,
            0x4 => self.alarm,
            0x8 => self.count as u32,
            0xc => core::mem::take(&mut self.status),
            _ => return None,
        })
    }

    fn set(&mut self, now: u64, reg: u32, value: u32) -> Result<(), &'static str> {
        self.sync(now);
        match reg {
            0x0 => {
                let counts = self.mode & 0xffff != value & 0xffff;
                self.mode = value & (0xffff | ALARM_ENABLE | STEP_ENABLE);
                // The chip applies a new prescaler at the next restart. Here, it restarts the count.
                if value & RESTART != 0 || counts {
                    self.restart(now);
                }
            }
            0x4 => self.alarm = value,
            0x8 | 0xc => {} // read-only
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Rtt {
    fn part(&self) -> &'static str {
        "at91_rtt"
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("at91_rtt", None, offset, width, |reg| self.get(now, reg))
    }

    fn write(&mut self, now: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("at91_rtt", None, offset, value, |reg, v| {
            self.set(now, reg, v)
        })
    }

    fn deadline(&self) -> u64 {
        let missing = self.interrupts() & !self.status;
        let count = match missing {
            0 => return u64::MAX,
            ALARM => self.alarm_count(),
            _ => self.count + 1,
        };
        self.clock.cycles(
            self.since
                .saturating_add(count.saturating_mul(self.period())),
        )
    }

    fn tick(&mut self, now: u64) {
        self.sync(now);
    }

    fn outputs(&self) -> u32 {
        u32::from(self.status & self.interrupts() != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Clock = Clock {
        cpu_hz: 327_680,
        hz: 32_768,
    };

    fn get(rtt: &mut Rtt, now: u64, reg: u32) -> u32 {
        rtt.read(now, reg, Width::Word).unwrap()
    }

    fn set(rtt: &mut Rtt, now: u64, reg: u32, value: u32) {
        rtt.write(now, reg, Width::Word, value).unwrap();
    }

    #[test]
    fn it_counts_seconds_after_reset() {
        let mut rtt = Rtt::new(CLOCK);
        assert_eq!(get(&mut rtt, 10 * 32_768 - 1, 8), 0);
        assert_eq!(get(&mut rtt, 30 * 32_768, 8), 3);
        assert_eq!(
            (get(&mut rtt, 30 * 32_768, 12), rtt.deadline()),
            (STEP, u64::MAX)
        );
    }

    #[test]
    fn the_alarm_interrupts_once() {
        let mut rtt = Rtt::new(CLOCK);
        set(&mut rtt, 0, 0, 32 | ALARM_ENABLE | RESTART);
        set(&mut rtt, 0, 4, 4);
        assert_eq!(rtt.deadline(), 5 * 320);
        rtt.tick(5 * 320);
        assert_eq!((rtt.outputs(), get(&mut rtt, 5 * 320, 12)), (1, 3));
        assert_eq!((rtt.outputs(), get(&mut rtt, 6 * 320, 8)), (0, 6));
        assert_eq!(rtt.deadline(), (5 + (1 << 32)) * 320);
    }

    #[test]
    fn steps_interrupt_when_enabled() {
        let mut rtt = Rtt::new(CLOCK);
        set(&mut rtt, 7, 0, 32 | STEP_ENABLE);
        rtt.tick(rtt.deadline());
        assert_eq!((rtt.outputs(), rtt.deadline()), (1, u64::MAX));
    }
}
