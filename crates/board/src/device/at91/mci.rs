// SPDX-License-Identifier: MIT OR Apache-2.0
//! Multimedia card interface (MCI) of AT91 chips with RDPROOF and WRPROOF (versions 0x2xx), for one SD card.
//! Read in Linux: `drivers/mmc/host/atmel-mci.c`. What the driver does not need follows the AT91SAM9263 data sheet
//! (recalled).
//!
//! Modelled: commands and data at the pace of the card's clock and of 1 or 4 data lines, responses and their errors,
//! single and multiple blocks, PDC transfers of words and of bytes, transfers by RDR and TDR, data timeout, checksum
//! errors (for a wrong block length or number of lines), overrun and underrun, stop of the clock by RDPROOF and
//! WRPROOF. BLKE is set for each block that the card accepts; in PDC mode, for the last block only. A read of SR clears
//! BLKE, DCRCE, DTOE, OVRE and UNRE (recalled). A short response without checksum (R3) sets RCRCE (inferred).
//!
//! Without effect: power saving, open-drain commands, PWSDIV, the peripheral clock in the PMC. The other slot is empty.
//! Refused: stream transfers, SDIO transfers and suspend, interrupt commands, commands while the interface is disabled,
//! blocks of 0 bytes.
//!
//! Outputs: 0 = interrupt, 1 = card detect switch (low while a card is in the slot, as Linux expects unless
//! the device tree has `cd-inverted`). No inputs. Clock: the master clock at 99,959,589 Hz, unless the machine file gives another
//! rate. Values: `version`, which is 0x210 unless the machine file gives another (an estimate), and `slot`: the number of
//! the slot with the card, 0 for slot A (the default) and 1 for slot B.

use super::pdc::{self, Pdc};
use crate::bus::dma::Memory;
use crate::device::card::{Flow, Response, Slot};
use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::{Damaged, Width};
use data::Data;

const NAME: &str = "at91_mci";

const CONTROL_ENABLE: u32 = 1 << 0;
const CONTROL_DISABLE: u32 = 1 << 1;
const CONTROL_RESET: u32 = 1 << 7;
const MODE_READ_PROOF: u32 = 1 << 11;
const MODE_WRITE_PROOF: u32 = 1 << 12;
const MODE_BYTES: u32 = 1 << 13;
const MODE_PAD_ONES: u32 = 1 << 14;
const MODE_PDC: u32 = 1 << 15;
const SLOTS_SELECT: u32 = 3;
const SLOTS_WIDE: u32 = 1 << 7;

const COMMAND_SPECIAL: u32 = 7 << 8;
const COMMAND_INIT: u32 = 1 << 8;
const COMMAND_LATENCY: u32 = 1 << 12;
const COMMAND_START: u32 = 1 << 16;
const COMMAND_STOP: u32 = 2 << 16;
const COMMAND_DATA: u32 = 3 << 16;
const COMMAND_READ: u32 = 1 << 18;
const COMMAND_KIND: u32 = 7 << 19;
const COMMAND_BLOCKS: u32 = 1 << 19;
const COMMAND_SDIO: u32 = 3 << 24;

const COMMAND_READY: u32 = 1 << 0;
const RX_READY: u32 = 1 << 1;
const TX_READY: u32 = 1 << 2;
const BLOCK_ENDED: u32 = 1 << 3;
const IN_PROGRESS: u32 = 1 << 4;
const NOT_BUSY: u32 = 1 << 5;
/// Bit numbers of ENDRX, ENDTX, RXBUFF and TXBUFE.
const PDC_FLAGS: [u32; 4] = [6, 7, 14, 15];
const RESPONSE_CHECKSUM: u32 = 1 << 18;
const RESPONSE_END: u32 = 1 << 19;
const RESPONSE_TIMEOUT: u32 = 1 << 20;
const DATA_CHECKSUM: u32 = 1 << 21;
const DATA_TIMEOUT: u32 = 1 << 22;
const OVERRUN: u32 = 1 << 30;
const UNDERRUN: u32 = 1 << 31;
/// Flags that a read of SR clears.
const READ_CLEARS: u32 = BLOCK_ENDED | DATA_CHECKSUM | DATA_TIMEOUT | OVERRUN | UNDERRUN;
const INTERRUPTS: u32 = 0xc07f_c3ff;

