// SPDX-License-Identifier: MIT OR Apache-2.0
//! RTC, the real-time clock of RM9200: time and date in BCD, in 24-hour mode. Facts: Linux 6.12
//! drivers/rtc/rtc-at91rm9200.c; AT91RM9200 data sheet, chapter RTC (recalled).
//!
//! The clock counts seconds of the slow clock. UPDTIM and UPDCAL in CR stop the clock at the end of the current second,
//! which sets ACKUPD. While UPDTIM is set, TIMR takes a new value, and while UPDCAL is set, CALR does. Each second sets
//! SECEV. The alarm compares the fields that are enabled, each second. SCCR clears status bits.
//!
//! The model begins at 1 January 1998, 00:00:00, which is the value of the data sheet. The date of a board does not
//! depend on the host's date. Not modelled: 12-hour mode; time and calendar events (TIMEV, CALEV), whose status stays 0; an
//! alarm without interrupt that was due more than a day before the look.
//! A value that is not a date is refused. VER says that all entries are valid.
//!
//! Outputs: 0 = interrupt. No inputs. Clock: the slow clock at 32,768 Hz, unless the machine file gives another rate.

use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::{Damaged, Width};

const NAME: &str = "at91_rtc";
const UPDATE_TIME: u32 = 1 << 0;
const UPDATE_DATE: u32 = 1 << 1;
const ACKNOWLEDGED: u32 = 1 << 0;
const ALARM: u32 = 1 << 1;
const SECOND: u32 = 1 << 2;
const INTERRUPTS: u32 = 0x1f;
/// Enable bits of the alarm registers.
const TIME_ENABLES: [(u32, u32); 3] = [(7, 0x7f), (15, 0x7f00), (23, 0x3f_0000)];
const DATE_ENABLES: [(u32, u32); 2] = [(23, 0x1f_0000), (31, 0x3f00_0000)];
const DAY: u64 = 86_400;
/// Years of the clock.
const FIRST_YEAR: u32 = 1900;
const LAST_YEAR: u32 = 2099;

/// The clock's state.
#[derive(Clone, Debug)]
pub(crate) struct Rtc {
    /// Seconds.
    clock: Clock,
    control: u32,
    time_alarm: u32,
    date_alarm: u32,
    status: u32,
    mask: u32,
    /// Seconds since the beginning of 1900 when the board's clock said `since`, seconds.
    seconds: u64,
    since: u64,
}

arm::state!(Rtc: control, time_alarm, date_alarm, status, mask, seconds, since; clock => check);

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of(year: u32) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_of_month(year: u32, month: u32) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_before(year: u32) -> u64 {
    (FIRST_YEAR..year).map(days_of).sum()
}

/// Days after which the clock begins again.
fn all_days() -> u64 {
    days_before(LAST_YEAR + 1)
}

fn bcd(value: u32) -> u32 {
    (value / 10) << 4 | (value % 10)
}

/// Returns the value of two BCD digits, if they are digits.
fn binary(bcd: u32) -> Option<u32> {
    let (tens, ones) = (bcd >> 4, bcd & 0xf);
    (tens < 10 && ones < 10).then_some(tens * 10 + ones)
}

fn time_register(seconds: u64) -> u32 {
    let second = (seconds % DAY) as u32;
    bcd(second % 60) | bcd(second / 60 % 60) << 8 | bcd(second / 3600) << 16
}

fn date_register(seconds: u64) -> u32 {
    let mut days = seconds / DAY % all_days();
    // 1 January 1900 was a Monday, which is day 2.
    let weekday = (days % 7 + 1) % 7 + 1;
    let mut year = FIRST_YEAR;
    while days >= days_of(year) {
        days -= days_of(year);
        year += 1;
    }
    let mut month = 1;
    while days >= days_of_month(year, month) {
        days -= days_of_month(year, month);
        month += 1;
    }
    let date = days as u32 + 1;
    bcd(year / 100)
        | bcd(year % 100) << 8
        | bcd(month) << 16
        | (weekday as u32) << 21
        | bcd(date) << 24
}

fn seconds_of_time(register: u32) -> Option<u64> {
    let second = binary(register & 0x7f).filter(|s| *s < 60)?;
    let minute = binary(register >> 8 & 0x7f).filter(|m| *m < 60)?;
    let hour = binary(register >> 16 & 0x3f).filter(|h| *h < 24)?;
    Some(u64::from(hour * 3600 + minute * 60 + second))
}

fn days_of_date(register: u32) -> Option<u64> {
    let year = binary(register & 0x7f)? * 100 + binary(register >> 8 & 0xff)?;
    let month = binary(register >> 16 & 0x1f)?;
    let date = u64::from(binary(register >> 24 & 0x3f)?);
    let is_date = (FIRST_YEAR..=LAST_YEAR).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_of_month(year, month)).contains(&date);
    let months = || (1..month).map(|m| days_of_month(year, m)).sum::<u64>();
    is_date.then(|| days_before(year) + months() + date - 1)
}

