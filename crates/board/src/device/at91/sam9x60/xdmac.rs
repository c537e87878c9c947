// SPDX-License-Identifier: MIT OR Apache-2.0
//! XDMAC, the DMA controller of SAM9X60. Facts: Linux 6.12 drivers/dma/at_xdmac.c; SAM9X60 data sheet, chapter XDMAC
//! (recalled).
//!
//! Modelled: 16 channels; transfers within memory, and between memory and registers, with request lines of peripherals
//! or by software; single blocks and lists of descriptors in views 0 to 3; microblocks with strides; fixed patterns;
//! flush, suspension and resumption; interrupts.
//!
//! The controller makes one access at a time, and takes turns between its channels. Each channel has a FIFO of one
//! memory burst (MBSIZE). Data from a peripheral wait there until the burst or the microblock is complete, or until
//! software flushes the FIFO; CUBC counts the data that are written. Data for a peripheral are read one burst ahead.
//! A request line is a level: as long as it is high, each chunk (CSIZE) begins after the last one has ended and the
//! peripheral has updated its line, so a request overflow (ROIS) never occurs. INITD is set while a block is in work.
//!
//! An access that no unit answers sets RBEIS or WBEIS, and the channel stops until software disables it, as the driver
//! expects. A descriptor must be in RAM. A disabled channel drops what its FIFO holds (inferred). A flush works for a
//! suspended channel, too (inferred). The bus masters' interfaces, priorities and the protection bit have no effect.
//! Refused: accesses of 64 bits to a register (bus error), and writes to the registers of an enabled channel.
//!
//! Inputs: n = request line n of a peripheral (PERID n). Outputs: 0 = interrupt. Clock: MCK at 200 MHz, unless the
//! machine file gives another rate.

use crate::bus::dma::{Access, Memory};
use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::{BusError, Width};
use channel::{Channel, Levels, Step};

#[path = "xdmac_channel.rs"]
mod channel;

const PART: &str = "sam9x60_xdmac";
const CHANNELS: usize = 16;
/// GTYPE: 16 channels, a FIFO of 128 bytes for each, 41 request lines.
const TYPE: u32 = (CHANNELS as u32 - 1) | 128 << 5 | 40 << 16;
const ALL: u32 = (1 << CHANNELS) - 1;
const FIRST: u32 = 0x50;
const SIZE: u32 = 0x40;

const CIS_BLOCK: u32 = 1 << 0;
const CIS_LIST: u32 = 1 << 1;
const CIS_DISABLED: u32 = 1 << 2;
const CIS_FLUSH: u32 = 1 << 3;
const CIS_READ_ERROR: u32 = 1 << 4;
const CIS_WRITE_ERROR: u32 = 1 << 5;

/// Master clocks between two accesses, an estimate.
const GAP: u64 = 4;

/// The controller's state.
#[derive(Clone, Debug)]
pub(super) struct Xdmac {
    clock: Clock,
    channels: [Channel; CHANNELS],
    arbiter: [u32; 2],
    /// GIM.
    mask: u32,
    reads_suspended: u32,
    writes_suspended: u32,
    /// GSWS.
    software: u32,
    /// Levels of the request lines.
    requests: u64,
    /// The channel whose turn is next.
    turn: u32,
    /// Core cycle at which the next access can begin.
    free_at: u64,
    /// Whether the bus has called [`Device::tick`], and calls [`Device::transfer`] next.
    ticked: bool,
    /// The access to a register that is under way. The bus ends it before any other call.
    access: Option<(usize, Step, Access)>,
}

arm::state!(
    Xdmac: channels, arbiter, mask, reads_suspended, writes_suspended, software, requests, turn, free_at, ticked;
    clock, access
);

impl Xdmac {
    /// Makes a controller in its reset state. `clock` is the master clock.
    pub(super) fn new(clock: Clock) -> Xdmac {
        Xdmac {
            clock,
            channels: Default::default(),
            arbiter: [0; 2],
            mask: 0,
            reads_suspended: 0,
            writes_suspended: 0,
            software: 0,
            requests: 0,
            turn: 0,
            free_at: 0,
            ticked: false,
            access: None,
        }
    }

    /// Returns the bits of the channels for which this holds.
    fn bits(&self, holds: impl Fn(&Channel) -> bool) -> u32 {
        let channels = self.channels.iter().enumerate();
        channels.fold(0, |bits, (n, channel)| {
            bits | u32::from(holds(channel)) << n
        })
    }

    fn status(&self) -> u32 {
        self.bits(|channel| channel.status & channel.mask != 0)
    }

    fn levels(&self, n: usize) -> Levels {
        let is_set = |bits: u32| bits >> n & 1 != 0;
        Levels {
            requests: self.requests,
            software: is_set(self.software),
            no_reads: is_set(self.reads_suspended),
            no_writes: is_set(self.writes_suspended),
        }
    }

    /// Returns the channel that makes the next access, and its step.
    fn next(&self) -> Option<(usize, Step)> {
        (0..CHANNELS).find_map(|n| {
            let n = (self.turn as usize % CHANNELS + n) % CHANNELS;
            let step = self.channels[n].next_step(self.levels(n))?;
            Some((n, step))
        })
    }

