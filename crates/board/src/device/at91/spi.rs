// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serial peripheral interface (SPI) of AT91 chips as a master, with PDC. Read in Linux: `drivers/spi/spi-atmel.c`. What
//! the driver does not need follows the AT91SAM9263 data sheet (recalled).
//!
//! Modelled: frames of 8 to 16 bits at the pace of the chip select's clock divider and delay between frames, the fixed
//! chip select of MR, TDR and RDR with overrun, WDRBT, loopback, LASTXFER, PDC transfers of bytes and half-words. Without
//! effect: DLYBS, DLYBCS, clock polarity and phase, mode fault. Refused: slave mode, variable and decoded chip selects,
//! frames of more than 16 bits. With a clock divider of 0, no frame starts. Without a device, the input line is high.
//!
//! A frame is 1 unit of the PDC: a byte if the frame has 8 bits, else a half-word. `spi-atmel.c` says that the PDC uses
//! the frame size of chip select 0 for all chip selects. It gives both the same size, and so does the model.
//!
//! A DataFlash may be on chip select 0. While the wire of input 0 is connected, its level selects the chip (low): a GPIO
//! line drives it, as on the evaluation kits. Otherwise the interface does: from the first frame until LASTXFER or
//! another chip select if CSAAT is set, else during each run of frames without a gap.
//!
//! Outputs: 0 = interrupt. Inputs: 0 = chip select 0 by a GPIO line. Clock: the master clock at 99,959,589 Hz, unless
//! the machine file gives another rate. Values: `version`, which is 0x200 unless the machine file gives another (an
//! estimate; up to 0x121 the divider counts half as fast, from 0x212 on Linux does not use the PDC), and `dataflash`: 1
//! for an AT45DB642D.

use super::dataflash::{self, DataFlash};
use super::pdc::{self, Pdc};
use crate::bus::dma::Memory;
use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::Width;

const NAME: &str = "at91_spi";

const CONTROL_ENABLE: u32 = 1 << 0;
const CONTROL_DISABLE: u32 = 1 << 1;
const CONTROL_RESET: u32 = 1 << 7;
const CONTROL_LAST: u32 = 1 << 24;
const MODE_MASTER: u32 = 1 << 0;
const MODE_VARIABLE: u32 = 1 << 1;
const MODE_DECODED: u32 = 1 << 2;
const MODE_WAIT_READ: u32 = 1 << 5;
const MODE_LOOPBACK: u32 = 1 << 7;
const SELECT_STAYS: u32 = 1 << 3;

const RX_FULL: u32 = 1 << 0;
const TX_EMPTY: u32 = 1 << 1;
const OVERRUN: u32 = 1 << 3;
/// Bit numbers of ENDRX, ENDTX, RXBUFF and TXBUFE.
const PDC_FLAGS: [u32; 4] = [4, 5, 6, 7];
const ALL_SENT: u32 = 1 << 9;
const ENABLED: u32 = 1 << 16;
const INTERRUPTS: u32 = 0x3ff;

/// Last version whose clock divider counts the master clock divided by 2.
const LAST_SLOW: u32 = 0x121;

/// The interface's state.
#[derive(Clone, Debug)]
pub(crate) struct Spi {
    clock: Clock,
    version: u32,
    has_flash: bool,
    flash: DataFlash,
    /// Level of the GPIO line that selects the flash, once the line has had an edge.
    select_line: Option<bool>,
    /// Whether the interface drives chip select 0.
    selects_flash: bool,
    pdc: Pdc,
    enabled: bool,
    mode: u32,
    selects: [u32; 4],
    mask: u32,
    overrun: bool,
    /// RDR, and whether its frame is unread.
    received: u16,
    is_full: bool,
    /// Frame in TDR.
    sent: Option<u16>,
    /// Frame in the shift register.
    shifting: u16,
    /// Core cycle at which this frame ends.
    done: u64,
    /// Whether the chip select is released behind the present frames.
    last: bool,
    /// Whether the bus has called [`Device::tick`], and calls [`Device::transfer`] next.
    ticked: bool,
}

arm::state!(
    Spi: flash, select_line, selects_flash, pdc, enabled, mode, selects, mask, overrun, received, is_full, sent,
    shifting, done, last, ticked; clock, version, has_flash
);

