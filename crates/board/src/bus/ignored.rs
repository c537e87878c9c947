// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses that no model answers: to regions that the machine file ignores, and to addresses that no unit owns.

use super::SystemBus;
use crate::spec::IgnoredSpec;
use crate::stop::{Kind, Stop, Transaction};
use crate::time;
use arm::{BusError, Damaged};

/// Address and kind of the first access to a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct First {
    /// Physical address.
    pub pa: u32,
    /// Whether the access was a write.
    pub writes: bool,
}

arm::state!(First: pa, writes);

impl First {
    fn of(access: &Transaction) -> First {
        First {
            pa: access.pa,
            writes: matches!(access.kind, Kind::Write | Kind::BurstWrite),
        }
    }

    fn words(self) -> String {
        let kind = if self.writes { "write to" } else { "read from" };
        format!("{kind} {:#010x}", self.pa)
    }
}

/// An ignored region, with the numbers of accesses by the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Name in the machine file.
    pub name: String,
    /// Physical address.
    pub base: u32,
    /// Reason why the region is ignored.
    pub reason: String,
    /// Path of the region's node in the chip's device tree, if the machine file gives it.
    pub node: Option<String>,
    /// Registers that read a constant: offset and value. All other registers read zero.
    pub values: Vec<(u32, u32)>,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes, which were dropped.
    pub writes: u64,
    /// The first access.
    pub first: Option<First>,
}

arm::state!(Ignored: reads, writes, first; name, base, reason, node, values => check);

impl Ignored {
    /// Makes a region with no accesses so far.
    pub(super) fn never(spec: &IgnoredSpec) -> Ignored {
        Ignored {
            name: spec.name.clone(),
            base: spec.base,
            reason: spec.reason.clone(),
            node: spec.node.clone(),
            values: spec.values.clone(),
            reads: 0,
            writes: 0,
            first: None,
        }
    }

    /// Refuses restored counts that no run reaches.
    fn check(&self) -> Result<(), Damaged> {
        time::check([self.reads, self.writes])
    }

    /// Returns the word that a read gets.
    pub(super) fn read(&mut self, access: &Transaction) -> u32 {
        self.reads += 1;
        self.first.get_or_insert(First::of(access));
        let offset = access.pa - self.base;
        let constant = self.values.iter().find(|(at, _)| *at == offset & !3);
        let word = constant.map_or(0, |(_, value)| *value);
        (word >> (offset % 4 * 8)) & access.width.mask()
    }

    pub(super) fn write(&mut self, access: &Transaction) {
        self.writes += 1;
        self.first.get_or_insert(First::of(access));
    }

    /// Returns a sentence about a region of a chip that the guest uses. Regions without a node have no sentence.
    pub(super) fn note(&self) -> Option<String> {
        let (first, node) = (self.first?, self.node.as_ref()?);
        Some(format!(
            "{} is not modelled ({}): {} reads, {} writes; the first is a {} (register {:#x}, node {node})",
            self.name,
            self.reason,
            self.reads,
            self.writes,
            first.words(),
            first.pa.wrapping_sub(self.base),
        ))
    }
}

/// Accesses to addresses that no unit owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unowned {
    accesses: u64,
    first: Option<First>,
}

arm::state!(Unowned: accesses, first; => check);

impl Unowned {
    /// Refuses restored counts that no run reaches.
    fn check(&self) -> Result<(), Damaged> {
        time::check([self.accesses])
    }

    /// Returns a sentence if the guest made such accesses.
    pub(super) fn note(&self) -> Option<String> {
        let first = self.first?.words();
        let accesses = self.accesses;
        Some(format!(
            "the bus gave {accesses} external aborts: no unit owns the address; the first is a {first}"
        ))
    }
}

impl SystemBus {
    /// Returns a note for each device that the guest uses in a way that is modelled only in part, and for each ignored
    /// region of a chip that the guest uses.
    pub(crate) fn notes(&self) -> Vec<String> {
        let slots = self.slots.iter();
        let devices = slots.map(|slot| (&slot.name, slot.device.note()));
        let devices = devices.filter_map(|(name, note)| Some(format!("{name}: {}", note?)));
        let regions = self.ignored.iter().filter_map(Ignored::note);
        devices.chain(regions).chain(self.unowned.note()).collect()
    }

    /// Answers an access to an address that no unit owns.
    pub(super) fn nobody(&mut self, access: Transaction) -> BusError {
        if self.unmapped_aborts {
            self.unowned.accesses += 1;
            self.unowned.first.get_or_insert(First::of(&access));
        } else {
            self.record_stop(Stop::Unmapped(access));
        }
        BusError
    }
}
