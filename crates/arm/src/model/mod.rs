// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cores of the family, a folder each and a line here.

mod arm920t;
mod arm926ejs;
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
pub use crate::tlb::Organisation;
pub use crate::victim::Replacement;
pub use crate::write_buffer::Buffers;
pub(crate) use xscale::XScaleRegisters;

/// For cores without instructions of their own.
mod no_instructions {
    rows! {}
}

macro_rules! cores {
    ($($file:ident: $name:ident),*) => {
        $(pub use $file::CORE as $name;)*

        /// Every core there is.
        pub const ALL: &[&Core] = &[$(&$name),*];

        impl Core {
            /// Its rows of CP15.
            pub(crate) fn cp15<B: Bus>(&self) -> &'static Rows<B> {
                $(if self.name == $name.name {
                    return $file::cp15();
                })*
                unreachable!("cores are made in this folder")
            }

            /// Instructions that it alone has.
            pub(crate) fn own_encodings(&self) -> &'static [Encoding] {
                $(if self.name == $name.name {
                    return $file::ENCODINGS;
                })*
                unreachable!("cores are made in this folder")
            }

            /// What decodes them, in the same order.
            pub(crate) fn own_selectors<B: Bus>(&self) -> Vec<Select<B>> {
                $(if self.name == $name.name {
                    return $file::selectors();
                })*
                unreachable!("cores are made in this folder")
            }
        }
    };
}

cores!(arm926ejs: ARM926EJS, arm920t: ARM920T, xscale: IXP42X);

/// What distinguishes a core from others, as data.
#[derive(PartialEq, Eq)]
#[non_exhaustive]
pub struct Core {
    /// As board files say it.
    pub name: &'static str,
    /// CP15 c0,c0,0: main id.
    pub midr: u32,
    /// Which instructions it has.
    pub version: Version,
    /// Associativity of both caches.
    pub ways: u32,
    /// Smallest and largest size of a cache that a chip may have, in bytes.
    pub cache_bytes: (u32, u32),
    /// How a cache makes room.
    pub replacement: Replacement,
    /// CP15 c0, cache type: what caches can do (bits 28:25; `DDI0198D 2.3.2`, `DDI0184B 2.3.4`).
    pub cache_class: u32,
    /// Whether a store past the cache updates a line that has its address all the same.
    pub uncached_stores_update: bool,
    /// Whether it has a mini data cache beside the other one: 2 KB, of two ways.
    pub mini_cache: bool,
    /// LDRD and STRD fault at an odd word where alignment is checked. On others they are two words.
    pub whole_doubles: bool,
    /// What its translation tables say, and its fault status.
    pub descriptors: Descriptors,
    /// Whether it has the operations that test D-cache lines and clean the first dirty one.
    pub test_and_clean: bool,
    /// CP15 c1.
    pub sctlr: Sctlr,
    /// Bits of it that choose how the core is clocked. They have to stay as the boot loader left them,
    /// which is how `sctlr.reset` has them.
    pub clocking: u32,
    /// Its TLB; or that of instructions and that of data.
    pub tlbs: &'static [Organisation],
    /// Its main write buffer.
    pub buffers: Buffers,
    /// Issue cycles.
    pub timing: Timing,
    /// What it does differently, beside them.
    pub behaviour: Behaviour,
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

/// One with the ARM920T's caches, TLBs and bus, and the 926's CP15, so that programs for that run on it.
#[cfg(test)]
pub(crate) static FROM_BASE: Core = Core {
    ways: ARM920T.ways,
    replacement: ARM920T.replacement,
    uncached_stores_update: ARM920T.uncached_stores_update,
    buffers: ARM920T.buffers,
    tlbs: ARM920T.tlbs,
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
        ALL.iter().find(|core| core.name == name).copied()
    }

    /// Cache type register for caches of these sizes: separate ones, write-back.
    pub fn cache_type(&self, icache: CacheGeometry, dcache: CacheGeometry) -> u32 {
        let field = |c: CacheGeometry| {
            (c.size.trailing_zeros() - 9) << 6 | c.ways.trailing_zeros() << 3 | 0b10
        };
        self.cache_class << 25 | 1 << 24 | field(dcache) << 12 | field(icache)
    }

    /// A cache of this size.
    ///
    /// # Errors
    /// When the core cannot have it.
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