impl Spi {
    /// Makes a disabled interface. `has_flash` puts a DataFlash on chip select 0.
    pub(crate) fn new(clock: Clock, version: u32, has_flash: bool) -> Spi {
        Spi {
            clock,
            version,
            has_flash,
            flash: DataFlash::new(clock.cpu_hz),
            select_line: None,
            selects_flash: false,
            pdc: Pdc::default(),
            enabled: false,
            mode: 0,
            selects: [0; 4],
            mask: 0,
            overrun: false,
            received: 0,
            is_full: false,
            sent: None,
            shifting: 0,
            done: u64::MAX,
            last: false,
            ticked: false,
        }
    }

    /// Resets all but the PDC and what is connected.
    fn reset(&mut self, now: u64) {
        let new = Spi::new(self.clock, self.version, self.has_flash);
        let old = core::mem::replace(self, new);
        self.flash = old.flash;
        (self.pdc, self.select_line) = (old.pdc, old.select_line);
        self.select(now, false);
    }

    /// Returns the number of the chip select that MR selects, if it selects one.
    fn chip_select(&self) -> Option<usize> {
        let selected = (self.mode >> 16 & 0xf).trailing_ones() as usize;
        (selected < 4).then_some(selected)
    }

    /// Returns the register of the present chip select.
    fn chip(&self) -> u32 {
        self.selects[self.chip_select().unwrap_or(0) & 3]
    }

    /// Returns the bits of a frame.
    fn bits(&self) -> u32 {
        8 + (self.chip() >> 4 & 0xf)
    }

    /// Returns the bytes of a unit of the PDC.
    fn unit(&self) -> usize {
        if self.bits() == 8 { 1 } else { 2 }
    }

    /// Sets whether the interface drives chip select 0.
    fn select(&mut self, now: u64, selected: bool) {
        self.selects_flash = selected;
        if self.has_flash && self.select_line.is_none() {
            self.flash.select(now, selected);
        }
    }

    /// Starts the next frame, if there is one.
    fn start(&mut self, now: u64) {
        let divider = u64::from(self.chip() >> 8 & 0xff);
        let waits = self.mode & MODE_WAIT_READ != 0 && self.is_full;
        if !self.enabled || self.done != u64::MAX || divider == 0 || waits {
            return;
        }
        let Some(frame) = self.sent.take() else {
            return;
        };
        self.shifting = frame;
        let slow = if self.version <= LAST_SLOW { 2 } else { 1 };
        let delay = 32 * u64::from(self.chip() >> 24);
        let ticks = (u64::from(self.bits()) * divider + delay) * slow;
        self.done = now.saturating_add(self.clock.cycles(ticks).max(1));
        self.select(now, self.chip_select() == Some(0));
    }

    /// Ends the present frame, and starts the next.
    fn finish(&mut self) {
        let at = core::mem::replace(&mut self.done, u64::MAX);
        let frame = self.exchange(at);
        self.overrun |= self.is_full;
        (self.received, self.is_full) = (frame, true);
        self.start(at);
        let stays = self.chip() & SELECT_STAYS != 0 && !self.last;
        if self.done == u64::MAX && !stays {
            self.last = false;
            self.select(at, false);
        }
    }

    /// Returns the frame that comes in while the present frame goes out.
    fn exchange(&mut self, at: u64) -> u16 {
        let bits = self.bits();
        let frame = self.shifting;
        let mask = (u32::from(u16::MAX) >> (16 - bits.min(16))) as u16;
        if self.mode & MODE_LOOPBACK != 0 {
            return frame & mask;
        }
        match bits {
            8 if self.has_flash => u16::from(self.flash.exchange(at, frame as u8)),
            16 if self.has_flash => {
                let high = self.flash.exchange(at, (frame >> 8) as u8);
                u16::from(high) << 8 | u16::from(self.flash.exchange(at, frame as u8))
            }
            _ => mask,
        }
    }

    fn status(&self) -> u32 {
        let flag = |on, bit| if on { bit } else { 0 };
        let ready = self.enabled && self.sent.is_none();
        flag(self.is_full, RX_FULL)
            | flag(ready, TX_EMPTY)
            | flag(self.overrun, OVERRUN)
            | self.pdc.flags(PDC_FLAGS)
            | flag(ready && self.done == u64::MAX, ALL_SENT)
            | flag(self.enabled, ENABLED)
    }

    /// Returns whether a channel of the PDC can move a unit.
    fn is_served(&self) -> bool {
        let sends = self.enabled && self.sent.is_none();
        self.is_full && self.pdc.receive.is_ready() || sends && self.pdc.transmit.is_ready()
    }

