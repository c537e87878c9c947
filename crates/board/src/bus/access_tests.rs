// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bus master reads and writes registers of other devices.

use super::dma::Access;
use super::tests::{bus, get, set};
use super::*;
use crate::device::{Device, Unmodelled};
use arm::Bus as _;

const PROBE: u32 = 0x5000_0000;
/// A part with one register, which holds what is written.
const CELL: u32 = 0x5000_1000;
/// An address without unit.
const NOWHERE: u32 = 0x5000_2000;

/// A bus master. A write to the register at offset 0 or 4 makes it read or write the register at this address. Offset 8
/// reads as the last result, and offset 12 as the cycles that the access took.
#[derive(Clone, Default)]
struct Probe {
    access: Option<(u64, bool, u32)>,
    result: u32,
    took: u32,
}

arm::state!(Probe: result, took; access);

impl Device for Probe {
    fn part(&self) -> &'static str {
        "probe"
    }

    fn read(&mut self, _: u64, offset: u32, _: Width) -> Result<u32, Unmodelled> {
        Ok(if offset == 8 { self.result } else { self.took })
    }

    fn write(&mut self, now: u64, offset: u32, _: Width, pa: u32) -> Result<(), Unmodelled> {
        self.access = Some((now, offset == 4, pa));
        Ok(())
    }

    fn deadline(&self) -> u64 {
        self.access.map_or(u64::MAX, |(at, ..)| at)
    }

    fn begin_access(&mut self) -> Option<Access> {
        let (_, writes, pa) = self.access?;
        Some(Access {
            pa,
            width: Width::Word,
            value: writes.then_some(0x1234),
        })
    }

    fn end_access(&mut self, now: u64, result: Result<u32, BusError>) {
        let begun = self.access.take().map_or(0, |(at, ..)| at);
        self.took = (now - begun) as u32;
        self.result = result.unwrap_or(u32::MAX);
    }
}

#[derive(Clone, Default)]
struct Cell(u32);

impl arm::State for Cell {
    fn save(&self, to: &mut Vec<u8>) {
        self.0.save(to);
    }

    fn restore(&mut self, from: &mut arm::Saved<'_>) -> Result<(), arm::Damaged> {
        self.0.restore(from)
    }
}

impl Device for Cell {
    fn part(&self) -> &'static str {
        "cell"
    }

    fn read(&mut self, _: u64, offset: u32, _: Width) -> Result<u32, Unmodelled> {
        match offset {
            0 => Ok(self.0),
            _ => Err(Unmodelled("no such register".into())),
        }
    }

    fn write(&mut self, _: u64, _: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        self.0 = value;
        Ok(())
    }
}

fn with_probe() -> SystemBus {
    let mut bus = bus();
    bus.attach("probe", (PROBE, 0x1000), Box::new(Probe::default()))
        .unwrap();
    bus.attach("cell", (CELL, 0x1000), Box::new(Cell(0)))
        .unwrap();
    bus
}

/// Lets the probe access an address, and returns the result and the cycles.
fn probe(bus: &mut SystemBus, offset: u32, pa: u32) -> (u32, u32) {
    set(bus, 100, PROBE + offset, pa);
    assert_eq!(bus.next_event(), 100);
    bus.advance(100);
    assert!(bus.take_transfers().is_empty(), "observers see RAM only");
    (get(bus, 200, PROBE + 8), get(bus, 200, PROBE + 12))
}

#[test]
fn an_access_to_a_register_is_one_of_the_core() {
    let mut bus = with_probe();
    let (_, cycles) = bus.read(50, arm::Pa(CELL), Width::Word).unwrap();
    let (result, took) = probe(&mut bus, 4, CELL);
    assert_eq!((result, get(&mut bus, 200, CELL)), (0, 0x1234));
    assert!(took > 0);
    assert_eq!(probe(&mut bus, 0, CELL), (0x1234, cycles));
    assert_eq!(bus.take_stop(), None);
}

#[test]
fn ram_and_addresses_without_unit_are_bus_errors() {
    let mut bus = with_probe();
    bus.set_unmapped_aborts(true);
    set(&mut bus, 0, 0x1000, 77);
    for offset in [0, 4] {
        for pa in [0x1000, NOWHERE] {
            assert_eq!(probe(&mut bus, offset, pa).0, u32::MAX);
        }
    }
    assert_eq!(get(&mut bus, 0, 0x1000), 77);
}

#[test]
fn an_access_that_a_device_refuses_ends_the_run_with_its_message() {
    let mut bus = with_probe();
    set(&mut bus, 100, PROBE, CELL + 4);
    assert!(bus.advance(100).attention);
    let stop = bus.take_stop().unwrap();
    assert!(
        matches!(&stop, Stop::Unmodelled { device, .. } if device == "cell"),
        "{stop:?}"
    );
}
