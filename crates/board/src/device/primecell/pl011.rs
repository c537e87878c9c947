// SPDX-License-Identifier: MIT OR Apache-2.0
//! PL011 UART (DDI 0183), the revision with FIFOs of 16 bytes.
//!
//! Modelled: both FIFOs, the programmed baud rate and frame length in both directions, receive timeout, loopback, and
//! every interrupt. As in the manual, the transmit interrupt is raised only when the level of the FIFO falls to the
//! trigger level. A host that sends faster than the guest reads has to wait, as with RTS, so no byte from outside is
//! lost to overrun. A break condition has no effect outside the part. Refused: DMA, infrared mode and the test
//! registers.
//!
//! Values: With `baud_pace = 0` (default 1), the part sends and receives without delay instead of at the baud rate.
//! `boot_baud` (default 115200) is the rate at which the boot loader has left the part running; 0 means the reset
//! state.
//!
//! Outputs: 0 = UARTINTR. No inputs. Clock: UARTCLK at 24 MHz, unless the machine file gives another rate.

use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::Width;
use std::collections::VecDeque;

const PERIPHID: u32 = 0x0014_1011;
const DEPTH: usize = 16;
/// Maximum number of bytes from outside that wait for the line.
const LINE_MAX: usize = 4096;

const CR_UARTEN: u32 = 1 << 0;
const CR_SIREN: u32 = 1 << 1;
const CR_LBE: u32 = 1 << 7;
const CR_TXE: u32 = 1 << 8;
const CR_RXE: u32 = 1 << 9;
const LCRH_FEN: u32 = 1 << 4;

const INT_RX: u32 = 1 << 4;
const INT_TX: u32 = 1 << 5;
const INT_RT: u32 = 1 << 6;
const INT_OE: u32 = 1 << 10;
const INT_ALL: u32 = 0x7ff;

const FR_BUSY: u32 = 1 << 3;
const FR_RXFE: u32 = 1 << 4;
const FR_TXFF: u32 = 1 << 5;
const FR_RXFF: u32 = 1 << 6;
const FR_TXFE: u32 = 1 << 7;

/// The UART's state.
#[derive(Clone, Debug)]
pub(crate) struct Pl011 {
    clock: Clock,
    pace: bool,
    tx: VecDeque<u8>,
    /// The byte on the wire, and the cycle at which its stop bit ends (`u64::MAX` while idle).
    shifting: u8,
    tx_done: u64,
    sent: Vec<u8>,
    rx: VecDeque<u8>,
    /// Bytes from outside that have not arrived yet, and the cycle at which the first one arrives.
    line: VecDeque<u8>,
    rx_next: u64,
    timeout_at: u64,
    overrun: bool,
    raw: u32,
    mask: u32,
    control: u32,
    line_control: u32,
    ibrd: u32,
    fbrd: u32,
    /// Divisor of UARTCLK in 1/64. A write to LCRH latches it.
    divisor: u64,
    levels: u32,
    infrared: u32,
    dma: u32,
}

arm::state!(
    Pl011: tx, shifting, tx_done, sent, rx, line, rx_next, timeout_at, overrun, raw, mask,
    control, line_control, ibrd, fbrd, divisor, levels, infrared, dma; clock, pace
);

impl Pl011 {
    /// Makes a UART. `clock` is UARTCLK. `boot_baud` 0 leaves the UART in its reset state.
    pub(crate) fn new(clock: Clock, pace: bool, boot_baud: u64) -> Self {
        let mut uart = Pl011 {
            clock,
            pace,
            tx: VecDeque::new(),
            shifting: 0,
            tx_done: u64::MAX,
            sent: Vec::new(),
            rx: VecDeque::new(),
            line: VecDeque::new(),
            rx_next: u64::MAX,
            timeout_at: u64::MAX,
            overrun: false,
            raw: 0,
            mask: 0,
            control: CR_RXE | CR_TXE,
            line_control: 0,
            ibrd: 0,
            fbrd: 0,
            divisor: 0,
            levels: 0x12,
            infrared: 0,
            dma: 0,
        };
        if let Some(divisor) = (clock.hz * 4 + boot_baud / 2).checked_div(boot_baud) {
            uart.ibrd = ((divisor / 64) as u32).clamp(1, 0xffff);
            uart.fbrd = (divisor % 64) as u32;
            uart.divisor = u64::from(uart.ibrd) * 64 + u64::from(uart.fbrd);
            uart.line_control = LCRH_FEN | 3 << 5;
            uart.control |= CR_UARTEN;
        }
        uart
    }

