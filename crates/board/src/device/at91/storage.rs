// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units into which software only stores: SDRAM controller, static memory controller, memory controller of RM9200 (MC),
//! bus matrix, general-purpose backup registers, and the internal SRAM. Facts: Linux 6.12 drivers/memory/atmel-ebi.c,
//! drivers/mfd/atmel-smc.c, arch/arm/mach-at91/pm.c.
//!
//! A unit is plain storage: each word reads what was written, and nothing else happens. In particular, the memory timing
//! is that of the board file, and the SRAM is as slow as a peripheral. The values at power-on are those that the boot
//! loader leaves.
//!
//! Values: `ebi0csa` and `ebi1csa` of the matrix, registers 0x120 and 0x124 (default 0x1_0002: SDRAM on chip select 1);
//! `ebicsa` of the matrix, register 0x11c of SAM9260 and 9G20 (default 0); `bytes` of the SRAM (default 80 KB, at most
//! 1 MB).
//!
//! No outputs, no inputs.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

/// The unit's content.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    part: &'static str,
    words: Vec<u32>,
    bytes: u32,
}

arm::state!(Storage: words; part, bytes => check);

impl Storage {
    /// Makes a unit of `bytes` bytes with these values at these offsets. All other words are 0.
    pub(crate) fn new(part: &'static str, bytes: u32, values: &[(u32, u32)]) -> Self {
        let bytes = bytes.clamp(4, 1 << 20) & !3;
        let mut words = vec![0; bytes as usize / 4];
        for (offset, value) in values {
            if let Some(word) = words.get_mut(*offset as usize / 4) {
                *word = *value;
            }
        }
        Storage { part, words, bytes }
    }

    /// Refuses a restored content of another size.
    fn check(&self) -> Result<(), arm::Damaged> {
        match self.words.len() == self.bytes as usize / 4 {
            true => Ok(()),
            false => Err(arm::Damaged("a unit's storage has another size")),
        }
    }
}

impl Device for Storage {
    fn part(&self) -> &'static str {
        self.part
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        let word = self.words.get(offset as usize / 4);
        word.map(|word| regs::lanes(*word, offset, width))
            .ok_or_else(|| regs::bad_read(self.part, offset, width))
    }

    fn write(&mut self, _: u64, offset: u32, width: Width, value: u32) -> Result<(), Unmodelled> {
        let Some(word) = self.words.get_mut(offset as usize / 4) else {
            return Err(regs::bad_write(self.part, offset, value, regs::NO_REGISTER));
        };
        *word = regs::merge(*word, offset, width, value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_their_lanes_are_kept() {
        let mut unit = Storage::new("at91_matrix", 0x200, &[(0x120, 0x1_0002)]);
        assert_eq!(unit.read(0, 0x120, Width::Word), Ok(0x1_0002));
        unit.write(0, 0x121, Width::Byte, 0xab).unwrap();
        assert_eq!(unit.read(0, 0x120, Width::Half), Ok(0xab02));
        assert!(unit.read(0, 0x200, Width::Word).is_err());
        assert!(unit.write(0, 0xffff_fffc, Width::Word, 1).is_err());
    }

    #[test]
    fn content_of_another_size_is_not_restored() {
        let mut saved = Vec::new();
        arm::State::save(&Storage::new("at91_sram", 64, &[]), &mut saved);
        let mut other = Storage::new("at91_sram", 32, &[]);
        assert!(arm::State::restore(&mut other, &mut arm::Saved::new(&saved)).is_err());
    }
}
