// SPDX-License-Identifier: MIT OR Apache-2.0
//! USART and debug unit (DBGU) of RM9200 and SAM926x. Facts: Linux 6.12 drivers/tty/serial/atmel_serial.h and
//! atmel_serial.c; AT91SAM9263 data sheet, chapters USART and DBGU (recalled).
//!
//! Modelled: the asynchronous mode with one holding register in each direction, baud rate and frame length, the receive
//! time-out, local loopback, transfers by PDC, and the interrupts of all these. A host that sends faster than the guest
//! reads has to wait, as with RTS, so no byte from outside is lost to overrun. A break has no effect outside the part. Modem lines are
//! asserted and do not change. The debug unit has 8-bit characters, no time-out, and two chip identification registers.
//! Refused: synchronous, infrared, smart card and modem modes, automatic echo, and remote loopback.
//!
//! Values: `boot_baud` (default 115200) is the rate at which the boot loader has left the part running; 0 means the
//! reset state. `version` is the version register. The debug unit has `cidr` and `exid`, the chip identification.
//!
//! Outputs: 0 = interrupt. No inputs. Clock: MCK at 99,959,589 Hz, unless the machine file gives another rate.

use super::pdc::{self, Pdc};
use crate::bus::dma::Memory;
use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::Width;
use fifo::Line;
use std::collections::VecDeque;

#[path = "usart_fifo.rs"]
mod fifo;

/// Maximum number of bytes from outside that wait for the line.
const LINE_MAX: usize = 4096;

const CR_RSTRX: u32 = 1 << 2;
const CR_RSTTX: u32 = 1 << 3;
const CR_RXEN: u32 = 1 << 4;
const CR_RXDIS: u32 = 1 << 5;
const CR_TXEN: u32 = 1 << 6;
const CR_TXDIS: u32 = 1 << 7;
const CR_RSTSTA: u32 = 1 << 8;
const CR_STTTO: u32 = 1 << 11;
const CR_RETTO: u32 = 1 << 15;
const RXRDY: u32 = 1 << 0;
const TXRDY: u32 = 1 << 1;
/// Bit numbers of ENDRX, ENDTX, RXBUFF and TXBUFE.
const PDC_FLAGS: [u32; 4] = [3, 4, 12, 11];
const OVRE: u32 = 1 << 5;
const TIMEOUT: u32 = 1 << 8;
const TXEMPTY: u32 = 1 << 9;
const LOCAL_LOOP: u32 = 2;

/// Differences between the two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The USART.
    Usart {
        /// Version register.
        version: u32,
    },
    /// The debug unit.
    Debug {
        /// Version register.
        version: u32,
        /// Chip identification registers CIDR and EXID.
        chip: (u32, u32),
    },
}

/// The part's state.
#[derive(Clone, Debug)]
pub(crate) struct Usart {
    kind: Kind,
    clock: Clock,
    mode: u32,
    baud: u32,
    mask: u32,
    /// Error bits and TIMEOUT of CSR.
    latched: u32,
    transmits: bool,
    receives: bool,
    /// THR.
    holding: Line,
    /// The byte on the wire, and the cycle at which its stop bit ends (`u64::MAX` while idle).
    shifting: u8,
    tx_done: u64,
    sent: Vec<u8>,
    /// The character that RHR shows, and the characters that no one has read.
    received: u8,
    arrived: Line,
    /// Bytes from outside that have not arrived yet, and the cycle at which the first one arrives.
    line: VecDeque<u8>,
    rx_next: u64,
    /// RTOR in bit times, whether the time-out waits for a character, and when it ends.
    timeout: u32,
    timeout_waits: bool,
    timeout_at: u64,
    guard: u32,
    fidi: u32,
    pdc: Pdc,
    /// Whether the bus has called [`Device::tick`], and the PDC waits for [`Device::transfer`].
    ticked: bool,
}

arm::state!(
    Usart: mode, baud, mask, latched, transmits, receives, holding, shifting, tx_done, sent, received, arrived, line,
    rx_next, timeout, timeout_waits, timeout_at, guard, fidi, pdc, ticked; kind, clock
);

