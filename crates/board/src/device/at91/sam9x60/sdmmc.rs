// SPDX-License-Identifier: MIT OR Apache-2.0
//! SDMMC, the memory card controller of SAM9X60: a SD host controller of specification 3.00, for one SD card at 3.3 V.
//! Read in Linux 6.12: drivers/mmc/host/sdhci.c, sdhci.h and sdhci-of-at91.c.
//!
//! Modelled: commands and blocks at the pace of the card's clock and of 1 or 4 data lines, responses and their errors,
//! single and multiple blocks, transfers by ADMA2 with 32-bit addresses and by the buffer port, CMD12 of the controller
//! behind the last block, busy cards, data timeout, checksum errors (for a wrong block length or number of lines), errors
//! of ADMA2, software resets. A block moves between memory and controller at once, at its end (from the card) or before
//! its begin (to the card). A descriptor list that gives no data for 1024 descriptors ends in an error of ADMA2, as does
//! an address that is not in RAM. Capabilities and presets can be written while CACR allows it; a software reset keeps
//! them. A command without a card clock never ends.
//!
//! Without effect: power, high-speed timing, presets, wake-up, block gaps, calibration, which ends at once. The card is
//! in the slot before the machine starts, so there are no interrupts of insertion and removal. Refused: SDMA, ADMA2 with
//! other addresses, CMD23 of the controller, blocks of 0 bytes, forced events, tuning, 1.8 V, double data rate, 8 lines.
//!
//! Outputs: 0 = interrupt, 1 = card detect switch of the board (low while a card is in the slot). No inputs. Clock: the
//! generic clock, 100 MHz unless the machine file gives another rate. Value: `capabilities`, the first register of
//! capabilities (an estimate).

use crate::bus::dma::Memory;
use crate::device::card::{Flow, Response, Slot};
use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::{Damaged, Width};
use data::Data;

const PART: &str = "sam9x60_sdmmc";
const WORDS: usize = 0x300 / 4;

const BLOCKS: u32 = 0x04;
const ARGUMENT: u32 = 0x08;
const COMMAND: u32 = 0x0c;
const RESPONSE: u32 = 0x10;
const BUFFER: u32 = 0x20;
const PRESENT: u32 = 0x24;
const HOST: u32 = 0x28;
const CLOCK: u32 = 0x2c;
const STATUS: u32 = 0x30;
const ENABLE: u32 = 0x34;
const SIGNAL: u32 = 0x38;
const CONTROL2: u32 = 0x3c;
const CAPABILITIES: u32 = 0x40;
const ADMA_ERROR: u32 = 0x54;
const ADMA_ADDRESS: u32 = 0x58;
const VERSION: u32 = 0xfc;
const MMC: u32 = 0x204;
const CAPABILITIES_WRITE: u32 = 0x230;
const CALIBRATION: u32 = 0x240;

// Transfer mode and command, as one word.
const MODE_DMA: u32 = 1 << 0;
const MODE_COUNTS: u32 = 1 << 1;
const MODE_STOPS: u32 = 1 << 2;
const MODE_SETS_COUNT: u32 = 1 << 3;
const MODE_READ: u32 = 1 << 4;
const MODE_MULTI: u32 = 1 << 5;
const COMMAND_CHECKED: u32 = 1 << 19;
const COMMAND_DATA: u32 = 1 << 21;
const COMMAND_ABORT: u32 = 3 << 22;

const HOST_WIDE: u32 = 1 << 1;
const HOST_DMA: u32 = 3 << 3;
const HOST_ADMA32: u32 = 2 << 3;
const HOST_EIGHT: u32 = 1 << 5;

const COMMAND_COMPLETE: u32 = 1 << 0;
const TRANSFER_COMPLETE: u32 = 1 << 1;
const DMA_INTERRUPT: u32 = 1 << 3;
const WRITE_READY: u32 = 1 << 4;
const READ_READY: u32 = 1 << 5;
const ANY_ERROR: u32 = 1 << 15;
const ERRORS: u32 = 0xffff_0000;
const COMMAND_TIMEOUT: u32 = 1 << 16;
const COMMAND_CHECKSUM: u32 = 1 << 17;
const COMMAND_END: u32 = 1 << 18;
const DATA_TIMEOUT: u32 = 1 << 20;
const DATA_CHECKSUM: u32 = 1 << 21;
const STOP_ERROR: u32 = 1 << 24;
const ADMA_FAILED: u32 = 1 << 25;