    /// Lets the PDC move the units that it can.
    fn serve(&mut self, now: u64, memory: &mut Memory<'_>) {
        while self.is_served() {
            let bytes = self.unit();
            let unit = self.received.to_le_bytes();
            if self.is_full && self.pdc.store(memory, &unit[..bytes]) {
                self.is_full = false;
            }
            let mut unit = [0; 2];
            let sends = self.enabled && self.sent.is_none();
            if sends && self.pdc.fetch(memory, &mut unit[..bytes]) {
                self.sent = Some(u16::from_le_bytes(unit));
            }
            self.start(now);
        }
    }

    fn control(&mut self, now: u64, value: u32) -> Result<(), &'static str> {
        if value & CONTROL_RESET != 0 {
            self.reset(now);
        }
        if value & CONTROL_LAST != 0 {
            self.last = self.done != u64::MAX || self.sent.is_some();
            if !self.last {
                self.select(now, false);
            }
        }
        if value & CONTROL_DISABLE != 0 {
            // The frame on the wire ends. The frame in TDR is lost.
            (self.enabled, self.sent) = (false, None);
        } else if value & CONTROL_ENABLE != 0 {
            if self.mode & MODE_MASTER == 0 {
                return Err("slave mode is not modelled");
            }
            self.enabled = true;
        }
        Ok(())
    }

    fn set_mode(&mut self, now: u64, value: u32) -> Result<(), &'static str> {
        if value & (MODE_VARIABLE | MODE_DECODED) != 0 {
            return Err("variable and decoded chip selects are not modelled");
        }
        if self.enabled && value & MODE_MASTER == 0 {
            return Err("slave mode is not modelled");
        }
        self.mode = value;
        if self.done == u64::MAX && self.chip_select() != Some(0) {
            self.select(now, false);
        }
        Ok(())
    }

    fn get(&mut self, now: u64, offset: u32) -> Option<u32> {
        Some(match offset {
            0x00 | 0x0c | 0x14 | 0x18 => 0, // write-only
            0x04 => self.mode,
            0x08 => {
                self.is_full = false;
                self.start(now);
                u32::from(self.received) | self.mode & 0xf_0000
            }
            0x10 => {
                let status = self.status();
                self.overrun = false;
                status
            }
            0x1c => self.mask,
            0x30..=0x3c => self.selects[(offset >> 2 & 3) as usize],
            0xfc => self.version,
            _ => return self.pdc.get(offset),
        })
    }

    fn set(&mut self, now: u64, offset: u32, value: u32) -> Result<(), &'static str> {
        match offset {
            0x00 => self.control(now, value)?,
            0x04 => self.set_mode(now, value)?,
            0x0c => self.sent = self.enabled.then_some(value as u16),
            0x14 => self.mask |= value & INTERRUPTS,
            0x18 => self.mask &= !value,
            0x30..=0x3c if value >> 4 & 0xf > 8 => {
                return Err("frames of more than 16 bits are not modelled");
            }
            0x30..=0x3c => self.selects[(offset >> 2 & 3) as usize] = value,
            0x08 | 0x10 | 0x1c | 0xfc => {} // read-only
            _ if self.pdc.set(offset, value) => {}
            _ => return Err(regs::NO_REGISTER),
        }
        self.start(now);
        Ok(())
    }
}

impl Device for Spi {
    fn part(&self) -> &'static str {
        NAME
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read(NAME, None, offset, width, |offset| self.get(now, offset))
    }

    fn write(&mut self, now: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write(NAME, None, offset, value, |offset, value| {
            self.set(now, offset, value)
        })
    }

    fn deadline(&self) -> u64 {
        match self.ticked {
            true => u64::MAX,
            false if self.is_served() => 0,
            false => self.done,
        }
    }

    fn tick(&mut self, _: u64) {
        self.ticked = true;
    }

    fn transfer(&mut self, now: u64, memory: &mut Memory<'_>) {
        self.ticked = false;
        self.serve(now, memory);
        while self.done <= now && self.done != u64::MAX {
            let at = self.done;
            self.finish();
            self.serve(at, memory);
        }
    }

    fn outputs(&self) -> u32 {
        u32::from(self.status() & self.mask != 0)
    }

    fn input(&mut self, now: u64, pin: u32, level: bool) {
        if pin == 0 {
            self.select_line = Some(level);
            if self.has_flash {
                self.flash.select(now, !level);
            }
        }
    }

    fn note(&self) -> Option<&'static str> {
        match self.pdc.has_failed() {
            true => Some(pdc::FAILED),
            false => self.flash.has_ignored().then_some(dataflash::IGNORED),
        }
    }
}

#[cfg(test)]
#[path = "spi_tests.rs"]
mod tests;
