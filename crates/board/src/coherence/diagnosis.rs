// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a difference to its cause, by what happened to the line since the newest value was
//! written.

use super::history::{History, LineEvent, Movement};
use super::report::{Access, Newest, Report, Wrong};
use super::shadow::{Path, Writer};
use arm9::{Context, Mva, Pa, Side, Width};

/// Events a report shows at most.
const SHOWN: usize = 24;

/// A difference that was found.
pub(super) struct Found {
    pub context: Context,
    pub access: Access,
    pub mva: Mva,
    pub pa: Pa,
    pub width: Width,
    pub got: u32,
    pub newest: u32,
    pub writer: Writer,
}

impl Found {
    /// Half of the line the data is in, as a bit.
    fn half(&self) -> u8 {
        1 << (self.pa.0 >> 4 & 1)
    }

    fn report(self, history: &History, wrong: Wrong, place: Newest) -> Report {
        let (mut since, since_is_whole) = history.of_line(self.pa, self.writer.cycle);
        since.retain(|e| !matches!(e.movement, Movement::InvalidateAll(_)));
        if since.len() > SHOWN {
            since.drain(..since.len() - SHOWN);
        }
        Report {
            wrong,
            context: self.context,
            access: self.access,
            mva: self.mva,
            pa: self.pa,
            led_to: None,
            width: self.width,
            got: self.got,
            newest: self.newest,
            writer: self.writer,
            place,
            since,
            since_is_whole,
        }
    }
}

/// Where the newest value is now: follows it through the events since it was written.
fn place(found: &Found, events: &[LineEvent]) -> Newest {
    let half = found.half();
    let mut place = match found.writer.path {
        Path::Line => Newest::Dirty(Mva(found.writer.mva & !31)),
        Path::Buffer | Path::Dma | Path::Loaded => Newest::Memory,
    };
    for event in events {
        place = match (place, event.movement) {
            (Newest::Dirty(mva), Movement::WriteBack { halves, .. })
                if event.mva == mva.0 && halves & half != 0 =>
            {
                Newest::Memory
            }
            (
                Newest::Dirty(mva),
                Movement::Invalidate {
                    side: Side::Data,
                    halves,
                },
            ) if event.mva == mva.0 && halves & half != 0 => Newest::Lost(*event),
            (Newest::Memory, Movement::WriteBack { halves, .. })
                if halves & half != 0 && event.mva != found.writer.mva & !31 =>
            {
                Newest::Overwritten(*event)
            }
            (same, _) => same,
        };
    }
    place
}

/// An access got something else than the newest value.
pub(super) fn stale(history: &History, found: Found) -> Report {
    let (events, _) = history.of_line(found.pa, found.writer.cycle);
    let mut place = place(&found, &events);
    if found.access == Access::Walk && place == Newest::Memory && found.writer.path == Path::Buffer
    {
        place = Newest::Buffer;
    }
    let wrong = match (place, found.access) {
        (Newest::Lost(_), _) => Wrong::LostByInvalidate,
        (Newest::Overwritten(_), _) => Wrong::OldOverNewer,
        (_, Access::Fetch) => Wrong::StaleInstruction,
        (_, Access::Walk) => Wrong::UnseenDescriptor,
        (Newest::Memory, _) if found.writer.path == Path::Dma => Wrong::StaleAfterDma,
        (Newest::Dirty(mva), Access::Load { cached: true })
            if mva.0 != found.mva.0 & !31 && is_dirty(history, &found) =>
        {
            Wrong::TwoDirtyAliases
        }
        _ => Wrong::StaleRead,
    };
    found.report(history, wrong, place)
}

/// Whether the line that was read is dirty as well: it will be written back over the other one.
fn is_dirty(history: &History, found: &Found) -> bool {
    let line = found.mva.0 & !31;
    let last = history.last(found.pa, usize::MAX);
    let filled = last
        .iter()
        .rposition(|e| e.mva == line && matches!(e.movement, Movement::Fill(Side::Data)));
    // Dirty lines leave by a write-back; one that has not left yet shows by none since its fill,
    // and by a store through it, which the writer of a neighbouring word would be. Only the word
    // at hand is known: this says dirty when nothing says clean.
    filled.is_some_and(|at| {
        !last[at..]
            .iter()
            .any(|e| e.mva == line && matches!(e.movement, Movement::WriteBack { .. }))
    }) && found.writer.mva & !31 != line
        && found.got != found.newest
        && found.writer.path == Path::Line
}

/// A write-back carries older data than memory should hold.
pub(super) fn overwritten(history: &History, found: Found) -> Report {
    let event = LineEvent {
        cycle: found.context.cycle,
        pc: found.context.pc,
        mva: found.mva.0 & !31,
        pa: found.pa.0 & !31,
        movement: Movement::WriteBack {
            halves: found.half(),
            victim: true,
        },
    };
    found.report(history, Wrong::OldOverNewer, Newest::Overwritten(event))
}

/// A TLB entry was used whose descriptor, at `found.pa`, has changed.
pub(super) fn stale_translation(history: &History, found: Found, led_to: Pa) -> Report {
    let report = found.report(history, Wrong::StaleTranslation, Newest::Memory);
    Report {
        led_to: Some(led_to),
        ..report
    }
}
