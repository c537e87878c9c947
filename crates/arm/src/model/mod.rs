// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cores of the family. Each core has a folder, and a line in the list here.

mod arm1136;
mod arm920t;
mod arm926ejs;
mod own;
mod rows;
mod xscale;

use core::fmt;

use crate::bus::Bus;
use crate::config::CacheGeometry;
use crate::cpu::cp15::Rows;
use crate::isa::{Encoding, Select};

pub use crate::isa::Version;
pub use crate::isa::timing::{Behaviour, Multiplier, Timing};
pub use crate::mmu::Descriptors;
pub use crate::tag::Tagging;
pub use crate::tlb::Organisation;
pub use crate::victim::Replacement;
pub use crate::write_buffer::Buffers;
pub(crate) use own::Own;

/// Empty lists, for cores without special instructions.
mod no_instructions {
    rows! {}
}

macro_rules! cores {
    (
        boards: $($all:ident),*;
        $($($file:ident)::+: $name:ident),*;
    ) => {
        $(pub use $($file)::+::CORE as $name;)*

        /// Every core that boards may have.
        pub const ALL: &[&Core] = &[$(&$all),*];

        /// Every modelled core, including the cores whose model is not complete.
        pub const EVERY: &[&Core] = &[$(&$name),*];

        impl Core {
            /// Rows of CP15 of this core.
            pub(crate) fn cp15<B: Bus>(&self) -> &'static Rows<B> {
                $(if self.name == $name.name {
                    return $($file)::+::cp15();
                })*
                unreachable!("cores are made in this folder")
            }

            /// Registers that only this kind of core has, as at reset.
            pub(crate) fn own_registers(&self) -> Own {
                $(if self.name == $name.name {
                    return $($file)::+::own_registers();
                })*
                unreachable!("cores are made in this folder")
            }

            /// Encodings that only this core has.
            pub(crate) fn own_encodings(&self) -> &'static [Encoding] {
                $(if self.name == $name.name {
                    return $($file)::+::ENCODINGS;
                })*
                unreachable!("cores are made in this folder")
            }

            /// Selectors of the encodings in [`Core::own_encodings`], in the same order.
            pub(crate) fn own_selectors<B: Bus>(&self) -> Vec<Select<B>> {
                $(if self.name == $name.name {
                    return $($file)::+::selectors();
                })*
                unreachable!("cores are made in this folder")
            }
        }
    };
}

cores!(
    boards: ARM926EJS, ARM920T, IXP42X;
    arm926ejs: ARM926EJS, arm920t: ARM920T, xscale: IXP42X, arm1136::r0p4: ARM1136_R0P4,
    arm1136::r1p3: ARM1136_R1P3;
);

/// Differences between cores, as data.
#[derive(PartialEq, Eq)]
#[non_exhaustive]
pub struct Core {
    /// Name, as board files give it.
    pub name: &'static str,
    /// Main ID register (CP15 c0,c0,0).
    pub midr: u32,
    /// Architecture version, which decides the instructions.
    pub version: Version,
    /// Associativity of both caches.
    pub ways: u32,
    /// Address in the tags of both caches.
    pub tagging: Tagging,
    /// Smallest and largest cache size that a chip may have, in bytes.
    pub cache_bytes: (u32, u32),
    /// Replacement scheme of the caches.
    pub replacement: Replacement,
    /// Cache class in the cache type register (CP15 c0, bits 28:25; `DDI0198D 2.3.2`, `DDI0184B 2.3.4`).
    pub cache_class: u32,
    /// Whether a store that bypasses the cache also updates a line that holds its address.
    pub uncached_stores_update: bool,
    /// Whether the core also has a mini data cache of 2 KB and two ways.
    pub mini_cache: bool,
    /// Whether LDRD and STRD fault at an odd word address if alignment checking is on. On other cores, they transfer
    /// two words.
    pub whole_doubles: bool,
    /// Whether translations belong to ASIDs. The context ID (CP15 c13,c0,1) then has the current ASID.
    pub asids: bool,
    /// Format of the descriptors and of the fault status.
    pub descriptors: Descriptors,
    /// Whether there are test-and-clean operations.
    pub test_and_clean: bool,
    /// Control register (CP15 c1).
    pub sctlr: Sctlr,
    /// Bits of the control register that choose the clocking mode. Software must leave these bits as the boot loader
    /// set them, which is their state in `sctlr.reset`.
    pub clocking: u32,
    /// The unified TLB, or the TLB of instructions and the TLB of data.
    pub tlbs: &'static [Organisation],
    /// The main write buffer.
    pub buffers: Buffers,
    /// Issue cycles.
    pub timing: Timing,
    /// Differences in behaviour other than issue cycles.
    pub behaviour: Behaviour,
}

