// SPDX-License-Identifier: MIT OR Apache-2.0
//! Grants: a grant allows the current context to read or write a D-cache line. One comparison finds it.
//!
//! The table stands in front of the TLB and the D-cache and only makes the host faster. A line gets a grant when the
//! line is in the cache and a checked translation of its page is in the fast table. When the line or the translation
//! leaves, the grant ends. A grant refers to the line of the modelled cache, so grants change no result and no cycle.
//!
//! A line of a virtually tagged cache has one address, so its grant is at one place of the table. A line of a physically
//! tagged cache may have several addresses. Such a line has one grant at a time, and the table remembers its address.

use core::mem::offset_of;

use crate::addr::Mva;

/// Number of grants. The address selects the grant. Lines at a distance of this many lines share a grant.
const GRANTS: usize = 512;

/// Matches no line: no context has all bits set ([`crate::mmu::Mmu`] ensures this).
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Grant {
    /// Address of the line and context for reads, or [`NONE`].
    read: u32,
    /// Address of the line and context for writes that stay in the cache, or [`NONE`].
    write: u32,
    line: u32,
}

const EMPTY: Grant = Grant {
    read: NONE,
    write: NONE,
    line: 0,
};

/// The table of grants.
#[derive(Clone)]
pub struct Grants {
    entries: [Grant; GRANTS],
    /// Number of the context (privilege and domain access control), in bits 4:2.
    context: u32,
    /// For each line, the address of its last grant. Empty if a line has only one address.
    last: Box<[Mva]>,
}

impl Grants {
    /// Offsets of the first grant's key for reads, of its key for writes and of its line, and of the context.
    pub(crate) const OFFSETS: [usize; 4] = [
        offset_of!(Grants, entries) + offset_of!(Grant, read),
        offset_of!(Grants, entries) + offset_of!(Grant, write),
        offset_of!(Grants, entries) + offset_of!(Grant, line),
        offset_of!(Grants, context),
    ];

    /// Returns a table without grants, for lines that have one address each, or for `lines` lines that have several.
    pub fn new(lines: usize) -> Grants {
        Grants {
            entries: [EMPTY; GRANTS],
            context: 0,
            last: vec![Mva(0); lines].into(),
        }
    }

    /// Sets the number (0 to 6) of the context of the accesses that follow.
    pub fn set_context(&mut self, number: u32) {
        self.context = number << 2;
    }

    #[inline(always)]
    fn slot(mva: Mva) -> usize {
        mva.0 as usize / 32 % GRANTS
    }

    /// Key of a grant for `mva`. `misaligned` is the mask of the address bits that must be clear.
    #[inline(always)]
    fn key(&self, mva: Mva, misaligned: u32) -> u32 {
        mva.0 & (!31 | misaligned) | self.context
    }

    /// Returns the line from which `mva` may be read.
    #[inline(always)]
    pub fn read(&self, mva: Mva, misaligned: u32) -> Option<usize> {
        let grant = &self.entries[Self::slot(mva)];
        (grant.read == self.key(mva, misaligned)).then_some(grant.line as usize)
    }

    /// Returns the line to which `mva` may be written. The caller marks it dirty.
    #[inline(always)]
    pub fn write(&self, mva: Mva, misaligned: u32) -> Option<usize> {
        let grant = &self.entries[Self::slot(mva)];
        (grant.write == self.key(mva, misaligned)).then_some(grant.line as usize)
    }

    /// Grants accesses to the line that holds `mva`. Whoever may write may read.
    #[inline]
    pub fn give(&mut self, mva: Mva, line: usize, read: bool, write: bool) {
        debug_assert!(read || !write);
        if let Some(last) = self.last.get_mut(line) {
            let before = core::mem::replace(last, mva);
            self.entries[Self::slot(before)] = EMPTY;
        }
        let key = self.key(mva, 0);
        self.entries[Self::slot(mva)] = Grant {
            read: if read { key } else { NONE },
            write: if write { key } else { NONE },
            line: line as u32,
        };
    }

