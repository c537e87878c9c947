// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instruction side of the memory path: I-cache lines and the prefetch buffer (`DDI0198D 4, 7.1`).

use crate::addr::Mva;
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::fcse::Relocation;
use crate::mmu::{self, Fault, Kind, Resolved};
use crate::observe::{Cause, Event, Side};
use crate::psr;

impl<B: Bus> Cpu<B> {
    /// Moves the pipeline on: the instruction at `from` has executed, and `third`, two after it, was fetched.
    pub(crate) fn advance_fetches(&mut self, from: u32, third: Relocation) {
        let size = if self.control & psr::T != 0 { 2 } else { 4 };
        if self.pc != from.wrapping_add(size) {
            self.refill_pipeline();
        } else if self.fcse.advance() {
            self.refetch();
        }
        self.fcse.set_following(third);
    }

    /// Flushes the pipeline. The next instructions are fetched under the current PID.
    #[cold]
    pub(crate) fn refill_pipeline(&mut self) {
        self.icache.prefetch = None;
        if self.fcse.refill() {
            self.refetch();
        }
    }

    /// Translates the address of the instruction at `pc`. Returns whether its fetch is cacheable. Remembers the page
    /// only if the fetch is cacheable and the page is at least 4 KB.
    #[inline(always)]
    pub(crate) fn is_page_cached(&mut self, pc: u32, mva: Mva) -> Result<bool, Fault> {
        let page = self.translate(mva, Kind::Fetch, self.mmu.privileged())?;
        self.fetch.resolved = page;
        self.fetch.epoch = u64::MAX;
        let cached = page.has(mmu::ICACHE);
        if cached && page.holds_for_4_kb() {
            self.fetch.page = pc >> 12;
            self.fetch.epoch = self.mmu.epoch();
        }
        Ok(cached)
    }

    /// Returns the I-cache line with the instruction at `pc`, by the last translation.
    #[inline(always)]
    pub(crate) fn fetch_line(&mut self, pc: u32, mva: Mva, thumb: bool) -> Result<usize, Fault> {
        match self.icache.find(mva) {
            Some(line) => Ok(line),
            None => self.fill_icache(pc, mva, self.fetch.resolved, thumb),
        }
    }

    /// Prefetches an I-cache line (CP15 c7,c13,1): fills the line that holds `mva` if it is cacheable and
    /// missing. The line of the current instruction may be the victim.
    pub(crate) fn prefetch_icache_line(&mut self, mva: Mva) -> Result<(), Fault> {
        self.refetch();
        let page = self.translate(mva, Kind::Fetch, self.mmu.privileged())?;
        if page.has(mmu::ICACHE) && self.icache.find(mva).is_none() {
            let thumb = self.control & psr::T != 0;
            self.fill_icache(self.pc, mva, page, thumb)?;
        }
        Ok(())
    }

    /// Fills the I-cache line that holds `mva`, for the instruction at `pc`.
    #[inline(always)]
    fn fill_icache(
        &mut self,
        pc: u32,
        mva: Mva,
        page: Resolved,
        thumb: bool,
    ) -> Result<usize, Fault> {
        let before = self.cycles;
        let pa = page.pa(mva);
        let mut data = [0; 8];
        let filled = self.biu.fetch_line(&mut self.bus, before, pa, &mut data);
        self.bus_used();
        let (start, time) = filled.map_err(|_| self.mmu.external_abort(page))?;
        let (line, replaced) = self.icache.allocate(mva);
        if B::OBSERVED
            && let Some(mva) = replaced
        {
            let side = Side::Instruction;
            self.tell_at(pc, Event::Replaced { side, mva });
        }
        self.icache.fill(line, mva, pa, &data, thumb);
        self.tell_ifill(Side::Instruction, pc, mva, page);
        let resume = start + self.exposed(time);
        self.wait_until(Cause::InstructionMiss, resume);
        self.counters.icache_fills += 1;
        self.counters.icache_fill_cycles += self.cycles - before;
        Ok(line)
    }

    /// Fetches from an uncached page through the four-word prefetch buffer.
    #[inline(never)]
    pub(crate) fn prefetch(
        &mut self,
        mva: Mva,
        page: Resolved,
        thumb: bool,
    ) -> Result<usize, Fault> {
        let line = self.icache.prefetch_line();
        let next = Mva(mva.0.wrapping_add(if thumb { 2 } else { 4 }));
        if let Some((chunk, expected)) = self.icache.prefetch
            && expected == mva
            && mva.0 & !15 == chunk.0
        {
            self.icache.prefetch = Some((chunk, next));
            return Ok(line);
        }
        let before = self.cycles;
        let mut data = [0; 8];
        let read = self
            .biu
            .fetch_line(&mut self.bus, before, page.pa(mva), &mut data);
        self.bus_used();
        let (start, time) = read.map_err(|_| self.mmu.external_abort(page))?;
        self.icache.fill(line, mva, page.pa(mva), &data, thumb);
        self.icache.prefetch = Some((Mva(mva.0 & !15), next));
        self.tell_ifill(Side::Prefetch, self.pc, mva, page);
        self.wait_until(Cause::Uncached, start + u64::from(time.first));
        self.counters.uncached_fetches += 1;
        self.counters.uncached_fetch_cycles += self.cycles - before;
        Ok(line)
    }
}
