// SPDX-License-Identifier: MIT OR Apache-2.0
//! ST, the system timer of RM9200: a period interval timer, a real-time counter of 20 bits with an alarm, and the watchdog.
//! Facts: Linux 6.12 include/linux/mfd/syscon/atmel-st.h, drivers/clocksource/timer-atmel-st.c and
//! drivers/watchdog/at91rm9200_wdt.c; AT91RM9200 data sheet, chapter ST (recalled).
//!
//! All count the slow clock. The period interval timer counts PIV clocks, from each write of PIMR on, and sets PITS at
//! the end of each period (0 stands for 65,536 clocks). The real-time counter counts periods of RTPRES clocks (0 stands
//! for 65,536) and sets RTTINC at each step, and ALMS when it becomes RTAR. Another prescaler counts from its write on. A
//! read of SR clears the status.
//!
//! The watchdog counts WDV periods of 128 clocks (0 stands for 65,536 periods) from each restart on, with the WDV of that
//! moment. At the end it sets WDOVF, and resets the chip if RSTEN is set: Linux restarts the RM9200 in this way. Without
//! effect: EXTEN.
//!
//! Outputs: 0 = interrupt, 1 = reset. No inputs. Clock: the slow clock at 32,768 Hz, unless the machine file gives another rate.

use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::Width;

const NAME: &str = "at91_st";
const PERIOD: u32 = 1 << 0;
const WATCHDOG: u32 = 1 << 1;
const STEP: u32 = 1 << 2;
const ALARM: u32 = 1 << 3;
const INTERRUPTS: u32 = 0xf;
const COUNT: u64 = 0xf_ffff;
const WATCHDOG_RESETS: u32 = 1 << 16;

/// Counts of a divider of the slow clock.
#[derive(Clone, Copy, Debug)]
struct Divider {
    /// Value of the mode register.
    mode: u32,
    /// Ticks of the slow clock in a unit of the mode register.
    unit: u64,
    /// Tick of the slow clock at which the count was 0, and the last count that was looked at.
    since: u64,
    count: u64,
}

arm::state!(Divider: mode, since, count; unit);

impl Divider {
    fn new(mode: u32, unit: u64) -> Divider {
        Divider {
            mode,
            unit,
            since: 0,
            count: 0,
        }
    }

    fn period(&self) -> u64 {
        let units = match self.mode & 0xffff {
            0 => 1 << 16,
            units => u64::from(units),
        };
        units * self.unit
    }

    /// Begins to count with another mode.
    fn restart(&mut self, mode: u32, since: u64) {
        self.mode = mode & 0xffff;
        (self.since, self.count) = (since, 0);
    }

    /// Counts until `tick`. Returns the number of new counts.
    fn advance(&mut self, tick: u64) -> u64 {
        let count = tick.saturating_sub(self.since) / self.period();
        let new = count.saturating_sub(self.count);
        self.count += new;
        new
    }

    /// Returns the tick at which the count is `ahead` counts further.
    fn tick_of(&self, ahead: u64) -> u64 {
        let count = self.count.saturating_add(ahead);
        self.since
            .saturating_add(count.saturating_mul(self.period()))
    }
}

/// The timer's state.
#[derive(Clone, Debug)]
pub(crate) struct St {
    clock: Clock,
    interval: Divider,
    real: Divider,
    /// The real-time counter's value when `real` began to count.
    base: u64,
    watchdog: Divider,
    watchdog_mode: u32,
    resets: bool,
    alarm: u32,
    status: u32,
    mask: u32,
}

arm::state!(St: interval, real, base, watchdog, watchdog_mode, resets, alarm, status, mask; clock);

impl St {
    /// Makes a timer in its reset state. `clock` is the slow clock.
    pub(crate) fn new(clock: Clock) -> St {
        St {
            clock,
            interval: Divider::new(0, 1),
            real: Divider::new(0x8000, 1),
            base: 0,
            watchdog: Divider::new(0, 128),
            watchdog_mode: 0x2_0000,
            resets: false,
            alarm: 0,
            status: 0,
            mask: 0,
        }
    }

