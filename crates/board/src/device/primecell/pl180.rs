// SPDX-License-Identifier: MIT OR Apache-2.0
//! PL180 and PL181 multimedia card interfaces (DDI 0172, DDI 0205) with empty slots.
//!
//! Commands take their time on the bus. A command without response takes 48 card clocks. A command that waits for a
//! response times out 64 clocks later. A data read times out after DATATIMER clocks. Refused: data writes (there is no
//! card), commands that wait for a card's interrupt, and DMA.
//!
//! Outputs: 0 = MCIINTR0, 1 = MCIINTR1. No inputs (card detection is in the system registers). Clock: MCLK at 24 MHz,
//! unless the machine file gives another rate.

use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::Width;

const CMD_ENABLE: u32 = 1 << 10;
const CMD_RESPONSE: u32 = 1 << 6;
const CMD_WAITS: u32 = 3 << 8;
const DATA_ENABLE: u32 = 1 << 0;
const DATA_READ: u32 = 1 << 1;
const DATA_DMA: u32 = 1 << 3;
const CLOCK_ENABLE: u32 = 1 << 8;
const CLOCK_BYPASS: u32 = 1 << 10;
const POWER_ON: u32 = 3;

const COMMAND_TIMEOUT: u32 = 1 << 2;
const DATA_TIMEOUT: u32 = 1 << 3;
const COMMAND_SENT: u32 = 1 << 7;
const COMMAND_ACTIVE: u32 = 1 << 11;
const RX_ACTIVE: u32 = 1 << 13;
const RX_FIFO_EMPTY: u32 = 1 << 19;
const STATIC_FLAGS: u32 = 0x7ff;

/// The interface's state.
#[derive(Clone, Debug)]
pub(crate) struct Pl180 {
    name: &'static str,
    periphid: u32,
    mclk: Clock,
    power: u32,
    clock: u32,
    argument: u32,
    command: u32,
    data_timer: u32,
    data_length: u32,
    data_control: u32,
    status: u32,
    masks: [u32; 2],
    /// Core cycle at which the command on the bus ends.
    command_done: u64,
    /// Core cycle at which the data read times out.
    data_done: u64,
}

arm::state!(
    Pl180: power, clock, argument, command, data_timer, data_length, data_control, status,
    masks, command_done, data_done; name, periphid, mclk
);

impl Pl180 {
    /// Makes a PL180, powered off.
    pub(crate) fn new(mclk: Clock) -> Self {
        Pl180 {
            name: "pl180",
            periphid: 0x0004_1180,
            mclk,
            power: 0,
            clock: 0,
            argument: 0,
            command: 0,
            data_timer: 0,
            data_length: 0,
            data_control: 0,
            status: 0,
            masks: [0; 2],
            command_done: u64::MAX,
            data_done: u64::MAX,
        }
    }

    /// Makes a PL181, powered off.
    pub(crate) fn pl181(mclk: Clock) -> Self {
        Pl180 {
            name: "pl181",
            periphid: 0x0004_1181,
            ..Self::new(mclk)
        }
    }

    /// Returns the core cycle that is `card_clocks` after `now`, or `u64::MAX` while the card has no power or clock.
    fn after(&self, now: u64, card_clocks: u64) -> u64 {
        if self.power & 3 != POWER_ON || self.clock & CLOCK_ENABLE == 0 {
            return u64::MAX;
        }
        let divisor = match self.clock & CLOCK_BYPASS {
            0 => 2 * (u64::from(self.clock & 0xff) + 1),
            _ => 1,
        };
        now.saturating_add(self.mclk.cycles(card_clocks * divisor))
    }

    fn sync(&mut self, now: u64) {
        if self.command_done <= now && self.command_done != u64::MAX {
            self.command_done = u64::MAX;
            let answered = self.command & CMD_RESPONSE != 0;
            self.status &= !COMMAND_ACTIVE;
            self.status |= if answered {
                COMMAND_TIMEOUT
            } else {
                COMMAND_SENT
            };
            self.command &= !CMD_ENABLE;
        }
        if self.data_done <= now && self.data_done != u64::MAX {
            self.data_done = u64::MAX;
            self.status &= !(RX_ACTIVE | RX_FIFO_EMPTY);
            self.status |= DATA_TIMEOUT;
            self.data_control &= !DATA_ENABLE;
        }
    }

