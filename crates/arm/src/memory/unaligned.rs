// SPDX-License-Identifier: MIT OR Apache-2.0
//! Swaps, and unaligned accesses (A2.7) and exclusive accesses (A2.9) of ARMv6.
//!
//! An unaligned access is made byte by byte. Before the first byte, the permissions of all bytes are checked, so that a
//! translation fault on the second page leaves memory as it was (E). The address of the fault is that of the first byte
//! that faults. The whole access takes one cycle more than an aligned one, for the second memory access (D).

use crate::addr::{Mva, Va};
use crate::bus::{Bus, Width};
use crate::cpu::{Aborted, Access, Cpu};
use crate::mmu::{self, Fault, Kind, Resolved};
use crate::observe::Cause;

/// Size of the smallest page. Addresses on different sides of a multiple of it may have different attributes.
const SMALLEST_PAGE: u32 = 1024;

impl<B: Bus> Cpu<B> {
    pub(super) fn load_unaligned(
        &mut self,
        mva: Mva,
        width: Width,
        privileged: bool,
    ) -> Access<u32> {
        let pages = self.unaligned_pages(mva, width, (Kind::Read, privileged))?;
        let mut value = 0;
        for n in 0..width.bytes() {
            let at = Mva(mva.0.wrapping_add(n));
            value |= self.load_at(page_of(pages, mva, at), at, Width::Byte)? << (8 * n);
        }
        Ok(value)
    }

    pub(super) fn store_unaligned(
        &mut self,
        mva: Mva,
        (width, value): (Width, u32),
        privileged: bool,
    ) -> Access<()> {
        let pages = self.unaligned_pages(mva, width, (Kind::Write, privileged))?;
        for n in 0..width.bytes() {
            let at = Mva(mva.0.wrapping_add(n));
            let byte = (Width::Byte, value >> (8 * n) & 0xff);
            self.store_at(page_of(pages, mva, at), at, byte, false)?;
        }
        Ok(())
    }

    /// Translates and checks an unaligned access. Returns the pages of its first and its last byte.
    fn unaligned_pages(
        &mut self,
        mva: Mva,
        width: Width,
        (kind, privileged): (Kind, bool),
    ) -> Access<[Resolved; 2]> {
        let first = self.access(mva, kind, privileged)?;
        let last = Mva(mva.0.wrapping_add(width.bytes() - 1));
        let second = match is_in_same_page(mva, last) {
            true => first,
            false => self.access(Mva(last.0 & !(SMALLEST_PAGE - 1)), kind, privileged)?,
        };
        if self.is_device(first) || self.is_device(second) {
            // The access is UNPREDICTABLE (A2.7, B2.4.2).
            self.refuse_case("an unaligned access to Device or Strongly Ordered memory");
            return Err(Aborted);
        }
        self.spend(Cause::Instruction, 1);
        Ok([first, second])
    }

    /// Whether a page is Device or Strongly Ordered memory: it has C clear. While the MMU is off, all memory is Strongly
    /// Ordered for data. While only the D-cache is off, the kinds of memory cannot be told apart, and no page counts as
    /// Device memory.
    fn is_device(&self, page: Resolved) -> bool {
        let control = self.memory.mmu.control();
        !control.on || control.dcache_on && !page.has(mmu::CACHE)
    }

    /// Swaps (SWP). Checks write permission first. The store is not buffered.
    pub(crate) fn swap(&mut self, va: u32, width: Width, value: u32) -> Access<u32> {
        let mva = self.data_mva(va);
        let privileged = self.memory.mmu.privileged();
        if width == Width::Word && va & 3 != 0 && self.cp15.words_are_aligned() {
            return Err(self.data_abort(Fault::ALIGNMENT, mva));
        }
        if self.is_v6() {
            // The fault counts as that of a read if a read would have it, too.
            self.access(mva, Kind::Read, privileged)?;
        }
        self.access(mva, Kind::Write, privileged)?;
        let old = self.load_slow(mva, width, privileged)?;
        self.store_slow(mva, width, value, privileged, true)?;
        self.drain_write_buffer();
        Ok(old)
    }

    /// Loads words exclusively (LDREX and similar), and tags their address in the monitor.
    pub(crate) fn load_exclusive(
        &mut self,
        va: u32,
        width: Width,
        words: &mut [u32],
    ) -> Access<()> {
        let mva = self.exclusive_address(va, width, words.len(), Kind::Read)?;
        let privileged = self.memory.privileged();
        let page = self.access(mva, Kind::Read, privileged)?;
        for (n, word) in (0..).zip(words) {
            *word = self.load_at(page, Mva(mva.0 + 4 * n), width)?;
        }
        self.tag(mva, page.pa(mva));
        Ok(())
    }

    /// Stores words exclusively (STREX and similar) if the monitor has the tag of their address. Returns whether it did.
    /// The access is checked as a store in either case (R).
    pub(crate) fn store_exclusive(&mut self, va: u32, width: Width, words: &[u32]) -> Access<bool> {
        let mva = self.exclusive_address(va, width, words.len(), Kind::Write)?;
        let page = self.access(mva, Kind::Write, self.memory.privileged())?;
        let tagged = self.monitor.take(page.pa(mva));
        if tagged {
            for (n, word) in (0..).zip(words) {
                self.store_at(page, Mva(mva.0 + 4 * n), (width, *word), false)?;
            }
        }
        Ok(tagged)
    }

    /// The address of an exclusive access. It faults if it is not a multiple of the size of all words. Without SCTLR.A
    /// and SCTLR.U, the low bits are ignored.
    fn exclusive_address(
        &mut self,
        va: u32,
        width: Width,
        words: usize,
        kind: Kind,
    ) -> Access<Mva> {
        let mva = self.fcse.data(Va(va));
        let low = width.bytes() * words as u32 - 1;
        if mva.0 & low != 0 && self.cp15.words_are_aligned() {
            return Err(self.data_abort_of(kind, Fault::ALIGNMENT, mva));
        }
        Ok(Mva(mva.0 & !low))
    }
}

fn is_in_same_page(one: Mva, other: Mva) -> bool {
    (one.0 ^ other.0) & !(SMALLEST_PAGE - 1) == 0
}

/// The page of byte `at` of an access that begins at `mva`.
fn page_of(pages: [Resolved; 2], mva: Mva, at: Mva) -> Resolved {
    pages[usize::from(!is_in_same_page(mva, at))]
}
