// SPDX-License-Identifier: MIT OR Apache-2.0
//! The board's NOR flash: two erased 16-bit chips of 32 MB side by side. Each has blocks of 128 KB and Intel's command
//! set (CFI primary algorithm 1, JESD 68).
//!
//! Modelled: read array (all ones), CFI query, identifier codes, status. Refused: programming, erasing and locking,
//! since the model would not keep the result. Commands to only one chip are also refused.
//!
//! No outputs, no inputs.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

const NAME: &str = "cfi_flash";

/// The data that reads return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Array,
    Query,
    Identifier,
    Status,
}

arm::state!(enum Mode: Array, Query, Identifier, Status);

/// Both chips. They always get the same command.
#[derive(Clone, Debug)]
pub(crate) struct CfiFlash {
    mode: Mode,
}

arm::state!(CfiFlash: mode);

/// The CFI table from word 0x10 on: identification, voltages and times, and geometry.
const QUERY: [u8; 0x21] = [
    b'Q', b'R', b'Y', 0x01, 0x00, 0x31, 0x00, 0x00, 0x00, 0x00, 0x00, // 0x10
    0x27, 0x36, 0x00, 0x00, 0x06, 0x09, 0x0b, 0x00, 0x02, 0x02, 0x03, 0x00, // 0x1b
    25, 0x01, 0x00, 0x00, 0x00, 0x01, 0xff, 0x00, 0x00,
    0x02, // 0x27: 2^25 bytes, 256 x 128 KB
];
/// The Intel extended table at word 0x31: version 1.1, no optional features.
const EXTENDED: [u8; 15] = [
    b'P', b'R', b'I', b'1', b'1', 0, 0, 0, 0, 0, 0, 0, 0x33, 0x00, 0x00,
];

impl CfiFlash {
    /// Makes a flash in read-array mode.
    pub(crate) fn new() -> Self {
        CfiFlash { mode: Mode::Array }
    }

    /// Returns the data of one chip at a word address of this chip.
    fn chip(&self, word: u32) -> u32 {
        let table = |bytes: &[u8], from: u32| {
            let at = word.checked_sub(from)?;
            bytes.get(at as usize).map(|&b| u32::from(b))
        };
        match self.mode {
            Mode::Array => 0xffff,
            Mode::Query => table(&QUERY, 0x10)
                .or_else(|| table(&EXTENDED, 0x31))
                .unwrap_or(0),
            // Manufacturer Intel, a 256 Mbit StrataFlash, no block locked.
            Mode::Identifier => [0x89, 0x891c].get(word as usize).copied().unwrap_or(0),
            Mode::Status => 0x80,
        }
    }
}

impl Device for CfiFlash {
    fn part(&self) -> &'static str {
        NAME
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        let half = self.chip(offset >> 2);
        Ok(regs::lanes(half | half << 16, offset, width))
    }

    fn write(&mut self, _: u64, offset: u32, w: Width, value: u32) -> Result<(), Unmodelled> {
        let refuse = |why| Err(regs::bad_write(NAME, offset, value, why));
        if w != Width::Word || value >> 16 != value & 0xffff {
            return refuse("a command to one of the two chips is not modelled");
        }
        self.mode = match value & 0xff {
            0xff => Mode::Array,
            0x98 => Mode::Query,
            0x90 => Mode::Identifier,
            0x70 => Mode::Status,
            // Intel's command to clear the status, and the unlock and reset cycles of AMD's command set.
            0x50 | 0xaa | 0x55 | 0xf0 => self.mode,
            _ => return refuse("programming, erasing and locking are not modelled"),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(f: &mut CfiFlash, code: u32) {
        f.write(0, 0x55 << 2, Width::Word, code << 16 | code)
            .unwrap();
    }

    fn word(f: &mut CfiFlash, at: u32) -> u32 {
        f.read(0, at << 2, Width::Word).unwrap()
    }

    #[test]
    fn an_erased_flash_reads_as_ones_and_answers_queries() {
        let mut f = CfiFlash::new();
        assert_eq!(word(&mut f, 0), u32::MAX);
        command(&mut f, 0x98);
        let qry: Vec<u32> = (0x10..0x13).map(|n| word(&mut f, n)).collect();
        assert_eq!(qry, [0x51_0051, 0x52_0052, 0x59_0059]);
        assert_eq!(
            [word(&mut f, 0x27) & 0xff, word(&mut f, 0x30) & 0xff],
            [25, 2]
        );
        assert_eq!(word(&mut f, 0x31) & 0xff, u32::from(b'P'));
        command(&mut f, 0xff);
        assert_eq!(f.read(0, 7, Width::Byte), Ok(0xff));
    }

    #[test]
    fn programming_is_refused() {
        let mut f = CfiFlash::new();
        assert!(f.write(0, 0, Width::Word, 0x0040_0040).is_err());
        assert!(f.write(0, 0, Width::Half, 0x98).is_err());
    }
}
