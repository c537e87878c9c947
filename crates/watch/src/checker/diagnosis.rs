// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a difference to its cause, by what happened to the line since the newest value was
//! written.

use super::dirty::DirtyLines;
use super::history::{History, LineEvent, Movement};
use super::report::{Access, Newest, Report, Trace, Wrong};
use super::shadow::{Path, Writer};
use arm::{Context, Mva, Pa, Side, Width};

/// Events since the newest write that a report shows at most.
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

    /// Word of the line the data is in, as a bit.
    fn word(&self) -> u8 {
        1 << (self.pa.0 >> 2 & 7)
    }

    /// What happened since the newest data was written.
    fn events(&self, history: &History) -> (Vec<LineEvent>, bool) {
        history.of_line(self.pa, Mva(self.writer.mva), self.writer.cycle)
    }

    pub fn report(self, history: &History, wrong: Wrong, place: Newest) -> Report {
        let (mut since, since_is_whole) = self.events(history);
        if since.len() > SHOWN {
            since.drain(..since.len() - SHOWN);
        }
        let fill = history.fill_of(self.access, self.mva);
        if let Some(fill) = fill
            && !since.contains(fill)
        {
            since.insert(0, *fill);
        }
        Report {
            wrong,
            context: self.context,
            access: self.access,
            mva: self.mva,
            pa: self.pa,
            led_to: None,
            filled_from: None,
            width: self.width,
            got: self.got,
            newest: self.newest,
            writer: self.writer,
            place,
            since,
            filled: fill.map(|e| e.cycle),
            since_is_whole,
            page: None,
            trace: Trace::default(),
        }
    }
}

/// Where the newest value is, and since when it is in memory if it is there.
struct Followed {
    place: Newest,
    left: u64,
}

/// Whether the dirty line that a word was stored into still has it: one that became dirty later is another.
pub(super) fn holds(dirty: &DirtyLines, writer: &Writer, pa: Pa) -> bool {
    let since = dirty.since(writer.mva & !31 | pa.0 & 31);
    writer.path == Path::Line && since.is_some_and(|since| since <= writer.cycle)
}

/// Follows the newest value through the events since it was written.
fn follow(found: &Found, history: &History, dirty: &DirtyLines) -> Followed {
    let (half, word) = (found.half(), found.word());
    let (memory, line) = (found.pa.0 & !31, found.writer.mva & !31);
    let mut left = found.writer.cycle;
    let mut place = match found.writer.path {
        Path::Line => Newest::Dirty(Mva(line)),
        Path::Buffer | Path::Dma | Path::Loaded => Newest::Memory,
    };
    for event in found.events(history).0 {
        place = match (place, event.movement) {
            (Newest::Dirty(mva), Movement::WriteBack { halves, old, .. })
                if event.mva == mva.0 && halves & half != 0 =>
            {
                left = event.cycle;
                if event.pa != memory {
                    Newest::Lost(event)
                } else if old & word != 0 {
                    Newest::Overwritten(event)
                } else {
                    Newest::Memory
                }
            }
            (
                Newest::Dirty(mva),
                Movement::Invalidate {
                    side: Side::Data,
                    halves,
                },
            ) if event.mva == mva.0 && halves & half != 0 => Newest::Lost(event),
            // Another line had the newest value, too, and brought it back.
            (Newest::Lost(_) | Newest::Overwritten(_), Movement::WriteBack { halves, old, .. })
                if event.pa == memory && halves & half != 0 && old & word == 0 =>
            {
                left = event.cycle;
                Newest::Memory
            }
            // Whoever wrote words back that were the newest took nothing away.
            (Newest::Memory, Movement::WriteBack { old, .. })
                if event.pa == memory && old & word != 0 =>
            {
                Newest::Overwritten(event)
            }
            (same, _) => same,
        };
    }
    // Events may have left the ring.
    if matches!(place, Newest::Dirty(_)) && !holds(dirty, &found.writer, found.pa) {
        place = Newest::Memory;
    }
    Followed { place, left }
}

