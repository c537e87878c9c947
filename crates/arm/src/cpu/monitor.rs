// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exclusive monitor of ARMv6 (A2.9; `DDI0211 8.2`): LDREX sets its tag, and STREX stores only while the tag is set.
//!
//! All memory is treated as not shared, so this local monitor is the only one. A store of the core itself to the tagged
//! bytes clears the tag (D), as do CLREX and every STREX, whether it stores or not (R). Exceptions and other bus masters
//! do not clear the tag.
//!
//! STREX compares the physical address. Stores are compared by modified virtual address, because the caches of this
//! model are virtually tagged: a store through another address of the same bytes does not clear the tag. No grant
//! ([`crate::grants`]) allows a write to the line of the tag, so that each store to the line is seen.

use super::Cpu;
use crate::addr::{Mva, Pa};
use crate::bus::Bus;

/// Number of tagged bytes (E: the manual gives no number).
const GRANULE: u32 = 8;

/// The exclusive monitor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Monitor {
    /// Tagged address, virtual and physical. Both are multiples of [`GRANULE`].
    tag: Option<(Mva, Pa)>,
}

crate::state!(Monitor: tag);

impl Monitor {
    /// Tags the bytes at an address.
    fn set(&mut self, mva: Mva, pa: Pa) {
        let granule = !(GRANULE - 1);
        self.tag = Some((Mva(mva.0 & granule), Pa(pa.0 & granule)));
    }

    /// Clears the tag.
    pub(crate) fn clear(&mut self) {
        self.tag = None;
    }

    /// Whether a tagged byte is in the line of `mva`.
    #[inline]
    pub(crate) fn is_in_line(&self, mva: Mva) -> bool {
        self.tag.is_some_and(|(tag, _)| (tag.0 ^ mva.0) & !31 == 0)
    }

    /// Clears the tag if a store of `bytes` bytes to `mva` writes to a tagged byte.
    #[inline(always)]
    pub(crate) fn stored(&mut self, mva: Mva, bytes: u32) {
        if let Some((tag, _)) = self.tag
            && (tag.0.wrapping_sub(mva.0) < bytes || mva.0.wrapping_sub(tag.0) < GRANULE)
        {
            self.tag = None;
        }
    }

    /// Clears the tag. Returns whether it was set for `pa`.
    pub(crate) fn take(&mut self, pa: Pa) -> bool {
        let tag = self.tag.take();
        tag.is_some_and(|(_, tag)| tag.0 == pa.0 & !(GRANULE - 1))
    }
}

impl<B: Bus> Cpu<B> {
    /// Tags the bytes at an address that an exclusive load has read.
    pub(crate) fn tag(&mut self, mva: Mva, pa: Pa) {
        self.monitor.set(mva, pa);
        self.memory.revoke_grant(mva, pa);
    }
}
