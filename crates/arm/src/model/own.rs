// SPDX-License-Identifier: MIT OR Apache-2.0
//! Coprocessor registers that only one kind of core has.

use super::xscale::XScaleRegisters;
use crate::cpu::cp15::Cp15;
use crate::state::{Damaged, Saved, State};

/// The registers of one kind of core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// The core has only registers that several kinds have.
    None,
    /// XScale's.
    XScale(XScaleRegisters),
}

/// The kind is that of the core, so that only the registers are saved.
impl State for Own {
    fn save(&self, to: &mut Vec<u8>) {
        match self {
            Own::None => {}
            Own::XScale(registers) => registers.save(to),
        }
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        match self {
            Own::None => Ok(()),
            Own::XScale(registers) => registers.restore(from),
        }
    }
}

impl Own {
    /// Latest time in the registers.
    pub(crate) fn latest(&self) -> u64 {
        match self {
            Own::None => 0,
            Own::XScale(registers) => registers.latest(),
        }
    }
}

/// Registers of a core that has none of its own.
pub(crate) fn no_registers() -> Own {
    Own::None
}

/// Only the rows and the instructions of a kind of core use its registers.
const OTHER_CORE: &str = "a core has the registers that its rows and instructions use";

impl Cp15 {
    /// XScale's registers, on XScale.
    #[inline(always)]
    pub(crate) fn xscale(&self) -> &XScaleRegisters {
        match &self.own {
            Own::XScale(registers) => registers,
            Own::None => unreachable!("{OTHER_CORE}"),
        }
    }

    /// XScale's registers, on XScale, to change them.
    #[inline(always)]
    pub(crate) fn xscale_mut(&mut self) -> &mut XScaleRegisters {
        match &mut self.own {
            Own::XScale(registers) => registers,
            Own::None => unreachable!("{OTHER_CORE}"),
        }
    }
}
