// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfers of several words: LDM, STM, LDRD, STRD.

use crate::addr::Mva;
use crate::bus::{Bus, Width};
use crate::cpu::{Aborted, Access, Cpu};
use crate::mmu::{self, Fault, Kind};
use crate::observe::{Cause, Event};

impl<B: Bus> Cpu<B> {
    /// The line with `count` words from `va`, if they are in one and may be read at once, and the
    /// first one's place in it.
    #[inline(always)]
    pub(crate) fn granted_line(&self, va: u32, count: u32) -> Option<([u32; 8], usize)> {
        let first = va >> 2 & 7;
        if !Self::GRANTS || first + count > 8 {
            return None;
        }
        let line = self.mmu.grants.read(self.data_mva(va), 3)?;
        Some((*self.dcache.line(line), first as usize))
    }

    /// The same for writing.
    #[inline(always)]
    pub(crate) fn granted_line_for_write(&self, va: u32, count: u32) -> Option<(usize, usize)> {
        let first = va >> 2 & 7;
        if !Self::GRANTS || first + count > 8 {
            return None;
        }
        let line = self.mmu.grants.write(self.data_mva(va), 3)?;
        Some((line, first as usize))
    }

    /// Loads ascending words from `va` with its low two bits ignored (or faulting, SCTLR.A).
    pub(crate) fn load_multiple(&mut self, va: u32, out: &mut [u32]) -> Access<()> {
        if va & 3 != 0 && self.cp15.alignment_checked() {
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
            match self.load(va, Width::Word) {
                Ok(value) => left[0] = value,
                Err(aborted) => return Err(self.aborted_within(last, aborted)),
            }
            n += 1;
        }
        Ok(())
    }

    /// FAR of an external abort within a transfer of several words: the address of its last word, or
    /// of the last one below a 1 KB boundary that the transfer crosses behind the abort
    /// (`DDI0198D 3.3.1`).
    #[cold]
    fn aborted_within(&mut self, last: u32, aborted: Aborted) -> Aborted {
        if Fault::is_external(self.cp15.dfsr) {
            let first = self.cp15.far;
            self.cp15.far = first + last.wrapping_sub(first).min((first | 0x3fc) - first);
        }
        aborted
    }

    /// Stores ascending words from `va` with its low two bits ignored (or faulting, SCTLR.A).
    pub(crate) fn store_multiple(&mut self, va: u32, words: &[u32]) -> Access<()> {
        if va & 3 != 0 && self.cp15.alignment_checked() {
            return Err(self.data_abort(Fault::ALIGNMENT, self.data_mva(va)));
        }
        let mut va = va & !3;
        let last = self
            .data_mva(va)
            .0
            .wrapping_add(4 * (words.len() as u32 - 1));
        let mut words = words;
        while !words.is_empty() {
            let first = va >> 2 & 7;
            let (head, tail) = words.split_at(words.len().min(8 - first as usize));
            match self.granted_line_for_write(va, head.len() as u32) {
                Some((line, first)) => {
                    let count = head.len() as u32;
                    self.dcache
                        .words_to_write(line, first, count)
                        .copy_from_slice(head);
                }
                None => self
                    .store_run(self.data_mva(va), head)
                    .map_err(|aborted| self.aborted_within(last, aborted))?,
            }
            words = tail;
            va = va.wrapping_add(4 * head.len() as u32);
        }
        Ok(())
    }

    /// Words of one line that did not hit in a write-back page.
    fn store_run(&mut self, mva: Mva, words: &[u32]) -> Access<()> {
        let page = self.access(mva, Kind::Write, self.mmu.privileged())?;
        self.compare_watched(mva, 4 * words.len() as u32, Kind::Write);
        let missed = page.has(mmu::CACHE) && self.line_to_store(mva, page)?.is_none();
        if missed {
            let before = self.cycles;
            self.counters.buffered_stores += words.len() as u64;
            if B::OBSERVED {
                for (n, word) in (0..).zip(words) {
                    self.tell_store(page, Mva(mva.0 + 4 * n), Width::Word, *word, false);
                }
            }
            let accepted = self
                .biu
                .store_words(&mut self.bus, before, page.pa(mva), words);
            self.wait_until(Cause::WriteBuffer, accepted);
            let cycles = self.cycles - before;
            self.tell(Event::StoreMissed { mva, cycles });
            self.counters.write_wait_cycles += cycles;
            self.bus_used();
            return Ok(());
        }
        for (n, word) in (0..).zip(words) {
            let at = Mva(mva.0 + 4 * n);
            // The first one mostly is what the others need.
            if !self.granted_store_at(at, Width::Word, *word) {
                self.store_slow(at, Width::Word, *word, self.mmu.privileged(), false)?;
            }
        }
        Ok(())
    }
}
