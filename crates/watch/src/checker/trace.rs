// SPDX-License-Identifier: MIT OR Apache-2.0
//! The code involved in a report: callers, mappings, calls and address-space switches.

use super::circumstances::Difference;
use super::devices::BusMaster;
use super::report::{Access, Mapped, Moment, Report, Trace};
use super::shadow::{Path, Writer};
use super::{CALLS, Checker};
use arm::{Descriptors, Mva, Pa, Width};
use board::bus::dma::Purpose;

impl Checker {
    /// Collects the code involved in a report.
    pub(super) fn trace(&self, report: &Report) -> Trace {
        let Report {
            context,
            writer,
            filled,
            ..
        } = report;
        let mut mapped: Vec<Mapped> = Vec::new();
        let tables = context.descriptors;
        let used = report.access.is_by_core().then_some(report.mva);
        let written = match report.access {
            Access::Load { .. } | Access::WriteBack { .. } | Access::Dma { .. } => writer.address(),
            _ => None,
        };
        if let Some(mva) = used {
            mapped.extend(self.mapped(tables, context.ttb, mva));
            // The format of the tables is known only if the core made the access.
            let other = written.and_then(|mva| self.mapped(tables, writer.space.table(), mva));
            mapped.extend(other.filter(|m| mapped.iter().all(|o| o.writer != m.writer)));
        }
        let addresses: Vec<Mva> = used.into_iter().chain(written).collect();
        // The missing operation may have been due after any of these events.
        let times = mapped.iter().map(|m| m.writer.cycle).chain(*filled);
        let since = match (report.filled_from, filled) {
            // The used line was filled before the address was remapped. Earlier events do not matter.
            (Some(_), Some(filled)) => *filled,
            _ => times.fold(writer.cycle, u64::min),
        };
        let next = match writer.path {
            Path::Loaded => Vec::new(),
            _ => self.calls.next(writer.cycle, writer.node, CALLS),
        };
        Trace {
            used: self.callers_of_use(&Difference::of(report)),
            written: self.calls.callers(writer.node),
            running: self.calls.running(writer),
            device: self.device(report),
            circumstances: self.circumstances(&Difference::of(report)),
            next,
            given: self.calls.given(since, &addresses, CALLS),
            mapped,
            switched: self.calls.switch_since(since),
            since,
        }
    }

    /// Returns the bus master that read old data or wrote the newest data.
    fn device(&self, report: &Report) -> Option<BusMaster> {
        let (master, purpose, moved) = match report.access {
            Access::Dma {
                master, purpose, ..
            } => (master, purpose, u64::MAX),
            _ => (
                report.writer.master()?,
                Purpose::Unknown,
                report.writer.cycle,
            ),
        };
        let bell = self.devices.bell(master, moved).map(|bell| Moment {
            cycle: bell.cycle,
            pc: bell.pc,
            callers: self.calls.callers(bell.node),
        });
        Some(BusMaster {
            name: self.devices.name(master),
            purpose,
            bell,
        })
    }

    /// Returns the callers of the access. Returns no callers if a bus master used the data.
    pub(super) fn callers_of_use(&self, met: &Difference<'_>) -> Vec<u32> {
        match met.access.is_by_core() {
            true => self.calls.callers(self.calls.now(met.context)),
            false => Vec::new(),
        }
    }

    /// Returns the writer of the second-level descriptor for an address.
    pub(super) fn mapped(&self, descriptors: Descriptors, ttb: u32, mva: Mva) -> Option<Mapped> {
        let mut level = 0;
        let mut found = None;
        arm::mapping(descriptors, ttb, mva, |Pa(pa)| {
            level += 1;
            let writer = self.shadow.writer(pa);
            let before = self.before.get(&pa).copied();
            found = (level == 2 && writer.path != Path::Loaded).then_some((writer, before));
            self.shadow.newest(pa, Width::Word)
        });
        let with_callers = |w: Writer| (w, self.calls.callers(w.node));
        found.map(|(writer, before)| Mapped {
            mva,
            writer,
            callers: self.calls.callers(writer.node),
            before: before.filter(|w| w.path != Path::Loaded).map(with_callers),
        })
    }
}
