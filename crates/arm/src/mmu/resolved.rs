// SPDX-License-Identifier: MIT OR Apache-2.0
//! Translations with their permissions and attributes, as accesses use them.

use super::Fault;
use crate::addr::{Mva, Pa};

/// The current privilege may read.
pub const READ: u32 = 1 << 0;
/// The current privilege may write.
pub const WRITE: u32 = 1 << 1;
/// Bufferable. A cacheable page is bufferable only while the D-cache is enabled.
pub const BUFFER: u32 = 1 << 2;
/// Cacheable on the data side, while the D-cache is enabled.
pub const CACHE: u32 = 1 << 3;
/// Cacheable on the instruction side.
pub const ICACHE: u32 = 1 << 4;
/// Translated by a section descriptor.
pub(super) const SECTION: u32 = 1 << 5;
/// Position of the domain, which the fault status of external aborts needs. The domain has four bits.
pub(super) const DOMAIN_SHIFT: u32 = 6;
/// The current privilege may fetch.
pub const EXECUTE: u32 = 1 << 10;
/// Device or Strongly Ordered memory, where the tables distinguish it from other uncached memory.
pub const DEVICE: u32 = 1 << 11;
/// Fill the mini data cache ([`super::Descriptors::Extended`]).
pub const MINI: u32 = 1 << 12;
/// Fill a line on a store that misses ([`super::Descriptors::Extended`]).
pub const ALLOCATE: u32 = 1 << 13;
/// Keep a buffered store separate from others ([`super::Descriptors::Extended`]).
pub const SINGLE: u32 = 1 << 14;

/// Matches no page: no context has all of bits 31:24 set.
pub(super) const NO_KEY: u32 = u32::MAX;

/// A translation with its permissions resolved for one context.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resolved {
    /// MVA[31:12] in bits 19:0 and the context in bits 31:20, or [`NO_KEY`].
    pub(super) key: u32,
    /// Physical address of the 4 KB page. For a tiny page, the address where its 4 KB page would start.
    pub(super) base: u32,
    pub(super) flags: u32,
}

impl Resolved {
    /// Physical address of `mva`, which is in this page.
    #[inline(always)]
    pub fn pa(self, mva: Mva) -> Pa {
        Pa(self.base.wrapping_add(mva.0 & 0xfff))
    }

    /// Whether all of `flags` are set.
    #[inline(always)]
    pub fn has(self, flags: u32) -> bool {
        self.flags & flags == flags
    }

    /// Whether the translation holds for the whole 4 KB page around its address.
    pub fn holds_for_4_kb(self) -> bool {
        self.key != NO_KEY
    }

    /// Fault of an external abort in this page, on ARM's own cores.
    pub(super) fn external_abort(self) -> Fault {
        Fault::external(self.has(SECTION), (self.flags >> DOMAIN_SHIFT & 15) as u8)
    }
}