impl Rtc {
    /// Makes a clock in its reset state. `slow` is the slow clock.
    pub(crate) fn new(slow: Clock) -> Rtc {
        Rtc {
            clock: Clock {
                cpu_hz: slow.cpu_hz.saturating_mul(32_768),
                hz: slow.hz,
            },
            control: 0,
            time_alarm: 0,
            date_alarm: 0x0101_0000,
            status: 0,
            mask: 0,
            seconds: days_before(1998) * DAY,
            since: 0,
        }
    }

    /// Refuses a restored time that the clock does not have.
    fn check(&self) -> Result<(), Damaged> {
        match self.seconds < all_days() * DAY {
            true => Ok(()),
            false => Err(Damaged("the real-time clock has no such time")),
        }
    }

    fn is_stopped(&self) -> bool {
        self.control & (UPDATE_TIME | UPDATE_DATE) != 0
    }

    fn sync(&mut self, now: u64) {
        let passed = self.clock.ticks(now).saturating_sub(self.since);
        if passed == 0 {
            return;
        }
        self.since += passed;
        self.status |= SECOND;
        if self.is_stopped() {
            self.status |= ACKNOWLEDGED;
            return;
        }
        if self.passes_alarm(passed) {
            self.status |= ALARM;
        }
        self.seconds = (self.seconds + passed % (all_days() * DAY)) % (all_days() * DAY);
    }

    /// Returns whether the alarm comes in the next seconds.
    fn passes_alarm(&self, seconds: u64) -> bool {
        let enabled = |register: u32, fields: &[(u32, u32)]| {
            let masks = fields.iter().filter(|(bit, _)| register >> bit & 1 != 0);
            masks.fold(0, |all, (_, mask)| all | mask)
        };
        let time = enabled(self.time_alarm, &TIME_ENABLES);
        let date = enabled(self.date_alarm, &DATE_ENABLES);
        if time | date == 0 {
            return false;
        }
        let matches = |seconds: u64| {
            (time_register(seconds) ^ self.time_alarm) & time == 0
                && (date == 0 || (date_register(seconds) ^ self.date_alarm) & date == 0)
        };
        (1..=seconds.min(DAY)).any(|ahead| matches(self.seconds + ahead))
    }

    fn get(&mut self, now: u64, reg: u32) -> Option<u32> {
        self.sync(now);
        Some(match reg {
            0x00 => self.control,
            0x08 => time_register(self.seconds),
            0x0c => date_register(self.seconds),
            0x10 => self.time_alarm,
            0x14 => self.date_alarm,
            0x18 => self.status,
            0x28 => self.mask,
            0x04 | 0x1c | 0x20 | 0x24 | 0x2c => 0,
            _ => return None,
        })
    }