/// Card clocks of a command or a short response, of a long response, and between and behind them (an estimate).
const SHORT_BITS: u64 = 48;
const LONG_BITS: u64 = 136;
const GAP_BITS: u64 = 8;
/// Card clocks after which a card that does not answer is given up.
const TIMEOUT_BITS: u64 = 64;
/// Clock of the data timeout, which the capabilities tell.
const TIMEOUT_HZ: u64 = 12_000_000;

/// A command on its way, with its result.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    command: u32,
    response: [u32; 4],
    errors: u32,
    busy_ns: u64,
}

arm::state!(Pending: command, response, errors, busy_ns);

/// The controller's state.
#[derive(Clone, Debug)]
pub(super) struct Sdmmc {
    clock: Clock,
    slot: Slot,
    /// Registers that hold what software writes, and the responses.
    words: Vec<u32>,
    status: u32,
    pending: Pending,
    /// Core cycle at which the command on the bus ends.
    command_done: u64,
    /// Core cycle at which the card is no longer busy, and the transfer is complete.
    busy_done: u64,
    data: Data,
    /// Whether the bus has called [`Device::tick`], and calls [`Device::transfer`] next.
    ticked: bool,
}

arm::state!(
    Sdmmc: slot, words, status, pending, command_done, busy_done, data, ticked; clock => check
);

impl Sdmmc {
    /// Makes a controller in its reset state, with an empty slot. `clock` is the generic clock.
    pub(super) fn new(clock: Clock, capabilities: u32) -> Sdmmc {
        let mut words = vec![0; WORDS];
        words[(CAPABILITIES / 4) as usize] = capabilities;
        words[(VERSION / 4) as usize] = 0x1802 << 16;
        Sdmmc {
            clock,
            slot: Slot::default(),
            words,
            status: 0,
            pending: Pending::default(),
            command_done: u64::MAX,
            busy_done: u64::MAX,
            data: Data::default(),
            ticked: false,
        }
    }

    fn check(&self) -> Result<(), Damaged> {
        match self.words.len() == WORDS && self.data.is_possible() {
            true => Ok(()),
            false => Err(Damaged("a card controller has other registers")),
        }
    }

    fn word(&self, offset: u32) -> u32 {
        self.words.get(offset as usize / 4).copied().unwrap_or(0)
    }

    fn put(&mut self, offset: u32, value: u32) {
        if let Some(word) = self.words.get_mut(offset as usize / 4) {
            *word = value;
        }
    }

    /// Resets all but the card, the capabilities and the presets.
    fn reset(&mut self) {
        for offset in (0..0x240).step_by(4) {
            if !(0x40..0x50).contains(&offset) && !(0x60..0x100).contains(&offset) {
                self.put(offset, 0);
            }
        }
        self.status = 0;
        self.reset_command();
        self.end_data();
    }

    fn reset_command(&mut self) {
        self.command_done = u64::MAX;
        self.status &= !COMMAND_COMPLETE;
    }

    fn end_data(&mut self) {
        (self.data, self.busy_done) = (Data::default(), u64::MAX);
    }

    /// Sets flags of the status, as far as they are enabled.
    fn raise(&mut self, flags: u32) {
        self.status |= flags & self.word(ENABLE);
    }

    fn status(&self) -> u32 {
        let error = self.status & ERRORS != 0;
        self.status | if error { ANY_ERROR } else { 0 }
    }

    /// Returns the core cycles of `bits` card clocks. Without a clock, they never end.
    fn bits(&self, bits: u64) -> u64 {
        let control = self.word(CLOCK);
        if control & 5 != 5 {
            return u64::MAX;
        }
        let code = u64::from(control >> 8 & 0xff | (control & 0xc0) << 2);
        // Either the generic clock, or the base clock, which is half of it, is divided.
        let divisor = match control & 0x20 {
            0 => 4 * code,
            _ => code + 1,
        };
        let divisor = if divisor == 0 { 2 } else { divisor };
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

    fn is_wide(&self) -> bool {
        self.word(HOST) & HOST_WIDE != 0
    }

    /// Starts a command. The card carries it out at once, and the result is seen when the command's time is over.
    fn command(&mut self, now: u64) -> Result<(), &'static str> {
        let command = self.word(COMMAND);
        let with_data = command & COMMAND_DATA != 0;
        let is_busy = self.data.flow != Flow::None || self.busy_done != u64::MAX;
        if self.command_done != u64::MAX || with_data && is_busy {
            return Ok(()); // The register is locked.
        }
        if with_data {
            self.check_data(command)?;
        }
        if command & COMMAND_ABORT == COMMAND_ABORT {
            self.end_data();
        }
        let (index, argument) = ((command >> 24 & 0x3f) as u8, self.word(ARGUMENT));
        let answer = self
            .slot
            .card_mut()
            .map(|card| card.command(index, argument));
        let response = answer.as_ref().map_or(Response::None, |a| a.response);
        let (pending, bits) = self.result(command, response, answer.map_or(0, |a| a.busy_ns));
        self.pending = pending;
        self.command_done = now.saturating_add(self.bits(bits));
        Ok(())
    }