    fn write_command(&mut self, now: u64, value: u32) -> Result<(), &'static str> {
        self.command = value & 0x7ff;
        self.command_done = u64::MAX;
        self.status &= !COMMAND_ACTIVE;
        if value & CMD_ENABLE == 0 {
            return Ok(());
        }
        if value & CMD_WAITS != 0 {
            return Err("commands that wait for a card's interrupt are not modelled");
        }
        let clocks = if value & CMD_RESPONSE != 0 {
            48 + 64
        } else {
            48
        };
        self.status |= COMMAND_ACTIVE;
        self.command_done = self.after(now, clocks);
        Ok(())
    }

    fn write_data_control(&mut self, now: u64, value: u32) -> Result<(), &'static str> {
        self.data_done = u64::MAX;
        self.status &= !(RX_ACTIVE | RX_FIFO_EMPTY);
        if value & DATA_ENABLE != 0 {
            if value & DATA_READ == 0 || value & DATA_DMA != 0 {
                return Err("data writes and DMA are not modelled (the slot is empty)");
            }
            self.status |= RX_ACTIVE | RX_FIFO_EMPTY;
            self.data_done = self.after(now, u64::from(self.data_timer));
        }
        self.data_control = value & 0xff;
        Ok(())
    }

    fn get(&mut self, now: u64, reg: u32) -> Option<u32> {
        self.sync(now);
        Some(match reg {
            0x00 => self.power,
            0x04 => self.clock,
            0x08 => self.argument,
            0x0c => self.command,
            0x10..=0x20 => 0, // there is never a response
            0x24 => self.data_timer,
            0x28 => self.data_length,
            0x2c => self.data_control,
            0x30 => self.data_length & 0xffff,
            0x34 => self.status,
            0x38 => 0, // write-only
            0x3c | 0x40 => self.masks[((reg - 0x3c) / 4) as usize],
            0x44 | 0x48 => 0,
            0x80..=0xbc => 0,
            _ => return None,
        })
    }

    fn set(&mut self, now: u64, reg: u32, value: u32) -> Result<(), &'static str> {
        self.sync(now);
        match reg {
            0x00 => self.power = value & 0xff,
            0x04 => self.clock = value & 0xfff,
            0x08 => self.argument = value,
            0x0c => return self.write_command(now, value),
            0x24 => self.data_timer = value,
            0x28 => self.data_length = value & 0xffff,
            0x2c => return self.write_data_control(now, value),
            0x38 => self.status &= !(value & STATIC_FLAGS),
            0x3c | 0x40 => self.masks[((reg - 0x3c) / 4) as usize] = value & 0x3f_ffff,
            0x10..=0x20 | 0x30 | 0x34 | 0x44 | 0x48 => {} // read-only
            0x80..=0xbc => return Err("card data is not modelled (the slot is empty)"),
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Pl180 {
    fn part(&self) -> &'static str {
        self.name
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        let (name, id) = (self.name, self.periphid);
        regs::apb_read(name, Some(id), offset, width, |reg| self.get(now, reg))
    }

    fn write(&mut self, now: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        let (name, id) = (self.name, self.periphid);
        regs::apb_write(name, Some(id), offset, value, |reg, v| {
            self.set(now, reg, v)
        })
    }

    fn deadline(&self) -> u64 {
        self.command_done.min(self.data_done)
    }

    fn tick(&mut self, now: u64) {
        self.sync(now);
    }

    fn outputs(&self) -> u32 {
        u32::from(self.status & self.masks[0] != 0)
            | u32::from(self.status & self.masks[1] != 0) << 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes an interface with power and a card clock of MCLK / 4.
    fn slot() -> Pl180 {
        let mut m = Pl180::pl181(Clock {
            cpu_hz: 240,
            hz: 24,
        });
        for (reg, value) in [(0x00, 3), (0x04, CLOCK_ENABLE | 1), (0x3c, STATIC_FLAGS)] {
            m.write(0, reg, Width::Word, value).unwrap();
        }
        m
    }

    #[test]
    fn a_command_that_wants_a_response_times_out_in_card_time() {
        let mut m = slot();
        m.write(0, 0x0c, Width::Word, CMD_ENABLE | CMD_RESPONSE | 8)
            .unwrap();
        assert_eq!(m.deadline(), 112 * 4 * 10);
        assert_eq!(m.read(100, 0x34, Width::Word), Ok(COMMAND_ACTIVE));
        m.tick(4480);
        assert_eq!(
            (m.outputs(), m.read(4480, 0x34, Width::Word)),
            (1, Ok(COMMAND_TIMEOUT))
        );
        m.write(4480, 0x38, Width::Word, 0x7ff).unwrap();
        assert_eq!((m.outputs(), m.deadline()), (0, u64::MAX));
    }

    #[test]
    fn a_command_without_response_is_sent() {
        let mut m = slot();
        m.write(0, 0x0c, Width::Word, CMD_ENABLE).unwrap();
        assert_eq!(m.read(48 * 40, 0x34, Width::Word), Ok(COMMAND_SENT));
    }

    #[test]
    fn a_data_read_times_out_and_a_data_write_is_refused() {
        let mut m = slot();
        m.write(0, 0x24, Width::Word, 1000).unwrap();
        m.write(0, 0x2c, Width::Word, DATA_ENABLE | DATA_READ)
            .unwrap();
        assert_eq!(m.read(40_000, 0x34, Width::Word), Ok(DATA_TIMEOUT));
        assert!(m.write(0, 0x2c, Width::Word, DATA_ENABLE).is_err());
    }
}
