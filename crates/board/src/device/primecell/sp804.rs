// SPDX-License-Identifier: MIT OR Apache-2.0
//! SP804 dual timer (DDI 0271).
//!
//! Modelled: two down-counters with prescaler; free-running, periodic and one-shot mode; 16 and 32 bits; background
//! load. A counter is stored as a value and the tick at which the counter had this value. The current value is computed
//! from these two and the cycle stamp. Not modelled: the test registers, and a separate clock enable for each timer.
//! The device clock stands for TIMCLKEN.
//!
//! A load takes effect at the next edge of the timer clock, so a timer never fires early. In periodic mode, the tick
//! that reaches zero also reloads the counter. The period is therefore LOAD ticks (equation in DDI 0271, 3.2.1).
//!
//! Outputs: 0 = TIMINTC (either timer), 1 = TIMINT1, 2 = TIMINT2. No inputs. Clock: TIMCLK at 1 MHz, unless the machine
//! file or the device tree gives another rate.

use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::{Damaged, Width};

const PERIPHID: u32 = 0x0014_1804;

const ENABLE: u32 = 1 << 7;
const PERIODIC: u32 = 1 << 6;
const INT_ENABLE: u32 = 1 << 5;
const SIZE_32: u32 = 1 << 1;
const ONE_SHOT: u32 = 1 << 0;

/// One of the two counters.
#[derive(Clone, Debug)]
struct Counter {
    clock: Clock,
    load: u32,
    control: u32,
    raised: bool,
    /// The count at prescaled tick `since`.
    count: u32,
    since: u64,
    /// First core cycle of the next tick at which the count reaches zero; `u64::MAX` for never.
    zero_at: u64,
}

arm::state!(Counter: load, control, raised, count, since; clock, zero_at => restored);

impl Counter {
    fn new(clock: Clock) -> Self {
        Counter {
            clock,
            load: 0,
            control: INT_ENABLE,
            raised: false,
            count: u32::MAX,
            since: 0,
            zero_at: u64::MAX,
        }
    }

    /// Returns the ticks of the timer clock per count.
    fn divisor(&self) -> u64 {
        match (self.control >> 2) & 3 {
            0 => 1,
            1 => 16,
            // 11 is undefined in DDI 0271. `write_control` refuses it.
            _ => 256,
        }
    }

    fn tick_at(&self, now: u64) -> u64 {
        self.clock.ticks(now) / self.divisor()
    }

    fn mask(&self) -> u32 {
        if self.control & SIZE_32 != 0 {
            u32::MAX
        } else {
            0xffff
        }
    }

    fn running(&self) -> bool {
        let halted = self.control & ONE_SHOT != 0 && self.count == 0;
        self.control & ENABLE != 0 && !halted
    }

    /// Returns the counts from one zero to the next.
    fn period(&self) -> u64 {
        if self.control & PERIODIC != 0 {
            u64::from(self.load & self.mask())
        } else {
            u64::from(self.mask()) + 1
        }
    }

    /// Returns the ticks from `since` to the first zero of the count; `None` if there is none.
    fn to_zero(&self) -> Option<u64> {
        if !self.running() {
            return None;
        }
        match u64::from(self.count & self.mask()) {
            0 => Some(self.period()).filter(|&p| p != 0),
            n => Some(n),
        }
    }

    fn replan(&mut self) {
        self.zero_at = match self.to_zero() {
            Some(n) => {
                let zero = self.since.saturating_add(n);
                self.clock.cycles(zero.saturating_mul(self.divisor()))
            }
            None => u64::MAX,
        };
    }

    fn restored(&mut self) -> Result<(), Damaged> {
        self.replan();
        Ok(())
    }

    /// Accounts for each time that the count reached zero, up to `now`.
    fn sync(&mut self, now: u64) {
        if now < self.zero_at {
            return;
        }
        let Some(first) = self.to_zero() else { return };
        self.raised = true;
        self.since += first;
        self.count = 0;
        if self.control & ONE_SHOT == 0 {
            let period = self.period();
            if let Some(more) = (self.tick_at(now) - self.since).checked_div(period) {
                self.since += more * period;
            }
            if self.control & PERIODIC != 0 {
                self.count = self.load & self.mask();
            }
        }
        self.replan();
    }

    fn value(&mut self, now: u64) -> u32 {
        self.sync(now);
        if !self.running() {
            return self.count & self.mask();
        }
        let elapsed = self.tick_at(now).saturating_sub(self.since);
        self.count.wrapping_sub(elapsed as u32) & self.mask()
    }

    fn write_load(&mut self, now: u64, value: u32) {
        self.sync(now);
        self.load = value;
        self.count = value & self.mask();
        self.since = self.tick_at(now) + 1;
        // "If the load value is set to 0 then an interrupt is generated immediately."
        if self.count == 0 && self.control & ENABLE != 0 {
            self.raised = true;
        }
        self.replan();
    }

