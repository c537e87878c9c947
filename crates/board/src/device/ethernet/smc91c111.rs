// SPDX-License-Identifier: MIT OR Apache-2.0
//! SMC LAN91C111 Ethernet controller (SMSC data sheet, revision 1.92).
//!
//! Modelled: banks 0 to 3, the four 2 KB packets of the memory and their commands, transmission, receive filtering,
//! the interrupts of these functions, the MII wires to the internal PHY, and the PHY's interrupt. Sending a frame
//! takes the time that the frame needs at the link's rate. Receiving a frame takes no time: the whole frame is in the
//! packet memory at once. Accesses have 8, 16 or 32 bits. Received frames of less than 60 or more than 1514 bytes are
//! filtered. Refused: loopback, forced collisions, EEPROM stores, the attribute space, bank 7. The EPH interrupt
//! never occurs, because the PHY's interrupt reports changes of LINK_OK.
//!
//! Value: `mac` is the address in the EEPROM (default 0x020000000001). The most significant byte is the first byte of
//! the address.
//!
//! Outputs: 0 = INTR0. No inputs. Frames pass through [`Device::take_frames`] and [`Device::give_frame`], and
//! [`Device::set_cable`] plugs the cable.

use super::lan83c183::Lan83c183;
use super::smc91c111_memory::{Memory, NO_PACKET, PACKET};
use crate::device::{Device, Unmodelled, regs};
use crate::link::{Fate, Rate, Sent};
use crate::time::{self, Clock};
use arm::{Damaged, Width};

const NAME: &str = "smc91c111";
const REVISION: u32 = 0x3391;

const TCR_ENABLE: u32 = 1 << 0;
const TCR_PAD: u32 = 1 << 7;
const TCR_NO_CRC: u32 = 1 << 8;
const TCR_REFUSED: u32 = 1 << 1 | 1 << 2 | 1 << 13;
const RCR_PROMISCUOUS: u32 = 1 << 1;
const RCR_ALL_MULTICAST: u32 = 1 << 2;
const RCR_ENABLE: u32 = 1 << 8;
const RCR_STRIP_CRC: u32 = 1 << 9;
const RCR_RESET: u32 = 1 << 15;
const CTL_AUTO_RELEASE: u32 = 1 << 11;
const CTL_RESET: u32 = 0x1210;

const INT_RX: u32 = 1 << 0;
const INT_TX: u32 = 1 << 1;
const INT_TX_EMPTY: u32 = 1 << 2;
const INT_ALLOC: u32 = 1 << 3;
const INT_OVERRUN: u32 = 1 << 4;
const INT_PHY: u32 = 1 << 7;

const TX_SUCCESS: u32 = 1 << 0;
const LINK_OK: u32 = 1 << 14;

/// The controller's state.
#[derive(Clone, Debug)]
pub(crate) struct Smc91c111 {
    clock: Clock,
    mac: u64,
    bank: u32,
    tcr: u32,
    rcr: u32,
    rpcr: u32,
    config: u32,
    station: [u8; 6],
    general: u32,
    control: u32,
    eph: u32,
    pointer: u32,
    packet: u8,
    /// Interrupts TX_EMPTY and OVERRUN. The other interrupts are levels.
    latched: u32,
    mask: u32,
    multicast: [u8; 8],
    early: u32,
    mii: u32,
    phy: Lan83c183,
    memory: Memory,
    /// The frame on the wire, and the core cycle of its end (`u64::MAX` while there is no frame).
    wire: Sent,
    tx_done: u64,
    /// Time at which the next frame may begin, ns.
    free_ns: u64,
    /// Sent frames, which the bus passes to the cable at once.
    sent: Vec<Sent>,
}

arm::state!(
    Smc91c111: bank, tcr, rcr, rpcr, config, station, general, control, eph, pointer, packet,
    latched, mask, multicast, early, mii, phy, memory, wire, tx_done, free_ns; clock, mac, sent
    => check
);

