// SPDX-License-Identifier: MIT OR Apache-2.0
//! Support for debuggers: memory as the core sees it, and watchpoints.
//!
//! Reads and watchpoints change no result and no cycle. While a watchpoint is set, translations stay out of the fast
//! table. Every data access therefore takes the slow path, which compares it with the watchpoints. Without watchpoints,
//! this support costs no host time.

use crate::addr::{Mva, Pa, Va};
use crate::bus::{Bus, Width};
use crate::cpu::Cpu;
use crate::mmu::{self, DescriptorRead, Kind, walk};
use crate::tag::{Tagging, UNTRANSLATED};
use crate::tlb::Entry;

/// Data accesses that stop the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchpoint {
    /// First byte watched.
    pub mva: Mva,
    /// Number of bytes watched; at least one.
    pub bytes: u32,
    /// Whether reads match.
    pub reads: bool,
    /// Whether writes match.
    pub writes: bool,
}

/// A watched access that passed translation and permission checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// First watched byte that the access reads or writes.
    pub mva: Mva,
    /// Whether the access was a write. SWP reads first, then writes.
    pub write: bool,
}

/// Watchpoints, and the first hit since the last query.
#[derive(Clone, Default)]
pub(super) struct Watch {
    points: Vec<Watchpoint>,
    hit: Option<Watched>,
}

impl Watch {
    #[cold]
    fn note(&mut self, mva: Mva, bytes: u32, write: bool) -> bool {
        let touches = |p: &&Watchpoint| {
            let wanted = if write { p.writes } else { p.reads };
            wanted && (mva.0.wrapping_sub(p.mva.0) < p.bytes || p.mva.0.wrapping_sub(mva.0) < bytes)
        };
        let Some(point) = self.points.iter().find(touches) else {
            return false;
        };
        self.hit.get_or_insert(Watched {
            mva: mva.max(point.mva),
            write,
        });
        true
    }
}

impl<B: Bus> Cpu<B> {
    /// Replaces the watchpoints.
    pub fn set_watchpoints(&mut self, points: Vec<Watchpoint>) {
        self.memory.mmu.set_watching(!points.is_empty());
        self.memory.watch = Watch { points, hit: None };
    }

    /// Returns the first watched access since the last call.
    pub fn take_watched(&mut self) -> Option<Watched> {
        self.memory.watch.hit.take()
    }

    /// Compares a slow-path access with the watchpoints. A hit ends the loop.
    #[inline]
    pub(super) fn compare_watched(&mut self, mva: Mva, bytes: u32, kind: Kind) {
        if !self.memory.watch.points.is_empty()
            && self.memory.watch.note(mva, bytes, kind == Kind::Write)
        {
            self.end_loop();
        }
    }

    /// Reads the byte that the core would read at `mva`, without permission checks, time or side effects. The byte
    /// comes from the D-cache line if cache and page allow it, else from the write buffer, else from memory. A virtually
    /// tagged line is read even if its page is no longer mapped. Without a line, returns `None` if nothing is mapped or
    /// there is no memory.
    pub fn debug_read(&self, mva: Mva) -> Option<u8> {
        let page = self.debug_page(mva);
        let line = self.debug_line(mva, page);
        if let Some(line) = line.filter(|_| page.is_none_or(|(_, flags)| flags & mmu::CACHE != 0)) {
            let word = self.memory.dcache.line(line)[(mva.0 >> 2 & 7) as usize];
            return Some((word >> (8 * (mva.0 & 3))) as u8);
        }
        let (pa, _) = page?;
        self.memory
            .biu
            .pending_byte(pa)
            .or_else(|| self.bus.peek(pa))
    }

    /// Writes a byte as a store of the core would, without time. If a D-cache line holds `mva`, writes to this line. In
    /// a write-back page, the line becomes dirty. Writes memory if the page is uncached or write-through. The I-cache
    /// does not change. Returns false if nothing is mapped, or if there is no memory.
    pub fn debug_write(&mut self, mva: Mva, value: u8) -> bool {
        let page = self.debug_page(mva);
        let shift = 8 * (mva.0 & 3);
        if let Some(line) = self.debug_line(mva, page)
            && page.is_none_or(|(_, flags)| flags & mmu::CACHE != 0)
        {
            // The first store gives a claimed line its physical address.
            if self.memory.dcache.is_nowhere(line) {
                let Some((pa, _)) = page else {
                    return false;
                };
                self.memory.dcache.place(line, pa);
            }
            let back = page.is_none_or(|(_, flags)| flags & mmu::BUFFER != 0);
            self.memory
                .dcache
                .write(line, mva, u32::from(value) << shift, 0xff << shift, back);
            if back {
                return true;
            }
        }
        let Some((pa, flags)) = page else {
            return false;
        };
        if flags & mmu::CACHE == 0 && self.config().core.uncached_stores_update {
            self.update_line(mva, pa, Width::Byte, value.into());
        }
        if self.memory.biu.pending_byte(pa).is_some() {
            self.memory.biu.drain(&mut self.bus, self.cycles);
        }
        self.bus.poke(pa, value)
    }

    /// D-cache line that holds `mva`, whose page is `page`. Without a page, a physically tagged cache holds no address.
    fn debug_line(&self, mva: Mva, page: Option<(Pa, u32)>) -> Option<usize> {
        let pa = match (self.config().core.tagging, page) {
            (_, Some((pa, _))) => pa,
            (Tagging::Virtual, None) => UNTRANSLATED,
            (Tagging::Physical, None) => return None,
        };
        self.memory.dcache.find(mva, pa)
    }