    fn set(&mut self, now: u64, reg: u32, value: u32) -> Result<(), &'static str> {
        self.sync(now);
        let updates = self.control;
        match reg {
            0x00 => self.control = value & 0x3_0303,
            0x04 if value & 1 != 0 => return Err("12-hour mode is not modelled"),
            // The clock runs.
            0x08 if updates & UPDATE_TIME == 0 => {}
            0x0c if updates & UPDATE_DATE == 0 => {}
            0x08 => {
                let time = seconds_of_time(value).ok_or("the value is not a time")?;
                self.seconds = self.seconds / DAY * DAY + time;
            }
            0x0c => {
                let days =
                    days_of_date(value).ok_or("the value is not a date from 1900 to 2099")?;
                self.seconds = days * DAY + self.seconds % DAY;
            }
            0x10 => self.time_alarm = value,
            0x14 => self.date_alarm = value,
            0x1c => self.status &= !value,
            0x20 => self.mask |= value & INTERRUPTS,
            0x24 => self.mask &= !value,
            0x04 | 0x18 | 0x28 | 0x2c => {} // without effect, or read-only
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Rtc {
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
        match self.mask & !self.status & (ACKNOWLEDGED | ALARM | SECOND) {
            0 => u64::MAX,
            _ => self.clock.cycles(self.since.saturating_add(1)),
        }
    }

    fn tick(&mut self, now: u64) {
        self.sync(now);
    }

    fn outputs(&self) -> u32 {
        u32::from(self.status & self.mask != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arm::{Saved, State as _};

    /// Core cycles of a second.
    const S: u64 = 327_680;

    fn rtc() -> Rtc {
        Rtc::new(Clock {
            cpu_hz: S,
            hz: 32_768,
        })
    }

    fn get(rtc: &mut Rtc, now: u64, reg: u32) -> u32 {
        rtc.read(now, reg, Width::Word).unwrap()
    }

    fn set(rtc: &mut Rtc, now: u64, reg: u32, value: u32) {
        rtc.write(now, reg, Width::Word, value).unwrap();
    }

    /// Sets time and date as the driver does, without its interrupts.
    fn set_to(rtc: &mut Rtc, now: u64, date: u32, time: u32) {
        set(rtc, now, 0x00, 3);
        set(rtc, now, 0x08, time);
        set(rtc, now, 0x0c, date);
        set(rtc, now, 0x00, 0);
    }

    #[test]
    fn it_begins_in_1998_and_counts_in_bcd() {
        let mut rtc = rtc();
        assert_eq!(
            (get(&mut rtc, S - 1, 0x08), get(&mut rtc, S - 1, 0x0c)),
            (0, 0x01a1_9819)
        );
        assert_eq!(get(&mut rtc, 3661 * S, 0x08), 0x01_0101);
        // A write while the clock runs has no effect.
        set(&mut rtc, 3661 * S, 0x08, 0);
        assert_eq!(get(&mut rtc, 3661 * S, 0x08), 0x01_0101);
    }

    #[test]
    fn a_day_a_leap_day_and_a_century_end() {
        let ends = [
            (0x28c2_2320, 0x01e3_2320), // 28 February 2023, Tuesday
            (0x2882_2420, 0x29a2_2420), // 28 February 2024
            (0x3192_9919, 0x01e1_0020), // 31 December 1999, Friday
        ];
        for (date, next) in ends {
            let mut rtc = rtc();
            set_to(&mut rtc, 10, date, 0x23_5958);
            let after = get(&mut rtc, 2 * S, 0x0c);
            assert_eq!(after & !(7 << 21), next & !(7 << 21), "{date:#x}");
            assert_eq!(get(&mut rtc, 2 * S, 0x08), 0);
        }
        assert_eq!(date_register(days_before(2000) * DAY) >> 21 & 7, 7);
    }

    #[test]
    fn the_driver_gets_its_acknowledge_and_its_second() {
        let mut rtc = rtc();
        set(&mut rtc, 10, 0x00, 3);
        set(&mut rtc, 10, 0x20, ACKNOWLEDGED);
        assert_eq!((rtc.outputs(), rtc.deadline()), (0, S));
        rtc.tick(S);
        assert_eq!((rtc.outputs(), rtc.deadline()), (1, u64::MAX));
        set(&mut rtc, S, 0x24, ACKNOWLEDGED);
        set(&mut rtc, S + 1, 0x1c, 0x1f);
        set(&mut rtc, S + 2, 0x00, 0);
        set(&mut rtc, S + 2, 0x20, SECOND);
        rtc.tick(rtc.deadline());
        assert_eq!(get(&mut rtc, 2 * S, 0x18), SECOND);
        // The clock stood for a second.
        assert_eq!(get(&mut rtc, 2 * S, 0x08), 1);
    }

    #[test]
    fn the_alarm_compares_the_fields_that_are_enabled() {
        for (date_alarm, due) in [(0, 5), (0x8180_0000, 5), (0x8280_0000, 86_405)] {
            let mut rtc = rtc();
            set(&mut rtc, 0, 0x10, 0x0080_8085);
            set(&mut rtc, 0, 0x14, date_alarm | 1 << 16);
            set(&mut rtc, 0, 0x20, ALARM);
            while rtc.outputs() == 0 {
                rtc.tick(rtc.deadline());
            }
            assert_eq!(rtc.since, due);
        }
    }

    #[test]
    fn values_that_are_no_date_are_refused() {
        let mut rtc = rtc();
        set(&mut rtc, 0, 0x00, 3);
        for (reg, value) in [
            (0x08, 0x24_0000),
            (0x08, 0x60),
            (0x08, 0x0a),
            (0x0c, 0),
            (0x0c, 0x30a2_2420),
            (0x0c, 0x01b3_2420),
            (0x0c, 0x01a1_0021),
            (0x04, 1),
            (0x40, 0),
        ] {
            assert!(rtc.write(0, reg, Width::Word, value).is_err(), "{value:#x}");
        }
    }

    #[test]
    fn a_restored_clock_goes_on_alike() {
        let mut rtc = rtc();
        set_to(&mut rtc, 5 * S, 0x28c2_2320, 0x12_3456);
        let mut saved = Vec::new();
        rtc.save(&mut saved);
        let mut other = self::rtc();
        other.restore(&mut Saved::new(&saved)).unwrap();
        let both = [&mut rtc, &mut other].map(|r| (get(r, 9 * S, 0x08), get(r, 9 * S, 0x0c)));
        assert_eq!(both[0], both[1]);
    }
}
