// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a report that describes when its page was freed and allocated.

use std::fmt::Write as _;

use serde_json::{Value, json};
use watch::checker::{Moment, PageMoves, Report};

use super::render::Style;

impl Style<'_> {
    /// Adds the callers of the allocation, and the function that freed the page.
    pub(super) fn page(&self, text: &mut String, report: &Report) {
        let Some(PageMoves { freed, given }) = &report.page else {
            return;
        };
        self.callers(text, &given.callers);
        match freed {
            Some(Moment { cycle, pc, callers }) => {
                let _ = writeln!(
                    text,
                    "  freed in cycle {cycle} by: {}",
                    self.names.place(*pc)
                );
                self.callers(text, callers);
            }
            None => {
                let _ = writeln!(text, "  freed: not seen");
            }
        }
    }

    /// Returns the page's freeing and allocation as JSON.
    pub(super) fn page_json(&self, report: &Report) -> Value {
        let moment = |moment: &Moment| {
            let callers = moment.callers.iter().map(|pc| self.names.function(*pc));
            json!({
                "cycle": moment.cycle,
                "function": self.names.function(moment.pc),
                "callers": callers.collect::<Vec<_>>(),
            })
        };
        let page = report.page.as_ref();
        page.map_or(Value::Null, |page| {
            json!({ "freed": page.freed.as_ref().map(moment), "given": moment(&page.given) })
        })
    }
}
