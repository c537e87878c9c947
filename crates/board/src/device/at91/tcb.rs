// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCB, the timer counter block of RM9200 and SAM926x (three channels of 16 bits) and of SAM9X60 (of 32 bits). Facts: Linux 6.12
//! include/soc/at91/atmel_tcb.h and drivers/clocksource/timer-atmel-tcb.c; AT91SAM9263 data sheet, chapter TC (recalled).
//!
//! A channel counts up on MCK/2, /8, /32, /128 or the slow clock, or on the rising edges of another channel's TIOA. The
//! count is computed from the core's cycles. It wraps at 2^16 (or 2^32), or at RC where the mode says so, and RC can stop it.
//! Compare events and overflows set bits in SR, which a read clears, and interrupt where IMR allows. A trigger takes
//! effect at the next edge of the channel's clock; until then, this model already shows a count of 0.
//!
//! TIOA is modelled for chaining only: it rises at RA and falls at RC (CMR.ACPA = set, ACPC = clear) while the channel
//! counts up freely. Other waveforms are refused when a channel counts them. No pin has a clock or an edge, so external
//! clocks, gates and triggers never come, and captures never happen. Refused: counting up and down.
//!
//! On SAM9X60, the generic clock replaces MCK/2, and counting on it is refused.
//!
//! Outputs: 0 to 2 = interrupts of channels 0 to 2. No inputs. Clock: MCK at 99,959,589 Hz, unless the machine file gives
//! another rate.

use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::{Damaged, Width};

const SLOW_HZ: u64 = 32_768;
const DIVISORS: [u64; 4] = [2, 8, 32, 128];
/// Counts of a channel of 16 bits, and of one of 32 bits.
const NARROW: u64 = 1 << 16;
const WIDE: u64 = 1 << 32;

const CCR_CLKEN: u32 = 1 << 0;
const CCR_CLKDIS: u32 = 1 << 1;
const CCR_SWTRG: u32 = 1 << 2;
const CMR_CPCSTOP: u32 = 1 << 6;
const CMR_CPCDIS: u32 = 1 << 7;
/// Trigger at RC while capturing.
const CMR_CPCTRG: u32 = 1 << 14;
const CMR_WAVE: u32 = 1 << 15;
/// Wave mode, WAVSEL, and the effects of RA and RC on TIOA.
const CMR_FORM: u32 = CMR_WAVE | 3 << 13 | 0xf << 16;
/// Counts up freely; TIOA rises at RA and falls at RC.
const CMR_CHAINABLE: u32 = CMR_WAVE | 1 << 16 | 2 << 18;
const COVFS: u32 = 1 << 0;
const CPAS: u32 = 1 << 2;
const CPBS: u32 = 1 << 3;
const CPCS: u32 = 1 << 4;
const CLKSTA: u32 = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Channel {
    /// Number of different counts.
    full: u64,
    mode: u32,
    /// RA, RB and RC.
    compare: [u32; 3],
    mask: u32,
    flags: u32,
    enabled: bool,
    running: bool,
    /// The count at tick `since` of the channel's clock.
    count: u64,
    since: u64,
}

arm::state!(Channel: mode, compare, mask, flags, enabled, running, count, since; full => check);

impl Channel {
    fn new(full: u64) -> Channel {
        Channel {
            full,
            mode: 0,
            compare: [0; 3],
            mask: 0,
            flags: 0,
            enabled: false,
            running: false,
            count: 0,
            since: 0,
        }
    }

    /// Refuses a restored count of more bits than the channel has.
    fn check(&self) -> Result<(), Damaged> {
        match self.count < self.full && self.compare.iter().all(|c| u64::from(*c) < self.full) {
            true => Ok(()),
            false => Err(Damaged("a timer has a count of more bits than it has")),
        }
    }

    /// Returns whether the count starts again at RC.
    fn restarts(&self) -> bool {
        match self.mode & CMR_WAVE != 0 {
            true => self.mode >> 13 & 3 == 2,
            false => self.mode & CMR_CPCTRG != 0,
        }
    }

