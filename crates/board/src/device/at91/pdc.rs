// SPDX-License-Identifier: MIT OR Apache-2.0
//! Peripheral DMA controller (PDC) of AT91 chips, as a part of another unit: USART, SPI, MCI. Read in Linux:
//! `include/linux/atmel_pdc.h`, `atmel_serial.c`, `spi-atmel.c`, `atmel-mci.c`. The flags follow the status registers in
//! the AT91SAM9263 data sheet (recalled).
//!
//! Each direction has a pointer and a counter, and a next pair that the channel loads when its counter reaches 0. The
//! counter counts units of the peripheral: bytes, half-words or words. The peripheral asks for one unit at a time, at
//! its own pace, and each unit is one access to memory.
//!
//! ENDRX and ENDTX are set from the moment a counter reaches 0 until the guest writes a counter of the channel, and
//! while the counter is 0. RXBUFF and TXBUFE are set while both counters are 0.
//!
//! A unit whose address is not in RAM ends in a bus error: no data moves, the channel is disabled, its registers keep
//! their values, and the peripheral's note tells the user. How the silicon reports such an error is not documented in
//! the drivers. A channel with a zero counter and a next counter loads the next pair when it is enabled or already
//! enabled (inferred). Not modelled: transfers from or to anything but RAM.

use crate::bus::dma::{Memory, Purpose};

/// Offset of the first register of the PDC in the peripheral.
const FIRST: u32 = 0x100;

const CONTROL: u32 = 0x20;
const STATUS: u32 = 0x24;
const RECEIVE_ENABLE: u32 = 1 << 0;
const RECEIVE_DISABLE: u32 = 1 << 1;
const TRANSMIT_ENABLE: u32 = 1 << 8;
const TRANSMIT_DISABLE: u32 = 1 << 9;

/// Text for [`Device::note`](crate::device::Device::note) when [`Pdc::has_failed`].
pub(super) const FAILED: &str =
    "its PDC met an address that is not in RAM; the model disables the channel and sets no flag";

/// One direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Channel {
    pointer: u32,
    counter: u32,
    next_pointer: u32,
    next_counter: u32,
    enabled: bool,
    /// Whether the counter has reached 0 since the guest last wrote a counter.
    ended: bool,
    failed: bool,
}

arm::state!(Channel: pointer, counter, next_pointer, next_counter, enabled, ended, failed);

impl Channel {
    /// Returns whether the channel moves a unit when the peripheral asks for it.
    pub(super) fn is_ready(&self) -> bool {
        self.enabled && self.counter != 0
    }

    /// Returns the level of ENDRX or ENDTX.
    pub(super) fn is_at_end(&self) -> bool {
        self.ended || self.counter == 0
    }

    /// Returns the level of RXBUFF or TXBUFE.
    pub(super) fn is_empty(&self) -> bool {
        self.counter == 0 && self.next_counter == 0
    }

    fn load_next(&mut self) {
        if self.enabled && self.counter == 0 && self.next_counter != 0 {
            (self.pointer, self.counter) = (self.next_pointer, self.next_counter);
            self.next_counter = 0;
        }
    }

    /// Counts a unit of `bytes` bytes that has moved, or ends the channel at a bus error.
    fn moved(&mut self, bytes: usize, done: bool) -> bool {
        if !done {
            (self.enabled, self.failed) = (false, true);
            return false;
        }
        self.pointer = self.pointer.wrapping_add(bytes as u32);
        self.counter -= 1;
        if self.counter == 0 {
            self.ended = true;
            self.load_next();
        }
        true
    }

    fn get(&self, register: u32) -> u32 {
        match register {
            0 => self.pointer,
            1 => self.counter,
            2 => self.next_pointer,
            _ => self.next_counter,
        }
    }

    fn set(&mut self, register: u32, value: u32) {
        let count = value & 0xffff;
        match register {
            0 => self.pointer = value,
            1 => self.counter = count,
            2 => self.next_pointer = value,
            _ => self.next_counter = count,
        }
        if register & 1 != 0 {
            self.ended = false;
            self.load_next();
        }
    }