/// Largest length of a block.
const BLOCK_MAX: u32 = 0xffff;

/// Card clocks of a command, and of a short response.
const SHORT_BITS: u64 = 48;
const LONG_BITS: u64 = 136;
/// Card clocks between a command and its response (an estimate), and after a response.
const RESPONSE_GAP: u64 = 8;

/// A command on its way, with its result.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    command: u32,
    response: [u32; 4],
    errors: u32,
    busy_ns: u64,
}

arm::state!(Pending: command, response, errors, busy_ns);

/// The interface's state.
#[derive(Clone, Debug)]
pub(crate) struct Mci {
    clock: Clock,
    version: u32,
    /// Number of the slot with the card.
    socket: u32,
    slot: Slot,
    pdc: Pdc,
    enabled: bool,
    mode: u32,
    timeout: u32,
    slots: u32,
    argument: u32,
    block_length: u32,
    block_count: u32,
    mask: u32,
    /// Flags of SR that are not levels of other state.
    latched: u32,
    response: [u32; 4],
    /// Number of the response's word that the next read of RSPR returns.
    response_word: u32,
    pending: Pending,
    /// Core cycle at which the command on the bus ends.
    command_done: u64,
    not_busy: bool,
    /// Core cycle at which the card is no longer busy.
    busy_done: u64,
    /// A unit from the card, and a unit for the card.
    received: Option<u32>,
    sent: Option<u32>,
    data: Data,
    /// Whether the bus has called [`Device::tick`], and calls [`Device::transfer`] next.
    ticked: bool,
}

arm::state!(
    Mci: slot, pdc, enabled, mode, timeout, slots, argument, block_length, block_count, mask, latched, response,
    response_word, pending, command_done, not_busy, busy_done, received, sent, data, ticked; clock, version,
    socket => check
);

impl Mci {
    /// Makes a disabled interface with an empty slot.
    pub(crate) fn new(clock: Clock, version: u32) -> Mci {
        Mci {
            clock,
            version,
            socket: 0,
            slot: Slot::default(),
            pdc: Pdc::default(),
            enabled: false,
            mode: 0,
            timeout: 0,
            slots: 0,
            argument: 0,
            block_length: 0,
            block_count: 0,
            mask: 0,
            latched: 0,
            response: [0; 4],
            response_word: 0,
            pending: Pending::default(),
            command_done: u64::MAX,
            not_busy: true,
            busy_done: u64::MAX,
            received: None,
            sent: None,
            data: Data::default(),
            ticked: false,
        }
    }

    /// Refuses a restored block length of more bits than the register has.
    fn check(&self) -> Result<(), Damaged> {
        match self.block_length <= BLOCK_MAX {
            true => Ok(()),
            false => Err(Damaged("a block for a card is too long")),
        }
    }

    /// Moves the card's slot to another number.
    pub(crate) fn with_slot(self, socket: u32) -> Mci {
        Mci { socket, ..self }
    }

    /// Resets all but the PDC and the card.
    fn reset(&mut self) {
        let new = Mci::new(self.clock, self.version).with_slot(self.socket);
        let (slot, pdc) = (core::mem::take(&mut self.slot), self.pdc.clone());
        *self = Mci { slot, pdc, ..new };
    }

    /// Returns the core cycles of `bits` card clocks.
    fn bits(&self, bits: u64) -> u64 {
        let divisor = 2 * (u64::from(self.mode & 0xff) + 1);
        self.clock.cycles(bits * divisor).max(1)
    }

    /// Returns the core cycles of a time of the card.
    fn card_time(&self, ns: u64) -> u64 {
        let clock = Clock {
            hz: 1_000_000_000,
            ..self.clock
        };
        clock.cycles(ns)
    }

    /// Returns the card clocks that the interface waits for data.
    fn timeout_bits(&self) -> u64 {
        let shift = [0, 4, 7, 8, 10, 12, 16, 20][(self.timeout >> 4 & 7) as usize];
        u64::from(self.timeout & 0xf) << shift
    }