    /// Calls a function for each channel whose bit is set.
    fn each(&mut self, bits: u32, mut change: impl FnMut(&mut Channel)) {
        for (n, channel) in self.channels.iter_mut().enumerate() {
            if bits >> n & 1 != 0 {
                change(channel);
            }
        }
    }

    fn disable(&mut self, bits: u32) {
        self.each(bits, |channel| {
            if channel.enabled {
                channel.disable();
                channel.status |= CIS_DISABLED;
            }
        });
        self.software &= !bits;
    }

    /// Flushes a channel in its next access, or at once if it has nothing to write.
    fn flush(&mut self, bits: u32) {
        self.each(bits, |channel| match channel.enabled {
            true => channel.flush = true,
            false => channel.status |= CIS_FLUSH,
        });
    }

    fn get(&mut self, offset: u32) -> Option<u32> {
        Some(match offset {
            0x00 => TYPE,
            0x04 | 0x08 => self.arbiter[(offset >> 2) as usize - 1],
            0x0c | 0x10 | 0x1c | 0x20 => 0, // write-only
            0x14 => self.mask,
            0x18 => self.status(),
            0x24 => self.bits(|channel| channel.enabled),
            0x28 => self.reads_suspended,
            0x2c => self.writes_suspended,
            0x30 | 0x34 | 0x38 | 0x40 => 0, // write-only
            0x3c => self.software,
            _ => {
                let offset = offset.checked_sub(FIRST)?;
                let channel = self.channels.get_mut((offset / SIZE) as usize)?;
                return channel.get(offset % SIZE);
            }
        })
    }

    fn set(&mut self, offset: u32, value: u32) -> Result<(), &'static str> {
        let bits = value & ALL;
        match offset {
            0x04 | 0x08 => self.arbiter[(offset >> 2) as usize - 1] = value,
            0x0c => self.mask |= bits,
            0x10 => self.mask &= !bits,
            0x1c => self.each(bits, Channel::enable),
            0x20 => self.disable(bits),
            0x00 | 0x14 | 0x18 | 0x24 | 0x3c => {} // read-only
            0x28 => self.reads_suspended = bits,
            0x2c => self.writes_suspended = bits,
            0x30 => {
                self.reads_suspended |= bits;
                self.writes_suspended |= bits;
            }
            0x34 => {
                self.reads_suspended &= !bits;
                self.writes_suspended &= !bits;
            }
            0x38 => self.software |= bits,
            0x40 => self.flush(bits),
            _ => return self.set_channel(offset, value),
        }
        Ok(())
    }

    fn set_channel(&mut self, offset: u32, value: u32) -> Result<(), &'static str> {
        let offset = offset.checked_sub(FIRST).ok_or(regs::NO_REGISTER)?;
        let channel = self.channels.get_mut((offset / SIZE) as usize);
        let channel = channel.ok_or(regs::NO_REGISTER)?;
        if channel.enabled && (0x10..SIZE).contains(&(offset % SIZE)) {
            return Err("writes to the registers of an enabled channel are not modelled");
        }
        match channel.set(offset % SIZE, value) {
            true => Ok(()),
            false => Err(regs::NO_REGISTER),
        }
    }

    /// Lets the next access begin after one that ends at `at`.
    fn ends(&mut self, at: u64) {
        self.free_at = at.saturating_add(self.clock.cycles(GAP).max(1));
    }
}

impl Device for Xdmac {
    fn part(&self) -> &'static str {
        PART
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read(PART, None, offset, width, |offset| self.get(offset))
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write(PART, None, offset, value, |offset, value| {
            self.set(offset, value)
        })
    }

    fn deadline(&self) -> u64 {
        match self.next() {
            Some(_) if !self.ticked => self.free_at,
            _ => u64::MAX,
        }
    }

    fn tick(&mut self, _: u64) {
        self.ticked = true;
    }

    fn transfer(&mut self, now: u64, memory: &mut Memory<'_>) {
        self.ticked = false;
        if now < self.free_at {
            return;
        }
        let Some((n, step)) = self.next() else {
            return;
        };
        self.turn = (n as u32 + 1) % CHANNELS as u32;
        if self.channels[n].takes_software_request(step) {
            self.software &= !(1 << n);
        }
        let access = self.channels[n].step(step, memory);
        self.access = access.map(|access| (n, step, access));
        self.ends(memory.now().max(now));
    }

    fn begin_access(&mut self) -> Option<Access> {
        self.access.map(|(_, _, access)| access)
    }

    fn end_access(&mut self, now: u64, result: Result<u32, BusError>) {
        if let Some((n, step, _)) = self.access.take() {
            self.channels[n].end_access(step, result);
        }
        self.ends(now);
    }

    fn input(&mut self, _: u64, pin: u32, level: bool) {
        let bit = 1u64.checked_shl(pin).unwrap_or(0);
        match level {
            true => self.requests |= bit,
            false => self.requests &= !bit,
        }
    }

    fn outputs(&self) -> u32 {
        u32::from(self.status() & self.mask != 0)
    }
}

#[cfg(test)]
#[path = "xdmac_tests.rs"]
mod tests;