    /// Revokes the grant for a line, because the line leaves the cache. If lines have one address, `mva` is that address.
    #[inline]
    pub fn take(&mut self, line: usize, mva: Mva) {
        let granted = self.last.get(line).copied().unwrap_or(mva);
        self.entries[Self::slot(granted)] = EMPTY;
    }

    /// Revokes the grants for the block of addresses that equal `mva` in the bits of `mask`, because their translation
    /// leaves the TLB.
    pub fn take_block(&mut self, mva: Mva, mask: u32) {
        // The grants of a small block lie side by side.
        let lines = ((!mask >> 5) as usize + 1).min(GRANTS);
        let first = Self::slot(Mva(mva.0 & mask)) & !(lines - 1);
        for grant in &mut self.entries[first..][..lines] {
            if (grant.read ^ mva.0) & mask == 0 {
                *grant = EMPTY;
            }
        }
    }

    /// Revokes all grants, because all lines leave the cache or translations have changed.
    pub fn take_all(&mut self) {
        self.entries.fill(EMPTY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted() -> Grants {
        granted_of(0)
    }

    fn granted_of(lines: usize) -> Grants {
        let mut grants = Grants::new(lines);
        grants.set_context(1);
        grants.give(Mva(0x1234), 7, true, false);
        grants
    }

    #[test]
    fn a_grant_covers_its_line_in_its_context_for_what_it_says() {
        let mut grants = granted();
        assert_eq!(grants.read(Mva(0x123c), 3), Some(7));
        assert_eq!(grants.write(Mva(0x1234), 3), None);
        assert_eq!(grants.read(Mva(0x1240), 3), None);
        assert_eq!(grants.read(Mva(0x1234 + 32 * GRANTS as u32), 3), None);
        grants.set_context(2);
        assert_eq!(grants.read(Mva(0x1234), 3), None);
    }

    #[test]
    fn misaligned_accesses_have_none() {
        let grants = granted();
        assert_eq!(grants.read(Mva(0x1236), 3), None);
        assert_eq!(grants.read(Mva(0x1236), 1), Some(7));
        assert_eq!(grants.read(Mva(0x1235), 1), None);
        assert_eq!(grants.read(Mva(0x1235), 0), Some(7));
    }

    #[test]
    fn an_empty_grant_matches_nothing() {
        let mut grants = granted();
        grants.set_context(6);
        for at in [u32::MAX, 0xffff_fffc, 0xffff_ffe3] {
            assert_eq!(grants.read(Mva(at), 3), None);
        }
    }

    #[test]
    fn grants_can_be_taken_back() {
        let mut grants = granted();
        grants.take(7, Mva(0x1220));
        assert_eq!(grants.read(Mva(0x1234), 3), None);
        let mut grants = granted();
        grants.take_block(Mva(0x2000), !0xfff);
        assert_eq!(grants.read(Mva(0x1234), 3), Some(7));
        grants.take_block(Mva(0x1fff), !0xfff);
        assert_eq!(grants.read(Mva(0x1234), 3), None);
        let mut grants = granted();
        grants.give(Mva(0x10_4000), 8, true, true);
        grants.take_block(Mva(0x1f_0000), !0xf_ffff);
        assert_eq!(grants.write(Mva(0x10_4000), 3), None);
        assert_eq!(grants.read(Mva(0x1234), 3), Some(7));
        grants.take_all();
        assert_eq!(grants.read(Mva(0x1234), 3), None);
    }

    #[test]
    fn a_line_with_several_addresses_has_one_grant() {
        let mut grants = granted_of(8);
        grants.give(Mva(0x2_1234), 7, true, false);
        assert_eq!(grants.read(Mva(0x2_1234), 3), Some(7));
        let mut grants = granted_of(8);
        grants.give(Mva(0x1_5234), 7, true, false);
        assert_eq!(grants.read(Mva(0x1234), 3), None);
        assert_eq!(grants.read(Mva(0x1_5234), 3), Some(7));
        // The line leaves the cache, whichever of its addresses the cache has kept.
        grants.take(7, Mva(0x1234));
        assert_eq!(grants.read(Mva(0x1_5234), 3), None);
    }
}
