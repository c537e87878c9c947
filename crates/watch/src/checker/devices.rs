// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices of the board that are bus masters: their names, and the last stores to the registers of each.
//!
//! A device that moves data was started by a store to its registers, but the device says nothing of this store. The last
//! store before the transfer is the nearest answer. It may be a later store, such as one that masks an interrupt.

use std::collections::VecDeque;

use super::report::Moment;
use super::shadow::{Path, Writer};
use arm::{Context, Pa};
use board::bus::SystemBus;
use board::bus::dma::Purpose;

/// A bus master that a report is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusMaster {
    /// Name of the device in the machine file, such as `spi0`.
    pub name: String,
    /// What the transfer was for.
    pub purpose: Purpose,
    /// The last store to the device's registers before the transfer.
    pub bell: Option<Moment>,
}

/// Number of stores kept for each device. A report usually follows soon after the transfer.
const KEPT: usize = 1024;

/// A store to a device's registers.
#[derive(Clone, Copy)]
pub(super) struct Bell {
    pub cycle: u64,
    pub pc: u32,
    /// Node of the call tree.
    pub node: u32,
}

/// Names and last stores, by the number of the bus master.
#[derive(Clone, Default)]
pub(super) struct Devices {
    names: Vec<String>,
    bells: Vec<VecDeque<Bell>>,
}

impl Devices {
    pub fn new(bus: &SystemBus) -> Devices {
        let names: Vec<String> = bus.device_names().map(str::to_owned).collect();
        Devices {
            bells: vec![VecDeque::new(); names.len()],
            names,
        }
    }

    /// Records a store, if it is to a device's register.
    #[inline]
    pub fn stored(&mut self, bus: &SystemBus, context: &Context, pa: Pa, node: u32) {
        if !bus.is_ram(pa.0) {
            self.rung(bus, context, pa, node);
        }
    }

    #[cold]
    fn rung(&mut self, bus: &SystemBus, context: &Context, pa: Pa, node: u32) {
        let device = bus.device_at(pa.0);
        if let Some(bells) = device.and_then(|device| self.bells.get_mut(device)) {
            if bells.len() == KEPT {
                bells.pop_front();
            }
            bells.push_back(Bell {
                cycle: context.cycle,
                pc: context.pc,
                node,
            });
        }
    }

    /// Returns a bus master's name. A device that was added later has only a number.
    pub fn name(&self, master: u32) -> String {
        let name = self.names.get(master as usize);
        name.cloned()
            .unwrap_or_else(|| format!("bus master {master}"))
    }

    /// Returns the last store to the registers of a bus master up to a cycle, if it is still kept.
    pub fn bell(&self, master: u32, cycle: u64) -> Option<Bell> {
        let bells = self.bells.get(master as usize)?;
        let after = bells.partition_point(|bell| bell.cycle <= cycle);
        bells.get(after.checked_sub(1)?).copied()
    }
}

impl Writer {
    /// Returns the number of the bus master that wrote the value, if one did.
    pub fn master(&self) -> Option<u32> {
        (self.path == Path::Dma).then_some(self.pid)
    }
}
