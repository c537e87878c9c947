// SPDX-License-Identifier: MIT OR Apache-2.0
//! A report as data. The caller turns it into text with symbols and source lines.

use super::calls::{Call, Switch};
use super::circumstances::Circumstances;
use super::devices::BusMaster;
use super::history::{LineEvent, Movement};
use super::ownership::Buffer;
use super::shadow::Writer;
use arm::{Context, Kind, Mva, Pa, Side, Width};
use board::bus::dma::Purpose;

/// Kind of a report: what went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportKind {
    /// A load got old data. Either the newest data was written through another address, or it was written while the
    /// line still held the old data.
    StaleRead,
    /// The newest data is dirty in one line, and the used line is dirty too.
    TwoDirtyAliases,
    /// The core executed an instruction that is not the newest.
    StaleInstruction,
    /// The core used a TLB entry whose descriptor has changed.
    StaleTranslation,
    /// A table walk read an old descriptor while the newest was in the D-cache or the write buffer.
    UnseenDescriptor,
    /// The newest data was in a dirty line that was invalidated.
    LostByInvalidate,
    /// A line was written back with data older than the data in memory.
    OldOverNewer,
    /// Another bus master wrote to memory, and the line still holds the old data.
    StaleAfterDma,
    /// Another bus master read old data from memory, while the newest was in the D-cache or the write buffer.
    StaleDmaRead,
    /// A line or a TLB entry of a user address outlived its page, which now has another owner.
    OutlivesPage,
    /// The core used a DMA buffer that a device owned, or a device read bytes that the core stored to meanwhile.
    TouchedWhileMapped,
    /// A buffer was mapped for a device while it was mapped already.
    MappedTwice,
    /// A device read or wrote a buffer against the direction of its mapping.
    WrongDirection,
    /// A device read or wrote a buffer after it was unmapped or freed.
    DmaAfterUnmap,
}

impl ReportKind {
    /// Returns the short name, as in suppressions and JSON.
    pub fn name(self) -> &'static str {
        match self {
            ReportKind::StaleRead => "stale-read",
            ReportKind::TwoDirtyAliases => "two-dirty-aliases",
            ReportKind::StaleInstruction => "stale-instruction",
            ReportKind::StaleTranslation => "stale-translation",
            ReportKind::UnseenDescriptor => "unseen-descriptor",
            ReportKind::LostByInvalidate => "lost-by-invalidate",
            ReportKind::OldOverNewer => "old-over-newer",
            ReportKind::StaleAfterDma => "stale-after-dma",
            ReportKind::StaleDmaRead => "stale-dma-read",
            ReportKind::OutlivesPage => "outlives-page",
            ReportKind::TouchedWhileMapped => "touched-while-mapped",
            ReportKind::MappedTwice => "mapped-twice",
            ReportKind::WrongDirection => "wrong-direction",
            ReportKind::DmaAfterUnmap => "dma-after-unmap",
        }
    }

    /// All kinds.
    pub const ALL: [ReportKind; 14] = [
        ReportKind::StaleRead,
        ReportKind::TwoDirtyAliases,
        ReportKind::StaleInstruction,
        ReportKind::StaleTranslation,
        ReportKind::UnseenDescriptor,
        ReportKind::LostByInvalidate,
        ReportKind::OldOverNewer,
        ReportKind::StaleAfterDma,
        ReportKind::StaleDmaRead,
        ReportKind::OutlivesPage,
        ReportKind::TouchedWhileMapped,
        ReportKind::MappedTwice,
        ReportKind::WrongDirection,
        ReportKind::DmaAfterUnmap,
    ];

    /// Returns whether the report is about the owner of a DMA buffer. The data need not be old.
    pub fn is_of_buffer(self) -> bool {
        matches!(
            self,
            ReportKind::TouchedWhileMapped
                | ReportKind::MappedTwice
                | ReportKind::WrongDirection
                | ReportKind::DmaAfterUnmap
        )
    }
}

/// The access that used the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Load {
        /// Whether the data came from a D-cache line. Otherwise, it came from the bus.
        cached: bool,
    },
    /// The execution of an instruction.
    Fetch {
        /// Whether the instruction came from an I-cache line. Otherwise, it came from the prefetch buffer.
        cached: bool,
    },
    /// A table walk.
    Walk,
    /// A translation by the TLB.
    Translation(Kind),
    /// A write-back.
    WriteBack {
        /// Whether the line made room for another line. Otherwise, an operation cleaned it.
        victim: bool,
    },
    /// A store to a DMA buffer.
    Store {
        /// Whether the data went into a D-cache line. Otherwise, it went into the write buffer.
        cached: bool,
    },
    /// No access. A call mapped a DMA buffer, and returned to the report's instruction.
    Map,
    /// An access by another bus master. No instruction used the data, so the report's context has only a cycle. Only
    /// reports about DMA buffers are about writes.
    Dma {
        /// Number of the bus master ([`board::bus::dma::Transfer::master`]).
        master: u32,
        /// What the transfer was for.
        purpose: Purpose,
        /// Whether the bus master wrote.
        writes: bool,
    },
    /// No access. A line or TLB entry remained after the page had got another owner.
    Outlives(Kept),
}

