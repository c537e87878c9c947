// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a report that describes a DMA buffer.

use std::fmt::Write as _;

use arm::Pa;
use serde_json::{Value, json};
use watch::checker::{Buffer, Direction, Moment, Report};

use super::render::Style;
use super::words::physical;

/// Returns Linux's name of a direction.
fn direction(direction: Option<Direction>) -> &'static str {
    match direction {
        Some(Direction::Both) => "DMA_BIDIRECTIONAL",
        Some(Direction::ToDevice) => "DMA_TO_DEVICE",
        Some(Direction::FromDevice) => "DMA_FROM_DEVICE",
        None => "coherent",
    }
}

fn extent(pa: Pa, bytes: u32, to: Option<Direction>) -> String {
    format!("{bytes} bytes at {}, {}", physical(pa), direction(to))
}

impl Style<'_> {
    /// Adds the buffer, and the calls that gave and took it.
    pub(super) fn buffer(&self, text: &mut String, report: &Report) {
        let Some(buffer) = &report.buffer else {
            return;
        };
        if let Some((pa, bytes, to)) = buffer.again {
            let _ = writeln!(text, "    second mapping: {}", extent(pa, bytes, Some(to)));
        }
        let what = extent(buffer.pa, buffer.bytes, buffer.direction);
        let _ = writeln!(text, "  buffer: {what}");
        let (done, undone) = match buffer.direction {
            Some(_) => ("mapped", "unmapped"),
            None => ("allocated", "freed"),
        };
        let moments = [
            (done, &buffer.mapped),
            ("given to the device again", &buffer.synced),
            (undone, &buffer.unmapped),
        ];
        for (does, moment) in moments {
            if let Some(Moment { cycle, pc, callers }) = moment {
                let place = self.names.place(*pc);
                let _ = writeln!(text, "  {does} in cycle {cycle} by: {place}");
                self.callers(text, callers);
            }
        }
    }

    /// Returns the buffer as JSON.
    pub(super) fn buffer_json(&self, report: &Report) -> Value {
        let moment = |moment: &Option<Moment>| {
            moment.as_ref().map(|moment| {
                let callers = moment.callers.iter().map(|pc| self.names.function(*pc));
                json!({
                    "cycle": moment.cycle,
                    "function": self.names.function(moment.pc),
                    "callers": callers.collect::<Vec<_>>(),
                })
            })
        };
        let buffer = report.buffer.as_ref();
        buffer.map_or(Value::Null, |buffer: &Buffer| {
            json!({
                "pa": buffer.pa.0,
                "bytes": buffer.bytes,
                "direction": direction(buffer.direction),
                "mapped": moment(&buffer.mapped),
                "synced": moment(&buffer.synced),
                "unmapped": moment(&buffer.unmapped),
                "again": buffer.again.map(|(pa, bytes, to)| json!({
                    "pa": pa.0, "bytes": bytes, "direction": direction(Some(to)),
                })),
            })
        })
    }
}
