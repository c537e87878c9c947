// SPDX-License-Identifier: MIT OR Apache-2.0
//! A controller with memory, and a driver that uses the controller as Linux's macb does, for tests.

use super::*;
use crate::bus::dma::Transfer;
use crate::link::Way;
use crate::memory::Sdram;
use crate::spec::{BoardSpec, DEFAULT_BOARD};
use arm::Saved;

pub(super) const RAM: u32 = 0x2000_0000;
pub(super) const RX_RING: u32 = RAM + 0x1_0000;
pub(super) const RX_BUFFERS: u32 = RAM + 0x2_0000;
pub(super) const TX_RING: u32 = RAM + 0x4_0000;
pub(super) const DATA: u32 = RAM + 0x5_0000;
pub(super) const RING: u32 = 512;
pub(super) const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

pub(super) const USED_TX: u32 = 1 << 31;
pub(super) const WRAP_TX: u32 = 1 << 30;
pub(super) const LAST: u32 = 1 << 15;
pub(super) const TX_ERRORS: u32 = INT_UNDERRUN | INT_TX_ERROR | 1 << 5;
pub(super) const TX_INTERRUPTS: u32 = TX_ERRORS | INT_SENT | INT_TX_USED;
pub(super) const RX_INTERRUPTS: u32 = INT_RECEIVED | INT_OVERRUN;

pub(super) struct Rig {
    pub emac: Emac,
    pub ram: Sdram,
    pub now: u64,
    pub transfers: Vec<Transfer>,
    pub sent: Vec<Sent>,
    pub tx_head: u32,
    pub tx_tail: u32,
    pub rx_tail: u32,
    /// Buffers of each frame in the transmit ring.
    frames: std::collections::VecDeque<u32>,
    fetch: u64,
}

impl Rig {
    pub fn new() -> Rig {
        Rig::with_fetch(0)
    }

    pub fn with_fetch(fetch: u64) -> Rig {
        let spec = BoardSpec::named(DEFAULT_BOARD).unwrap();
        let params = Params {
            cpu_hz: 200_000_000,
            values: [("fetch".to_owned(), fetch)].into(),
            ..Params::default()
        };
        Rig {
            emac: Emac::new(&params),
            ram: Sdram::new(1 << 20, &spec.sdram, 200_000_000, 100_000_000),
            now: 1000,
            transfers: Vec::new(),
            sent: Vec::new(),
            tx_head: 0,
            tx_tail: 0,
            rx_tail: 0,
            frames: [].into(),
            fetch,
        }
    }

    /// Returns a controller with a network that is up.
    pub fn open() -> Rig {
        let mut rig = Rig::new();
        rig.bring_up();
        rig
    }

    pub fn get(&mut self, offset: u32) -> u32 {
        self.now += 10;
        self.emac.read(self.now, offset, Width::Word).unwrap()
    }

    pub fn set(&mut self, offset: u32, value: u32) {
        self.now += 10;
        self.emac
            .write(self.now, offset, Width::Word, value)
            .unwrap();
        self.sent.extend(self.emac.take_frames());
    }

    /// Lets the controller work until a core cycle.
    pub fn run_until(&mut self, until: u64) {
        while self.emac.deadline() <= until {
            self.now = self.now.max(self.emac.deadline());
            self.step();
        }
        self.now = self.now.max(until);
    }

    /// Lets the controller do what is due now.
    pub fn step(&mut self) {
        self.emac.tick(self.now);
        let memory = &mut Memory::new(&mut self.ram, RAM, self.now, 7, &mut self.transfers);
        self.emac.transfer(self.now, memory);
        self.sent.extend(self.emac.take_frames());
    }

    pub fn run(&mut self, cycles: u64) {
        self.run_until(self.now + cycles);
    }

