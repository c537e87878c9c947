// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the cause of a difference. The evidence is the line's events since the newest value was written.

use super::dirty::DirtyLines;
use super::history::{History, LineEvent, Movement};
use super::report::{Access, Newest, Report, ReportKind, Trace};
use super::shadow::{Path, Writer};
use arm::{Context, Mva, Pa, Side, Width};

/// Maximum number of events that a report shows.
const SHOWN: usize = 24;

/// A difference between the value that an access got and the newest value.
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
    /// Returns the half of the line that holds the data, as a bit.
    fn half(&self) -> u8 {
        1 << (self.pa.0 >> 4 & 1)
    }

    /// Returns the word of the line that holds the data, as a bit.
    fn word(&self) -> u8 {
        1 << (self.pa.0 >> 2 & 7)
    }

    /// Returns the events since the newest data was written, and whether they are complete.
    fn events(&self, history: &History) -> (Vec<LineEvent>, bool) {
        history.of_line(self.pa, self.writer.address(), self.writer.cycle)
    }

    pub fn report(self, history: &History, kind: ReportKind, place: Newest) -> Report {
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
            kind,
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
            buffer: None,
            trace: Trace::default(),
        }
    }
}

/// The result of [`follow`].
struct Followed {
    place: Newest,
    /// Cycle in which the newest value last left its line for memory. If the value never left its line, this is the
    /// cycle of its write.
    left: u64,
}

/// Returns whether a word is still in the dirty line into which it was stored. A line that became dirty after the store
/// is a different line.
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
        Path::Buffer | Path::Dma | Path::Loaded | Path::Call => Newest::Memory,
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
            // Another line also held the newest value. Its write-back restored the value.
            (Newest::Lost(_) | Newest::Overwritten(_), Movement::WriteBack { halves, old, .. })
                if event.pa == memory && halves & half != 0 && old & word == 0 =>
            {
                left = event.cycle;
                Newest::Memory
            }
            // Only a write-back of an older word (`old`) overwrites the newest value.
            (Newest::Memory, Movement::WriteBack { old, .. })
                if event.pa == memory && old & word != 0 =>
            {
                Newest::Overwritten(event)
            }
            (same, _) => same,
        };
    }
    // The event that cleaned the line may have left the ring.
    if matches!(place, Newest::Dirty(_)) && !holds(dirty, &found.writer, found.pa) {
        place = Newest::Memory;
    }
    Followed { place, left }
}

/// Diagnoses an access that did not get the newest value.
pub(super) fn stale(history: &History, dirty: &DirtyLines, found: Found) -> Report {
    let Followed { mut place, left } = follow(&found, history, dirty);
    let fill = history.fill_of(found.access, found.mva);
    let is_dma = found.writer.path == Path::Dma;
    // Whether a bus master wrote the whole word, bypassing the write buffer. If it wrote only some bytes, the other
    // bytes may be old for other reasons.
    let by_master = is_dma && found.writer.whole;
    let is_filled_since = fill.is_some_and(|fill| {
        let is_after = fill.cycle > left || fill.cycle == left && !by_master;
        is_after && fill.pa == found.pa.0 & !31
    });
    let read_since = match found.access {
        Access::Walk | Access::Dma { .. } => true,
        Access::Fetch { .. } => is_filled_since,
        Access::Load { cached: false } => by_master,
        Access::Load { cached: true } => by_master && is_filled_since,
        _ => false,
    };
    if read_since && place == Newest::Memory {
        // Memory was read after the write. Either the value was still in the write buffer, or an older value from the
        // write buffer replaced it.
        place = match by_master {
            true => Newest::Replaced,
            false => Newest::Buffer,
        };
    }
    let other = fill.filter(|e| e.pa != found.pa.0 & !31);
    let filled_from = other.map(|e| Pa(e.pa));
    let kind = match (place, found.access) {
        (_, Access::Load { .. }) if filled_from.is_some() => ReportKind::StaleRead,
        (_, Access::Fetch { .. }) if filled_from.is_some() => ReportKind::StaleInstruction,
        (Newest::Lost(e), _) if matches!(e.movement, Movement::Invalidate { .. }) => {
            ReportKind::LostByInvalidate
        }
        (Newest::Overwritten(_) | Newest::Replaced, _) => ReportKind::OldOverNewer,
        (_, Access::Fetch { .. }) => ReportKind::StaleInstruction,
        (_, Access::Walk) => ReportKind::UnseenDescriptor,
        (_, Access::Dma { .. }) => ReportKind::StaleDmaRead,
        (Newest::Memory, _) if is_dma => ReportKind::StaleAfterDma,
        (Newest::Dirty(mva), Access::Load { cached: true })
            if mva.0 != found.mva.0 & !31 && dirty.since(found.mva.0).is_some() =>
        {
            ReportKind::TwoDirtyAliases
        }
        _ => ReportKind::StaleRead,
    };
    Report {
        filled_from,
        ..found.report(history, kind, place)
    }
}

/// Diagnoses a write-back of data that is not the newest. Returns `None` if the write-back destroys nothing, because
/// the newest data is in another line or already lost.
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
    // Whether this line was already dirty when the newest data was still dirty in its own line.
    let was_in_line = found.writer.path == Path::Line && place == Newest::Memory;
    let since = dirty.since(found.mva.0);
    let kind = if was_in_line && since.is_some_and(|since| since < left) {
        ReportKind::TwoDirtyAliases
    } else {
        ReportKind::OldOverNewer
    };
    Some(found.report(history, kind, Newest::Overwritten(event)))
}

/// Diagnoses the use of a TLB entry whose descriptor, at `found.pa`, has changed.
pub(super) fn stale_translation(
    history: &History,
    found: Found,
    led_to: Pa,
    filled: u64,
) -> Report {
    let report = found.report(history, ReportKind::StaleTranslation, Newest::Memory);
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