/// What remains of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// A dirty line of the D-cache.
    DirtyLine,
    /// A line of the I-cache.
    Instructions,
    /// A TLB entry.
    Translation,
}

/// When and where a page was freed, or allocated for an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Virtual address. For a free, it is the entry of the function that frees pages. For an allocation, it is the
    /// return address of the call that allocated the page.
    pub pc: u32,
    /// Callers, innermost first.
    pub callers: Vec<u32>,
}

/// How a page changed its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMoves {
    /// When the page was freed, if the checker saw it.
    pub freed: Option<Moment>,
    /// When the page was allocated for the new owner.
    pub given: Moment,
}

/// Where the newest data was when older data was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newest {
    /// Still dirty in the line with this MVA, which should have been cleaned.
    Dirty(Mva),
    /// In memory. The used copy should have been invalidated.
    Memory,
    /// In the write buffer, which should have been drained.
    Buffer,
    /// Nowhere. The line was invalidated while dirty, or written back to other memory because the mapping of its
    /// address had changed.
    Lost(LineEvent),
    /// Nowhere. This write-back overwrote the newest data in memory.
    Overwritten(LineEvent),
    /// Nowhere. A bus master wrote the newest data to memory. After that, an older write of the core reached memory
    /// from the write buffer.
    Replaced,
}

/// Code involved in a report, as far as it is known. Callers are virtual addresses of calls, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Callers of the access.
    pub used: Vec<u32>,
    /// Callers of the writer.
    pub written: Vec<u32>,
    /// Callers of the writer that were still running when the data was used.
    pub running: Vec<u32>,
    /// The bus master that read old data or wrote the newest data.
    pub device: Option<BusMaster>,
    /// Circumstances that may make the old data acceptable.
    pub circumstances: Circumstances,
    /// Next calls that the writer's callers made after the write.
    pub next: Vec<Call>,
    /// Calls since [`Trace::since`] with an address of the data among their arguments.
    pub given: Vec<Call>,
    /// Writers of the descriptors that map the addresses of access and writer.
    pub mapped: Vec<Mapped>,
    /// Last change of the address space after [`Trace::since`], if there was one.
    pub switched: Option<Switch>,
    /// Core cycle from which the operation may have been missing. This is the cycle of the earliest of three events.
    /// The events are the write of the newest value, the fill of the used line or TLB entry, and the mapping of the
    /// addresses. If the used line holds other memory, `since` is the cycle of the fill.
    pub since: u64,
}

/// The writers of a page's descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// An address in the page.
    pub mva: Mva,
    /// Last writer of the descriptor.
    pub writer: Writer,
    /// Callers of the last writer.
    pub callers: Vec<u32>,
    /// Previous writer and its callers.
    pub before: Option<(Writer, Vec<u32>)>,
}

impl Access {
    /// Returns whether the core accessed the data. Without an access by the core, the report has no instruction,
    /// virtual address or call.
    pub fn is_by_core(self) -> bool {
        !matches!(self, Access::Dma { .. })
    }
}

/// A report from the checker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Kind of the error.
    pub kind: ReportKind,
    /// State of the core at the access.
    pub context: Context,
    /// The access that used the data.
    pub access: Access,
    /// Modified virtual address of the access.
    pub mva: Mva,
    /// Physical address of the data. For table walks and translations: address of the descriptor.
    pub pa: Pa,
    /// Physical address that a stale translation led to.
    pub led_to: Option<Pa>,
    /// Memory that the used line holds, if it is not the memory at `pa`. The address was mapped to this other memory
    /// when the line was filled.
    pub filled_from: Option<Pa>,
    /// Width of the access.
    pub width: Width,
    /// Value that the access got.
    pub got: u32,
    /// Newest value, which the access should have got.
    pub newest: u32,
    /// Writer of the newest value.
    pub writer: Writer,
    /// Place of the newest value.
    pub place: Newest,
    /// Events of the line since the write, oldest first. If the used line was filled before the write, the fill comes
    /// first.
    pub since: Vec<LineEvent>,
    /// Core cycle in which the used line or TLB entry was filled, if known.
    pub filled: Option<u64>,
    /// Whether `since` reaches back to the write.
    pub since_is_whole: bool,
    /// How the page changed its owner, for [`ReportKind::OutlivesPage`].
    pub page: Option<PageMoves>,
    /// The buffer, for reports about DMA buffers. The writer of such a report is the call that mapped or unmapped the
    /// buffer. If a device read bytes that the core stored to, the writer is this store.
    pub buffer: Option<Buffer>,
    /// Code involved.
    pub trace: Trace,
}

/// Key of a cause: the kind, the two instructions, and a number for the missing operation. Differences with equal keys
/// become one report.
pub type Cause = (ReportKind, u32, u32, u8);

