// SPDX-License-Identifier: MIT OR Apache-2.0
//! A report, as data. Words, symbols and source lines are the reader's.

use super::calls::{Call, Switch};
use super::circumstances::Circumstances;
use super::history::{LineEvent, Movement};
use super::shadow::Writer;
use arm::{Context, Kind, Mva, Pa, Side, Width};

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// A load got old data; the newest was written through another address or with the line still
    /// holding the old.
    StaleRead,
    /// The newest data is dirty in one line, and the line that was read is dirty too.
    TwoDirtyAliases,
    /// An instruction was executed that is not the newest.
    StaleInstruction,
    /// A TLB entry was used whose descriptor has changed.
    StaleTranslation,
    /// A table walk read a descriptor while the newest was in the D-cache or the write buffer.
    UnseenDescriptor,
    /// The newest data was in a dirty line that was invalidated.
    LostByInvalidate,
    /// A line was written back with data older than memory's.
    OldOverNewer,
    /// Another bus master wrote, and the line still holds the old data.
    StaleAfterDma,
    /// Something of a page through a user's address is still there, and the page is somebody else's.
    OutlivesPage,
}

impl Wrong {
    /// Short name, as in suppressions and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Wrong::StaleRead => "stale-read",
            Wrong::TwoDirtyAliases => "two-dirty-aliases",
            Wrong::StaleInstruction => "stale-instruction",
            Wrong::StaleTranslation => "stale-translation",
            Wrong::UnseenDescriptor => "unseen-descriptor",
            Wrong::LostByInvalidate => "lost-by-invalidate",
            Wrong::OldOverNewer => "old-over-newer",
            Wrong::StaleAfterDma => "stale-after-dma",
            Wrong::OutlivesPage => "outlives-page",
        }
    }

    /// Every kind.
    pub const ALL: [Wrong; 9] = [
        Wrong::StaleRead,
        Wrong::TwoDirtyAliases,
        Wrong::StaleInstruction,
        Wrong::StaleTranslation,
        Wrong::UnseenDescriptor,
        Wrong::LostByInvalidate,
        Wrong::OldOverNewer,
        Wrong::StaleAfterDma,
        Wrong::OutlivesPage,
    ];
}

/// What used the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Load {
        /// From a D-cache line; false: from the bus.
        cached: bool,
    },
    /// The execution of an instruction.
    Fetch {
        /// From an I-cache line; false: past the cache, from the prefetch buffer.
        cached: bool,
    },
    /// A table walk.
    Walk,
    /// A translation by the TLB.
    Translation(Kind),
    /// A write-back.
    WriteBack {
        /// The line made room for another; false: an operation cleaned it.
        victim: bool,
    },
    /// Nothing used it: its page was given to somebody.
    Outlives(Kept),
}

/// What is left of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// A dirty line of the D-cache.
    DirtyLine,
    /// A line of the I-cache.
    Instructions,
    /// A TLB entry.
    Translation,
}

/// When something was done with a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// The function that was called for it.
    pub pc: u32,
    /// Its callers, innermost first.
    pub callers: Vec<u32>,
}

/// How a page came to somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMoves {
    /// When it was freed, if that was seen.
    pub freed: Option<Moment>,
    /// When it was given.
    pub given: Moment,
}

/// Where the newest data was when older data was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newest {
    /// Still dirty in the line with this MVA: it should have been cleaned.
    Dirty(Mva),
    /// In memory: the copy that was used should have been invalidated.
    Memory,
    /// In the write buffer: it should have been drained.
    Buffer,
    /// Nowhere: the line was invalidated while dirty, or written back to other memory because
    /// the mapping of its address had changed.
    Lost(LineEvent),
    /// Nowhere: it was in memory until this write-back.
    Overwritten(LineEvent),
}

/// Functions that had to do with a finding, as far as they are known. Callers are the virtual
/// addresses of calls, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Callers of what used the data.
    pub used: Vec<u32>,
    /// Callers of what wrote the newest.
    pub written: Vec<u32>,
    /// Of those, the ones that had not returned when the data was used.
    pub running: Vec<u32>,
    /// What may make the old data as good as the new.
    pub circumstances: Circumstances,
    /// Calls by the writer's callers, next after it wrote.
    pub next: Vec<Call>,
    /// Calls since [`Trace::since`] that were given one of the data's addresses.
    pub given: Vec<Call>,
    /// Who mapped the addresses of both sides.
    pub mapped: Vec<Mapped>,
    /// The newest change of the address space since [`Trace::since`].
    pub switched: Option<Switch>,
    /// Core cycle from which on the operation may have been missing: when the newest value was
    /// written, or before that the line or the TLB entry that was used was filled, or an address
    /// was mapped.
    pub since: u64,
}

