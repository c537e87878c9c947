// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports about buffers. They have no history of a line, because the data need not be old.

use super::mappings::{Former, Mapping};
use super::{Checker, Direction, Touch};
use crate::checker::report::{Access, Moment, Newest, Report, ReportKind, Trace};
use crate::checker::shadow::Writer;
use arm::{Context, Mva, Pa, Reaction, Width};
use board::bus::dma::Transfer;

/// A buffer that a driver gave to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Physical address.
    pub pa: Pa,
    /// Size in bytes.
    pub bytes: u32,
    /// Direction of the mapping. `None` for coherent memory.
    pub direction: Option<Direction>,
    /// Call that mapped or allocated the buffer, if the checker saw it.
    pub mapped: Option<Moment>,
    /// Last call that gave a part of the buffer back to the device (`dma_sync_*_for_device`).
    pub synced: Option<Moment>,
    /// Call that unmapped or freed the buffer.
    pub unmapped: Option<Moment>,
    /// Address, size and direction of the second mapping, for [`ReportKind::MappedTwice`].
    pub again: Option<(Pa, u32, Direction)>,
}

impl Report {
    /// Describes the missing call for a DMA buffer.
    pub(in crate::checker) fn needed_of_buffer(&self) -> String {
        let device = self.device();
        match (self.kind, self.access) {
            (ReportKind::TouchedWhileMapped, Access::Dma { .. }) => {
                format!(
                    "give the bytes to {device} again after the store, and before {device} reads them"
                )
            }
            (ReportKind::TouchedWhileMapped, _) => {
                "take the buffer back from the device before the core uses it".to_owned()
            }
            (ReportKind::MappedTwice, _) => "unmap the buffer before it is mapped again".to_owned(),
            (ReportKind::WrongDirection, Access::Dma { writes, .. }) => {
                let does = if writes { "writes" } else { "reads" };
                format!("map the buffer for a device that {does} it")
            }
            _ => format!("stop {device} before the buffer is unmapped or freed"),
        }
    }
}

/// Returns a report about bytes with this value, without a buffer.
fn report(kind: ReportKind, context: Context, touch: Touch, writer: Writer) -> Report {
    Report {
        kind,
        context,
        access: touch.access,
        mva: touch.mva,
        pa: touch.pa,
        led_to: None,
        filled_from: None,
        width: touch.width,
        got: touch.value,
        newest: touch.value,
        writer,
        place: Newest::Memory,
        since: Vec::new(),
        filled: None,
        since_is_whole: true,
        page: None,
        buffer: None,
        trace: Trace::default(),
    }
}

impl Checker {
    pub(super) fn touched_while_mapped(
        &mut self,
        context: &Context,
        touch: Touch,
        mapping: &Mapping,
    ) -> Reaction {
        let kind = ReportKind::TouchedWhileMapped;
        let report = report(kind, *context, touch, mapping.mapped);
        self.lint(report, |checker| checker.buffer(mapping))
    }

    /// Reports that a bus master read bytes that the core stored to since it gave them to the device.
    pub(super) fn read_unsynced(
        &mut self,
        transfer: &Transfer,
        (at, stored): (u32, Writer),
        mapping: &Mapping,
    ) -> Reaction {
        let report = self.by_master(ReportKind::TouchedWhileMapped, transfer, at, stored);
        self.lint(report, |checker| checker.buffer(mapping))
    }

    pub(super) fn mapped_twice(
        &mut self,
        context: &Context,
        first: &Mapping,
        second: &Mapping,
    ) -> Reaction {
        let at = first.start.max(second.start);
        let touch = Touch {
            access: Access::Map,
            mva: Mva(at),
            pa: Pa(at),
            width: Width::Byte,
            value: self.shadow.newest(at, Width::Byte).unwrap_or(0),
        };
        let report = report(ReportKind::MappedTwice, *context, touch, first.mapped);
        let (bytes, direction) = (second.end - second.start, second.direction);
        self.lint(report, |checker| Buffer {
            again: Some((Pa(second.start), bytes, direction)),
            ..checker.buffer(first)
        })
    }

    pub(super) fn wrong_direction(
        &mut self,
        transfer: &Transfer,
        at: u32,
        mapping: &Mapping,
    ) -> Reaction {
        let report = self.by_master(ReportKind::WrongDirection, transfer, at, mapping.mapped);
        self.lint(report, |checker| checker.buffer(mapping))
    }

    pub(super) fn after_unmap(
        &mut self,
        transfer: &Transfer,
        at: u32,
        former: &Former,
    ) -> Reaction {
        let report = self.by_master(ReportKind::DmaAfterUnmap, transfer, at, former.unmapped);
        self.lint(report, |checker| Buffer {
            pa: Pa(former.start),
            bytes: former.end - former.start,
            direction: former.direction,
            mapped: former.mapped.map(|call| checker.moment(&call)),
            synced: None,
            unmapped: Some(checker.moment(&former.unmapped)),
            again: None,
        })
    }

    /// Returns a report about the byte at `at`, which a bus master read or wrote.
    fn by_master(&self, kind: ReportKind, transfer: &Transfer, at: u32, writer: Writer) -> Report {
        let context = Context {
            cycle: transfer.cycle,
            ..Context::default()
        };
        let byte = transfer.bytes.get(at.wrapping_sub(transfer.pa) as usize);
        let touch = Touch {
            access: Access::Dma {
                master: transfer.master,
                purpose: transfer.purpose,
                writes: transfer.writes,
            },
            mva: Mva(at),
            pa: Pa(at),
            width: Width::Byte,
            value: byte.copied().map_or(0, u32::from),
        };
        report(kind, context, touch, writer)
    }

    fn buffer(&self, mapping: &Mapping) -> Buffer {
        Buffer {
            pa: Pa(mapping.start),
            bytes: mapping.end - mapping.start,
            direction: Some(mapping.direction),
            mapped: Some(self.moment(&mapping.mapped)),
            synced: mapping.synced.as_ref().map(|call| self.moment(call)),
            unmapped: None,
            again: None,
        }
    }

    fn moment(&self, call: &Writer) -> Moment {
        Moment {
            cycle: call.cycle,
            pc: call.pc,
            callers: self.calls.callers(call.node),
        }
    }

    /// Makes a report if its cause is new.
    fn lint(&mut self, mut report: Report, buffer: impl FnOnce(&Checker) -> Buffer) -> Reaction {
        if !self.is_new(&report) {
            return Reaction::Continue;
        }
        report.buffer = Some(buffer(self));
        self.keep(report)
    }
}