    fn depth(&self) -> usize {
        if self.line_control & LCRH_FEN != 0 {
            DEPTH
        } else {
            1
        }
    }

    /// Returns the core cycles of `bits` bit times, rounded up.
    fn bit_times(&self, bits: u64) -> u64 {
        // A bit takes 16 periods of the baud rate generator, which are 16 * divisor / 64 periods of UARTCLK.
        let n = u128::from(bits) * u128::from(self.divisor) * u128::from(self.clock.cpu_hz);
        n.div_ceil(4 * u128::from(self.clock.hz)) as u64
    }

    /// Returns the core cycles of one character with its start, data, parity and stop bits.
    fn frame(&self) -> u64 {
        let l = self.line_control;
        let bits = 1 + 5 + ((l >> 5) & 3) + ((l >> 1) & 1) + 1 + ((l >> 3) & 1);
        if self.pace {
            self.bit_times(u64::from(bits))
        } else {
            0
        }
    }

    fn enabled(&self, direction: u32) -> bool {
        let need = CR_UARTEN | direction;
        self.control & need == need && self.divisor >= 64
    }

    fn trigger(&self, field: u32) -> usize {
        if self.line_control & LCRH_FEN == 0 {
            return usize::from(field == 3);
        }
        [2, 4, 8, 12, 14]
            .get(((self.levels >> field) & 7) as usize)
            .copied()
            .unwrap_or(8)
    }

    fn tx_trigger(&self) -> usize {
        self.trigger(0)
    }

    fn rx_trigger(&self) -> usize {
        self.trigger(3)
    }

    /// Moves the next byte to the shifter, if the shifter is free.
    fn start_tx(&mut self, now: u64) {
        if self.tx_done != u64::MAX || !self.enabled(CR_TXE) {
            return;
        }
        let before = self.tx.len();
        let Some(byte) = self.tx.pop_front() else {
            return;
        };
        self.shifting = byte;
        self.tx_done = now.saturating_add(self.frame());
        let passed = before > self.tx_trigger() && self.tx.len() <= self.tx_trigger();
        // Without pacing, the FIFO never fills, so its level never passes the trigger from above.
        if passed || !self.pace {
            self.raw |= INT_TX;
        }
    }

    fn finish_tx(&mut self) {
        let at = self.tx_done;
        self.tx_done = u64::MAX;
        if self.control & CR_LBE != 0 {
            self.arrive(at, self.shifting);
        } else {
            self.sent.push(self.shifting);
        }
        self.start_tx(at);
    }

    /// Takes a complete character into the receive FIFO.
    fn arrive(&mut self, at: u64, byte: u8) {
        if self.rx.len() >= self.depth() {
            self.overrun = true;
            self.raw |= INT_OE;
            return;
        }
        self.rx.push_back(byte);
        if self.rx.len() == self.rx_trigger() {
            self.raw |= INT_RX;
        }
        self.timeout_at = at.saturating_add(self.bit_times(32));
    }

    fn start_rx(&mut self, now: u64) {
        let ready = self.enabled(CR_RXE) && self.control & CR_LBE == 0;
        if !ready || self.line.is_empty() || self.rx.len() >= self.depth() {
            self.rx_next = u64::MAX;
        } else if self.rx_next == u64::MAX {
            self.rx_next = now.saturating_add(self.frame());
        }
    }

    fn sync(&mut self, now: u64) {
        loop {
            let at = self.next_event();
            if at > now || at == u64::MAX {
                return;
            }
            if at == self.tx_done {
                self.finish_tx();
            } else if at == self.rx_next {
                self.rx_next = u64::MAX;
                if let Some(byte) = self.line.pop_front() {
                    self.arrive(at, byte);
                }
                self.start_rx(at);
            } else {
                self.timeout_at = u64::MAX;
                self.raw |= INT_RT;
            }
        }
    }

    fn next_event(&self) -> u64 {
        self.tx_done.min(self.rx_next).min(self.timeout_at)
    }

    fn write_data(&mut self, now: u64, byte: u8) {
        if self.tx.len() < self.depth() {
            self.tx.push_back(byte);
        }
        self.start_tx(now);
        if self.tx.len() > self.tx_trigger() {
            self.raw &= !INT_TX;
        }
        self.sync(now);
    }

    fn read_data(&mut self, now: u64) -> u32 {
        let byte = self.rx.pop_front().map_or(0, u32::from);
        if self.rx.len() < self.rx_trigger() {
            self.raw &= !INT_RX;
        }
        if self.rx.is_empty() {
            self.raw &= !INT_RT;
            self.timeout_at = u64::MAX;
        } else if self.raw & INT_RT == 0 {
            self.timeout_at = now.saturating_add(self.bit_times(32));
        }
        self.start_rx(now);
        byte | u32::from(self.overrun) << 11
    }