    /// Returns whether RC stops or disables the clock.
    fn stops(&self) -> bool {
        self.mode & CMR_WAVE != 0 && self.mode & (CMR_CPCSTOP | CMR_CPCDIS) != 0
    }

    /// Returns RC. A count reaches RC = 0 when it wraps.
    fn limit(&self) -> u64 {
        match self.compare[2] {
            0 => self.full,
            rc => u64::from(rc),
        }
    }

    /// Returns the number of counts after which the count has the value `value` (1 to the number of counts, which stands for 0), or
    /// `None` if it never has.
    fn until(&self, value: u64) -> Option<u64> {
        let ahead = match self.count < value {
            true => value - self.count,
            false => self.full - self.count + value,
        };
        let limit = match self.restarts() {
            true if self.count < self.limit() => self.limit(),
            _ => return Some(ahead),
        };
        // The count runs from 0 to the limit, again and again. At the limit, it is 0.
        let value = if value == self.full { limit } else { value };
        match (self.count < value, value <= limit) {
            (_, false) => None,
            (true, true) => Some(value - self.count),
            (false, true) => Some(limit - self.count + value),
        }
    }

    /// Returns the numbers of counts to the next of each event, with its bit in SR.
    fn events(&self) -> [(u32, Option<u64>); 4] {
        let at = |n: usize| match self.compare[n] {
            0 => self.full,
            value => u64::from(value),
        };
        let overflows = match self.restarts() && self.count < self.limit() {
            true => None,
            false => Some(self.full - self.count),
        };
        [
            (CPCS, self.until(self.limit())),
            (COVFS, overflows),
            (CPAS, self.until(at(0))),
            (CPBS, self.until(at(1))),
        ]
    }

    /// Counts `ticks` further.
    fn advance(&mut self, ticks: u64) {
        let mut left = ticks;
        // Behind the first wrap, every turn is alike. Three turns therefore show every event.
        for _ in 0..3 {
            if left == 0 || !self.running {
                return;
            }
            let wraps = self.count >= self.limit() || !self.restarts();
            let end = if wraps { self.full } else { self.limit() };
            let step = left.min(end - self.count);
            for (bit, after) in self.events() {
                if after.is_some_and(|after| after <= step) {
                    self.flags |= bit;
                }
            }
            let stop = self.until(self.limit()).filter(|after| *after <= step);
            if let Some(after) = stop.filter(|_| self.stops()) {
                self.running = false;
                self.enabled &= self.mode & CMR_CPCDIS == 0;
                self.count = (self.count + after) % end;
                return;
            }
            self.count = (self.count + step) % end;
            left -= step;
        }
        let turn = if self.restarts() {
            self.limit()
        } else {
            self.full
        };
        self.count = (self.count + left % turn) % turn;
    }

    /// Returns the rising edges of TIOA that `counts` counts give.
    fn edges(&self, counts: u64) -> u64 {
        let start = self.count + self.full - u64::from(self.compare[0]);
        start.saturating_add(counts) / self.full - start / self.full
    }

    /// Returns the number of counts that give `edges` rising edges of TIOA.
    fn counts_of(&self, edges: u64) -> u64 {
        let start = self.count + self.full - u64::from(self.compare[0]);
        (start / self.full)
            .saturating_add(edges)
            .saturating_mul(self.full)
            .saturating_sub(start)
    }
}

/// Source of a channel's clock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Clock(Clock),
    /// TIOA of a channel.
    Tioa(usize),
    /// A pin without a clock.
    Pin,
}

/// The block's state.
#[derive(Clone, Debug)]
pub(crate) struct Tcb {
    mck: Clock,
    channels: [Channel; 3],
    block: u32,
}

arm::state!(Tcb: channels, block; mck);

impl Tcb {
    /// Makes a block in its reset state. `mck` is the master clock.
    pub(crate) fn new(mck: Clock) -> Self {
        Tcb {
            mck,
            channels: [Channel::new(NARROW); 3],
            block: 0,
        }
    }

    /// Makes a block of SAM9X60 in its reset state: with channels of 32 bits.
    pub(crate) fn wide(mck: Clock) -> Self {
        Tcb {
            mck,
            channels: [Channel::new(WIDE); 3],
            block: 0,
        }
    }

