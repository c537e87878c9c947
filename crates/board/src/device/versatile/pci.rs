// SPDX-License-Identifier: MIT OR Apache-2.0
//! Versatile PCI bridge control registers (DUI 0224, 4.18) on a board without a backplane.
//!
//! The window registers hold their values. The model has neither a PCI bus nor a configuration space. The system
//! registers report that there is no backplane, so Linux leaves the bridge alone.
//!
//! Outputs: 0 to 3 = PCI interrupts A to D (never raised). No inputs.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

/// Registers IMAP0 to 2, SELFID, FLAGS, SMAP0 to 2.
#[derive(Clone, Debug, Default)]
pub(crate) struct VersatilePci {
    held: [u32; 8],
}

arm::state!(VersatilePci: held);

impl VersatilePci {
    /// Makes a bridge with all windows at 0.
    pub(crate) fn new() -> Self {
        Self::default()
    }
}

impl Device for VersatilePci {
    fn part(&self) -> &'static str {
        "versatile_pci"
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("versatile_pci", None, offset, width, |reg| {
            self.held.get((reg / 4) as usize).copied()
        })
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("versatile_pci", None, offset, value, |reg, value| {
            *self
                .held
                .get_mut((reg / 4) as usize)
                .ok_or(regs::NO_REGISTER)? = value;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_hold_and_the_rest_is_refused() {
        let mut p = VersatilePci::new();
        p.write(0, 0x14, Width::Word, 5).unwrap();
        assert_eq!(p.read(0, 0x14, Width::Word), Ok(5));
        assert!(p.read(0, 0x20, Width::Word).is_err());
    }
}