    /// Refuses a transfer that is not modelled.
    fn check_data(&self, command: u32) -> Result<(), &'static str> {
        let dma = self.word(HOST) & HOST_DMA;
        if command & MODE_DMA != 0 && dma != HOST_ADMA32 {
            return Err("DMA other than ADMA2 with 32-bit addresses is not modelled");
        }
        if command & MODE_SETS_COUNT != 0 {
            return Err("CMD23 of the controller is not modelled");
        }
        if self.word(BLOCKS) & 0xfff == 0 {
            return Err("a transfer of blocks of 0 bytes is not modelled");
        }
        Ok(())
    }

    /// Returns the result of a command and its card clocks.
    fn result(&self, command: u32, response: Response, busy_ns: u64) -> (Pending, u64) {
        let mut pending = Pending {
            command,
            busy_ns,
            ..Pending::default()
        };
        let expects_long = command >> 16 & 3 == 1;
        let bits = match (command >> 16 & 3, response) {
            (0, _) => SHORT_BITS,
            (_, Response::None) => {
                pending.errors = COMMAND_TIMEOUT;
                SHORT_BITS + TIMEOUT_BITS
            }
            (_, Response::Short { value, checked }) if !expects_long => {
                pending.response[0] = value;
                if !checked && command & COMMAND_CHECKED != 0 {
                    pending.errors = COMMAND_CHECKSUM;
                }
                SHORT_BITS + GAP_BITS + SHORT_BITS
            }
            (_, Response::Long([a, b, c, d])) if expects_long => {
                // The checksum in the lowest byte is not part of the registers.
                pending.response = [c << 24 | d >> 8, b << 24 | c >> 8, a << 24 | b >> 8, a >> 8];
                SHORT_BITS + GAP_BITS + LONG_BITS
            }
            _ => {
                pending.errors = COMMAND_END;
                SHORT_BITS + GAP_BITS + LONG_BITS
            }
        };
        (pending, bits + GAP_BITS)
    }

    fn finish_command(&mut self, at: u64) {
        self.command_done = u64::MAX;
        let pending = self.pending;
        if pending.errors != 0 {
            return self.raise(pending.errors);
        }
        match pending.command >> 16 & 3 {
            0 => {}
            1 => (0..4).for_each(|n| self.put(RESPONSE + 4 * n, pending.response[n as usize])),
            _ => self.put(RESPONSE, pending.response[0]),
        }
        self.raise(COMMAND_COMPLETE);
        if pending.command & COMMAND_DATA != 0 {
            self.start_data(at, pending.command);
        } else if pending.command >> 16 & 3 == 3 {
            self.complete(at.saturating_add(self.card_time(pending.busy_ns)));
        }
    }

    /// Lets the transfer be complete at this cycle.
    fn complete(&mut self, at: u64) {
        self.busy_done = at.min(u64::MAX - 1);
    }

    fn next_event(&self) -> u64 {
        self.command_done.min(self.busy_done).min(self.data.due)
    }

    /// Carries out the next event. Returns false if there is none until `now`.
    fn step(&mut self, now: u64, memory: &mut Memory<'_>) -> bool {
        let at = self.next_event();
        if at > now || at == u64::MAX {
            return false;
        }
        if at == self.command_done {
            self.finish_command(at);
        } else if at == self.busy_done {
            self.busy_done = u64::MAX;
            self.raise(TRANSFER_COMPLETE);
        } else {
            self.step_data(at, memory);
        }
        true
    }

    fn present(&self) -> u32 {
        let flag = |on, bit: u32| if on { bit } else { 0 };
        let inserted = self.slot.card().is_some();
        let forced = self.word(MMC) & 0x80 != 0;
        let moves = self.data.flow != Flow::None;
        let busy = self.busy_done != u64::MAX;
        flag(self.command_done != u64::MAX, 1)
            | flag(moves || busy, 1 << 1)
            | flag(moves, 1 << 2)
            | flag(self.data.flow == Flow::FromHost, 1 << 8)
            | flag(self.data.flow == Flow::ToHost, 1 << 9)
            | self.data.buffer_flags()
            | flag(inserted || forced, 1 << 16)
            | 1 << 17
            | flag(inserted, 1 << 18)
            | 1 << 19 // not write-protected
            | 0x01e0_0000 // command line, data lines 3 to 1
            | flag(!busy, 1 << 20)
    }

    /// Returns a register, as a whole word.
    fn get(&self, reg: u32) -> u32 {
        match reg {
            BUFFER => self.data.peek(),
            PRESENT => self.present(),
            CLOCK => {
                let control = self.word(CLOCK) & 0x000f_ffe5;
                control | (control & 1) << 1 // the clock is stable
            }
            STATUS => self.status(),
            VERSION => self.word(VERSION) & 0xffff_0000 | self.outputs() & 1,
            _ => self.word(reg),
        }
    }

    /// Writes the lanes in `mask` of a register.
    fn set(&mut self, now: u64, reg: u32, mask: u32, value: u32) -> Result<(), &'static str> {
        let merged = self.word(reg) & !mask | value & mask;
        match reg {
            COMMAND => {
                self.put(COMMAND, merged & 0x3ffb_003f);
                if mask >> 24 != 0 {
                    return self.command(now);
                }
            }
            BUFFER => self.push(now, value & mask),
            HOST if merged & HOST_EIGHT != 0 => return Err("8 data lines are not modelled"),
            CONTROL2 if merged >> 16 & 0x00cf != 0 => {
                return Err("tuning, 1.8 V and fast modes are not modelled");
            }
            CLOCK => {
                self.put(CLOCK, merged & 0x000f_ffe5);
                self.software_reset(value & mask);
            }
            STATUS => self.status &= !(value & mask),
            0x50 => return Err("forced events are not modelled"),
            CAPABILITIES | 0x44 | 0x60..=0x6c if self.word(CAPABILITIES_WRITE) & 1 != 0 => {
                self.put(reg, merged);
            }
            // The presets have no effect, and Linux writes them when CACR no longer allows it.
            CAPABILITIES..=0x4c | 0x60..=0xfc | RESPONSE..=0x1c | PRESENT => {} // read-only
            CAPABILITIES_WRITE => self.put(reg, if merged >> 8 == 0x46 { merged & 1 } else { 0 }),
            MMC if merged & 8 != 0 => return Err("double data rate is not modelled"),
            CALIBRATION => self.put(reg, merged & !1),
            _ => self.put(reg, merged),
        }
        Ok(())
    }

    fn software_reset(&mut self, value: u32) {
        if value & 1 << 24 != 0 {
            self.reset();
        }
        if value & 1 << 25 != 0 {
            self.reset_command();
        }
        if value & 1 << 26 != 0 {
            self.end_data();
            self.status &= !(TRANSFER_COMPLETE | DMA_INTERRUPT | WRITE_READY | READ_READY);
        }
    }
}

