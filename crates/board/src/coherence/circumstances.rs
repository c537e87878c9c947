// SPDX-License-Identifier: MIT OR Apache-2.0
//! Circumstances under which old data may be as good as new.

use super::Checker;
use super::shadow::Writer;
use arm9::{Context, Mapping, Mva, Width};

/// Of a difference between what an access got and the newest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    /// The outermost of the functions that led to the access had been called before the data was written: who reads
    /// while somebody writes may get either.
    pub overlapping: bool,
    /// The access went through a page that user land may only read, and which is cached; the writer's page is the same
    /// memory past the cache. So does a kernel map a file privately and shared that does not cache shared mappings. It
    /// was mapped before the data was written: what is mapped later shows the newest, or lines outlived a mapping.
    pub private_view: bool,
}

/// Access permissions (`DDI0198D 3.5`): user land reads only, and it writes too.
const READ_ONLY: u8 = 2;
const WRITABLE: u8 = 3;
/// The bit C of [`Mapping::cb`].
const CACHED: u8 = 2;

impl Checker {
    /// Of an access through `mva` now.
    pub(super) fn circumstances(
        &self,
        context: &Context,
        mva: Mva,
        writer: &Writer,
    ) -> Circumstances {
        let began = self.calls.began(context);
        let mapping = |ttb, mva| {
            arm9::mapping(context.descriptors, ttb, mva, |pa| {
                self.shadow.newest(pa.0, Width::Word)
            })
        };
        let page = |m: &Mapping| m.pa.0 >> 12;
        let is = |m: &Mapping, ap, cached| (m.ap, m.cb & CACHED != 0) == (ap, cached);
        let used = mapping(context.ttb, mva).filter(|m| is(m, READ_ONLY, true));
        let written = used.as_ref().and_then(|used| {
            let written = mapping(writer.ttb, Mva(writer.mva));
            written.filter(|m| is(m, WRITABLE, false) && page(m) == page(used))
        });
        let entry = self.mapped(context.descriptors, context.ttb, mva);
        let is_older = entry.is_some_and(|entry| entry.writer.cycle < writer.cycle);
        Circumstances {
            overlapping: began.is_some_and(|at| at < writer.cycle),
            private_view: written.is_some() && is_older,
        }
    }
}