/// Who wrote the descriptor of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// An address in the page.
    pub mva: Mva,
    /// Who wrote it.
    pub writer: Writer,
    /// Callers of that.
    pub callers: Vec<u32>,
    /// Who wrote it before, with the callers.
    pub before: Option<(Writer, Vec<u32>)>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What went wrong.
    pub wrong: Wrong,
    /// Under what circumstances.
    pub context: Context,
    /// What used the data.
    pub access: Access,
    /// Through which address.
    pub mva: Mva,
    /// Physical address of the data (of the descriptor, for walks and translations).
    pub pa: Pa,
    /// Physical address a stale translation led to.
    pub led_to: Option<Pa>,
    /// Memory that the line which was used belongs to, when it is other memory: the address was
    /// mapped to it when the line was filled.
    pub filled_from: Option<Pa>,
    /// How much was used.
    pub width: Width,
    /// What it got.
    pub got: u32,
    /// What it should have got.
    pub newest: u32,
    /// Who wrote that.
    pub writer: Writer,
    /// Where that was.
    pub place: Newest,
    /// What happened to the line since, oldest first; before that, if it was earlier, the fill of
    /// the line that was used.
    pub since: Vec<LineEvent>,
    /// When the line or the TLB entry that was used was filled, if that is known.
    pub filled: Option<u64>,
    /// Whether `since` reaches back to the write.
    pub since_is_whole: bool,
    /// How the page came to somebody else, of [`Wrong::OutlivesPage`].
    pub page: Option<PageMoves>,
    /// Who had to do with it.
    pub trace: Trace,
}

/// Reports with the same cause are one: the same wrong, between the same two instructions, with
/// the same missing operation.
pub type Cause = (Wrong, u32, u32, u8);

impl Report {
    /// What the report is told apart by.
    pub fn cause(&self) -> Cause {
        let place = match self.place {
            Newest::Dirty(_) => 0,
            Newest::Memory => 1,
            Newest::Buffer => 2,
            Newest::Lost(_) => 3,
            Newest::Overwritten(_) => 4,
        };
        // An instruction that was fetched by an old translation may make an access by another.
        let fetched = u8::from(self.access == Access::Translation(Kind::Fetch)) << 3;
        let by_victim = matches!(self.access, Access::WriteBack { victim: true });
        // Whose access happens to evict the line says nothing about the cause.
        let pc = if by_victim { 0 } else { self.context.pc };
        let kept = match self.access {
            Access::Outlives(Kept::DirtyLine) => 1 << 4,
            Access::Outlives(Kept::Instructions) => 2 << 4,
            Access::Outlives(Kept::Translation) => 3 << 4,
            _ => 0,
        };
        let remapped = u8::from(self.filled_from.is_some()) << 6;
        (
            self.wrong,
            pc,
            self.writer.pc,
            place | fetched | kept | remapped,
        )
    }

    /// Whether the D-cache line that was read came from memory after the newest data was written.
    fn filled_since(&self) -> bool {
        let fill = Movement::Fill(Side::Data);
        let line = self.mva.0 & !31;
        self.since
            .iter()
            .any(|e| e.mva == line && e.movement == fill && e.cycle >= self.writer.cycle)
    }