impl Report {
    /// Returns the key of the report's cause.
    pub fn cause(&self) -> Cause {
        let place = match self.place {
            Newest::Dirty(_) => 0,
            Newest::Memory => 1,
            Newest::Buffer => 2,
            Newest::Lost(_) => 3,
            Newest::Overwritten(_) => 4,
            Newest::Replaced => 5,
        };
        // An instruction fetched through a stale translation may access data through another one. Each gets its own
        // report.
        let fetched = u8::from(self.access == Access::Translation(Kind::Fetch)) << 3;
        let by_victim = matches!(self.access, Access::WriteBack { victim: true });
        // The access that happens to evict the line is unrelated to the cause.
        let pc = if by_victim { 0 } else { self.context.pc };
        let kept = match self.access {
            Access::Outlives(Kept::DirtyLine) => 1 << 4,
            Access::Outlives(Kept::Instructions) => 2 << 4,
            Access::Outlives(Kept::Translation) => 3 << 4,
            _ => 0,
        };
        let remapped = u8::from(self.filled_from.is_some()) << 6;
        (
            self.kind,
            pc,
            self.writer.pc,
            place | fetched | kept | remapped,
        )
    }

    /// Returns whether the used D-cache line was filled after the newest data was written.
    fn filled_since(&self) -> bool {
        let fill = Movement::Fill(Side::Data);
        let line = self.mva.0 & !31;
        self.since
            .iter()
            .any(|e| e.mva == line && e.movement == fill && e.cycle >= self.writer.cycle)
    }

    /// Returns the name of the bus master in sentences.
    pub(super) fn device(&self) -> &str {
        let device = self.trace.device.as_ref();
        device.map_or("the device", |device| &device.name)
    }

    /// Describes the missing operation.
    pub fn needed(&self) -> String {
        let line = |mva: Mva| Mva(mva.0 & !31);
        let here = line(self.mva);
        let i_invalidate = format!("invalidate the I-cache line at MVA {here} (c7,c5,1)");
        if let Access::Outlives(kept) = self.access {
            return match kept {
                Kept::DirtyLine => format!(
                    "clean and invalidate the D-cache line at MVA {here} (c7,c14,1) after its last store and before \
                     the page is freed"
                ),
                Kept::Instructions => format!("{i_invalidate} before the page is freed"),
                Kept::Translation => format!(
                    "invalidate the TLB entry for MVA {} (c8,c7,1 or equivalent) before the page is freed",
                    self.mva
                ),
            };
        }
        if self.kind.is_of_buffer() {
            return self.needed_of_buffer();
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
            _ if self.kind == ReportKind::TwoDirtyAliases => format!(
                "clean and invalidate the D-cache line at MVA {} (c7,c14,1) before the data is \
                 used through MVA {here}, and vice versa",
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
            (Newest::Dirty(mva), Access::Dma { .. }) => format!(
                "clean the D-cache line at MVA {mva} (c7,c10,1) and drain the write buffer \
                 (c7,c10,4) before {} reads memory",
                self.device()
            ),
            (Newest::Buffer, Access::Dma { .. }) => {
                format!("drain the write buffer (c7,c10,4) before {} reads memory", self.device())
            }
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
                "invalidate the TLB entry for MVA {} (c8,c7,1 or equivalent) after its descriptor \
                 was written or the table base changed",
                self.mva
            ),
            (Newest::Memory, _) if self.kind == ReportKind::StaleAfterDma => format!(
                "invalidate the D-cache line at MVA {here} (c7,c6,1) before {} writes to memory, and use the line \
                 only after that",
                self.device()
            ),
            (Newest::Memory, _) => format!(
                "invalidate the D-cache line at MVA {here} (c7,c6,1) after memory was written"
            ),
            (Newest::Lost(event), _) => format!(
                "clean the D-cache line at MVA {} (c7,c10,1 or c7,c14,1) instead of only \
                 invalidating it",
                Mva(event.mva)
            ),
            (Newest::Replaced, _) => {
                format!("drain the write buffer (c7,c10,4) before {} writes to memory", self.device())
            }
            (Newest::Overwritten(event), _) => format!(
                "clean and invalidate the D-cache line at MVA {} (c7,c14,1) before the newer data \
                 was written",
                Mva(event.mva)
            ),
        }
    }
}

/// Returns the operation needed before an address is remapped.
fn remap(line: Mva) -> String {
    format!(
        "clean and invalidate the D-cache line at MVA {line} (c7,c14,1) before the mapping of \
         that address changed"
    )
}

/// Key of a pair of instructions: the kind of access and the state of the lines ([`super::Checker::pair`]), the
/// accessing instruction, and the writer. For victims and for remains of pages, the key has 0 instead of the accessing
/// instruction, which is unrelated to the cause.
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
        Access::Dma { .. } => (12, pc, writer),
        Access::Store { .. } => (13, pc, writer),
        Access::Map => (14, pc, writer),
        Access::Outlives(Kept::DirtyLine) => (9, 0, writer),
        Access::Outlives(Kept::Instructions) => (10, 0, writer),
        Access::Outlives(Kept::Translation) => (11, 0, writer),
    }
}
