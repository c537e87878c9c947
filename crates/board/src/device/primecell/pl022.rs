// SPDX-License-Identifier: MIT OR Apache-2.0
//! PL022 synchronous serial port (DDI 0194) as a master, with nothing at the other end.
//!
//! Modelled: both FIFOs (8 deep), frames that take the time of the programmed clock, loopback, and the four
//! interrupts. The input line reads as zeros. Refused: slave mode, DMA, and the test registers.
//!
//! Outputs: 0 = SSPINTR. No inputs. Clock: SSPCLK at 24 MHz, unless the machine file gives another rate.

use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::Width;
use std::collections::VecDeque;

const PERIPHID: u32 = 0x0004_1022;
const DEPTH: usize = 8;
const CR1_LOOPBACK: u32 = 1 << 0;
const CR1_ENABLE: u32 = 1 << 1;
const CR1_SLAVE: u32 = 1 << 2;
const INT_OVERRUN: u32 = 1 << 0;
const INT_TIMEOUT: u32 = 1 << 1;

/// The port's state.
#[derive(Clone, Debug)]
pub(crate) struct Pl022 {
    clock: Clock,
    cr0: u32,
    cr1: u32,
    prescale: u32,
    mask: u32,
    /// Interrupts for overrun and receive timeout. The FIFO interrupts are levels.
    latched: u32,
    tx: VecDeque<u16>,
    rx: VecDeque<u16>,
    shifting: u16,
    done: u64,
    timeout_at: u64,
}

arm::state!(Pl022: cr0, cr1, prescale, mask, latched, tx, rx, shifting, done, timeout_at; clock);

impl Pl022 {
    /// Makes a disabled port with empty FIFOs.
    pub(crate) fn new(clock: Clock) -> Self {
        Pl022 {
            clock,
            cr0: 0,
            cr1: 0,
            prescale: 0,
            mask: 0,
            latched: 0,
            tx: VecDeque::new(),
            rx: VecDeque::new(),
            shifting: 0,
            done: u64::MAX,
            timeout_at: u64::MAX,
        }
    }

    fn bits(&self) -> u32 {
        (self.cr0 & 15) + 1
    }

    /// Returns the core cycles of `bits` bit times.
    fn bit_times(&self, bits: u64) -> u64 {
        let divisor = u64::from(self.prescale) * u64::from(((self.cr0 >> 8) & 0xff) + 1);
        self.clock.cycles(bits * divisor)
    }

    fn start(&mut self, now: u64) {
        let ready = self.cr1 & CR1_ENABLE != 0 && self.prescale >= 2;
        if !ready || self.done != u64::MAX {
            return;
        }
        if let Some(word) = self.tx.pop_front() {
            self.shifting = word;
            self.done = now.saturating_add(self.bit_times(u64::from(self.bits())));
        }
    }

    fn sync(&mut self, now: u64) {
        loop {
            let at = self.done.min(self.timeout_at);
            if at > now || at == u64::MAX {
                return;
            }
            if at < self.done {
                self.timeout_at = u64::MAX;
                self.latched |= INT_TIMEOUT;
                continue;
            }
            self.done = u64::MAX;
            let mask = ((1u32 << self.bits()) - 1) as u16;
            let word = if self.cr1 & CR1_LOOPBACK != 0 {
                self.shifting & mask
            } else {
                0
            };
            if self.rx.len() < DEPTH {
                self.rx.push_back(word);
                self.timeout_at = at.saturating_add(self.bit_times(32).max(1));
            } else {
                self.latched |= INT_OVERRUN;
            }
            self.start(at);
        }
    }

    fn raw(&self) -> u32 {
        let half = DEPTH / 2;
        self.latched | u32::from(self.rx.len() >= half) << 2 | u32::from(self.tx.len() <= half) << 3
    }

    fn status(&self) -> u32 {
        u32::from(self.tx.is_empty())
            | u32::from(self.tx.len() < DEPTH) << 1
            | u32::from(!self.rx.is_empty()) << 2
            | u32::from(self.rx.len() == DEPTH) << 3
            | u32::from(self.done != u64::MAX || !self.tx.is_empty()) << 4
    }

