// SPDX-License-Identifier: MIT OR Apache-2.0
//! PrimeCells that Linux only identifies: PL093 static memory controller, PL131 smart card interface, PL175 memory
//! controller.
//!
//! Accesses to all other registers are refused. The effect of the memory controllers is in the memory timing of the
//! board file.
//!
//! Outputs: 0 = the interrupt (never raised). No inputs.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

/// A part with only its identification.
#[derive(Clone, Debug)]
pub(crate) struct PrimeCell {
    name: &'static str,
    periphid: u32,
}

arm::state!(PrimeCell: ; name, periphid);

impl PrimeCell {
    /// Makes a part with this name and peripheral identification.
    pub(crate) fn new(name: &'static str, periphid: u32) -> Self {
        PrimeCell { name, periphid }
    }
}

impl Device for PrimeCell {
    fn part(&self) -> &'static str {
        self.name
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read(self.name, Some(self.periphid), offset, width, |_| None)
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        let refuse = |_, _| Err(regs::NO_REGISTER);
        regs::apb_write(self.name, Some(self.periphid), offset, value, refuse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_it_is_and_refuses_the_rest() {
        let mut p = PrimeCell::new("pl131", 0x0004_1131);
        assert_eq!(p.read(0, 0xfe0, Width::Word), Ok(0x31));
        assert_eq!(p.read(0, 0xffc, Width::Word), Ok(0xb1));
        assert!(
            p.read(0, 0, Width::Word)
                .unwrap_err()
                .0
                .starts_with("pl131: ")
        );
    }
}
