// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words that reports use for kinds, places, movements, addresses and modes.

use arm::{AddressSpace, Kind, Mva, Pa, Side, Width};
use board::bus::dma::Purpose;
use std::fmt::Write;
use watch::checker::{LineEvent, Movement, Newest, Report, ReportKind};

/// FCSE relocates virtual addresses below this address.
const FCSE_SLOT: u32 = 1 << 25;

/// Describes what went wrong, in one line.
pub fn what(wrong: ReportKind) -> &'static str {
    match wrong {
        ReportKind::StaleRead => "a load got old data",
        ReportKind::TwoDirtyAliases => {
            "a load got old data from a dirty line while the newest is dirty in another"
        }
        ReportKind::StaleInstruction => "an instruction was executed that is not the newest",
        ReportKind::StaleTranslation => "a TLB entry was used whose descriptor has changed",
        ReportKind::UnseenDescriptor => "a table walk read a descriptor that is not the newest",
        ReportKind::LostByInvalidate => "the newest data was in a dirty line that was invalidated",
        ReportKind::OldOverNewer => "old data was written back over newer data",
        ReportKind::StaleAfterDma => "a load got data older than the data that a device wrote",
        ReportKind::StaleDmaRead => "a bus master read data from memory that is not the newest",
        ReportKind::OutlivesPage => {
            "a line or TLB entry of a user address is left, but its page has another owner"
        }
        ReportKind::TouchedWhileMapped => "the core used a buffer that a device owns",
        ReportKind::MappedTwice => "a buffer was mapped for a device while it was mapped already",
        ReportKind::WrongDirection => {
            "a bus master used a buffer against the direction of its mapping"
        }
        ReportKind::DmaAfterUnmap => "a bus master used a buffer that was unmapped or freed",
    }
}

/// Describes what a bus master moves.
pub(super) fn purpose(purpose: Purpose) -> String {
    match purpose {
        Purpose::Unknown | Purpose::Data => "data".to_string(),
        Purpose::Buffer(number) => format!("the buffer of descriptor {number}"),
        Purpose::Descriptor(number) => format!("descriptor {number}"),
    }
}

/// Returns the calls of Linux's DMA interface that do the missing operation of a report about a device.
pub(super) fn linux_calls(report: &Report) -> Option<&'static str> {
    match report.kind {
        ReportKind::TouchedWhileMapped if !report.access.is_by_core() => {
            Some("dma_sync_*_for_device, after the last store and before the device is started")
        }
        ReportKind::TouchedWhileMapped => Some(
            "dma_sync_*_for_cpu or dma_unmap_*, after the transfer and before the core uses the buffer",
        ),
        ReportKind::MappedTwice => Some("dma_unmap_* of the first mapping"),
        ReportKind::WrongDirection => {
            Some("dma_map_* with the direction of the transfer, or with DMA_BIDIRECTIONAL")
        }
        ReportKind::DmaAfterUnmap => {
            Some("dma_unmap_* or dma_free_* only after the device has ended the transfer")
        }
        ReportKind::StaleDmaRead => Some(
            "dma_map_* or dma_sync_*_for_device with DMA_TO_DEVICE, after the last store and before the device is \
             started",
        ),
        ReportKind::StaleAfterDma => Some(
            "dma_map_* or dma_sync_*_for_device with DMA_FROM_DEVICE, before the device is started",
        ),
        _ => None,
    }
}

pub(super) fn place_json(place: Newest) -> &'static str {
    match place {
        Newest::Dirty(_) => "dirty",
        Newest::Memory => "memory",
        Newest::Buffer => "buffer",
        Newest::Lost(_) => "lost",
        Newest::Overwritten(_) => "overwritten",
        Newest::Replaced => "replaced",
    }
}

/// Describes where the newest value was.
pub(super) fn place(place: Newest) -> String {
    match place {
        Newest::Dirty(mva) => format!("dirty in the D-cache line at MVA {mva}"),
        Newest::Memory => "in memory".to_string(),
        Newest::Buffer => "in the write buffer".to_string(),
        Newest::Replaced => {
            "replaced in memory by an older write from the write buffer".to_string()
        }
        Newest::Lost(event) => format!(
            "lost: the dirty D-cache line at MVA {} was invalidated in cycle {}",
            Mva(event.mva),
            event.cycle
        ),
        Newest::Overwritten(event) => format!(
            "overwritten in memory: the D-cache line at MVA {} was written back in cycle {}",
            Mva(event.mva),
            event.cycle
        ),
    }
}

pub(super) fn movement(event: &LineEvent) -> String {
    let cache = |side| match side {
        Side::Instruction => "I-cache",
        Side::Prefetch => "prefetch buffer",
        Side::Data => "D-cache",
    };
    let mva = Mva(event.mva);
    match event.movement {
        Movement::Fill(Side::Prefetch) => format!("prefetch buffer filled for MVA {mva}"),
        Movement::Fill(side) => format!("{} line at MVA {mva} filled", cache(side)),
        Movement::WriteBack { halves, victim, .. } => format!(
            "D-cache line at MVA {mva}: {} {}",
            halves_words(halves),
            if victim {
                "written back to make room"
            } else {
                "cleaned"
            }
        ),
        Movement::Invalidate { side, halves: 0 } => {
            format!("{} line at MVA {mva} invalidated", cache(side))
        }
        Movement::Invalidate { side, halves } => format!(
            "{} line at MVA {mva} invalidated with {} dirty",
            cache(side),
            halves_words(halves)
        ),
        Movement::InvalidateAll(side) => format!("whole {} invalidated", cache(side)),
    }
}

pub(super) fn halves_words(halves: u8) -> &'static str {
    match halves {
        1 => "lower half",
        2 => "upper half",
        _ => "both halves",
    }
}

/// Returns `VA … (MVA …)`. The two addresses differ if FCSE relocates the address.
pub(super) fn through(pid: u32, mva: Mva) -> String {
    let va = match pid {
        0 => mva.0,
        pid if mva.0 & !(FCSE_SLOT - 1) == pid => mva.0 & (FCSE_SLOT - 1),
        _ => mva.0,
    };
    format!("VA {va:#010x} (MVA {:#010x})", mva.0)
}

pub(super) fn physical(pa: Pa) -> String {
    format!("PA {:#010x}", pa.0)
}

pub(super) fn process(pid: u32, space: AddressSpace) -> String {
    let mut text = format!(
        "address space with its page table at PA {:#010x}",
        space.table()
    );
    let numbers = [("ASID", u32::from(space.asid())), ("FCSE PID", pid >> 25)];
    for (name, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
        let _ = write!(text, ", {name} {number}");
    }
    text
}

pub(super) fn mode(bits: u32) -> &'static str {
    match bits & 0x1f {
        0x10 => "User mode",
        0x11 => "FIQ mode",
        0x12 => "IRQ mode",
        0x13 => "Supervisor mode",
        0x17 => "Abort mode",
        0x1b => "Undefined mode",
        0x1f => "System mode",
        _ => "an unknown mode",
    }
}

pub(super) fn kind_words(kind: Kind) -> &'static str {
    match kind {
        Kind::Fetch => "a fetch",
        Kind::Read => "a load",
        Kind::Write => "a store",
    }
}

pub(super) fn width(width: Width) -> &'static str {
    match width {
        Width::Byte => "byte",
        Width::Half => "half-word",
        Width::Word => "word",
    }
}

pub(super) fn mask(width: Width) -> u32 {
    match width {
        Width::Byte => 0xff,
        Width::Half => 0xffff,
        Width::Word => u32::MAX,
    }
}
