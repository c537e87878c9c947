// SPDX-License-Identifier: MIT OR Apache-2.0
//! Characters that wait in a USART: in the holding registers, or in the FIFOs that FLEXCOM has. Facts: Linux 6.12
//! drivers/tty/serial/atmel_serial.h; SAM9X60 data sheet, chapter USART FIFOs (recalled).

use super::Usart;
use arm::Width;
use std::collections::VecDeque;

/// Characters in a FIFO.
const DEPTH: usize = 16;

const CR_TXFCLR: u32 = 1 << 24;
const CR_RXFCLR: u32 = 1 << 25;
const CR_FIFOEN: u32 = 1 << 30;
const CR_FIFODIS: u32 = 1 << 31;

/// The characters of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    waiting: VecDeque<u8>,
    /// Whether the FIFO is enabled.
    has_fifo: bool,
    /// Characters, or room for characters, that make the direction ready.
    threshold: u8,
}

arm::state!(Line: waiting, has_fifo, threshold);

impl Line {
    /// Returns how many characters fit into the line. Without FIFO, one character fits.
    pub(super) fn room(&self) -> usize {
        let depth = if self.has_fifo { DEPTH } else { 1 };
        depth.saturating_sub(self.waiting.len())
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a character. In a holding register, it replaces the last one. A full FIFO does not take it.
    pub(super) fn push(&mut self, character: u8) {
        if !self.has_fifo {
            self.waiting.clear();
        }
        if self.room() > 0 {
            self.waiting.push_back(character);
        }
    }

    pub(super) fn first(&self) -> Option<u8> {
        self.waiting.front().copied()
    }

    pub(super) fn pop(&mut self) -> Option<u8> {
        self.waiting.pop_front()
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Enables or disables the FIFO, which is then empty.
    pub(super) fn set_fifo(&mut self, enabled: bool) {
        if self.has_fifo != enabled {
            self.has_fifo = enabled;
            self.waiting.clear();
        }
    }

    /// Sets the threshold: one, two or four characters.
    pub(super) fn set_ready_mode(&mut self, mode: u32) {
        self.threshold = [1, 2, 4, 4][(mode & 3) as usize];
    }

    fn threshold(&self) -> usize {
        match self.has_fifo {
            true => usize::from(self.threshold).max(1),
            false => 1,
        }
    }

    /// Returns whether a receiver has as many characters as its threshold says.
    pub(super) fn has_enough(&self) -> bool {
        self.waiting.len() >= self.threshold()
    }

    /// Returns whether a transmitter has room for as many characters as its threshold says.
    pub(super) fn has_room(&self) -> bool {
        self.room() >= self.threshold()
    }
}

impl Usart {
    /// Carries out the bits of CR that control the FIFOs. An enabled FIFO is empty at first.
    pub(crate) fn control_fifos(&mut self, now: u64, value: u32) {
        self.sync(now);
        let has = |bit| value & bit != 0;
        if has(CR_FIFODIS) || has(CR_FIFOEN) {
            let enabled = !has(CR_FIFODIS);
            self.holding.set_fifo(enabled);
            self.arrived.set_fifo(enabled);
        }
        if has(CR_TXFCLR) {
            self.holding.clear();
        }
        if has(CR_RXFCLR) {
            self.arrived.clear();
        }
        self.start_rx(now);
    }

    /// Takes the ready modes from FMR.
    pub(crate) fn set_fifo_mode(&mut self, value: u32) {
        self.holding.set_ready_mode(value);
        self.arrived.set_ready_mode(value >> 4);
    }

    /// Returns FLR, the levels of the FIFOs.
    pub(crate) fn fifo_levels(&mut self, now: u64) -> u32 {
        self.sync(now);
        let level = |line: &Line| match line.has_fifo {
            true => line.len() as u32,
            false => 0,
        };
        level(&self.holding) | level(&self.arrived) << 16
    }

    /// Reads RHR: as many characters as the access has bytes, if the FIFO is enabled, and one otherwise.
    pub(crate) fn take_characters(&mut self, now: u64, width: Width) -> Result<u32, &'static str> {
        self.sync(now);
        let count = if self.arrived.has_fifo {
            width.bytes()
        } else {
            1
        };
        if count > 1 && (self.arrived.len() as u32) < count {
            return Err("the access takes more characters than the receive FIFO has");
        }
        Ok((0..count).fold(0, |value, n| {
            value | u32::from(self.take_character(now)) << (8 * n)
        }))
    }

    /// Writes THR: as many characters as the access has bytes, if the FIFO is enabled, and one otherwise.
    pub(crate) fn put_characters(
        &mut self,
        now: u64,
        width: Width,
        value: u32,
    ) -> Result<(), &'static str> {
        self.sync(now);
        let count = if self.holding.has_fifo {
            width.bytes()
        } else {
            1
        };
        if count > 1 && (self.holding.room() as u32) < count {
            return Err("the access has more characters than the transmit FIFO has room for");
        }
        for n in 0..count {
            if self.transmits {
                self.holding.push((value >> (8 * n)) as u8);
            }
            self.start_tx(now);
        }
        self.sync(now);
        Ok(())
    }
}