impl Usart {
    /// Makes a part. `clock` is MCK. `boot_baud` 0 leaves the part in its reset state.
    pub(crate) fn new(kind: Kind, clock: Clock, boot_baud: u64) -> Self {
        let mut usart = Usart {
            kind,
            clock,
            mode: 0,
            baud: 0,
            mask: 0,
            latched: 0,
            transmits: false,
            receives: false,
            holding: Line::default(),
            shifting: 0,
            tx_done: u64::MAX,
            sent: Vec::new(),
            received: 0,
            arrived: Line::default(),
            line: VecDeque::new(),
            rx_next: u64::MAX,
            timeout: 0,
            timeout_waits: false,
            timeout_at: u64::MAX,
            guard: 0,
            fidi: 0x174,
            pdc: Pdc::default(),
            ticked: false,
        };
        let divisor = (clock.hz + 8 * boot_baud).checked_div(16 * boot_baud);
        if let Some(divisor) = divisor {
            usart.baud = divisor.clamp(1, 0xffff) as u32;
            usart.mode = 3 << 6 | 4 << 9;
            (usart.transmits, usart.receives) = (true, true);
        }
        usart
    }

    fn is_debug(&self) -> bool {
        matches!(self.kind, Kind::Debug { .. })
    }

    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Usart { .. } => "at91_usart",
            Kind::Debug { .. } => "at91_dbgu",
        }
    }

    /// Returns the core cycles of `halves` half bit times, rounded up. Without a baud rate, they never end.
    fn half_bits(&self, halves: u64) -> u64 {
        let eighths = u128::from(self.baud & 0xffff) * 8 + u128::from(self.baud >> 16 & 7);
        if eighths < 8 {
            return u64::MAX;
        }
        let prescaler = if self.mode >> 4 & 3 == 1 && !self.is_debug() {
            8
        } else {
            1
        };
        let samples = if self.mode >> 19 & 1 != 0 { 8 } else { 16 };
        let clocks = u128::from(halves) * eighths * prescaler * samples;
        let cycles =
            (clocks * u128::from(self.clock.cpu_hz)).div_ceil(16 * u128::from(self.clock.hz));
        u64::try_from(cycles).unwrap_or(u64::MAX)
    }

    /// Returns the core cycles of one character with its start, data, parity and stop bits.
    fn frame(&self) -> u64 {
        let parity = u64::from(self.mode >> 9 & 7 != 4);
        let (data, stop_halves) = match self.is_debug() {
            true => (8, 2),
            false => (
                5 + u64::from(self.mode >> 6 & 3),
                2 + u64::from(self.mode >> 12 & 3).min(2),
            ),
        };
        self.half_bits(2 * (1 + data + parity) + stop_halves)
    }

    fn loops(&self) -> bool {
        self.mode >> 14 & 3 == LOCAL_LOOP
    }

    fn start_tx(&mut self, now: u64) {
        if self.tx_done == u64::MAX
            && self.transmits
            && let Some(byte) = self.holding.pop()
        {
            self.shifting = byte;
            self.tx_done = now.saturating_add(self.frame());
        }
    }

    fn start_rx(&mut self, now: u64) {
        let has_room = self.arrived.room() > 0;
        let ready = self.receives && has_room && !self.loops() && !self.line.is_empty();
        if !ready {
            self.rx_next = u64::MAX;
        } else if self.rx_next == u64::MAX {
            self.rx_next = now.saturating_add(self.frame());
        }
    }

    /// Takes a complete character into RHR.
    fn arrive(&mut self, at: u64, byte: u8) {
        if !self.receives {
            return;
        }
        if self.arrived.room() == 0 {
            self.latched |= OVRE;
        }
        self.arrived.push(byte);
        self.start_timeout(at);
    }

    /// Starts the receive time-out anew, as each character does.
    fn start_timeout(&mut self, at: u64) {
        let waits = core::mem::take(&mut self.timeout_waits);
        if self.timeout != 0 && (waits || self.timeout_at != u64::MAX) {
            self.timeout_at = at.saturating_add(self.half_bits(2 * u64::from(self.timeout)));
        }
    }

    fn next_event(&self) -> u64 {
        self.tx_done.min(self.rx_next).min(self.timeout_at)
    }

    /// Carries out the next event. Returns its cycle, or `None` if there is no event until `now`.
    fn step(&mut self, now: u64) -> Option<u64> {
        let at = self.next_event();
        if at > now || at == u64::MAX {
            return None;
        }
        if at == self.tx_done {
            self.tx_done = u64::MAX;
            match self.loops() {
                true => self.arrive(at, self.shifting),
                false => self.sent.push(self.shifting),
            }
            self.start_tx(at);
        } else if at == self.rx_next {
            self.rx_next = u64::MAX;
            if let Some(byte) = self.line.pop_front() {
                self.arrive(at, byte);
            }
            self.start_rx(at);
        } else {
            self.timeout_at = u64::MAX;
            self.latched |= TIMEOUT;
        }
        Some(at)
    }

    /// Carries out the events until `now`. Stops at an event behind which the PDC moves a byte.
    fn sync(&mut self, now: u64) {
        while !self.is_served() && self.step(now).is_some() {}
    }

    /// Returns whether a channel of the PDC can move a byte.
    fn is_served(&self) -> bool {
        let sends = self.holding.is_empty() && self.transmits;
        !self.arrived.is_empty() && self.pdc.receive.is_ready()
            || sends && self.pdc.transmit.is_ready()
    }

    /// Lets the PDC move the bytes that it can.
    fn serve(&mut self, at: u64, memory: &mut Memory<'_>) {
        while self.is_served() {
            if let Some(byte) = self.arrived.first()
                && self.pdc.store(memory, &[byte])
            {
                self.take_character(at);
            }
            let mut byte = [0];
            let sends = self.holding.is_empty() && self.transmits;
            if sends && self.pdc.fetch(memory, &mut byte) {
                self.holding.push(byte[0]);
                self.start_tx(at);
            }
        }
    }

    fn status(&self) -> u32 {
        let flag = |on, bit| if on { bit } else { 0 };
        let empty = self.holding.is_empty() && self.tx_done == u64::MAX;
        self.pdc.flags(PDC_FLAGS)
            | self.latched
            | flag(self.receive_request(), RXRDY)
            | flag(self.transmit_request(), TXRDY)
            | flag(empty && self.transmits, TXEMPTY)
    }

    /// Returns the level of RXRDY, which is also a request to a DMA controller.
    pub(crate) fn receive_request(&self) -> bool {
        self.arrived.has_enough()
    }

    /// Returns the level of TXRDY, which is also a request to a DMA controller.
    pub(crate) fn transmit_request(&self) -> bool {
        self.transmits && self.holding.has_room()
    }

    /// Takes a character from RHR, or the last one once more if there is none.
    fn take_character(&mut self, now: u64) -> u8 {
        if let Some(byte) = self.arrived.pop() {
            self.received = byte;
        }
        self.start_rx(now);
        self.received
    }

    fn control(&mut self, now: u64, value: u32) {
        let has = |bit| value & bit != 0;
        if has(CR_RSTRX) {
            self.receives = false;
            self.arrived.clear();
            self.latched = 0;
            self.timeout_at = u64::MAX;
        }
        if has(CR_RSTTX) {
            (self.transmits, self.tx_done) = (false, u64::MAX);
            self.holding.clear();
        }
        if has(CR_RXDIS) {
            self.receives = false;
        } else if has(CR_RXEN) {
            self.receives = true;
        }
        if has(CR_TXDIS) {
            // The character on the wire and the one in THR are still sent.
            self.transmits = false;
        } else if has(CR_TXEN) {
            self.transmits = true;
        }
        if has(CR_RSTSTA) {
            self.latched &= TIMEOUT;
        }
        if has(CR_STTTO) && !self.is_debug() {
            self.latched &= !TIMEOUT;
            (self.timeout_waits, self.timeout_at) = (true, u64::MAX);
        }
        if has(CR_RETTO) && !self.is_debug() {
            self.latched &= !TIMEOUT;
            self.timeout_waits = true;
            self.start_timeout(now);
        }
        self.start_tx(now);
        self.start_rx(now);
    }

    fn write_mode(&mut self, now: u64, value: u32) -> Result<(), &'static str> {
        if matches!(value >> 14 & 3, 1 | 3) {
            return Err("automatic echo and remote loopback are not modelled");
        }
        if !self.is_debug() {
            if value & 0xf > 2 || value & 1 << 8 != 0 {
                return Err("only asynchronous modes are modelled");
            }
            if value >> 4 & 2 != 0 {
                return Err("only MCK and MCK/8 are modelled as baud rate clocks");
            }
        }
        self.mode = value;
        self.start_tx(now);
        self.start_rx(now);
        Ok(())
    }

    fn get(&mut self, now: u64, reg: u32) -> Option<u32> {
        self.sync(now);
        let usart = !self.is_debug();
        Some(match (reg, self.kind) {
            (0x00 | 0x08 | 0x0c | 0x1c, _) => 0, // write-only
            (0x04, _) => self.mode,
            (0x10, _) => self.mask,
            (0x14, _) => self.status(),
            (0x18, _) => u32::from(self.take_character(now)),
            (0x20, _) => self.baud,
            (0x24, _) if usart => self.timeout,
            (0x28, _) if usart => self.guard,
            (0x40, Kind::Debug { chip, .. }) => chip.0,
            (0x44, Kind::Debug { chip, .. }) => chip.1,
            (0x48, Kind::Debug { .. }) => 0, // force NTRST
            (0x40, _) => self.fidi,
            (0x44 | 0x4c, _) => 0, // number of errors, infrared filter
            (0xec..=0xf8, _) => 0, // address size and name
            (0xfc, Kind::Usart { version } | Kind::Debug { version, .. }) => version,
            _ => return self.pdc.get(reg),
        })
    }

    fn set(&mut self, now: u64, reg: u32, value: u32) -> Result<(), &'static str> {
        self.sync(now);
        match reg {
            0x00 => self.control(now, value),
            0x04 => return self.write_mode(now, value),
            0x08 => self.mask |= value & self.interrupts(),
            0x0c => self.mask &= !value,
            0x1c => {
                if self.transmits {
                    self.holding.push(value as u8);
                }
                self.start_tx(now);
            }
            0x20 => self.baud = value & 0x7_ffff,
            0x10 | 0x14 | 0x18 | 0xec..=0xfc => {} // read-only
            0x24 if !self.is_debug() => {
                self.timeout = value & 0xffff;
                self.timeout_at = u64::MAX;
            }
            0x28 if !self.is_debug() => self.guard = value & 0xff,
            0x40 if !self.is_debug() => self.fidi = value & 0x7ff,
            0x40..=0x4c => {} // read-only or without effect in asynchronous modes
            _ if self.pdc.set(reg, value) => {}
            _ => return Err(regs::NO_REGISTER),
        }
        self.sync(now);
        Ok(())
    }

    fn interrupts(&self) -> u32 {
        if self.is_debug() {
            0xc000_1afb
        } else {
            0x000f_3fff
        }
    }
}

impl Device for Usart {
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
        match self.ticked {
            true => u64::MAX,
            false if self.is_served() => 0,
            false => self.next_event(),
        }
    }

    fn tick(&mut self, now: u64) {
        self.sync(now);
        self.ticked = self.is_served();
    }

    fn transfer(&mut self, now: u64, memory: &mut Memory<'_>) {
        self.ticked = false;
        self.serve(now, memory);
        while let Some(at) = self.step(now) {
            self.serve(at, memory);
        }
    }

    fn note(&self) -> Option<&'static str> {
        self.pdc.has_failed().then_some(pdc::FAILED)
    }

    fn outputs(&self) -> u32 {
        u32::from(self.status() & self.mask != 0)
    }

    fn receive(&mut self, now: u64, bytes: &[u8]) -> usize {
        self.sync(now);
        let taken = bytes.len().min(LINE_MAX.saturating_sub(self.line.len()));
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
#[path = "usart_tests.rs"]
mod tests;
