// SPDX-License-Identifier: MIT OR Apache-2.0
//! The RM9200's controller as Linux's at91ether uses it.

use super::super::*;
use crate::bus::dma::Transfer;
use crate::link::Way;
use crate::memory::Sdram;
use crate::spec::{BoardSpec, DEFAULT_BOARD};
use arm::{Saved, State as _};

const RAM: u32 = 0x2000_0000;
const RING: u32 = RAM + 0x1000;
const BUFFERS: u32 = RAM + 0x2000;
const DATA: u32 = RAM + 0x8000;
const RECEIVE_BUFFERS: u32 = 9;
const SENT: u32 = 1 << 7;

struct Rig {
    emac: Emac,
    ram: Sdram,
    now: u64,
    sent: Vec<Sent>,
    transfers: Vec<Transfer>,
}

impl Rig {
    fn new() -> Rig {
        let spec = BoardSpec::named(DEFAULT_BOARD).unwrap();
        let params = Params {
            cpu_hz: 180_000_000,
            values: [("rm9200".to_owned(), 1)].into(),
            ..Params::default()
        };
        Rig {
            emac: Emac::new(&params),
            ram: Sdram::new(1 << 20, &spec.sdram, 180_000_000, 60_000_000),
            now: 1000,
            sent: Vec::new(),
            transfers: Vec::new(),
        }
    }

    fn get(&mut self, offset: u32) -> u32 {
        self.emac.read(self.now, offset, Width::Word).unwrap()
    }

    fn set(&mut self, offset: u32, value: u32) {
        self.emac
            .write(self.now, offset, Width::Word, value)
            .unwrap();
    }

    fn load(&mut self, pa: u32, bytes: &[u8]) {
        assert!(self.ram.load(pa - RAM, bytes));
    }

    fn bytes(&self, pa: u32, count: u32) -> Vec<u8> {
        let at = pa - RAM;
        (at..at + count)
            .map(|at| self.ram.peek(at).unwrap())
            .collect()
    }

    fn word(&self, pa: u32) -> u32 {
        u32::from_le_bytes(self.bytes(pa, 4).try_into().unwrap())
    }

    fn run(&mut self, cycles: u64) {
        let until = self.now + cycles;
        while self.emac.deadline() <= until {
            self.now = self.now.max(self.emac.deadline());
            self.emac.tick(self.now);
            let memory = &mut Memory::new(&mut self.ram, RAM, self.now, 7, &mut self.transfers);
            self.emac.transfer(self.now, memory);
            self.sent.extend(self.emac.take_frames());
        }
        self.now = until;
    }

    /// Opens the interface as the driver does.
    fn open() -> Rig {
        let mut rig = Rig::new();
        rig.set(0x04, 2 << NCFGR_MDC | NCFGR_BIG | 1 << 13);
        rig.set(0x98, 2);
        rig.set(0x9c, 0x100);
        for n in 0..RECEIVE_BUFFERS {
            let wraps = if n == RECEIVE_BUFFERS - 1 { 2 } else { 0 };
            let word = BUFFERS + n * 0x600 + wraps;
            rig.load(RING + 8 * n, &word.to_le_bytes());
        }
        rig.set(0x18, RING);
        rig.set(0, NCR_RECEIVE | NCR_TRANSMIT | NCR_MANAGEMENT);
        rig.set(0x28, 0xcb6);
        rig
    }

    fn send(&mut self, address: u32, length: u32) {
        self.set(0x0c, address);
        self.set(0x10, length);
    }

    fn offer(&mut self, frame: &[u8]) {
        let clock = self.emac.clock;
        let start_ns = clock.ticks(self.now) + 960;
        self.run(clock.cycles(start_ns) - self.now);
        let end_ns = start_ns + Rate::Hundred.frame_ns(frame.len());
        self.emac.begin_frame(
            self.now,
            &Frame {
                way: Way::ToBoard,
                start_ns,
                end_ns,
                bytes: frame.to_vec(),
                bad_checksum: false,
                fate: Fate::Taken,
            },
        );
        self.run(clock.cycles(end_ns) - self.now + 400);
    }
}

fn frame(length: usize, seed: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length).map(|n| (n * 7 + seed) as u8).collect();
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame
}

#[test]
fn the_probe_finds_a_controller_without_identification() {
    let mut rig = Rig::new();
    rig.set(0, 2);
    assert_eq!((rig.get(0), rig.get(0xfc)), (2, 0));
    assert_eq!(rig.get(0x14), 0x18);
    for offset in [0x1c, 0xc0, 0xb8] {
        assert!(rig.emac.read(0, offset, Width::Word).is_err());
        assert!(rig.emac.write(0, offset, Width::Word, 0).is_err());
    }
}