    fn flags(&self) -> u32 {
        let depth = self.depth();
        // Clear to send, data set ready, and carrier detect are asserted.
        let modem = if self.control & CR_LBE == 0 {
            0x007
        } else {
            let c = self.control;
            (c >> 11) & 1 | (c >> 9) & 2 | (c >> 10) & 4 | (c >> 13 & 1) << 8
        };
        let flag = |on, bit| if on { bit } else { 0 };
        modem
            | flag(self.tx_done != u64::MAX || !self.tx.is_empty(), FR_BUSY)
            | flag(self.rx.is_empty(), FR_RXFE)
            | flag(self.tx.len() >= depth, FR_TXFF)
            | flag(self.rx.len() >= depth, FR_RXFF)
            | flag(self.tx.is_empty(), FR_TXFE)
    }

    fn write_line_control(&mut self, now: u64, value: u32) {
        if (self.line_control ^ value) & LCRH_FEN != 0 {
            self.tx.clear();
            self.rx.clear();
            self.timeout_at = u64::MAX;
            self.raw &= !(INT_RX | INT_RT);
        }
        self.line_control = value & 0xff;
        self.divisor = u64::from(self.ibrd) * 64 + u64::from(self.fbrd);
        self.start_tx(now);
        self.start_rx(now);
    }

    fn write_control(&mut self, now: u64, value: u32) -> Result<(), &'static str> {
        if value & CR_SIREN != 0 {
            return Err("infrared mode is not modelled");
        }
        let before = self.flags();
        self.control = value & 0xff87;
        // In loopback, the modem inputs follow the outputs. Their changes raise interrupts.
        let changed = before ^ self.flags();
        for (flag, int) in [
            (0x100, 1 << 0),
            (0x001, 1 << 1),
            (0x004, 1 << 2),
            (0x002, 1 << 3),
        ] {
            if changed & flag != 0 {
                self.raw |= int;
            }
        }
        self.start_tx(now);
        self.start_rx(now);
        self.sync(now);
        Ok(())
    }

    fn get(&mut self, now: u64, reg: u32) -> Option<u32> {
        self.sync(now);
        Some(match reg {
            0x00 => self.read_data(now),
            0x04 => u32::from(self.overrun) << 3,
            0x18 => self.flags(),
            0x20 => self.infrared,
            0x24 => self.ibrd,
            0x28 => self.fbrd,
            0x2c => self.line_control,
            0x30 => self.control,
            0x34 => self.levels,
            0x38 => self.mask,
            0x3c => self.raw,
            0x40 => self.raw & self.mask,
            0x44 => 0, // write-only
            0x48 => self.dma,
            _ => return None,
        })
    }

    fn set(&mut self, now: u64, reg: u32, value: u32) -> Result<(), &'static str> {
        self.sync(now);
        match reg {
            0x00 => self.write_data(now, value as u8),
            0x04 => self.overrun = false,
            0x18 | 0x3c | 0x40 => {} // read-only
            0x20 => self.infrared = value & 0xff,
            0x24 => self.ibrd = value & 0xffff,
            0x28 => self.fbrd = value & 0x3f,
            0x2c => self.write_line_control(now, value),
            0x30 => return self.write_control(now, value),
            0x34 => self.levels = value & 0x3f,
            0x38 => self.mask = value & INT_ALL,
            0x44 => self.raw &= !value,
            0x48 if value & 3 != 0 => return Err("DMA requests are not modelled"),
            0x48 => self.dma = value & 7,
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Pl011 {
    fn part(&self) -> &'static str {
        "pl011"
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("pl011", Some(PERIPHID), offset, width, |reg| {
            self.get(now, reg)
        })
    }

    fn write(&mut self, now: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("pl011", Some(PERIPHID), offset, value, |reg, v| {
            self.set(now, reg, v)
        })
    }

    fn deadline(&self) -> u64 {
        self.next_event()
    }

    fn tick(&mut self, now: u64) {
        self.sync(now);
    }

    fn outputs(&self) -> u32 {
        u32::from(self.raw & self.mask != 0)
    }

    fn receive(&mut self, now: u64, bytes: &[u8]) -> usize {
        self.sync(now);
        let taken = bytes.len().min(LINE_MAX - self.line.len());
        self.line.extend(&bytes[..taken]);
        self.start_rx(now);
        self.sync(now);
        taken
    }

    fn transmitted(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.sent)
    }
}

#[cfg(test)]
#[path = "pl011_tests.rs"]
mod tests;
