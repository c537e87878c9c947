// SPDX-License-Identifier: MIT OR Apache-2.0
//! Permissions, and attributes of memory: cacheable, bufferable, and XScale's extensions.

use super::{ALLOCATE, BUFFER, CACHE, Control, Descriptors, ICACHE, MINI, READ, SINGLE, WRITE};
use crate::tlb::Entry;

impl Control {
    /// Flags of the caches and the write buffer, from C, B and X and the control registers.
    #[inline(always)]
    pub fn attributes(&self, descriptors: Descriptors, entry: &Entry) -> u32 {
        let mut flags = 0;
        let cacheable = entry.cb & 2 != 0;
        if cacheable && self.icache_on {
            flags |= ICACHE;
        }
        if cacheable && self.dcache_on {
            flags |= CACHE;
            if entry.cb & 1 != 0 && !self.force_write_through {
                flags |= BUFFER;
            }
        } else if !cacheable && entry.cb & 1 != 0 {
            flags |= BUFFER;
        }
        if descriptors == Descriptors::Extended {
            flags |= self.extension(entry.cb);
        }
        flags
    }

    /// Flags that the X bit adds (IXP42X 3.1.1.2, p. 46). X alone is reserved and adds none.
    fn extension(&self, xcb: u8) -> u32 {
        match (xcb, self.mini) {
            (0b101, _) => SINGLE,
            (0b110 | 0b111, _) if !self.dcache_on => 0,
            (0b110, 0) => MINI | BUFFER,
            (0b110, 1) => MINI | BUFFER | ALLOCATE,
            (0b110, _) => MINI,
            (0b111, _) => ALLOCATE,
            _ => 0,
        }
    }
}

/// Accesses that AP, S and R allow (ARM ARM B4.3, table B4-1).
#[inline]
pub(super) fn permissions(ap: u8, s: bool, r: bool, privileged: bool) -> u32 {
    match (ap & 3, privileged) {
        (0, true) if s != r => READ,
        (0, false) if r && !s => READ,
        (0, _) => 0,
        (1, true) => READ | WRITE,
        (1, false) => 0,
        (2, true) => READ | WRITE,
        (2, false) => READ,
        _ => READ | WRITE,
    }
}
