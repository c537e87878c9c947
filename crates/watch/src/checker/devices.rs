// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices of the board that are bus masters: their names, and the last stores to the registers of each.
//!
//! A device that moves data was started by a store to its registers, but the device says nothing of this store. The last
//! store before the transfer is the nearest answer. It may be a later store, such as one that masks an interrupt.

use std::collections::{BTreeMap, VecDeque};

use super::Checker;
use super::report::{Access, Moment};
use super::shadow::{Path, Writer};
use arm::{Context, Mva, Pa, Reaction, Width};
use board::bus::SystemBus;
use board::bus::dma::{Purpose, Transfer};

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

/// A word of which bus masters wrote some bytes.
#[derive(Clone, Copy)]
struct Part {
    /// Last writer of the other bytes.
    before: Writer,
    /// Bits of the word that bus masters wrote.
    bits: u32,
}

/// Names and last stores, by the number of the bus master.
#[derive(Clone, Default)]
pub(super) struct Devices {
    names: Vec<String>,
    bells: Vec<VecDeque<Bell>>,
    /// Words by address. An entry counts only while [`Writer::is_partly_by_master`] is true of the word's last writer.
    parts: BTreeMap<u32, Part>,
}

impl Devices {
    pub fn new(bus: &SystemBus) -> Devices {
        let names: Vec<String> = bus.device_names().map(str::to_owned).collect();
        Devices {
            bells: vec![VecDeque::new(); names.len()],
            names,
            parts: BTreeMap::new(),
        }
    }

    /// Records that a bus master writes to a word. `before` is the word's last writer until now.
    pub fn wrote(&mut self, pa: Pa, width: Width, before: Writer) {
        if width == Width::Word {
            return;
        }
        let new = Part { before, bits: 0 };
        let part = self.parts.entry(pa.0 & !3).or_insert(new);
        if !before.is_partly_by_master() {
            *part = new;
        }
        part.bits |= width.mask() << (8 * (pa.0 & 3));
    }

    /// Returns the writer of those bits of the data at `pa` that are set in `bits`. `last` is the last writer of the
    /// word. If some of the bits are by bus masters, the writer is the last bus master.
    pub fn writer(&self, pa: Pa, bits: u32, last: Writer) -> Writer {
        let part = self.parts.get(&(pa.0 & !3));
        let part = part.filter(|_| last.is_partly_by_master());
        let is_other = |part: &&Part| part.bits & bits << (8 * (pa.0 & 3)) == 0;
        part.filter(is_other).map_or(last, |part| part.before)
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

impl Checker {
    /// Records a write to RAM by a bus master other than the core. The caller passes the result to [`Cpu::react`].
    #[must_use]
    pub fn dma_write(&mut self, cycle: u64, pa: Pa, value: u8) -> Reaction {
        self.dma_written((cycle, 0), pa, Width::Byte, u32::from(value))
    }

    fn dma_written(
        &mut self,
        (cycle, master): (u64, u32),
        pa: Pa,
        width: Width,
        value: u32,
    ) -> Reaction {
        let writer = Writer::by_master(cycle, master, width == Width::Word);
        self.devices.wrote(pa, width, self.shadow.writer(pa.0));
        self.written(pa, width, value, writer)
    }

    /// Records a burst by a bus master other than the core. The bytes that the bus master wrote become the newest data.
    /// The bytes that it read must be the newest data.
    pub(super) fn dma(&mut self, transfer: &Transfer) -> Reaction {
        let context = Context {
            cycle: transfer.cycle,
            ..Context::default()
        };
        let access = Access::Dma {
            master: transfer.master,
            purpose: transfer.purpose,
            writes: transfer.writes,
        };
        let by = (transfer.cycle, transfer.master);
        let mut reaction = self.moves_buffers(transfer);
        for (pa, width, value) in transfer.pieces() {
            let pa = Pa(pa);
            let one = match transfer.writes {
                true => self.dma_written(by, pa, width, value),
                false => self.compare(&context, access, (Mva(pa.0), pa), width, value),
            };
            if one != Reaction::Continue {
                reaction = one;
            }
        }
        reaction
    }
}

/// A bus master has no FCSE PID, so its number takes the place of the PID. Only these functions know that.
impl Writer {
    /// Returns the writer of a value that a bus master wrote.
    pub(super) fn by_master(cycle: u64, master: u32, whole: bool) -> Writer {
        Writer {
            cycle,
            pid: master,
            path: Path::Dma,
            whole,
            ..Writer::default()
        }
    }

    /// Returns the number of the bus master that wrote the value, if one did.
    pub fn master(&self) -> Option<u32> {
        (self.path == Path::Dma).then_some(self.pid)
    }

    /// Returns whether a bus master wrote only some bytes of the word.
    pub(super) fn is_partly_by_master(&self) -> bool {
        self.path == Path::Dma && !self.whole
    }
}