    pub fn word(&self, pa: u32) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|n| {
            self.ram.peek(pa - RAM + n as u32).unwrap()
        }))
    }

    pub fn put(&mut self, pa: u32, word: u32) {
        self.bytes(pa, &word.to_le_bytes());
    }

    pub fn bytes(&mut self, pa: u32, bytes: &[u8]) {
        assert!(self.ram.load(pa - RAM, bytes));
    }

    pub fn init_rx_ring(&mut self) {
        for n in 0..RING {
            let wraps = if n == RING - 1 { 2 } else { 0 };
            self.put(RX_RING + 8 * n, RX_BUFFERS + 128 * n + wraps);
            self.put(RX_RING + 8 * n + 4, 0);
        }
        self.rx_tail = 0;
    }

    pub fn bring_up(&mut self) {
        self.init_rx_ring();
        for n in 0..RING {
            self.put(TX_RING + 8 * n, 0);
            let wraps = if n == RING - 1 { WRAP_TX } else { 0 };
            self.put(TX_RING + 8 * n + 4, USED_TX | wraps);
        }
        (self.tx_head, self.tx_tail) = (0, 0);
        self.frames.clear();
        self.set(0x18, RX_RING);
        self.set(0x1c, TX_RING);
        self.set(0, NCR_MANAGEMENT);
        self.reset_hw();
        self.set(0x98, u32::from_le_bytes([MAC[0], MAC[1], MAC[2], MAC[3]]));
        self.set(0x9c, u32::from(MAC[4]) | u32::from(MAC[5]) << 8);
        for n in (0xa0..0xb8).step_by(4) {
            self.set(n, 0);
        }
        self.set(
            0x04,
            3 << 10 | 2 << 14 | NCFGR_DROP_CHECKSUM | NCFGR_BIG | 3,
        );
        self.set(0x28, RX_INTERRUPTS | TX_INTERRUPTS | INT_BUS_ERROR);
        let control = self.get(0);
        self.set(0, control | NCR_RECEIVE | NCR_TRANSMIT);
    }

    pub fn reset_hw(&mut self) {
        let control = self.get(0) & !(NCR_RECEIVE | NCR_TRANSMIT);
        self.set(0, control | NCR_CLEAR_STATISTICS);
        self.set(0x14, u32::MAX);
        self.set(0x20, u32::MAX);
        self.set(0x44, 0);
        self.set(0x2c, u32::MAX);
        self.get(0x24);
    }

    pub fn ring_bell(&mut self) {
        let control = self.get(0);
        self.set(0, control | NCR_START);
    }

    /// Puts a frame in these buffers into the ring, as macb_tx_map does.
    pub fn map(&mut self, buffers: &[(u32, u32)]) {
        let head = self.tx_head;
        self.tx_head += buffers.len() as u32;
        let end = self.tx_head % RING;
        self.put(TX_RING + 8 * end + 4, USED_TX);
        for (n, &(address, length)) in buffers.iter().enumerate().rev() {
            let entry = (head + n as u32) % RING;
            let mut control = length;
            if n == buffers.len() - 1 {
                control |= LAST;
            }
            if entry == RING - 1 {
                control |= WRAP_TX;
            }
            self.put(TX_RING + 8 * entry, address);
            self.put(TX_RING + 8 * entry + 4, control);
        }
        self.frames.push_back(buffers.len() as u32);
    }

    /// Sends a frame from an address, in one buffer.
    pub fn send(&mut self, address: u32, frame: &[u8]) {
        self.bytes(address, frame);
        self.map(&[(address, frame.len() as u32)]);
        self.ring_bell();
    }

    /// Takes sent frames off the ring, as macb_tx_complete does. Returns their number.
    pub fn complete(&mut self) -> usize {
        let mut count = 0;
        while let Some(&buffers) = self.frames.front() {
            let entry = self.tx_tail % RING;
            if self.word(TX_RING + 8 * entry + 4) & USED_TX == 0 {
                break;
            }
            self.tx_tail += buffers;
            self.frames.pop_front();
            count += 1;
        }
        count
    }

    /// Offers a frame to the board, and runs until a few microseconds after the frame's end.
    pub fn offer(&mut self, frame: &[u8], bad_checksum: bool) -> Fate {
        let clock = self.emac.clock;
        let start_ns = clock.ticks(self.now) + 960;
        let frame = Frame {
            way: Way::ToBoard,
            start_ns,
            end_ns: start_ns + Rate::Hundred.frame_ns(frame.len()),
            bytes: frame.to_vec(),
            bad_checksum,
            fate: Fate::Taken,
        };
        self.run_until(clock.cycles(start_ns));
        self.emac.begin_frame(self.now, &frame);
        self.run_until(clock.cycles(frame.end_ns) - 1);
        self.now += 1;
        let fate = self.emac.give_frame(self.now, &frame.bytes, bad_checksum);
        self.run(400);
        fate
    }

    /// Takes received frames, as macb_rx and macb_rx_frame do.
    pub fn received(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut first = None;
        loop {
            let at = |n: u32| RX_RING + 8 * (n % RING);
            let tail = self.rx_tail;
            if self.word(at(tail)) & 1 == 0 {
                break;
            }
            let control = self.word(at(tail) + 4);
            if control & 1 << 14 != 0 {
                // A partial frame is discarded.
                (first.unwrap_or(tail)..tail).for_each(|n| self.free(at(n)));
                first = Some(tail);
            }
            if control & 1 << 15 != 0 {
                let first = first.take().expect("an end without a start");
                let length = (control & 0xfff) + 2;
                let mut frame = Vec::new();
                for n in first..=tail {
                    let buffer = RX_BUFFERS + 128 * (n % RING) - RAM;
                    let room = 128.min(length - 128 * (n - first));
                    frame.extend((buffer..buffer + room).map(|at| self.ram.peek(at).unwrap()));
                    self.free(at(n));
                }
                frames.push(frame.split_off(2));
            }
            self.rx_tail += 1;
        }
        self.rx_tail = first.unwrap_or(self.rx_tail);
        frames
    }

    fn free(&mut self, descriptor: u32) {
        let word = self.word(descriptor);
        self.put(descriptor, word & !1);
    }

    /// Reads the PHY's register by a management frame.
    pub fn mdio_read(&mut self, phy: u32, register: u32) -> u32 {
        self.set(0x34, 0x6002_0000 | phy << 23 | register << 18);
        self.wait_for_idle();
        self.get(0x34) & 0xffff
    }

    pub fn mdio_write(&mut self, register: u32, value: u32) {
        self.set(0x34, 0x5002_0000 | register << 18 | value);
        self.wait_for_idle();
    }

    fn wait_for_idle(&mut self) {
        for _ in 0..100 {
            if self.get(0x08) & 4 != 0 {
                return;
            }
            self.run(200);
        }
        panic!("the management logic is never idle");
    }

    /// Returns a second controller and memory with the saved state of the first.
    pub fn restored(&self) -> Rig {
        let mut saved = Vec::new();
        self.emac.save(&mut saved);
        self.ram.save(&mut saved);
        let mut other = Rig::with_fetch(self.fetch);
        let mut from = Saved::new(&saved);
        other.emac.restore(&mut from).unwrap();
        other.ram.restore(&mut from).unwrap();
        from.end().unwrap();
        other.now = self.now;
        (other.tx_head, other.tx_tail) = (self.tx_head, self.tx_tail);
        other.rx_tail = self.rx_tail;
        other.frames = self.frames.clone();
        other
    }
}

/// Returns a frame to `to` whose bytes depend on their positions.
pub(super) fn frame(to: [u8; 6], length: usize, seed: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length)
        .map(|n| (n * 7 + n / 256 + seed) as u8)
        .collect();
    let head = length.min(6);
    frame[..head].copy_from_slice(&to[..head]);
    frame
}

/// Returns a frame as the wire has it: padded.
pub(super) fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    frame.resize(frame.len().max(60), 0);
    frame
}
