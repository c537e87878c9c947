// SPDX-License-Identifier: MIT OR Apache-2.0
//! SP805 watchdog (DDI 0270): a down-counter. Its first zero raises an interrupt. A second zero, while the interrupt
//! is still raised, requests a reset.
//!
//! The count is computed from the cycle stamp, as in the SP804. Not modelled: the test registers.
//!
//! Outputs: 0 = WDOGINT, 1 = WDOGRES (stays high: the board resets or stops). No inputs. Clock: WDOGCLK at 24 MHz,
//! unless the machine file gives another rate.

use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::Width;

const PERIPHID: u32 = 0x0014_1805;
const UNLOCK: u32 = 0x1acc_e551;
const INT_ENABLE: u32 = 1 << 0;
const RESET_ENABLE: u32 = 1 << 1;

/// The watchdog's state.
#[derive(Clone, Debug)]
pub(crate) struct Sp805 {
    clock: Clock,
    load: u32,
    control: u32,
    locked: bool,
    raised: bool,
    reset: bool,
    /// The count at tick `since`.
    count: u32,
    since: u64,
}

arm::state!(Sp805: load, control, locked, raised, reset, count, since; clock);

impl Sp805 {
    /// Makes a stopped, unlocked watchdog whose count has all bits set.
    pub(crate) fn new(clock: Clock) -> Self {
        Sp805 {
            clock,
            load: u32::MAX,
            control: 0,
            locked: false,
            raised: false,
            reset: false,
            count: u32::MAX,
            since: 0,
        }
    }

    fn running(&self) -> bool {
        self.control & INT_ENABLE != 0
    }

    fn zero_tick(&self) -> u64 {
        self.since.saturating_add(u64::from(self.count.max(1)))
    }

    fn sync(&mut self, now: u64) {
        let tick = self.clock.ticks(now);
        while self.running() && self.zero_tick() <= tick {
            self.reset |= self.raised && self.control & RESET_ENABLE != 0;
            let settled = self.raised;
            self.raised = true;
            self.since = self.zero_tick();
            self.count = self.load.max(1);
            if settled {
                // From this point on, only the count changes.
                let period = u64::from(self.count);
                self.since += (tick - self.since) / period * period;
            }
        }
    }

    fn value(&self, now: u64) -> u32 {
        if !self.running() {
            return self.count;
        }
        let elapsed = self.clock.ticks(now).saturating_sub(self.since);
        self.count
            .saturating_sub(u32::try_from(elapsed).unwrap_or(u32::MAX))
    }

    fn reload(&mut self, now: u64) {
        self.count = self.load;
        self.since = self.clock.ticks(now) + 1;
    }

    fn set(&mut self, now: u64, reg: u32, value: u32) -> Result<(), &'static str> {
        self.sync(now);
        match reg {
            0xc00 => self.locked = value != UNLOCK,
            0x000..=0x014 if self.locked => {}
            0x000 => {
                self.load = value;
                self.reload(now);
            }
            0x008 => {
                let started = !self.running() && value & INT_ENABLE != 0;
                self.count = self.value(now);
                self.control = value & (INT_ENABLE | RESET_ENABLE);
                if started {
                    self.reload(now);
                }
            }
            0x00c => {
                self.raised = false;
                self.reload(now);
            }
            0x004 | 0x010 | 0x014 => {} // read-only
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }

    fn get(&mut self, now: u64, reg: u32) -> Option<u32> {
        self.sync(now);
        Some(match reg {
            0x000 => self.load,
            0x004 => self.value(now),
            0x008 => self.control,
            0x00c => 0, // write-only
            0x010 => u32::from(self.raised),
            0x014 => u32::from(self.raised && self.running()),
            0xc00 => u32::from(self.locked),
            _ => return None,
        })
    }
}

impl Device for Sp805 {
    fn part(&self) -> &'static str {
        "sp805"
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("sp805", Some(PERIPHID), offset, width, |reg| {
            self.get(now, reg)
        })
    }

    fn write(&mut self, now: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("sp805", Some(PERIPHID), offset, value, |reg, v| {
            self.set(now, reg, v)
        })
    }

    fn deadline(&self) -> u64 {
        let resets = self.control & RESET_ENABLE != 0 && !self.reset;
        if self.running() && (!self.raised || resets) {
            self.clock.cycles(self.zero_tick())
        } else {
            u64::MAX
        }
    }

    fn tick(&mut self, now: u64) {
        self.sync(now);
    }

    fn outputs(&self) -> u32 {
        u32::from(self.raised && self.running()) | u32::from(self.reset) << 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn armed(control: u32) -> Sp805 {
        let mut w = Sp805::new(Clock {
            cpu_hz: 100,
            hz: 10,
        });
        w.write(0, 0x000, Width::Word, 9).unwrap();
        w.write(0, 0x008, Width::Word, control).unwrap();
        w
    }

    #[test]
    fn the_first_zero_interrupts_and_the_second_resets() {
        let mut w = armed(INT_ENABLE | RESET_ENABLE);
        assert_eq!(w.deadline(), 100);
        w.tick(100);
        assert_eq!((w.outputs(), w.deadline()), (1, 190));
        w.tick(190);
        assert_eq!((w.outputs(), w.deadline()), (3, u64::MAX));
    }

    #[test]
    fn clearing_the_interrupt_starts_over() {
        let mut w = armed(INT_ENABLE | RESET_ENABLE);
        w.tick(100);
        w.write(150, 0x00c, Width::Word, 1).unwrap();
        assert_eq!((w.outputs(), w.deadline()), (0, 150 + 10 + 90));
    }

    #[test]
    fn a_locked_watchdog_ignores_writes() {
        let mut w = armed(0);
        w.write(0, 0xc00, Width::Word, 1).unwrap();
        w.write(0, 0x008, Width::Word, 3).unwrap();
        assert_eq!(
            (w.read(0, 0xc00, Width::Word), w.deadline()),
            (Ok(1), u64::MAX)
        );
        w.write(0, 0xc00, Width::Word, UNLOCK).unwrap();
        w.write(0, 0x008, Width::Word, 3).unwrap();
        assert_eq!(w.deadline(), 100);
    }
}