/// Bits of the control register.
#[derive(Debug, PartialEq, Eq)]
pub struct Sctlr {
    /// Writable bits.
    pub writable: u32,
    /// Bits that are set at reset.
    pub reset: u32,
    /// Bits that the model does not support as one. A write of a one ends the run.
    pub refused: u32,
}

/// An ARM926EJ-S with one TLB for each side, for tests of cores with two TLBs. No chip has this combination. CP15 is as
/// on the ARM926EJ-S: c8 operates on both TLBs, c10 on the TLB of data.
#[cfg(test)]
pub(crate) static SPLIT: Core = Core {
    tlbs: &[Organisation::new(1, 16, 0), Organisation::new(16, 2, 2)],
    ..ARM926EJS
};

/// A core with the caches, TLBs and bus of the ARM920T and the CP15 of the ARM926EJ-S. The test programs of the
/// ARM926EJ-S run on this core.
#[cfg(test)]
pub(crate) static FROM_BASE: Core = Core {
    ways: ARM920T.ways,
    replacement: ARM920T.replacement,
    uncached_stores_update: ARM920T.uncached_stores_update,
    buffers: ARM920T.buffers,
    tlbs: ARM920T.tlbs,
    ..ARM926EJS
};

/// An ARM926EJ-S with physically tagged caches, for tests of tagging. No chip has this combination. The index is still
/// virtual. A cache of 16 KB has ways of 4 KB, so the index is part of the page offset; larger caches have aliases.
#[cfg(test)]
pub(crate) static PHYSICAL: Core = Core {
    tagging: Tagging::Physical,
    cache_bytes: (4096, 65_536),
    ..ARM926EJS
};

/// Different cores must have different texts, because the texts distinguish boards. The omitted fields follow from the
/// name.
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
    /// Returns the core with this name.
    pub fn named(name: &str) -> Option<&'static Core> {
        ALL.iter().find(|core| core.name == name).copied()
    }

    /// Cache type register for caches of these sizes: separate caches, write-back.
    pub fn cache_type(&self, icache: CacheGeometry, dcache: CacheGeometry) -> u32 {
        let field = |c: CacheGeometry| {
            (c.size.trailing_zeros() - 9) << 6 | c.ways.trailing_zeros() << 3 | 0b10
        };
        self.cache_class << 25 | 1 << 24 | field(dcache) << 12 | field(icache)
    }

    /// Returns a cache of this size.
    ///
    /// # Errors
    ///
    /// Fails if the core cannot have a cache of this size.
    pub fn cache(&self, size: u32) -> Result<CacheGeometry, String> {
        let (least, most) = self.cache_bytes;
        let ways = self.ways;
        if size.is_power_of_two() && (least..=most).contains(&size) {
            return Ok(CacheGeometry { size, ways });
        }
        let sizes = match least == most {
            true => format!("{} has {least}", self.name),
            false => format!("a power of two from {least} to {most}"),
        };
        Err(format!("{size} bytes is not a cache size: {sizes}"))
    }
}
