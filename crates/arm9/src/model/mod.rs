// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cores of the family, one file each, and a line in [`ALL`] and in [`Core::cp15`].

mod arm926ejs;

use core::fmt;

use crate::bus::Bus;
use crate::cpu::cp15::Rows;

pub use crate::isa::Version;
pub use crate::isa::timing::Timing;
pub use crate::tlb::Organisation;

pub use arm926ejs::CORE as ARM926EJS;

/// Every core there is.
pub const ALL: [&Core; 1] = [&ARM926EJS];

/// What distinguishes a core from others, as data.
#[derive(PartialEq, Eq)]
pub struct Core {
    /// As board files say it.
    pub name: &'static str,
    /// CP15 c0,c0,0: main id.
    pub midr: u32,
    /// Which instructions it has.
    pub version: Version,
    /// Associativity of both caches.
    pub ways: u32,
    /// CP15 c1.
    pub sctlr: Sctlr,
    /// Its TLB; or that of instructions and that of data.
    pub tlbs: &'static [Organisation],
    /// Issue cycles.
    pub timing: Timing,
}

/// Bits of the control register.
#[derive(Debug, PartialEq, Eq)]
pub struct Sctlr {
    /// That can be written.
    pub writable: u32,
    /// That are set at reset.
    pub reset: u32,
    /// Whose ones are not modelled.
    pub refused: u32,
}

/// A core with a TLB for each side: no chip's, for what is said of such cores. CP15 is the 926's, of
/// which c8 reaches both TLBs and c10 that of data.
#[cfg(test)]
pub(crate) static SPLIT: Core = Core {
    tlbs: &[Organisation::new(1, 16, 0), Organisation::new(16, 2, 2)],
    ..ARM926EJS
};

/// Boards are told apart by this; what is not here follows from the name.
impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("name", &self.name)
            .field("midr", &self.midr)
            .field("ways", &self.ways)
            .field("sctlr", &self.sctlr)
            .finish()
    }
}

impl Core {
    /// The core of that name.
    pub fn named(name: &str) -> Option<&'static Core> {
        ALL.into_iter().find(|core| core.name == name)
    }

    /// Its rows of CP15.
    pub(crate) fn cp15<B: Bus>(&self) -> &'static Rows<B> {
        arm926ejs::cp15()
    }
}
