// SPDX-License-Identifier: MIT OR Apache-2.0
//! The code involved in a report: callers, mappings, calls and address-space switches.

use super::circumstances::Difference;
use super::report::{Access, Mapped, Report, Trace};
use super::shadow::{Path, Writer};
use super::{CALLS, Checker};
use arm::{Descriptors, Mva, Pa, Width};

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
        let mut addresses = vec![report.mva];
        let tables = context.descriptors;
        mapped.extend(self.mapped(tables, context.ttb, report.mva));
        if matches!(
            report.access,
            Access::Load { .. } | Access::WriteBack { .. }
        ) {
            addresses.push(Mva(writer.mva));
            let other = self.mapped(tables, writer.ttb, Mva(writer.mva));
            mapped.extend(other.filter(|m| mapped.iter().all(|o| o.writer != m.writer)));
        }
        // The missing operation may have been due after any of these events.
        let times = mapped.iter().map(|m| m.writer.cycle).chain(*filled);
        let since = match (report.filled_from, filled) {
            // The address was remapped after the fill, so nothing before the fill matters.
            (Some(_), Some(filled)) => *filled,
            _ => times.fold(writer.cycle, u64::min),
        };
        let next = match writer.path {
            Path::Loaded => Vec::new(),
            _ => self.calls.next(writer.cycle, writer.node, CALLS),
        };
        Trace {
            used: self.calls.callers(self.calls.now(context)),
            written: self.calls.callers(writer.node),
            running: self.calls.running(writer),
            circumstances: self.circumstances(&Difference::of(report)),
            next,
            given: self.calls.given(since, &addresses, CALLS),
            mapped,
            switched: self.calls.switch_since(since),
            since,
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
