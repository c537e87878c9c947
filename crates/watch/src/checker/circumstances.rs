// SPDX-License-Identifier: MIT OR Apache-2.0
//! Circumstances of a report: the state of the lines and the order of events.

use super::Checker;
use super::call_log::{Between, Events};
use super::report::{Access, Report};
use super::shadow::Writer;
use arm::{Context, Mapping, Mva, Pa, Width};

/// Circumstances of a difference between the value that an access got and the newest value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Circumstances {
    /// The outermost function that led to the access was called before the data was written. In this case, the read
    /// overlaps the write and may return the old or the new value.
    pub overlapping: bool,
    /// The access used a cached page that user land may only read, and the writer used an uncached mapping of the same
    /// memory. A kernel that does not cache shared mappings creates this state when a file is mapped both privately and
    /// as shared. The page must have been mapped before the write. A page that is mapped after the write shows the
    /// newest data, unless lines of an earlier mapping are still in the cache.
    pub private_view: bool,
    /// The used line or TLB entry was filled before the data was written. `None` if the time of the fill is unknown.
    pub filled_before: Option<bool>,
    /// The used line was already dirty when the data was written.
    pub dirty_before: bool,
    /// The access used a page that user land may only read.
    pub read_only: bool,
    /// The writer's address still leads to the data, and user land may write at this address.
    pub writer_maps: bool,
    /// The writer's address still leads to the data, with any permissions.
    pub writer_leads: bool,
    /// The newest descriptor differs from the used descriptor only in its permissions. Both lead to one page.
    pub permissions_only: bool,
    /// Functions called between the events.
    pub between: Between,
}

/// Two access permissions (`DDI0198D 3.5`). With the first, user land may only read. With the second, it may also
/// write.
const READ_ONLY: u8 = 2;
const WRITABLE: u8 = 3;
/// The bit C of [`arm::Attributes::cb`].
const CACHED: u8 = 2;
/// Type bits of a second-level descriptor, and the types of a small page and of XScale's extended small page.
const TYPE: u32 = 3;
const SMALL: u32 = 2;
const EXTENDED: u32 = 3;
/// Permission bits of the two types.
const PERMISSIONS: u32 = 0xff0;
const EXTENDED_PERMISSIONS: u32 = 0x030;
/// The bit B. Linux clears this bit in read-only pages because of XScale's erratum 40.
const BUFFERED: u32 = 0x004;

/// A difference before its diagnosis.
#[derive(Clone, Copy)]
pub(super) struct Difference<'a> {
    pub context: &'a Context,
    pub access: Access,
    pub mva: Mva,
    /// Physical address of the data, or of the descriptor.
    pub pa: Pa,
    pub writer: &'a Writer,
    /// Cycle in which the used line or TLB entry was filled.
    pub filled: Option<u64>,
    /// The value that the access got, and the newest value.
    pub values: [u32; 2],
}

impl<'a> Difference<'a> {
    pub fn of(report: &'a Report) -> Difference<'a> {
        Difference {
            context: &report.context,
            access: report.access,
            mva: report.mva,
            pa: report.pa,
            writer: &report.writer,
            filled: report.filled,
            values: [report.got, report.newest],
        }
    }

    /// Returns whether the access used a TLB entry, and only the permissions of the mapping have changed.
    fn permissions_only(&self) -> bool {
        let permissions = match self.values[0] & TYPE {
            SMALL => PERMISSIONS,
            EXTENDED => EXTENDED_PERMISSIONS | BUFFERED,
            _ => return false,
        };
        let [used, newest] = self.values.map(|value| value & !permissions);
        matches!(self.access, Access::Translation(_)) && used == newest
    }
}

impl Checker {
    /// Returns the circumstances of a difference that the current access found.
    pub(super) fn circumstances(&self, met: &Difference<'_>) -> Circumstances {
        let Difference {
            context,
            mva,
            writer,
            filled,
            ..
        } = *met;
        let by_core = met.access.is_by_core();
        let began = self.calls.began(context).filter(|_| by_core);
        let mapping = |table, mva| {
            arm::mapping(context.descriptors, table, mva, |pa| {
                self.shadow.newest(pa.0, Width::Word)
            })
        };
        let page = |m: &Mapping| m.pa.0 >> 12;
        let is_there = |m: Mapping| page(&m) == met.pa.0 >> 12;
        let is_cached = |m: &Mapping| m.attributes.cb & CACHED != 0;
        // A bus master uses no page table.
        let (used, written) = match by_core {
            true => (Some(mva), writer.address()),
            false => (None, None),
        };
        let used = used.and_then(|mva| mapping(context.ttb, mva));
        let used = used.filter(|m| m.attributes.ap == READ_ONLY);
        let leads = written.and_then(|mva| mapping(writer.space.table(), mva));
        let written = leads.filter(|m| m.attributes.ap == WRITABLE);
        let is_private = |used: &Mapping, written: &Mapping| {
            is_cached(used) && !is_cached(written) && page(used) == page(written)
        };
        let views = used.as_ref().zip(written.as_ref());
        let is_view = views.is_some_and(|(used, written)| is_private(used, written));
        let entry = || self.mapped(context.descriptors, context.ttb, mva);
        let is_older = || entry().is_some_and(|entry| entry.writer.cycle < writer.cycle);
        let dirty = match met.access {
            Access::Load { cached: true } | Access::WriteBack { .. } => self.dirty.since(mva.0),
            _ => None,
        };
        let events = Events {
            written: (writer.cycle, writer.node),
            filled,
            stack: writer.stack,
            addresses: [by_core.then_some(mva), writer.address()],
            spaces: [context.space(), writer.space],
        };
        Circumstances {
            overlapping: began.is_some_and(|at| at < writer.cycle),
            private_view: is_view && is_older(),
            filled_before: filled.map(|at| at < writer.cycle),
            dirty_before: dirty.is_some_and(|since| since < writer.cycle),
            read_only: used.is_some(),
            writer_maps: written.is_some_and(is_there),
            writer_leads: leads.is_some_and(is_there),
            permissions_only: met.permissions_only(),
            between: self.calls.between(self.causes.distinctions(), events),
        }
    }
}

#[cfg(test)]
#[path = "circumstances_tests.rs"]
mod tests;