    fn status(&self) -> u32 {
        let flag = |on, bit| if on { bit } else { 0 };
        self.latched
            | flag(self.command_done == u64::MAX, COMMAND_READY)
            | flag(self.received.is_some(), RX_READY)
            | flag(self.sent.is_none(), TX_READY)
            | flag(self.data.flow != Flow::None, IN_PROGRESS)
            | flag(self.not_busy, NOT_BUSY)
            | self.pdc.flags(PDC_FLAGS)
    }

    /// Starts a command. The card carries it out at once, and the result is seen when the command's time is over.
    fn command(&mut self, now: u64, value: u32) -> Result<(), &'static str> {
        if self.command_done != u64::MAX {
            return Ok(()); // The register is locked while a command is on its way.
        }
        if !self.enabled {
            return Err("a command while the interface is disabled is not modelled");
        }
        let special = value & COMMAND_SPECIAL;
        if special > COMMAND_INIT || value & COMMAND_SDIO != 0 {
            return Err("synchronised, interrupt and SDIO commands are not modelled");
        }
        let data = value & COMMAND_DATA;
        if data == COMMAND_START && value & COMMAND_KIND & !COMMAND_BLOCKS != 0 {
            return Err("stream and SDIO transfers are not modelled");
        }
        if data == COMMAND_START && self.block_length == 0 {
            return Err("a transfer of blocks of 0 bytes is not modelled");
        }
        self.latched = 0;
        if special == COMMAND_INIT {
            self.pending = Pending::default();
            self.command_done = now.saturating_add(self.bits(74));
            return Ok(());
        }
        if data == COMMAND_STOP {
            self.end_data();
            self.received = None;
        }
        let (pending, bits) = self.carry_out(value);
        self.pending = pending;
        self.command_done = now.saturating_add(self.bits(bits));
        Ok(())
    }

    /// Lets the card carry out a command. Returns the result and the card clocks.
    fn carry_out(&mut self, value: u32) -> (Pending, u64) {
        let has_card = self.slots & SLOTS_SELECT == self.socket;
        let card = self.slot.card_mut().filter(|_| has_card);
        let answer = card.map(|card| card.command((value & 0x3f) as u8, self.argument));
        let response = answer.as_ref().map_or(Response::None, |a| a.response);
        let busy_ns = answer.map_or(0, |answer| answer.busy_ns);
        let mut pending = Pending {
            command: value,
            busy_ns,
            ..Pending::default()
        };
        let latency = if value & COMMAND_LATENCY == 0 { 5 } else { 64 };
        let expected = value >> 6 & 3;
        let answered = SHORT_BITS + RESPONSE_GAP;
        let bits = match (expected, response) {
            (0, _) => SHORT_BITS,
            (_, Response::None) => {
                pending.errors = RESPONSE_TIMEOUT;
                SHORT_BITS + latency
            }
            (1, Response::Short { value, checked }) => {
                pending.response[0] = value;
                pending.errors = if checked { 0 } else { RESPONSE_CHECKSUM };
                answered + SHORT_BITS
            }
            (2, Response::Long(words)) => {
                pending.response = words;
                answered + LONG_BITS
            }
            _ => {
                pending.errors = RESPONSE_END;
                answered + LONG_BITS
            }
        };
        (pending, bits + RESPONSE_GAP)
    }

    fn finish_command(&mut self) {
        let at = core::mem::replace(&mut self.command_done, u64::MAX);
        let pending = core::mem::take(&mut self.pending);
        self.latched |= pending.errors;
        (self.response, self.response_word) = (pending.response, 0);
        if pending.busy_ns != 0 {
            self.busy_until(at.saturating_add(self.card_time(pending.busy_ns)));
        }
        let fails = pending.errors & (RESPONSE_TIMEOUT | RESPONSE_END) != 0;
        if pending.command & COMMAND_DATA == COMMAND_START && !fails {
            self.start_data(at, pending.command);
        }
    }

    fn busy_until(&mut self, at: u64) {
        self.busy_done = match self.busy_done {
            u64::MAX => at,
            other => other.max(at),
        };
        self.not_busy = false;
    }

    fn next_event(&self) -> u64 {
        self.command_done.min(self.busy_done).min(self.data.due)
    }

    /// Carries out the next event. Returns false if there is none until `now`.
    fn step(&mut self, now: u64) -> bool {
        let at = self.next_event();
        if at > now || at == u64::MAX {
            return false;
        }
        if at == self.command_done {
            self.finish_command();
        } else if at == self.busy_done {
            self.busy_done = u64::MAX;
            self.not_busy = self.data.flow == Flow::None;
        } else {
            self.step_data(at);
        }
        true
    }

    /// Returns whether a channel of the PDC can move a unit.
    fn is_served(&self) -> bool {
        let receives = self.received.is_some() && self.pdc.receive.is_ready();
        let sends = self.data.flow == Flow::FromHost && self.sent.is_none();
        self.mode & MODE_PDC != 0 && (receives || sends && self.pdc.transmit.is_ready())
    }

    /// Lets the PDC move the units that it can.
    fn serve(&mut self, now: u64, memory: &mut Memory<'_>) {
        while self.is_served() {
            let bytes = self.unit();
            if let Some(unit) = self.received
                && self.pdc.store(memory, &unit.to_le_bytes()[..bytes])
            {
                self.received = None;
                self.resume(now);
            }
            let mut unit = [0; 4];
            if self.data.flow == Flow::FromHost
                && self.sent.is_none()
                && self.pdc.fetch(memory, &mut unit[..bytes])
            {
                self.sent = Some(u32::from_le_bytes(unit));
                self.resume(now);
            }
        }
    }

    fn get(&mut self, now: u64, offset: u32) -> Option<u32> {
        Some(match offset {
            0x00 | 0x14 | 0x34 | 0x44 | 0x48 => 0, // write-only
            0x04 => self.mode | self.block_length << 16,
            0x08 => self.timeout,
            0x0c => self.slots,
            0x10 => self.argument,
            0x18 => self.block_count | self.block_length << 16,
            0x20..=0x2c => {
                let word = self.response_word & 3;
                self.response_word = (word + 1) % 4;
                self.response[word as usize]
            }
            0x30 => {
                let unit = self.received.take();
                self.resume(now);
                unit.unwrap_or(0)
            }
            0x40 => {
                let status = self.status();
                self.latched &= !READ_CLEARS;
                status
            }
            0x4c => self.mask,
            0xfc => self.version,
            _ => return self.pdc.get(offset),
        })
    }

    fn set(&mut self, now: u64, offset: u32, value: u32) -> Result<(), &'static str> {
        match offset {
            0x00 => {
                if value & CONTROL_RESET != 0 {
                    self.reset();
                }
                if value & CONTROL_DISABLE != 0 {
                    self.enabled = false;
                } else if value & CONTROL_ENABLE != 0 {
                    self.enabled = true;
                }
            }
            0x04 => (self.mode, self.block_length) = (value & 0xffff, value >> 16),
            0x08 => self.timeout = value & 0x7f,
            0x0c => self.slots = value & (SLOTS_SELECT | SLOTS_WIDE),
            0x10 => self.argument = value,
            0x14 => return self.command(now, value),
            0x18 => (self.block_count, self.block_length) = (value & 0xffff, value >> 16),
            0x34 => {
                self.sent = Some(value);
                self.resume(now);
            }
            0x44 => self.mask |= value & INTERRUPTS,
            0x48 => self.mask &= !value,
            0x20..=0x2c | 0x30 | 0x40 | 0x4c | 0xfc => {} // read-only
            _ if self.pdc.set(offset, value) => {}
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Mci {
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
            false => self.next_event(),
        }
    }

    fn tick(&mut self, _: u64) {
        self.ticked = true;
    }

    fn transfer(&mut self, now: u64, memory: &mut Memory<'_>) {
        self.ticked = false;
        self.serve(now, memory);
        while self.step(now) {
            self.serve(now, memory);
        }
    }

    fn outputs(&self) -> u32 {
        let interrupt = self.status() & self.mask != 0;
        u32::from(interrupt) | u32::from(self.slot.card().is_none()) << 1
    }

    fn card_slot(&self) -> Option<&Slot> {
        Some(&self.slot)
    }

    fn card_slot_mut(&mut self) -> Option<&mut Slot> {
        Some(&mut self.slot)
    }

    fn note(&self) -> Option<&'static str> {
        self.pdc.has_failed().then_some(pdc::FAILED)
    }
}

#[path = "mci_data.rs"]
mod data;

#[cfg(test)]
#[path = "mci_tests.rs"]
mod tests;