impl Smc91c111 {
    /// Makes a controller in its power-on state, with the address `mac` in its EEPROM.
    pub(crate) fn new(cpu_hz: u64, mac: u64) -> Self {
        let mut chip = Smc91c111 {
            clock: Clock {
                cpu_hz,
                hz: 1_000_000_000,
            },
            mac,
            bank: 0,
            tcr: 0,
            rcr: 0,
            rpcr: 0,
            config: 0xa0b1,
            station: [0; 6],
            general: 0,
            control: CTL_RESET,
            eph: 0,
            pointer: 0,
            packet: 0,
            latched: INT_TX_EMPTY,
            mask: 0,
            multicast: [0; 8],
            early: 0x1f,
            mii: 0,
            phy: Lan83c183::new(),
            memory: Memory::new(),
            wire: Sent::default(),
            tx_done: u64::MAX,
            free_ns: 0,
            sent: Vec::new(),
        };
        chip.load_station();
        chip
    }

    fn load_station(&mut self) {
        self.station.copy_from_slice(&self.mac.to_be_bytes()[2..]);
    }

    /// Resets everything but configuration, base and station address (RCR bit 15).
    fn soft_reset(&mut self) {
        let old = std::mem::replace(self, Smc91c111::new(self.clock.cpu_hz, self.mac));
        self.bank = old.bank;
        self.config = old.config;
        self.station = old.station;
        self.phy = old.phy;
        self.sent = old.sent;
        self.free_ns = old.free_ns;
    }

    fn interrupts(&self) -> u32 {
        let level = |on, bit| if on { bit } else { 0 };
        self.latched
            | level(!self.memory.received.is_empty(), INT_RX)
            | level(!self.memory.completed.is_empty(), INT_TX)
            | level(self.memory.result != NO_PACKET, INT_ALLOC)
            | level(self.phy.interrupt(), INT_PHY)
    }

    /// Refuses restored state that the chip cannot have.
    fn check(&self) -> Result<(), Damaged> {
        let Sent {
            start_ns, end_ns, ..
        } = self.wire;
        time::check([start_ns, end_ns, self.free_ns])?;
        match [u64::MAX, self.clock.cycles(end_ns)].contains(&self.tx_done) {
            true => Ok(()),
            false => Err(Damaged(
                "the times of the frame on the wire contradict each other",
            )),
        }
    }

    fn sync(&mut self, now: u64) {
        while self.tx_done <= now && self.tx_done != u64::MAX {
            self.finish_tx();
        }
    }

    fn command(&mut self, now: u64, value: u32) {
        match (value >> 5) & 7 {
            1 => self.memory.allocate(),
            2 => {
                self.memory.reset();
                self.tx_done = u64::MAX;
            }
            3 => {
                self.memory.received.pop_front();
            }
            4 => {
                if let Some(packet) = self.memory.received.pop_front() {
                    self.memory.release(packet);
                }
            }
            5 => self.memory.release(self.packet & 3),
            6 => {
                // At most four packets exist. A packet that the guest queues twice is sent once.
                let packet = self.packet & 3;
                if !self.memory.queued.contains(&packet) {
                    self.memory.queued.push_back(packet);
                }
                self.latched &= !INT_TX_EMPTY;
                self.start_tx(now);
            }
            7 => {
                self.memory.queued.clear();
                self.memory.completed.clear();
                self.tx_done = u64::MAX;
            }
            _ => {}
        }
    }

    /// Returns the packet and the offset that the pointer register selects. Advances the pointer by `bytes` if
    /// auto-increment is on.
    fn data_place(&mut self, bytes: u32) -> Option<(u8, usize)> {
        let offset = (self.pointer & 0x7ff) as usize;
        if self.pointer & 1 << 14 != 0 {
            let next = (self.pointer & 0x7ff) + bytes;
            self.pointer = (self.pointer & !0x7ff) | (next & 0x7ff);
        }
        let packet = if self.pointer & 1 << 15 != 0 {
            *self.memory.received.front()?
        } else {
            self.packet & 3
        };
        Some((packet, offset))
    }

