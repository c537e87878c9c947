// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfers of several words: LDM, STM, LDRD, STRD.

use core::ops::Range;

use crate::addr::Mva;
use crate::bus::{Bus, Width};
use crate::cpu::{Aborted, Access, Cpu};
use crate::mmu::{self, Fault, Kind, Resolved};
use crate::observe::{Cause, Event};

/// Size of the smallest page. Addresses on different sides of a multiple of it may have different attributes.
const SMALLEST_PAGE: u32 = 1024;

/// Consecutive words of a store, within one page, that bypass the cache as one transfer.
struct Run {
    page: Resolved,
    /// Address of the first word, and its number within the store.
    mva: Mva,
    from: usize,
    /// Lines of cacheable pages that missed the cache; bit 0 is the first word's line.
    missed: u8,
}

/// The part of a store to one line that is done.
enum Stored {
    /// Nothing: the caller stores the words one by one.
    Nothing,
    /// The cache part is done. The words must still be stored to the page in the first field, bypassing the cache. The
    /// flag says whether the line was missing.
    Past(Resolved, bool),
}

impl<B: Bus> Cpu<B> {
    /// If a grant allows the read and one line holds all `count` words from `va`, returns the line and the position of
    /// the first word.
    #[inline(always)]
    pub(crate) fn granted_line(&self, va: u32, count: u32) -> Option<([u32; 8], usize)> {
        let first = va >> 2 & 7;
        if !Self::GRANTS || first + count > 8 {
            return None;
        }
        let line = self.memory.mmu.grants.read(self.data_mva(va), 3)?;
        Some((*self.memory.dcache.line(line), first as usize))
    }

    /// If a grant allows the write and one line holds all `count` words from `va`, returns the line and the position of
    /// the first word.
    #[inline(always)]
    pub(crate) fn granted_line_for_write(&self, va: u32, count: u32) -> Option<(usize, usize)> {
        let first = va >> 2 & 7;
        if !Self::GRANTS || first + count > 8 {
            return None;
        }
        let line = self.memory.mmu.grants.write(self.data_mva(va), 3)?;
        Some((line, first as usize))
    }

    /// Loads ascending words from `va`. With SCTLR.A or SCTLR.U, a `va` that is not word-aligned faults. Otherwise, its low two
    /// bits are ignored.
    pub(crate) fn load_multiple(&mut self, va: u32, out: &mut [u32]) -> Access<()> {
        if va & 3 != 0 && self.cp15.words_are_aligned() {
            return Err(self.data_abort(Fault::ALIGNMENT, self.data_mva(va)));
        }
        let va = va & !3;
        let last = self.data_mva(va).0.wrapping_add(4 * (out.len() as u32 - 1));
        let mut n = 0;
        while n < out.len() {
            let va = va.wrapping_add(4 * n as u32);
            let left = &mut out[n..];
            let count = left.len().min(8 - (va >> 2 & 7) as usize);
            if let Some((line, first)) = self.granted_line(va, count as u32) {
                left[..count].copy_from_slice(&line[first..first + count]);
                n += count;
                continue;
            }
            match self.load_piece(va, left) {
                Ok(count) => n += count,
                Err(aborted) => return Err(self.aborted_within(last, aborted)),
            }
        }
        Ok(())
    }

    /// Loads one word, or an uncached burst. Returns the number of words.
    fn load_piece(&mut self, va: u32, out: &mut [u32]) -> Access<usize> {
        if !self.memory.biu.reads_bursts() || self.separates_accesses() {
            out[0] = self.load(va, Width::Word)?;
            return Ok(1);
        }
        let mva = self.data_mva(va);
        let page = self.access(mva, Kind::Read, self.memory.mmu.privileged())?;
        if page.has(mmu::CACHE) {
            out[0] = self.load_at(page, mva, Width::Word)?;
            return Ok(1);
        }
        let (before, pa) = (self.cycles, page.pa(mva));
        let count = self.memory.biu.readable(pa, out.len());
        let words = &mut out[..count];
        self.compare_watched(mva, 4 * count as u32, Kind::Read);
        let read = self.memory.biu.read_words(&mut self.bus, before, pa, words);
        self.uncached_is_read(page, mva, count as u64, read)?;
        for (n, word) in (0..).zip(&*words) {
            self.tell_load(page, Mva(mva.0 + 4 * n), Width::Word, *word, false);
        }
        Ok(count)
    }

    /// Corrects the FAR after an external abort within a transfer of several words. The FAR becomes the address of the
    /// last word. If the transfer crosses a 1 KB boundary after the abort, the FAR becomes the address of the last word
    /// below that boundary (`DDI0198D 3.3.1`).
    #[cold]
    fn aborted_within(&mut self, last: u32, aborted: Aborted) -> Aborted {
        if Fault::is_external(self.cp15.dfsr) {
            let first = self.cp15.far;
            self.cp15.far = first + last.wrapping_sub(first).min((first | 0x3fc) - first);
        }
        aborted
    }