    fn enable(&mut self, enable: bool, disable: bool) {
        if disable {
            self.enabled = false;
        } else if enable {
            self.enabled = true;
            self.load_next();
        }
    }
}

/// Both directions of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pdc {
    /// From the peripheral to memory.
    pub receive: Channel,
    /// From memory to the peripheral.
    pub transmit: Channel,
}

arm::state!(Pdc: receive, transmit);

impl Pdc {
    /// Writes the unit that the peripheral has received to memory. Returns false if the channel did not take it.
    pub(super) fn store(&mut self, memory: &mut Memory<'_>, unit: &[u8]) -> bool {
        let channel = &mut self.receive;
        if !channel.is_ready() {
            return false;
        }
        memory.set_purpose(Purpose::Data);
        let done = memory.write(channel.pointer, unit).is_ok();
        channel.moved(unit.len(), done)
    }

    /// Reads the unit that the peripheral sends from memory. Returns false if the channel has none.
    pub(super) fn fetch(&mut self, memory: &mut Memory<'_>, unit: &mut [u8]) -> bool {
        let channel = &mut self.transmit;
        if !channel.is_ready() {
            return false;
        }
        memory.set_purpose(Purpose::Data);
        let done = memory.read(channel.pointer, unit).is_ok();
        channel.moved(unit.len(), done)
    }

    /// Returns whether a channel met an address outside RAM.
    pub(super) fn has_failed(&self) -> bool {
        self.receive.failed || self.transmit.failed
    }

    /// Returns ENDRX, ENDTX, RXBUFF and TXBUFE as bits of a status register, at these bit numbers.
    pub(super) fn flags(&self, [end_rx, end_tx, rx_full, tx_empty]: [u32; 4]) -> u32 {
        let (receive, transmit) = (&self.receive, &self.transmit);
        u32::from(receive.is_at_end()) << end_rx
            | u32::from(transmit.is_at_end()) << end_tx
            | u32::from(receive.is_empty()) << rx_full
            | u32::from(transmit.is_empty()) << tx_empty
    }

    /// Returns the channel and the number of its register at `offset` in the PDC: pointer, counter, next pair.
    fn place(&mut self, offset: u32) -> Option<(&mut Channel, u32)> {
        let pair = offset >> 2 & 1;
        match offset {
            0x00 | 0x04 => Some((&mut self.receive, pair)),
            0x08 | 0x0c => Some((&mut self.transmit, pair)),
            0x10 | 0x14 => Some((&mut self.receive, 2 + pair)),
            0x18 | 0x1c => Some((&mut self.transmit, 2 + pair)),
            _ => None,
        }
    }

    /// Reads the register at an offset of the peripheral. Returns `None` for an offset that is not of the PDC.
    pub(super) fn get(&mut self, offset: u32) -> Option<u32> {
        let offset = offset.checked_sub(FIRST)?;
        if let Some((channel, register)) = self.place(offset) {
            return Some(channel.get(register));
        }
        let enabled = |channel: &Channel, bit| if channel.enabled { bit } else { 0 };
        match offset {
            CONTROL => Some(0), // write-only
            STATUS => Some(
                enabled(&self.receive, RECEIVE_ENABLE) | enabled(&self.transmit, TRANSMIT_ENABLE),
            ),
            _ => None,
        }
    }