    fn read_data(&mut self, width: Width) -> u32 {
        let Some((packet, offset)) = self.data_place(width.bytes()) else {
            return 0;
        };
        (0..width.bytes()).fold(0, |word, n| {
            word | u32::from(self.memory.byte(packet, offset + n as usize)) << (8 * n)
        })
    }

    fn write_data(&mut self, width: Width, value: u32) {
        let Some((packet, offset)) = self.data_place(width.bytes()) else {
            return;
        };
        for n in 0..width.bytes() {
            self.memory
                .put(packet, offset + n as usize, (value >> (8 * n)) as u8);
        }
    }

    fn fifo_ports(&self) -> u32 {
        let port = |front: Option<&u8>| u32::from(front.copied().unwrap_or(NO_PACKET));
        port(self.memory.completed.front()) | port(self.memory.received.front()) << 8
    }

    fn get(&mut self, half: u32) -> Option<u32> {
        Some(match (self.bank, half) {
            (_, 0xe) => 0x3300 | self.bank,
            (0, 0x0) => self.tcr,
            (0, 0x2) => self.status(),
            (0, 0x4) => self.rcr,
            (0, 0x6) => 0, // no collisions on this wire
            (0, 0x8) => 4 | self.memory.free() << 8,
            (0, 0xa) => self.rpcr,
            (0, 0xc) => 0,
            (1, 0x0) => self.config,
            // The base in the EEPROM is 0, because the board's decoder selects the chip.
            (1, 0x2) => 1,
            (1, 0x4..=0x8) => {
                let n = (half - 4) as usize;
                u32::from(self.station[n]) | u32::from(self.station[n + 1]) << 8
            }
            (1, 0xa) => self.general,
            (1, 0xc) => self.control,
            (2, 0x0) => 0, // never busy
            (2, 0x2) => u32::from(self.packet) | u32::from(self.memory.result) << 8,
            (2, 0x4) => self.fifo_ports(),
            (2, 0x6) => self.pointer,
            (2, 0xc) => self.interrupts() | self.mask << 8,
            (3, 0x0..=0x6) => {
                let n = half as usize;
                u32::from(self.multicast[n]) | u32::from(self.multicast[n + 1]) << 8
            }
            (3, 0x8) => 0x3330 | self.mii | u32::from(self.phy.data()) << 1,
            (3, 0xa) => REVISION,
            (3, 0xc) => self.early,
            _ => return None,
        })
    }

    /// Writes the bytes of a half-word that the mask `enable` selects.
    fn set(&mut self, now: u64, half: u32, value: u32, enable: u32) -> Result<(), &'static str> {
        let join = |old: u32| (old & !enable) | (value & enable);
        let low = enable & 0xff != 0;
        match (self.bank, half) {
            (_, 0xe) if low => self.bank = value & 7,
            (0, 0x0) => {
                let tcr = join(self.tcr);
                if tcr & TCR_REFUSED != 0 {
                    return Err("loopback and forced collisions are not modelled");
                }
                self.tcr = tcr & 0xbd87;
                self.start_tx(now);
            }
            (0, 0x4) => {
                self.rcr = join(self.rcr);
                if self.rcr & RCR_RESET != 0 {
                    self.soft_reset();
                }
            }
            (0, 0xa) => self.rpcr = join(self.rpcr) & 0x38fc,
            (1, 0x0) => self.config = join(self.config) | 0x20b1,
            (1, 0x4..=0x8) => {
                let n = (half - 4) as usize;
                store(&mut self.station[n..n + 2], value, enable);
            }
            (1, 0xa) => self.general = join(self.general),
            (1, 0xc) => return self.set_control(join(self.control)),
            (2, 0x0) if low => self.command(now, value),
            (2, 0x2) if low => self.packet = value as u8 & 0x3f,
            (2, 0x6) => self.pointer = join(self.pointer) & 0xf7ff,
            (2, 0xc) => {
                if low {
                    self.latched &= !(value & (INT_TX_EMPTY | INT_OVERRUN));
                    if value & INT_TX != 0 {
                        self.memory.completed.pop_front();
                    }
                }
                self.mask = join(self.mask << 8) >> 8;
            }
            (3, 0x0..=0x6) => {
                let n = half as usize;
                store(&mut self.multicast[n..n + 2], value, enable);
            }
            (3, 0x8) => {
                self.mii = join(self.mii) & 0x400d;
                let data = (self.mii & 8 != 0).then_some(self.mii & 1 != 0);
                self.phy.drive(self.mii & 4 != 0, data);
            }
            (3, 0xc) => self.early = join(self.early) & 0x9f,
            // Read-only half-words and bytes, which 32-bit writes also reach.
            (0..=2, 0x0..=0xe) | (3, 0xa | 0xe) => {}
            _ => return Err("banks 4 to 7 are not modelled"),
        }
        Ok(())
    }

    fn set_control(&mut self, value: u32) -> Result<(), &'static str> {
        if value & 1 != 0 {
            return Err("EEPROM stores are not modelled");
        }
        if value & 2 != 0 {
            // Reloads the address, or one word from the empty part of the EEPROM.
            match value & 4 {
                0 => self.load_station(),
                _ => self.general = 0xffff,
            }
        }
        self.control = value & 0x48e4 | 0x1210;
        Ok(())
    }
}