    fn read_data(&mut self, now: u64) -> u32 {
        let word = self.rx.pop_front().map_or(0, u32::from);
        self.timeout_at = match self.rx.is_empty() {
            true => u64::MAX,
            false => now.saturating_add(self.bit_times(32).max(1)),
        };
        word
    }

    fn get(&mut self, now: u64, reg: u32) -> Option<u32> {
        self.sync(now);
        Some(match reg {
            0x00 => self.cr0,
            0x04 => self.cr1,
            0x08 => self.read_data(now),
            0x0c => self.status(),
            0x10 => self.prescale,
            0x14 => self.mask,
            0x18 => self.raw(),
            0x1c => self.raw() & self.mask,
            0x20 => 0, // write-only
            0x24 => 0,
            _ => return None,
        })
    }

    fn set(&mut self, now: u64, reg: u32, value: u32) -> Result<(), &'static str> {
        self.sync(now);
        match reg {
            0x00 => self.cr0 = value & 0xffff,
            0x04 if value & CR1_SLAVE != 0 => return Err("slave mode is not modelled"),
            0x04 => self.cr1 = value & 0xf,
            0x08 if self.tx.len() < DEPTH => self.tx.push_back(value as u16),
            0x10 => self.prescale = value & 0xfe,
            0x14 => self.mask = value & 0xf,
            0x20 => self.latched &= !value,
            0x24 if value & 3 != 0 => return Err("DMA requests are not modelled"),
            0x08 | 0x0c | 0x18 | 0x1c | 0x24 => {} // FIFO full, read-only
            _ => return Err(regs::NO_REGISTER),
        }
        self.start(now);
        Ok(())
    }
}

impl Device for Pl022 {
    fn part(&self) -> &'static str {
        "pl022"
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("pl022", Some(PERIPHID), offset, width, |reg| {
            self.get(now, reg)
        })
    }

    fn write(&mut self, now: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("pl022", Some(PERIPHID), offset, value, |reg, v| {
            self.set(now, reg, v)
        })
    }

    fn deadline(&self) -> u64 {
        self.done.min(self.timeout_at)
    }

    fn tick(&mut self, now: u64) {
        self.sync(now);
    }

    fn outputs(&self) -> u32 {
        u32::from(self.raw() & self.mask != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(cr1: u32) -> Pl022 {
        let mut p = Pl022::new(Clock {
            cpu_hz: 240,
            hz: 24,
        });
        for (reg, value) in [(0x00, 0x0107), (0x10, 2), (0x04, cr1)] {
            p.write(0, reg, Width::Half, value).unwrap();
        }
        p
    }

    #[test]
    fn a_frame_takes_its_bits_at_the_programmed_clock() {
        let mut p = port(CR1_ENABLE | CR1_LOOPBACK);
        p.write(0, 0x08, Width::Half, 0x1a5).unwrap();
        assert_eq!(p.deadline(), 8 * 2 * 2 * 10);
        assert_eq!(p.read(319, 0x0c, Width::Half), Ok(0x13), "busy");
        assert_eq!(p.read(320, 0x0c, Width::Half), Ok(0x07));
        assert_eq!(p.read(320, 0x08, Width::Half), Ok(0xa5));
    }

    #[test]
    fn without_loopback_zeros_are_received() {
        let mut p = port(CR1_ENABLE);
        p.write(0, 0x08, Width::Half, 0xff).unwrap();
        p.write(0, 0x14, Width::Half, INT_TIMEOUT).unwrap();
        p.tick(320);
        assert_eq!((p.outputs(), p.deadline()), (0, 320 + 32 * 40));
        p.tick(320 + 32 * 40);
        assert_eq!((p.outputs(), p.read(2000, 0x08, Width::Half)), (1, Ok(0)));
    }

    #[test]
    fn a_ninth_received_frame_overruns() {
        let mut p = port(CR1_ENABLE);
        for n in 0..9 {
            p.write(n * 320, 0x08, Width::Half, 0).unwrap();
        }
        assert_eq!(
            p.read(9 * 320, 0x18, Width::Half).unwrap() & INT_OVERRUN,
            INT_OVERRUN
        );
    }
}