    fn current(&self) -> u64 {
        self.base.wrapping_add(self.real.count) & COUNT
    }

    /// Returns the counts until the alarm: a whole round if the counter is at the alarm.
    fn until_alarm(&self) -> u64 {
        let ahead = u64::from(self.alarm).wrapping_sub(self.current()) & COUNT;
        if ahead == 0 { COUNT + 1 } else { ahead }
    }

    fn sync(&mut self, now: u64) {
        let tick = self.clock.ticks(now);
        if self.interval.advance(tick) > 0 {
            self.status |= PERIOD;
        }
        if self.watchdog.advance(tick) > 0 {
            self.status |= WATCHDOG;
            self.resets |= self.watchdog_mode & WATCHDOG_RESETS != 0;
        }
        let alarm = self.until_alarm();
        let steps = self.real.advance(tick);
        if steps > 0 {
            self.status |= STEP;
        }
        if steps >= alarm {
            self.status |= ALARM;
        }
    }

    fn get(&mut self, now: u64, reg: u32) -> Option<u32> {
        self.sync(now);
        Some(match reg {
            0x00 | 0x14 | 0x18 => 0, // write-only
            0x04 => self.interval.mode,
            0x08 => self.watchdog_mode,
            0x0c => self.real.mode,
            0x10 => std::mem::take(&mut self.status),
            0x1c => self.mask,
            0x20 => self.alarm,
            0x24 => self.current() as u32,
            _ => return None,
        })
    }