fn store(bytes: &mut [u8], value: u32, enable: u32) {
    for (n, byte) in bytes.iter_mut().enumerate() {
        if enable >> (8 * n) & 1 != 0 {
            *byte = (value >> (8 * n)) as u8;
        }
    }
}

impl Device for Smc91c111 {
    fn part(&self) -> &'static str {
        NAME
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        self.sync(now);
        if self.bank == 2 && (8..=0xb).contains(&offset) {
            return Ok(self.read_data(width));
        }
        let bad = || regs::bad_read(NAME, offset, width);
        if offset > 0xf || (width == Width::Word && offset & 3 != 0) {
            return Err(bad());
        }
        let half = offset & !1;
        let mut word = self.get(half).ok_or_else(bad)?;
        if width == Width::Word {
            word |= self.get(half + 2).ok_or_else(bad)? << 16;
        }
        Ok(regs::lanes(word, offset & 1, width))
    }

    fn write(&mut self, now: u64, offset: u32, w: Width, value: u32) -> Result<(), Unmodelled> {
        self.sync(now);
        let bad = |why| regs::bad_write(NAME, offset, value, why);
        if self.bank == 2 && (8..=0xb).contains(&offset) {
            self.write_data(w, value);
            return Ok(());
        }
        match (offset, w) {
            // A 32-bit write at 12 reaches only the bank select register.
            (0xc, Width::Word) => self.set(now, 0xe, value >> 16, 0xffff),
            (0x0 | 0x4 | 0x8, Width::Word) => self
                .set(now, offset, value & 0xffff, 0xffff)
                .and_then(|()| self.set(now, offset + 2, value >> 16, 0xffff)),
            (0x0..=0xf, Width::Half) if offset & 1 == 0 => self.set(now, offset, value, 0xffff),
            (0x0..=0xf, Width::Byte) => {
                let shift = (offset & 1) * 8;
                self.set(now, offset & !1, (value & 0xff) << shift, 0xff << shift)
            }
            _ => Err(regs::NO_REGISTER),
        }
        .map_err(bad)
    }

    fn deadline(&self) -> u64 {
        self.tx_done
    }

    fn tick(&mut self, now: u64) {
        self.sync(now);
    }

    fn outputs(&self) -> u32 {
        u32::from(self.interrupts() & self.mask != 0)
    }

    fn take_frames(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    fn give_frame(&mut self, now: u64, frame: &[u8], bad_checksum: bool) -> Fate {
        self.sync(now);
        self.receive(frame, bad_checksum)
    }

    fn set_cable(&mut self, now: u64, rate: Option<Rate>) {
        self.sync(now);
        self.phy.set_cable(rate);
    }
}

#[path = "smc91c111_receive.rs"]
mod receive;
#[path = "smc91c111_transmit.rs"]
mod transmit;

#[cfg(test)]
#[path = "smc91c111_tests.rs"]
mod tests;