    /// Stores ascending words to `va`. With SCTLR.A or SCTLR.U, a `va` that is not word-aligned faults. Otherwise, its low two
    /// bits are ignored.
    pub(crate) fn store_multiple(&mut self, va: u32, words: &[u32]) -> Access<()> {
        if va & 3 != 0 && self.cp15.words_are_aligned() {
            return Err(self.data_abort_of(Kind::Write, Fault::ALIGNMENT, self.data_mva(va)));
        }
        let va = va & !3;
        let last = self
            .data_mva(va)
            .0
            .wrapping_add(4 * (words.len() as u32 - 1));
        let (mut run, mut at) = (None, 0);
        while at < words.len() {
            let here = va.wrapping_add(4 * at as u32);
            if here.is_multiple_of(SMALLEST_PAGE) {
                self.end_run(&mut run, &words[..at], last)?;
            }
            let count = (words.len() - at).min(8 - (here >> 2 & 7) as usize);
            if let Some((line, first)) = self.granted_line_for_write(here, count as u32) {
                self.end_run(&mut run, &words[..at], last)?;
                self.memory
                    .dcache
                    .words_to_write(line, first, count as u32)
                    .copy_from_slice(&words[at..at + count]);
            } else {
                self.store_piece(&mut run, words, at..at + count, (here, last))?;
            }
            at += count;
        }
        self.end_run(&mut run, words, last)
    }

    /// Stores words of one line, at `va`, if no grant exists. Words that bypass the cache join the run.
    fn store_piece(
        &mut self,
        run: &mut Option<Run>,
        words: &[u32],
        piece: Range<usize>,
        (va, last): (u32, u32),
    ) -> Access<()> {
        let (mva, from) = (self.data_mva(va), piece.start);
        let piece = &words[piece];
        let stored = self.store_into_line(mva, piece);
        let (page, missed) = match stored.map_err(|aborted| self.aborted_within(last, aborted))? {
            Stored::Past(page, missed) => (page, missed),
            Stored::Nothing => {
                self.end_run(run, &words[..from], last)?;
                let privileged = self.memory.mmu.privileged();
                for (n, word) in (0..).zip(piece) {
                    let at = Mva(mva.0 + 4 * n);
                    // The slow path of the first word usually creates a grant for the other words.
                    if !self.granted_store_at(at, Width::Word, *word) {
                        self.store_slow(at, Width::Word, *word, privileged, false)
                            .map_err(|aborted| self.aborted_within(last, aborted))?;
                    }
                }
                return Ok(());
            }
        };
        let run = run.get_or_insert(Run {
            page,
            mva,
            from,
            missed: 0,
        });
        run.missed |= u8::from(missed) << ((mva.0 >> 5) - (run.mva.0 >> 5));
        Ok(())
    }

    /// Does the cache part of a store of words to one line, if the words also go to memory.
    fn store_into_line(&mut self, mva: Mva, words: &[u32]) -> Access<Stored> {
        let page = self.access(mva, Kind::Write, self.memory.mmu.privileged())?;
        self.compare_watched(mva, 4 * words.len() as u32, Kind::Write);
        if !page.has(mmu::CACHE) {
            // XScale's fences and unbuffered stores transfer single words.
            let single = self.separates_accesses()
                || self.has_policy(page, mmu::SINGLE)
                || self.has_policy(page, 0) && !page.has(mmu::BUFFER);
            return Ok(match single {
                true => Stored::Nothing,
                false => Stored::Past(page, false),
            });
        }
        let Some(line) = self.line_to_store(mva, page)? else {
            return Ok(Stored::Past(page, true));
        };
        if page.has(mmu::BUFFER) {
            return Ok(Stored::Nothing);
        }
        for (n, word) in (0..).zip(words) {
            let at = Mva(mva.0 + 4 * n);
            self.memory.dcache.write(line, at, *word, u32::MAX, false);
        }
        Ok(Stored::Past(page, false))
    }

    /// Stores the run, if there is one, bypassing the cache. The run ends where `words` ends.
    #[inline(always)]
    fn end_run(&mut self, run: &mut Option<Run>, words: &[u32], last: u32) -> Access<()> {
        match run.take() {
            None => Ok(()),
            Some(run) => self
                .store_run(&run, &words[run.from..])
                .map_err(|aborted| self.aborted_within(last, aborted)),
        }
    }

    #[inline(never)]
    fn store_run(&mut self, run: &Run, words: &[u32]) -> Access<()> {
        let (page, before) = (run.page, self.cycles);
        let (pa, cached) = (page.pa(run.mva), page.has(mmu::CACHE));
        self.counters.buffered_stores += words.len() as u64;
        self.monitor.stored(run.mva, 4 * words.len() as u32);
        let (own, done, written) = if cached || page.has(mmu::BUFFER) {
            let accepted = self
                .memory
                .biu
                .store_words(&mut self.bus, before, pa, words);
            (Cause::WriteBuffer, accepted, words.len())
        } else {
            let (done, written) =
                (self.memory.biu).store_words_unbuffered(&mut self.bus, before, pa, words);
            (Cause::Uncached, done, written)
        };
        for (n, word) in (0..).zip(&words[..written]) {
            let at = Mva(run.mva.0 + 4 * n);
            if !cached && self.config().core.uncached_stores_update {
                self.update_line(at, page.pa(at), Width::Word, *word);
            }
            self.tell_store(page, at, Width::Word, *word, false);
        }
        self.wait_until(own, done);
        let cycles = self.cycles - before;
        self.tell_missed(run, cycles);
        self.counters.write_wait_cycles += cycles;
        self.bus_used();
        if written < words.len() {
            let failed = Mva(run.mva.0 + 4 * written as u32);
            let fault = self.memory.mmu.external_abort(page);
            return Err(self.data_abort_of(Kind::Write, fault, failed));
        }
        Ok(())
    }

    /// Reports each line that the run missed. The wait is charged to the first line.
    fn tell_missed(&mut self, run: &Run, mut cycles: u64) {
        if !B::OBSERVED {
            return;
        }
        for n in (0..8).filter(|n| run.missed >> n & 1 != 0) {
            let mva = Mva(run.mva.0.max((run.mva.0 & !31) + 32 * n));
            self.tell(Event::StoreMissed { mva, cycles });
            cycles = 0;
        }
    }
}