    fn write_control(&mut self, now: u64, value: u32) -> Result<(), &'static str> {
        if value & 0xc == 0xc {
            return Err("the manual leaves prescale 11 undefined");
        }
        self.count = self.value(now);
        // Linux writes LOAD and then CONTROL. A load that waits for its clock edge must therefore keep waiting.
        let waiting = self.since > self.tick_at(now);
        self.control = value & 0xff;
        self.since = self.tick_at(now) + u64::from(waiting);
        self.replan();
        Ok(())
    }

    fn interrupt(&self) -> bool {
        self.raised && self.control & INT_ENABLE != 0
    }

    /// Returns the core cycle at which the output next changes without an access.
    fn deadline(&self) -> u64 {
        if self.raised || self.control & INT_ENABLE == 0 {
            u64::MAX
        } else {
            self.zero_at
        }
    }

    fn get(&mut self, now: u64, reg: u32) -> Option<u32> {
        Some(match reg {
            0x00 | 0x18 => self.load,
            0x04 => self.value(now),
            0x08 => self.control,
            0x0c => 0, // write-only
            0x10 => {
                self.sync(now);
                u32::from(self.raised)
            }
            0x14 => {
                self.sync(now);
                u32::from(self.interrupt())
            }
            _ => return None,
        })
    }

    fn set(&mut self, now: u64, reg: u32, value: u32) -> Result<(), &'static str> {
        match reg {
            0x00 => self.write_load(now, value),
            0x08 => return self.write_control(now, value),
            0x0c => {
                self.sync(now);
                self.raised = false;
            }
            0x18 => {
                // A background load takes effect at the next reload. A reload that is already due uses the old value.
                self.sync(now);
                self.load = value;
                self.replan();
            }
            0x04 | 0x10 | 0x14 => {} // read-only; Linux writes VALUE
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

/// The dual timer.
#[derive(Clone, Debug)]
pub(crate) struct Sp804 {
    timers: [Counter; 2],
}

arm::state!(Sp804: timers);

impl Sp804 {
    /// Makes a dual timer in its reset state: both timers stopped at 0xffffffff, 16-bit, free-running.
    pub(crate) fn new(clock: Clock) -> Self {
        Sp804 {
            timers: [Counter::new(clock), Counter::new(clock)],
        }
    }
}

fn split(reg: u32) -> Option<(usize, u32)> {
    (reg < 0x40).then_some(((reg >> 5) as usize, reg & 0x1f))
}

impl Device for Sp804 {
    fn part(&self) -> &'static str {
        "sp804"
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("sp804", Some(PERIPHID), offset, width, |reg| {
            let (timer, reg) = split(reg)?;
            self.timers[timer].get(now, reg)
        })
    }

    fn write(&mut self, now: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("sp804", Some(PERIPHID), offset, value, |reg, value| {
            let (timer, reg) = split(reg).ok_or(regs::NO_REGISTER)?;
            self.timers[timer].set(now, reg, value)
        })
    }

    fn deadline(&self) -> u64 {
        self.timers[0].deadline().min(self.timers[1].deadline())
    }

    fn tick(&mut self, now: u64) {
        for timer in &mut self.timers {
            timer.sync(now);
        }
    }

    fn outputs(&self) -> u32 {
        match (self.timers[0].interrupt(), self.timers[1].interrupt()) {
            (false, false) => 0,
            (one, two) => 1 | u32::from(one) << 1 | u32::from(two) << 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Clock = Clock {
        cpu_hz: 100_000_000,
        hz: 1_000_000,
    };
    const TICK: u64 = 100;

    fn timer() -> Sp804 {
        Sp804::new(CLOCK)
    }

    fn get(t: &mut Sp804, now: u64, reg: u32) -> u32 {
        t.read(now, reg, Width::Word).unwrap()
    }

    fn set(t: &mut Sp804, now: u64, reg: u32, value: u32) {
        t.write(now, reg, Width::Word, value).unwrap();
    }

    /// Calls `tick` as the bus would until `end`. Returns the cycles at which output 0 rises.
    fn edges(t: &mut Sp804, end: u64) -> Vec<u64> {
        let mut found = Vec::new();
        while t.deadline() <= end {
            let now = t.deadline();
            t.tick(now);
            assert_eq!(t.outputs() & 1, 1);
            found.push(now);
            set(t, now, 0x0c, 1);
            assert_eq!(t.outputs(), 0);
        }
        found
    }

    #[test]
    fn a_one_shot_fires_once_and_halts_at_zero() {
        let mut t = timer();
        set(&mut t, 0, 0x00, 5);
        set(&mut t, 0, 0x08, ENABLE | INT_ENABLE | SIZE_32 | ONE_SHOT);
        assert_eq!(edges(&mut t, 1_000_000), [6 * TICK]);
        assert_eq!(get(&mut t, 2_000_000, 0x04), 0);
        set(&mut t, 2_000_050, 0x00, 5);
        assert_eq!(edges(&mut t, 3_000_000), [2_000_000 + 6 * TICK]);
    }

    #[test]
    fn a_periodic_timer_fires_every_load_ticks() {
        let mut t = timer();
        set(&mut t, 0, 0x00, 10);
        set(&mut t, 0, 0x08, ENABLE | PERIODIC | INT_ENABLE | SIZE_32);
        let e = edges(&mut t, 5_100);
        assert_eq!(e, [1100, 2100, 3100, 4100, 5100]);
        assert_eq!(get(&mut t, 5_100 + 3 * TICK, 0x04), 7);
    }

    #[test]
    fn periods_missed_while_unread_are_accounted_in_one_step() {
        let mut t = timer();
        set(&mut t, 0, 0x00, 10);
        set(&mut t, 0, 0x08, ENABLE | PERIODIC | INT_ENABLE | SIZE_32);
        assert_eq!(get(&mut t, 1_000_000_000_000 + 5 * TICK, 0x04), 6);
        assert_eq!(get(&mut t, 1_000_000_000_000 + 5 * TICK, 0x14), 1);
    }

    #[test]
    fn a_free_running_timer_wraps_at_its_size() {
        let mut t = timer();
        set(&mut t, 0, 0x28, ENABLE);
        set(&mut t, 0, 0x20, 3);
        assert_eq!(get(&mut t, 0, 0x24), 3);
        assert_eq!(get(&mut t, 5 * TICK, 0x24), 0xffff);
        let mut t = timer();
        set(&mut t, 0, 0x20, 3);
        set(&mut t, 0, 0x28, ENABLE | SIZE_32);
        assert_eq!(get(&mut t, 5 * TICK, 0x24), 0xffff_ffff);
        assert_eq!(get(&mut t, 5 * TICK + (TICK << 32), 0x24), 0xffff_ffff);
    }

    #[test]
    fn the_prescaler_divides_by_16_and_256() {
        for (bits, div) in [(1, 16), (2, 256)] {
            let mut t = timer();
            set(
                &mut t,
                0,
                0x08,
                ENABLE | ONE_SHOT | INT_ENABLE | SIZE_32 | bits << 2,
            );
            set(&mut t, 0, 0x00, 2);
            assert_eq!(t.deadline(), 3 * div * TICK);
        }
        let mut t = timer();
        assert!(t.write(0, 0x08, Width::Word, 0xc).is_err());
    }

    #[test]
    fn a_background_load_waits_for_the_reload() {
        let mut t = timer();
        set(&mut t, 0, 0x00, 10);
        set(&mut t, 0, 0x08, ENABLE | PERIODIC | INT_ENABLE | SIZE_32);
        set(&mut t, 150, 0x18, 20);
        assert_eq!(get(&mut t, 150, 0x00), 20);
        assert_eq!(edges(&mut t, 5_100), [1100, 3100, 5100]);
    }

    #[test]
    fn a_stopped_timer_keeps_its_count() {
        let mut t = timer();
        set(&mut t, 0, 0x00, 100);
        set(&mut t, 0, 0x08, ENABLE | SIZE_32);
        set(&mut t, 31 * TICK, 0x08, SIZE_32);
        assert_eq!(get(&mut t, 9_000_000, 0x04), 70);
        set(&mut t, 9_000_000, 0x08, ENABLE | SIZE_32);
        assert_eq!(get(&mut t, 9_000_000 + TICK, 0x04), 69);
        assert_eq!(t.deadline(), u64::MAX, "interrupt disabled");
    }

    #[test]
    fn a_load_between_ticks_never_fires_early() {
        let clock = Clock {
            cpu_hz: 198_656_000,
            hz: 24_000_000,
        };
        let mut t = Sp804::new(clock);
        set(&mut t, 1, 0x08, ENABLE | ONE_SHOT | INT_ENABLE | SIZE_32);
        set(&mut t, 1, 0x00, 24);
        // 24 ticks take 198.656 cycles; one tick takes 8.3 cycles.
        assert!(
            t.deadline() > 199 && t.deadline() < 1 + 199 + 9,
            "{}",
            t.deadline()
        );
        assert_eq!(clock.ticks(t.deadline() - 1), 24);
        assert_eq!(clock.ticks(t.deadline()), 25);
    }

    #[test]
    fn both_timers_share_the_combined_output() {
        let mut t = timer();
        set(&mut t, 0, 0x28, ENABLE | INT_ENABLE | SIZE_32 | ONE_SHOT);
        set(&mut t, 0, 0x20, 1);
        t.tick(t.deadline());
        assert_eq!(t.outputs(), 0b101);
    }

    #[test]
    fn identification_is_sp804_and_unknown_offsets_are_refused() {
        let mut t = timer();
        assert_eq!(get(&mut t, 0, 0xfe0), 0x04);
        assert_eq!(get(&mut t, 0, 0xfe4), 0x18);
        assert!(t.read(0, 0x40, Width::Word).is_err());
        set(&mut t, 0, 0x04, 1); // read-only, as Linux writes it
    }
}