    /// The operation that was missing, in words.
    pub fn needed(&self) -> String {
        let line = |mva: Mva| Mva(mva.0 & !31);
        let here = line(self.mva);
        let i_invalidate = format!("invalidate the I-cache line at MVA {here} (c7,c5,1)");
        if let Access::Outlives(kept) = self.access {
            return match kept {
                Kept::DirtyLine => format!(
                    "clean and invalidate the D-cache line at MVA {here} (c7,c14,1) behind its last store and before \
                     the page is freed"
                ),
                Kept::Instructions => format!("{i_invalidate} before the page is freed"),
                Kept::Translation => format!(
                    "invalidate the TLB entry for MVA {} (c8,c7,1 and its like) before the page is freed",
                    self.mva
                ),
            };
        }
        match (self.place, self.access) {
            _ if self.filled_from.is_some() && matches!(self.access, Access::Fetch { .. }) => {
                format!("{i_invalidate} when the mapping of that address changed")
            }
            _ if self.filled_from.is_some() => remap(here),
            (Newest::Dirty(mva), Access::Load { cached: true }) if mva == here => remap(here),
            (Newest::Lost(event), _) if matches!(event.movement, Movement::WriteBack { .. }) => {
                remap(Mva(event.mva))
            }
            _ if self.wrong == Wrong::TwoDirtyAliases => format!(
                "clean and invalidate the D-cache line at MVA {} (c7,c14,1) before the data is \
                 used through MVA {here}, and the other way round",
                Mva(self.writer.mva & !31)
            ),
            (Newest::Dirty(mva), Access::Fetch { cached: false }) => format!(
                "clean the D-cache line at MVA {mva} (c7,c10,1) and drain the write buffer \
                 (c7,c10,4) before the instruction is fetched past the cache"
            ),
            (Newest::Buffer, Access::Fetch { cached: false }) => {
                "drain the write buffer (c7,c10,4) before the instruction is fetched past the cache"
                    .to_owned()
            }
            (Newest::Memory, Access::Fetch { cached: false }) => {
                "empty the prefetch buffer by a jump, or by an invalidate of the I-cache (c7,c5,0), \
                 after the instruction was written"
                    .to_owned()
            }
            (Newest::Dirty(mva), Access::Fetch { .. }) => format!(
                "clean the D-cache line at MVA {mva} (c7,c10,1), drain the write buffer \
                 (c7,c10,4), then {i_invalidate}"
            ),
            (Newest::Dirty(mva), Access::Walk) => format!(
                "clean the D-cache line at MVA {mva} (c7,c10,1) and drain the write buffer \
                 (c7,c10,4) after the descriptor was written"
            ),
            (Newest::Dirty(mva), Access::Load { cached: false }) => format!(
                "clean the D-cache line at MVA {mva} (c7,c10,1) before it is read past the cache"
            ),
            (Newest::Dirty(mva), _) if self.filled_since() => format!(
                "clean the D-cache line at MVA {mva} (c7,c10,1) before the line at MVA {here} is \
                 filled"
            ),
            (Newest::Dirty(mva), _) => format!(
                "clean the D-cache line at MVA {mva} (c7,c10,1), and invalidate the line at MVA \
                 {here} (c7,c6,1), before the read"
            ),
            (Newest::Buffer, Access::Fetch { .. }) => format!(
                "drain the write buffer (c7,c10,4) before the I-cache line at MVA {here} is filled"
            ),
            (Newest::Buffer, _) => {
                "drain the write buffer (c7,c10,4) after the descriptor was written".to_owned()
            }
            (Newest::Memory, Access::Fetch { .. }) => i_invalidate,
            (Newest::Memory, Access::Translation(_)) => format!(
                "invalidate the TLB entry for MVA {} (c8,c7,1 and its like) after its descriptor \
                 was written or the table base changed",
                self.mva
            ),
            (Newest::Memory, _) => format!(
                "invalidate the D-cache line at MVA {here} (c7,c6,1) after memory was written"
            ),
            (Newest::Lost(event), _) => format!(
                "clean the D-cache line at MVA {} (c7,c10,1 or c7,c14,1) instead of only \
                 invalidating it",
                Mva(event.mva)
            ),
            (Newest::Overwritten(event), _) => format!(
                "clean and invalidate the D-cache line at MVA {} (c7,c14,1) before the newer data \
                 was written",
                Mva(event.mva)
            ),
        }
    }
}

/// What is needed where an address is mapped elsewhere.
fn remap(line: Mva) -> String {
    format!(
        "clean and invalidate the D-cache line at MVA {line} (c7,c14,1) before the mapping of \
         that address changed"
    )
}

/// Kind of access and state of the lines ([`super::Checker::pair`]), instruction (0 for victims: whose access evicts them
/// says nothing), writer.
pub(super) type Pair = (u8, u32, u32);

pub(super) fn pair(access: Access, pc: u32, writer: u32) -> Pair {
    match access {
        Access::Load { cached: false } => (0, pc, writer),
        Access::Load { cached: true } => (1, pc, writer),
        Access::Fetch { cached: true } => (2, pc, writer),
        Access::Fetch { cached: false } => (7, pc, writer),
        Access::Walk => (3, pc, writer),
        Access::Translation(Kind::Fetch) => (8, pc, writer),
        Access::Translation(_) => (4, pc, writer),
        Access::WriteBack { victim: false } => (5, pc, writer),
        Access::WriteBack { victim: true } => (6, 0, writer),
        Access::Outlives(Kept::DirtyLine) => (9, 0, writer),
        Access::Outlives(Kept::Instructions) => (10, 0, writer),
        Access::Outlives(Kept::Translation) => (11, 0, writer),
    }
}