    fn is_wide(&self) -> bool {
        self.channels[0].full == WIDE
    }

    fn name(&self) -> &'static str {
        if self.is_wide() {
            "sam9x60_tcb"
        } else {
            "at91_tcb"
        }
    }

    fn source(&self, n: usize) -> Source {
        let Clock { cpu_hz, hz } = self.mck;
        match self.channels[n].mode & 7 {
            0 if self.is_wide() => Source::Pin, // the generic clock
            clock @ 0..=3 => Source::Clock(Clock {
                cpu_hz: cpu_hz * DIVISORS[clock as usize],
                hz,
            }),
            4 => Source::Clock(Clock {
                cpu_hz,
                hz: SLOW_HZ,
            }),
            external => {
                let input = external as usize - 5;
                match (input, self.block >> (2 * input) & 3) {
                    (1 | 2, 2) => Source::Tioa(0),
                    (0, 2) | (2, 3) => Source::Tioa(1),
                    (0 | 1, 3) => Source::Tioa(2),
                    _ => Source::Pin,
                }
            }
        }
    }

    /// Returns the ticks of a channel's clock since power-on, or, for a chained clock, since its channel was updated.
    fn ticks(&self, n: usize, now: u64) -> u64 {
        match self.source(n) {
            Source::Clock(clock) => clock.ticks(now),
            Source::Tioa(from) if self.channels[from].running => {
                let counts = self
                    .ticks_of_clock(from, now)
                    .saturating_sub(self.channels[from].since);
                self.channels[from].edges(counts)
            }
            _ => 0,
        }
    }

    fn ticks_of_clock(&self, n: usize, now: u64) -> u64 {
        match self.source(n) {
            Source::Clock(clock) => clock.ticks(now),
            _ => 0,
        }
    }

    /// Returns the channel with its count and flags at `now`.
    fn at(&self, n: usize, now: u64) -> Channel {
        let mut channel = self.channels[n];
        channel.advance(self.ticks(n, now).saturating_sub(channel.since));
        channel
    }

    /// Updates all channels. The counts of chained clocks begin anew.
    fn sync(&mut self, now: u64) {
        self.channels = core::array::from_fn(|n| self.at(n, now));
        for n in 0..3 {
            let since = self.ticks_of_clock(n, now);
            let channel = &mut self.channels[n];
            channel.since = channel.since.max(since);
        }
    }

    /// Lets the channels count their new clocks from here on.
    fn restart(&mut self, now: u64, channels: std::ops::Range<usize>) {
        for n in channels {
            self.channels[n].since = self.ticks_of_clock(n, now);
        }
    }

    /// Sets the count to 0 and starts it, if the clock is enabled. A trigger takes effect at the next edge of the clock.
    /// TIOA rises at a trigger, so a chained channel does not wait.
    fn trigger(&mut self, now: u64, n: usize) {
        let since = match self.source(n) {
            Source::Clock(clock) => clock.ticks(now).saturating_add(1),
            _ => 0,
        };
        let channel = &mut self.channels[n];
        (channel.count, channel.since) = (0, since);
        channel.running = channel.enabled;
    }

    fn get(&mut self, now: u64, reg: u32) -> Option<u32> {
        if matches!(reg, 0xc0 | 0xc4) {
            return Some(if reg == 0xc4 { self.block } else { 0 });
        }
        let n = (reg >> 6) as usize;
        let channel = self.channels.get(n)?;
        Some(match reg & 0x3f {
            0x00 | 0x24 | 0x28 => 0, // write-only
            0x04 => channel.mode,
            0x10 => self.at(n, now).count as u32,
            0x14 => channel.compare[0],
            0x18 => channel.compare[1],
            0x1c => channel.compare[2],
            0x20 => {
                self.sync(now);
                let channel = &mut self.channels[n];
                let flags = core::mem::take(&mut channel.flags);
                flags | if channel.enabled { CLKSTA } else { 0 }
            }
            0x2c => channel.mask,
            _ => return None,
        })
    }

    fn set(&mut self, now: u64, reg: u32, value: u32) -> Result<(), &'static str> {
        self.sync(now);
        match reg {
            0xc0 if value & 1 != 0 => (0..3).for_each(|n| self.trigger(now, n)),
            0xc0 => {}
            0xc4 => {
                self.block = value & 0x3f;
                self.restart(now, 0..3);
            }
            _ => self.set_channel(now, reg, value)?,
        }
        self.check_chains()
    }

    fn set_channel(&mut self, now: u64, reg: u32, value: u32) -> Result<(), &'static str> {
        let n = (reg >> 6) as usize;
        let is_wide = self.is_wide();
        let channel = self.channels.get_mut(n).ok_or(regs::NO_REGISTER)?;
        let count = value & (channel.full - 1) as u32;
        match reg & 0x3f {
            0x04 if is_wide && value & 7 == 0 => {
                return Err("counting on the generic clock is not modelled");
            }
            0x00 => {
                if value & CCR_CLKDIS != 0 {
                    (channel.enabled, channel.running) = (false, false);
                } else if value & CCR_CLKEN != 0 {
                    channel.enabled = true;
                }
                if value & CCR_SWTRG != 0 {
                    self.trigger(now, n);
                }
            }
            0x04 if value & CMR_WAVE != 0 && value >> 13 & 1 != 0 => {
                return Err("counting up and down is not modelled");
            }
            0x04 if value & 0x30 != 0 => return Err("a gated clock is not modelled"),
            0x04 => {
                channel.mode = value;
                self.restart(now, n..n + 1);
            }
            0x10 | 0x20 | 0x2c => {} // read-only
            0x14 => channel.compare[0] = count,
            0x18 => channel.compare[1] = count,
            0x1c => channel.compare[2] = count,
            0x24 => channel.mask |= value & 0xff,
            0x28 => channel.mask &= !value,
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }

    /// Refuses a channel that counts a waveform that is not modelled.
    fn check_chains(&self) -> Result<(), &'static str> {
        for n in 0..3 {
            let Source::Tioa(from) = self.source(n) else {
                continue;
            };
            let counted = &self.channels[from];
            let modelled = counted.mode & CMR_FORM == CMR_CHAINABLE && !counted.stops();
            let direct = matches!(self.source(from), Source::Clock(_));
            let edges = counted.compare[0] != counted.compare[2];
            if !(modelled && direct && edges) {
                return Err("a channel counts a TIOA whose waveform is not modelled");
            }
        }
        Ok(())
    }

    /// Returns the cycle at which a channel has counted `counts` further.
    fn cycle_of(&self, n: usize, counts: u64) -> u64 {
        let tick = self.channels[n].since.saturating_add(counts);
        match self.source(n) {
            Source::Clock(clock) => clock.cycles(tick),
            Source::Tioa(from) if self.channels[from].running => {
                let tick = self.channels[from]
                    .since
                    .saturating_add(self.channels[from].counts_of(tick));
                match self.source(from) {
                    Source::Clock(clock) => clock.cycles(tick),
                    _ => u64::MAX,
                }
            }
            _ => u64::MAX,
        }
    }
}

impl Device for Tcb {
    fn part(&self) -> &'static str {
        self.name()
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read(self.name(), None, offset, width, |reg| self.get(now, reg))
    }

    fn write(&mut self, now: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write(self.name(), None, offset, value, |reg, v| {
            self.set(now, reg, v)
        })
    }

    fn deadline(&self) -> u64 {
        let mut first = u64::MAX;
        for (n, channel) in self.channels.iter().enumerate() {
            if !channel.running {
                continue;
            }
            for (bit, after) in channel.events() {
                if let Some(after) = after.filter(|_| channel.mask & !channel.flags & bit != 0) {
                    first = first.min(self.cycle_of(n, after));
                }
            }
        }
        first
    }

    fn tick(&mut self, now: u64) {
        self.sync(now);
    }

    fn outputs(&self) -> u32 {
        let channels = self.channels.iter().enumerate();
        channels.fold(0, |outputs, (n, channel)| {
            outputs | u32::from(channel.flags & channel.mask != 0) << n
        })
    }
}

#[cfg(test)]
#[path = "tcb_tests.rs"]
mod tests;