impl Device for Sdmmc {
    fn part(&self) -> &'static str {
        PART
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        if offset as usize / 4 >= WORDS {
            return Err(regs::bad_read(PART, offset, width));
        }
        let value = regs::lanes(self.get(offset & !3), offset, width);
        if offset & !3 == BUFFER {
            self.pop(now, width.bytes());
        }
        Ok(value)
    }

    fn write(&mut self, now: u64, offset: u32, width: Width, value: u32) -> Result<(), Unmodelled> {
        if offset as usize / 4 >= WORDS {
            return Err(regs::bad_write(PART, offset, value, regs::NO_REGISTER));
        }
        let shift = (offset & 3) * 8;
        if offset & !3 == BUFFER && width != Width::Word {
            return Err(regs::bad_write(
                PART,
                offset,
                value,
                "narrow writes to the buffer port are not modelled",
            ));
        }
        self.set(now, offset & !3, width.mask() << shift, value << shift)
            .map_err(|why| regs::bad_write(PART, offset, value, why))
    }

    fn deadline(&self) -> u64 {
        match self.ticked {
            true => u64::MAX,
            false => self.next_event(),
        }
    }

    fn tick(&mut self, _: u64) {
        self.ticked = true;
    }

    fn transfer(&mut self, now: u64, memory: &mut Memory<'_>) {
        self.ticked = false;
        while self.step(now, memory) {}
    }

    fn outputs(&self) -> u32 {
        let interrupt = self.status() & self.word(SIGNAL) != 0;
        u32::from(interrupt) | u32::from(self.slot.card().is_none()) << 1
    }

    fn card_slot(&self) -> Option<&Slot> {
        Some(&self.slot)
    }

    fn card_slot_mut(&mut self) -> Option<&mut Slot> {
        Some(&mut self.slot)
    }
}

#[path = "sdmmc_data.rs"]
mod data;

#[cfg(test)]
#[path = "sdmmc_tests.rs"]
mod tests;