    /// Physical address and page flags of data accesses to `mva`. They come from the TLB entry or, without an entry,
    /// from the tables in memory.
    fn debug_page(&self, mva: Mva) -> Option<(Pa, u32)> {
        if self.cp15.sctlr & 1 == 0 {
            return Some((Pa(mva.0), 0));
        }
        let held = self.memory.mmu.held(mva, Kind::Read).copied();
        let entry = held.or_else(|| self.debug_walk(mva))?;
        let flags = (self.memory.mmu.control())
            .attributes(self.config().core.descriptors, &entry.attributes);
        Some((entry.translate(mva), flags))
    }

    /// Physical address of `mva` by the tables in memory, even if a TLB holds something else. No side effects.
    pub fn debug_translate(&self, mva: Mva) -> Option<Pa> {
        match self.cp15.sctlr & 1 {
            0 => Some(Pa(mva.0)),
            _ => self.debug_walk(mva).map(|entry| entry.translate(mva)),
        }
    }

    fn debug_walk(&self, mva: Mva) -> Option<Entry> {
        struct Peek<'a, B: Bus>(&'a B);
        impl<B: Bus> DescriptorRead for Peek<'_, B> {
            fn descriptor(&mut self, pa: Pa) -> Option<u32> {
                let bytes = [0, 1, 2, 3].map(|n| self.0.peek(pa.plus(n)));
                let [a, b, c, d] = bytes;
                Some(u32::from_le_bytes([a?, b?, c?, d?]))
            }
        }
        let descriptors = self.config().core.descriptors;
        walk(descriptors, self.cp15.ttb, mva, &mut Peek(&self.bus)).ok()
    }

    /// Modified virtual address of a data access to `va`.
    pub fn debug_mva(&self, va: Va) -> Mva {
        self.fcse.data(va)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::TlbSide;
    use crate::tests::core::{COARSE, mapped};

    const LINE: u32 = 0x2_0000;

    /// Memory holds 0x22, and a line for the same address holds 0x11.
    #[test]
    fn with_the_d_cache_off_a_debugger_reads_and_writes_memory_as_the_core_does() {
        let mut cpu = mapped();
        assert_eq!(cpu.store(LINE, Width::Word, 0x22), Ok(()));
        cpu.drain_write_buffer();
        assert_eq!(cpu.load(LINE, Width::Word), Ok(0x22));
        assert_eq!(cpu.store(LINE, Width::Word, 0x11), Ok(()));
        cpu.cp15_write(0, 1, 0, 0, 0x1001);
        assert_eq!(cpu.load(LINE, Width::Word), Ok(0x22));
        assert_eq!(cpu.debug_read(Mva(LINE)), Some(0x22));
        assert!(cpu.debug_write(Mva(LINE), 0x33));
        assert_eq!(cpu.load(LINE, Width::Word), Ok(0x33));
        cpu.cp15_write(0, 1, 0, 0, 0x1005);
        assert_eq!(cpu.debug_read(Mva(LINE)), Some(0x11));
    }

    #[test]
    fn a_debuggers_write_to_a_write_through_page_is_in_the_line_and_in_memory() {
        let mut cpu = mapped();
        cpu.cp15_write(7, 15, 0, 0, 4);
        assert_eq!(cpu.load(LINE, Width::Word), Ok(0));
        assert!(cpu.debug_write(Mva(LINE), 7));
        assert!(!cpu.memory.dcache.any_dirty());
        assert_eq!(
            (cpu.load(LINE, Width::Word), cpu.bus.word(LINE)),
            (Ok(7), 7)
        );
    }

    #[test]
    fn a_watched_access_is_seen_each_time_even_if_its_translation_was_at_hand() {
        let (mut cpu, mva) = (mapped(), Mva(0x2_0004));
        for _ in 0..2 {
            assert_eq!(cpu.load(mva.0, Width::Word), Ok(0));
            assert_eq!(cpu.store(mva.0, Width::Word, 0), Ok(()));
        }
        assert_eq!(cpu.take_watched(), None);
        cpu.set_watchpoints(vec![Watchpoint {
            mva,
            bytes: 4,
            reads: true,
            writes: true,
        }]);
        for write in [false, false, true, true, false] {
            match write {
                true => assert_eq!(cpu.store(mva.0, Width::Word, 0), Ok(())),
                false => assert_eq!(cpu.load(mva.0, Width::Word), Ok(0)),
            }
            assert_eq!(cpu.take_watched(), Some(Watched { mva, write }));
        }
    }

    /// Software changes a table without an invalidation. Until the TLB entry is replaced, data stays at the old
    /// address.
    #[test]
    fn a_debugger_reads_and_writes_by_an_entry_of_the_tlb_that_is_older_than_the_tables() {
        let (mut cpu, mva) = (mapped(), Mva(0x11_0000));
        let second = COARSE + 4 * 0x10;
        cpu.bus.put(second, &[0x3_0ff2]);
        cpu.bus.put(0x3_0000, &[0x11]);
        cpu.bus.put(0x4_0000, &[0x22]);
        assert_eq!(cpu.debug_read(mva), Some(0x11));
        assert_eq!(cpu.counters.tlb_walks, 0);
        assert_eq!(cpu.load(mva.0, Width::Word), Ok(0x11));
        cpu.bus.put(second, &[0x4_0ff2]);
        assert_eq!(cpu.load(mva.0, Width::Word), Ok(0x11));
        assert_eq!(cpu.debug_read(mva), Some(0x11));
        assert_eq!(cpu.debug_translate(mva), Some(Pa(0x4_0000)));
        assert!(cpu.debug_write(mva, 0x33));
        assert_eq!(cpu.load(mva.0, Width::Word), Ok(0x33));
        cpu.invalidate_tlb_entry(TlbSide::Both, mva);
        assert_eq!(cpu.load(mva.0, Width::Word), Ok(0x22));
        assert_eq!(cpu.debug_read(mva), Some(0x22));
    }
}