    /// Writes the register at an offset of the peripheral. Returns false for an offset that is not of the PDC.
    pub(super) fn set(&mut self, offset: u32, value: u32) -> bool {
        let Some(offset) = offset.checked_sub(FIRST) else {
            return false;
        };
        if let Some((channel, register)) = self.place(offset) {
            channel.set(register, value);
            return true;
        }
        if offset == CONTROL {
            let is = |bit| value & bit != 0;
            self.receive.enable(is(RECEIVE_ENABLE), is(RECEIVE_DISABLE));
            self.transmit
                .enable(is(TRANSMIT_ENABLE), is(TRANSMIT_DISABLE));
        }
        matches!(offset, CONTROL | STATUS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moves units that are in memory, without memory.
    fn count(channel: &mut Channel, units: u32) {
        for _ in 0..units {
            assert!(channel.is_ready());
            channel.moved(1, true);
        }
    }

    fn set(pdc: &mut Pdc, writes: &[(u32, u32)]) {
        for (offset, value) in writes {
            assert!(pdc.set(*offset, *value));
        }
    }

    const FLAGS: [u32; 4] = [0, 1, 2, 3];

    #[test]
    fn idle_channels_are_at_their_end_and_empty() {
        assert_eq!(Pdc::default().flags(FLAGS), 0xf);
    }

    #[test]
    fn the_next_pair_is_loaded_and_the_end_is_told_until_a_counter_is_written() {
        let mut pdc = Pdc::default();
        set(
            &mut pdc,
            &[
                (0x100, 0x2000),
                (0x104, 2),
                (0x110, 0x3000),
                (0x114, 3),
                (0x120, 1),
            ],
        );
        assert_eq!((pdc.flags(FLAGS), pdc.get(0x124)), (0xa, Some(1)));
        count(&mut pdc.receive, 1);
        assert_eq!((pdc.get(0x100), pdc.get(0x104)), (Some(0x2001), Some(1)));
        count(&mut pdc.receive, 1);
        let registers = [0x100, 0x104, 0x110, 0x114].map(|at| pdc.get(at).unwrap());
        assert_eq!(registers, [0x3000, 3, 0x3000, 0]);
        assert_eq!(pdc.flags(FLAGS), 0xb, "at the end of the first buffer");
        set(&mut pdc, &[(0x110, 0x4000), (0x114, 1)]);
        assert_eq!(pdc.flags(FLAGS), 0xa, "a counter was written");
        count(&mut pdc.receive, 4);
        assert_eq!(pdc.flags(FLAGS), 0xf);
        assert!(!pdc.receive.is_ready());
    }

    #[test]
    fn a_next_pair_of_an_enabled_channel_at_its_end_is_loaded_at_once() {
        let mut pdc = Pdc::default();
        set(&mut pdc, &[(0x118, 0x3000), (0x11c, 3)]);
        assert!(!pdc.transmit.is_ready(), "disabled");
        set(&mut pdc, &[(0x120, 0x100)]);
        assert_eq!((pdc.get(0x10c), pdc.get(0x11c)), (Some(3), Some(0)));
        count(&mut pdc.transmit, 3);
        set(&mut pdc, &[(0x118, 0x5000), (0x11c, 1)]);
        assert_eq!((pdc.get(0x108), pdc.get(0x10c)), (Some(0x5000), Some(1)));
        set(&mut pdc, &[(0x120, 0x300)]);
        assert!(!pdc.transmit.is_ready(), "disabling wins");
    }

    #[test]
    fn a_bus_error_disables_the_channel_and_keeps_its_registers() {
        let mut pdc = Pdc::default();
        set(&mut pdc, &[(0x108, 7), (0x10c, 2), (0x120, 0x100)]);
        assert!(!pdc.transmit.moved(1, false));
        assert_eq!((pdc.get(0x108), pdc.get(0x10c)), (Some(7), Some(2)));
        assert_eq!(pdc.get(0x124), Some(0));
        assert!(pdc.has_failed());
    }

    #[test]
    fn counters_have_16_bits_and_other_offsets_are_not_of_the_pdc() {
        let mut pdc = Pdc::default();
        set(&mut pdc, &[(0x104, u32::MAX), (0x124, 1)]);
        assert_eq!(pdc.get(0x104), Some(0xffff));
        for offset in [0, 0xfc, 0x101, 0x128, u32::MAX] {
            assert!(!pdc.set(offset, 1) && pdc.get(offset).is_none());
        }
    }
}