/// An access got something else than the newest value.
pub(super) fn stale(history: &History, dirty: &DirtyLines, found: Found) -> Report {
    let Followed { mut place, left } = follow(&found, history, dirty);
    let fill = history.fill_of(found.access, found.mva);
    let read_since = match found.access {
        Access::Walk => true,
        Access::Fetch { .. } => {
            fill.is_some_and(|fill| fill.cycle >= left && fill.pa == found.pa.0 & !31)
        }
        _ => false,
    };
    if read_since && place == Newest::Memory {
        // Memory was read behind the write: it is on its way there.
        place = Newest::Buffer;
    }
    let other = fill.filter(|e| e.pa != found.pa.0 & !31);
    let filled_from = other.map(|e| Pa(e.pa));
    let wrong = match (place, found.access) {
        (_, Access::Load { .. }) if filled_from.is_some() => Wrong::StaleRead,
        (_, Access::Fetch { .. }) if filled_from.is_some() => Wrong::StaleInstruction,
        (Newest::Lost(e), _) if matches!(e.movement, Movement::Invalidate { .. }) => {
            Wrong::LostByInvalidate
        }
        (Newest::Overwritten(_), _) => Wrong::OldOverNewer,
        (_, Access::Fetch { .. }) => Wrong::StaleInstruction,
        (_, Access::Walk) => Wrong::UnseenDescriptor,
        (Newest::Memory, _) if found.writer.path == Path::Dma => Wrong::StaleAfterDma,
        (Newest::Dirty(mva), Access::Load { cached: true })
            if mva.0 != found.mva.0 & !31 && dirty.since(found.mva.0).is_some() =>
        {
            Wrong::TwoDirtyAliases
        }
        _ => Wrong::StaleRead,
    };
    Report {
        filled_from,
        ..found.report(history, wrong, place)
    }
}

/// A write-back carries something else than the newest data. `None` where it destroys nothing:
/// the newest is in another line, or is lost already.
pub(super) fn overwritten(history: &History, dirty: &DirtyLines, found: Found) -> Option<Report> {
    let Followed { place, left } = follow(&found, history, dirty);
    let line = found.mva.0 & !31;
    match place {
        Newest::Dirty(mva) if mva.0 != line => return None,
        Newest::Lost(_) | Newest::Overwritten(_) => return None,
        _ => {}
    }
    let victim = found.access == Access::WriteBack { victim: true };
    let event = LineEvent {
        cycle: found.context.cycle,
        pc: found.context.pc,
        mva: line,
        pa: found.pa.0 & !31,
        movement: Movement::WriteBack {
            halves: found.half(),
            victim,
            old: found.word(),
        },
    };
    // Dirty already while the newest was still dirty in its line?
    let was_in_line = found.writer.path == Path::Line && place == Newest::Memory;
    let since = dirty.since(found.mva.0);
    let wrong = if was_in_line && since.is_some_and(|since| since < left) {
        Wrong::TwoDirtyAliases
    } else {
        Wrong::OldOverNewer
    };
    Some(found.report(history, wrong, Newest::Overwritten(event)))
}

/// A TLB entry was used whose descriptor, at `found.pa`, has changed.
pub(super) fn stale_translation(
    history: &History,
    found: Found,
    led_to: Pa,
    filled: u64,
) -> Report {
    let report = found.report(history, Wrong::StaleTranslation, Newest::Memory);
    Report {
        led_to: Some(led_to),
        filled: Some(filled),
        ..report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cleaned_longer_ago_than_the_history_reaches_is_not_dirty() {
        let line = Writer {
            cycle: 5,
            mva: 0x7000_0000,
            path: Path::Line,
            ..Writer::default()
        };
        let found = || Found {
            context: Context::default(),
            access: Access::Load { cached: true },
            mva: Mva(0x8000_0000),
            pa: Pa(0),
            width: Width::Word,
            got: 1,
            newest: 2,
            writer: line,
        };
        let history = History::default();
        let mut dirty = DirtyLines::new();
        let place = |dirty: &DirtyLines| stale(&history, dirty, found()).place;
        assert_eq!(place(&dirty), Newest::Memory);
        dirty.stored((line.mva, 0), line.cycle);
        assert_eq!(place(&dirty), Newest::Dirty(Mva(line.mva)));
    }
}
