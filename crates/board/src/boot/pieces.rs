// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pieces that the boot loader puts into RAM, and the check that they fit.

use super::BootError;
use crate::memory::Sdram;
use crate::spec::BoardSpec;

/// A range of RAM with its contents.
pub(super) struct Piece<'a> {
    pub name: String,
    pub base: u32,
    pub bytes: &'a [u8],
    /// Bytes that the piece uses when it runs; at least the length of `bytes`.
    pub size: u32,
}

/// Checks the pieces as [`check_places`] does, and loads them into RAM.
pub(super) fn place(
    spec: &BoardSpec,
    ram_bytes: u32,
    ram: &mut Sdram,
    pieces: &[Piece<'_>],
) -> Result<(), BootError> {
    check_places(spec, ram_bytes, pieces)?;
    for piece in pieces {
        let loaded = ram.load(piece.base - spec.peripherals.ram_base, piece.bytes);
        assert!(loaded, "the check above ensures that the piece fits");
    }
    Ok(())
}

/// Checks that all pieces lie in the first `ram_bytes` of RAM and do not overlap.
pub(super) fn check_places(
    spec: &BoardSpec,
    ram_bytes: u32,
    pieces: &[Piece<'_>],
) -> Result<(), BootError> {
    let ram_base = u64::from(spec.peripherals.ram_base);
    let ram_end = ram_base + u64::from(ram_bytes);
    let extent = |p: &Piece<'_>| {
        let size = u64::from(p.size).max(p.bytes.len() as u64);
        (u64::from(p.base), u64::from(p.base) + size)
    };
    for (i, piece) in pieces.iter().enumerate() {
        let (start, end) = extent(piece);
        let error = |problem| BootError {
            file: piece.name.clone(),
            problem,
        };
        if start < ram_base || end > ram_end {
            return Err(error(format!(
                "does not fit into RAM: it takes {start:#010x} to {end:#010x}, \
                 RAM is {ram_base:#010x} to {ram_end:#010x}"
            )));
        }
        for other in &pieces[..i] {
            let (other_start, other_end) = extent(other);
            if start < other_end && other_start < end {
                return Err(error(format!(
                    "overlaps {}: {start:#010x} to {end:#010x} and {other_start:#010x} to \
                     {other_end:#010x}",
                    other.name
                )));
            }
        }
    }
    Ok(())
}