#[test]
fn frames_leave_from_any_address_and_interrupt() {
    let mut rig = Rig::open();
    for length in [1, 14, 59, 60, 61, 777, 1514, 2047] {
        let bytes = frame(2047, length);
        rig.load(DATA + 2, &bytes);
        rig.send(DATA + 2, length as u32);
        assert_eq!((rig.get(0x14), rig.get(0x10)), (0x10, length as u32));
        rig.run(40_000);
        let mut expected = bytes[..length].to_vec();
        expected.resize(length.max(60), 0);
        assert!(rig.sent.pop().unwrap().bytes == expected, "{length}");
        assert_eq!((rig.get(0x24), rig.get(0x24)), (SENT, 0));
        assert_eq!((rig.get(0x14), rig.get(0x10)), (0x18 | TSR_COMPLETE, 0));
        rig.set(0x14, TSR_COMPLETE);
    }
    assert_eq!(rig.get(0x40), 8);
}

#[test]
fn a_second_frame_waits_and_a_third_is_lost() {
    let mut rig = Rig::open();
    rig.set(0x28, 0x148);
    for n in 0..3 {
        rig.load(DATA + 0x800 * n, &frame(100, n as usize));
        rig.send(DATA + 0x800 * n, 100);
    }
    assert_eq!((rig.get(0x14), rig.get(0x24)), (1, 8));
    rig.run(100_000);
    let sent: Vec<_> = rig.sent.iter().map(|s| s.bytes.clone()).collect();
    assert_eq!(sent, [frame(100, 0), frame(100, 1)]);
    assert_eq!(rig.get(0x24), SENT | 0x140);
    let gap = rig.sent[1].start_ns - rig.sent[0].end_ns;
    assert_eq!(gap, Rate::Hundred.gap_ns());
}

#[test]
fn nothing_is_sent_without_a_length_or_while_disabled() {
    let mut rig = Rig::open();
    rig.send(DATA, 0x8000);
    rig.set(0, NCR_RECEIVE);
    rig.send(DATA, 100);
    rig.run(40_000);
    assert!(rig.sent.is_empty() && rig.get(0x24) == 0);
}

#[test]
fn a_frame_outside_memory_ends_with_an_error() {
    let mut rig = Rig::open();
    for address in [0, 0xffff_fff0, RAM + (1 << 20) - 20] {
        rig.send(address, 200);
        rig.send(DATA, 60);
        rig.run(100_000);
        let status = INT_BUS_ERROR | INT_UNDERRUN | SENT;
        assert_eq!((rig.get(0x24), rig.get(0x14) & 0x70), (status, 0x70));
        rig.set(0x14, 0x60);
        // The frame that waited leaves.
        assert!(!rig.sent.pop().unwrap().bad_checksum);
    }
}

#[test]
fn received_frames_have_one_buffer_each_with_their_checksum() {
    let mut rig = Rig::open();
    for n in 0..20usize {
        let length = [60, 1514, 300][n % 3];
        rig.offer(&frame(length, n));
        let entry = n as u32 % RECEIVE_BUFFERS;
        let at = RING + 8 * entry;
        assert_eq!((rig.word(at) & 1, rig.get(0x24)), (1, INT_RECEIVED), "{n}");
        assert_eq!(rig.word(at + 4), 1 << 26 | (length as u32 + 4));
        let buffer = BUFFERS + entry * 0x600;
        assert!(rig.bytes(buffer, length as u32) == frame(length, n));
        let word = rig.word(at) & !1;
        rig.load(at, &word.to_le_bytes());
    }
}

#[test]
fn without_a_buffer_the_driver_restarts_the_receiver() {
    let mut rig = Rig::open();
    for n in 0..RECEIVE_BUFFERS {
        rig.offer(&frame(60, n as usize));
    }
    rig.get(0x24);
    rig.offer(&frame(60, 99));
    assert_eq!(rig.get(0x24), INT_RX_USED);
    for n in 0..RECEIVE_BUFFERS {
        let word = rig.word(RING + 8 * n) & !1;
        rig.load(RING + 8 * n, &word.to_le_bytes());
    }
    rig.set(0, NCR_TRANSMIT);
    rig.set(0, NCR_RECEIVE | NCR_TRANSMIT);
    rig.offer(&frame(60, 100));
    assert_eq!(rig.get(0x24), INT_RECEIVED);
    assert!(rig.bytes(BUFFERS, 60) == frame(60, 100));
}

#[test]
fn a_controller_that_is_restored_in_the_middle_of_frames_goes_on_alike() {
    let mut rig = Rig::open();
    rig.load(DATA, &frame(1514, 5));
    rig.send(DATA, 1514);
    rig.send(DATA + 100, 700);
    rig.run(9_000);
    let mut saved = Vec::new();
    rig.emac.save(&mut saved);
    rig.ram.save(&mut saved);
    let mut other = Rig::new();
    let mut from = Saved::new(&saved);
    other.emac.restore(&mut from).unwrap();
    other.ram.restore(&mut from).unwrap();
    other.now = rig.now;
    for rig in [&mut rig, &mut other] {
        rig.run(100_000);
    }
    assert_eq!(rig.sent.len(), 2);
    assert!(rig.sent == other.sent && rig.get(0x24) == other.get(0x24));
}