    fn set(&mut self, now: u64, reg: u32, value: u32) -> Result<(), &'static str> {
        self.sync(now);
        let since = self.clock.ticks(now);
        match reg {
            0x00 if value & 1 != 0 => self.watchdog.restart(self.watchdog_mode, since),
            0x00 => {}
            0x04 => self.interval.restart(value, since),
            0x08 => self.watchdog_mode = value & 0x3_ffff,
            0x0c if value & 0xffff == self.real.mode => {}
            0x0c => {
                self.base = self.current();
                self.real.restart(value, since);
            }
            0x14 => self.mask |= value & INTERRUPTS,
            0x18 => self.mask &= !value,
            0x20 => self.alarm = value & COUNT as u32,
            0x10 | 0x1c | 0x24 => {} // read-only
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for St {
    fn part(&self) -> &'static str {
        NAME
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read(NAME, None, offset, width, |reg| self.get(now, reg))
    }

    fn write(&mut self, now: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write(NAME, None, offset, value, |reg, v| self.set(now, reg, v))
    }

    fn deadline(&self) -> u64 {
        let missing = self.mask & !self.status;
        let resets = self.watchdog_mode & WATCHDOG_RESETS != 0 && !self.resets;
        let missing = missing | if resets { WATCHDOG } else { 0 };
        let tick = |bit, tick: u64| if missing & bit != 0 { tick } else { u64::MAX };
        let first = tick(PERIOD, self.interval.tick_of(1))
            .min(tick(STEP, self.real.tick_of(1)))
            .min(tick(WATCHDOG, self.watchdog.tick_of(1)))
            .min(tick(ALARM, self.real.tick_of(self.until_alarm())));
        match first {
            u64::MAX => u64::MAX,
            tick => self.clock.cycles(tick),
        }
    }

    fn tick(&mut self, now: u64) {
        self.sync(now);
    }

    fn outputs(&self) -> u32 {
        u32::from(self.status & self.mask != 0) | u32::from(self.resets) << 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arm::{Saved, State as _};

    /// Ten core cycles are a tick of the slow clock.
    const CLOCK: Clock = Clock {
        cpu_hz: 327_680,
        hz: 32_768,
    };

    fn get(st: &mut St, now: u64, reg: u32) -> u32 {
        st.read(now, reg, Width::Word).unwrap()
    }

    fn set(st: &mut St, now: u64, writes: &[(u32, u32)]) {
        for (reg, value) in writes {
            st.write(now, *reg, Width::Word, *value).unwrap();
        }
    }

    #[test]
    fn periods_come_one_after_the_other_although_software_is_late() {
        let mut st = St::new(CLOCK);
        set(&mut st, 1003, &[(0x04, 256), (0x14, PERIOD)]);
        for n in 1..=5 {
            let due = 1000 + n * 2560;
            assert_eq!(st.deadline(), due);
            st.tick(due);
            assert_eq!((st.outputs(), st.deadline()), (1, u64::MAX));
            assert_eq!(get(&mut st, due + 700, 0x10) & PERIOD, PERIOD);
            assert_eq!(st.outputs(), 0);
        }
        set(&mut st, 20_000, &[(0x18, PERIOD)]);
        assert_eq!(st.deadline(), u64::MAX);
    }

    #[test]
    fn the_counter_counts_seconds_after_reset_and_ticks_with_another_prescaler() {
        let mut st = St::new(CLOCK);
        assert_eq!(get(&mut st, 3 * 327_680, 0x24), 3);
        set(&mut st, 3 * 327_680, &[(0x0c, 1)]);
        assert_eq!(get(&mut st, 3 * 327_680 + 1230, 0x24), 126);
        // The same prescaler changes nothing, and the counter has 20 bits.
        set(&mut st, 3 * 327_680 + 1234, &[(0x0c, 1)]);
        let round = 3 * 327_680 + 10 * ((1 << 20) - 3);
        assert_eq!(get(&mut st, round - 1, 0x24), 0xf_ffff);
        assert_eq!(get(&mut st, round, 0x24), 0);
    }

    #[test]
    fn an_alarm_at_the_current_count_comes_a_round_later() {
        let mut st = St::new(CLOCK);
        set(&mut st, 0, &[(0x0c, 1), (0x20, 2), (0x14, ALARM)]);
        assert_eq!(st.deadline(), 20);
        st.tick(20);
        assert_eq!((st.outputs(), get(&mut st, 25, 0x10)), (1, STEP | ALARM));
        assert_eq!((st.outputs(), st.deadline()), (0, 20 + (10 << 20)));
        // As the driver arms it: the alarm at the present, a read of SR, and the alarm ahead.
        set(&mut st, 501, &[(0x20, 50)]);
        assert_eq!(get(&mut st, 502, 0x10), STEP);
        set(&mut st, 503, &[(0x20, 52)]);
        assert_eq!(st.deadline(), 520);
    }

    #[test]
    fn the_watchdog_resets_the_chip_if_nothing_restarts_it() {
        let mut st = St::new(CLOCK);
        set(&mut st, 0, &[(0x08, 0x3_0002), (0x00, 1)]);
        assert_eq!(st.deadline(), 2560);
        set(&mut st, 2000, &[(0x00, 0), (0x00, 1)]);
        assert_eq!(st.deadline(), 4560);
        // Another value counts from the next restart on.
        set(&mut st, 3000, &[(0x08, 0x3_0001)]);
        assert_eq!((st.deadline(), get(&mut st, 3000, 0x08)), (4560, 0x3_0001));
        st.tick(4560);
        assert_eq!((st.outputs(), st.deadline()), (2, u64::MAX));
        assert!(st.read(0, 0x28, Width::Word).is_err());
        // Without RSTEN, it only sets WDOVF.
        let mut st = St::new(CLOCK);
        set(&mut st, 0, &[(0x08, 1), (0x14, 2), (0x00, 1)]);
        st.tick(st.deadline());
        assert_eq!((st.outputs(), get(&mut st, 1280, 0x10)), (1, 2));
    }

    #[test]
    fn a_restored_timer_goes_on_alike() {
        let mut st = St::new(CLOCK);
        set(
            &mut st,
            7,
            &[(0x0c, 3), (0x04, 100), (0x20, 900), (0x14, 9)],
        );
        st.tick(5000);
        let mut saved = Vec::new();
        st.save(&mut saved);
        let mut other = St::new(CLOCK);
        other.restore(&mut Saved::new(&saved)).unwrap();
        for now in [5100, 9000, 70_000] {
            assert_eq!(st.deadline(), other.deadline());
            let both = [&mut st, &mut other].map(|st| (get(st, now, 0x24), get(st, now, 0x10)));
            assert_eq!(both[0], both[1]);
        }
    }
}
